# Devices that train together: refused where there is one, measured, diagnosed rightly whatever limits them, and foretold.
. "$CLI/lib.sh"
write_config
# 4 emulated devices, 10 ms a step; nothing else takes time.
group=(--set decode.workers=1 --set batch.size=8 --set step.time=10ms --set step.devices=4 --set prefetch.depth=8
	--set codec.name=null --set read.engine=memory --set measure.duration=700ms --set measure.warmup=200ms)

# A backend that has one device, a data set that has fewer batches than devices, a link without a size to carry.
expect 2 "$MLBENCH" run tiny.ini --set decode.workers=1 --set batch.size=8 --set step.devices=2 --set step.backend=null
says "step.devices = 2: the null backend has one device"
expect 2 "$MLBENCH" check tiny.ini --set decode.workers=1 --set batch.size=8 --set step.devices=2 --set step.backend=openblas
says "step.devices = 2: the openblas backend has one device"
expect 2 "$MLBENCH" run tiny.ini --set decode.workers=1 --set batch.size=8 --set step.devices=13
says "step.devices = 13 is more than the data set's 12 batches"
expect 2 "$MLBENCH" check tiny.ini --set step.devices=2 --set step.model=cosmoflow --set sync.bandwidth=1GB/s
says "sync.bandwidth"
expect 2 "$MLBENCH" check tiny.ini --set inject.slow_device=2
says "it needs 'step.devices' > 1"

# verdict STAGE RESOURCE OUT SETTING ...: what the diagnosis says where that is measured, in one of two tries.
verdict() {
	local stage=$1 resource=$2 name=$3 try
	shift 3
	for try in 1 2; do
		"$MLBENCH" diagnose tiny.ini "${group[@]}" "$@" --out "$name$try" --json >out 2>err
		is_json mlbench.diagnosis/1
		measuring || return
		[ "$(json '(d["verdict"]["stage"], d["verdict"]["resource"]) == ("'"$stage"'", "'"$resource"'")')" = True ] && return
	done
	fail "not $stage/$resource: $(json 'd["verdict"]["stage"], d["verdict"]["resource"]')"
}
verdict step compute computes
verdict sync exchange exchanges --set sync.bandwidth=10GB/s
verdict step imbalance slow --set inject.slow_device=2 --set sync.bandwidth=100GB/s
verdict decode wait starves --set inject.decode_wait=1ms --set sync.bandwidth=100GB/s --set measure.duration=1500ms --set measure.window=100ms

# The table has a line of each stage and as many threads as devices; the sums are those of all devices.
expect 0 "$MLBENCH" show computes1
prints "step          4"
prints "sync          4"
prints "4 devices"
expect 0 "$MLBENCH" explain sync/exchange
prints "exchanging their gradients"

# Two and four are foretold from one, and measured: resnet50 exchanges 102 MB.
foretell=("${group[@]}" --set sync.bandwidth=20GB/s)
predictable one step.devices=2,4 "$MLBENCH" sweep tiny.ini "${foretell[@]}" --set step.devices=1
expect_measured "$MLBENCH" sweep tiny.ini "${foretell[@]}" --set sweep.step.devices=2,4 --out more
expect 0 "$MLBENCH" what-if one --set step.devices=2,4 --json
cp out foretold
python3 - <<'PY' || fail "the prediction is off"
import json, os
measured = {}
for line in open("more/points.csv"):
    cells = line.rstrip("\n").split(",")
    if cells[0] == "point" or "step.devices" in cells:
        head = cells
        continue
    row = dict(zip(head, cells))
    measured[int(row["step.devices"])] = float(row["samples_per_s"] if "samples_per_s" in row else row["median"])
foretold = json.load(open("foretold"))
for answer in foretold["alternatives"]:
    devices = int(answer["settings"]["step.devices"])
    predicted = answer["throughput"]
    print(devices, "devices: predicted", predicted, "measured", measured[devices])
    assert not os.environ.get("MLBENCH_MEASURING") or abs(predicted / measured[devices] - 1) < 0.15, devices
PY

# The same batches, in the same order, however many step on them.
checked=(--set decode.workers=2 --set batch.size=8 --set run.verify=on --set measure.epochs=2 --set measure.warmup=0s --set measure.repeats=1)
for devices in 1 2 3 4; do
	expect_measured "$MLBENCH" run tiny.ini "${checked[@]}" --set step.devices=$devices --out "verify$devices"
	grep -o '"epoch_checksum":[^,}]*' "verify$devices/points.jsonl" >>sums
done
[ "$(sort -u sums | wc -l)" -eq 1 ] && [ "$(wc -l <sums)" -eq 4 ] || fail "not one checksum: $(cat sums)"
