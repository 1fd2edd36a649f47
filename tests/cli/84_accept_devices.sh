# mlbench accept, ceilings of devices, on the test double: each device by itself, two of them alike, a peak by the name, a
# device that fails in the middle.  Skipped where the double is not built.
. "$CLI/lib.sh"
export MLBENCH_CUDA_PLUGIN=$(dirname "$MLBENCH")/double/libmlbench-cuda.so
[ -e "$MLBENCH_CUDA_PLUGIN" ] || skip "the test double is not built (make double)"
cat >devices.ini <<'INI'
[devices]
kind = ceiling
tier = quick
budget = 10min
gemm.device = known
device.memory = known
copy.to_device = known
INI
MLBENCH_DOUBLE_DEVICES=2 "$MLBENCH" accept devices.ini --tier quick --budget 30min --json --out two >out 2>err
python3 - $? <<'PY' || fail "not three figures of two devices"
import json, sys
measured = json.load(open("out"))["measured"][0]
found = {(e["figure"], e["place"]) for e in measured["values"] if e["values"]}
wanted = {(figure, "device %d" % d) for figure in ("copy.to_device", "device.memory", "gemm.device") for d in (0, 1)}
# A slow node has no time for all of them, and says of which device.
short = {place for _, place in wanted - found}
assert found <= wanted and all(any(n.startswith(place) and "out of time" in n for n in measured["notes"]) for place in short), measured
assert int(sys.argv[1]) == (3 if {f for f, _ in wanted} - {f for f, _ in found} else 0), (sys.argv[1], found)
PY
reads "device 0 is simulated on the CPU by a test double: its figures are meaningless"
# No device: missing with the reason, which is an error where the plan does not pass over it.
MLBENCH_DOUBLE_DEVICES=0 expect 3 "$MLBENCH" accept devices.ini --out none
reads "no device"
printf 'include = devices.ini\n[devices]\nif_missing = skip\n' >may.ini
MLBENCH_DOUBLE_DEVICES=0 expect 3 "$MLBENCH" accept may.ini --out skipped
reads "SKIP"
# One that fails is never passed over.
printf 'include = may.ini\n[devices]\ngemm.device = none\ncopy.to_device = none\n' >memory.ini
MLBENCH_DOUBLE_FAIL=cudaMalloc:2 expect 3 "$MLBENCH" accept memory.ini --out lost
reads "ERROR"
