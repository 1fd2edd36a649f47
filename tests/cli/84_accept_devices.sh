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
figures() {
	json 'sorted((e["figure"], e["place"]) for m in d["measured"] for e in m["values"] if len(e["values"]) > 0)'
}
MLBENCH_DOUBLE_DEVICES=2 expect 0 "$MLBENCH" accept devices.ini --tier quick --budget 30min --json --out two
[ "$(figures)" = "[('copy.to_device', 'device 0'), ('copy.to_device', 'device 1'), ('device.memory', 'device 0'), ('device.memory', 'device 1'), ('gemm.device', 'device 0'), ('gemm.device', 'device 1')]" ] ||
	fail "not three figures of two devices: $(figures)"
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
