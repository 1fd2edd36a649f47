# The whole program with the plug-in on the test double: steps, uploads, graphs, augmentation on the device, what is refused, and a
# device that fails in the middle.  Skipped where the double is not built.
. "$CLI/lib.sh"
export MLBENCH_CUDA_PLUGIN=$(dirname "$MLBENCH")/double/libmlbench-cuda.so
[ -e "$MLBENCH_CUDA_PLUGIN" ] || skip "the test double is not built (make double)"
write_config
expect 0 "$MLBENCH" gen tiny.ini
cuda="--set step.backend=cuda --set measure.repeats=1 --set measure.epochs=1 --set measure.warmup=0s --set step.model=mlp --set augment.size=8 --set batch.size=8 --set decode.workers=1"

expect 0 "$MLBENCH" list backends
prints "test double"
expect 0 "$MLBENCH" check tiny.ini $cuda
prints "cuda: test double (CPU), mlp in bf16"
expect 0 "$MLBENCH" check tiny.ini $cuda --set step.precision=fp32
prints "cuda: test double (CPU), mlp in fp32"
# Where step keys are swept, the first line still names the device and the precision.
expect 0 "$MLBENCH" check tiny.ini $cuda --set sweep.step.graph=off,on
prints "cuda: test double (CPU), mlp in bf16 (first point; swept)"
# What is published of a device of this name stands beside it.
MLBENCH_DOUBLE_NAME="NVIDIA H100 80GB HBM3" expect 0 "$MLBENCH" check "$ROOT/configs/imagenet_like.ini" --set dataset.path=none
reads "step: cuda: test double NVIDIA H100 80GB HBM3, resnet50 in bf16"
reads "reference: published h100, resnet50: 224 ms per batch of 400, 1786 samples/s (not measured here)"
MLBENCH_DOUBLE_NAME="NVIDIA H100 80GB HBM3 MIG 1g.10gb" expect 0 "$MLBENCH" check "$ROOT/configs/imagenet_like.ini" --set dataset.path=none
! grep -q reference: out || fail "a part of a device is compared with the whole"
# Evaluations are the forward pass, of batches that are larger than those of training, too.
evaluating="--set evaluate.every=5 --set evaluate.samples=37 --set evaluate.batch_size=16"
for way in "--set upload.mode=none" "--set step.graph=on"; do
	rm -rf evaluated
	expect_measured "$MLBENCH" run tiny.ini --verbose $cuda $evaluating $way --out evaluated
	reads "evaluations of 37 samples of data"
	reads "the forward pass is computed"
	grep -q '"evaluation":\[{[^]]*"computed":true' evaluated/points.jsonl || fail "evaluations are not said to be computed"
done
expect 2 "$MLBENCH" check tiny.ini $cuda $evaluating --set evaluate.step_time=5ms
says "step.backend = cuda computes the forward pass"
# Every configuration that is not about emulation runs here.
export MLBENCH_DOUBLE_MEMORY=80000000000
for name in imagenet_like imagenet_full png_medical step_only; do
	expect 0 "$MLBENCH" check "$ROOT/configs/$name.ini" --set dataset.path=none
	prints "step: cuda: test double"
done
unset MLBENCH_DOUBLE_MEMORY

# Every way says whose figures they are, and leaves a device in the record.
number=0
for way in "" "--set step.graph=on" "--set upload.mode=none --set step.ahead=0" "--set augment.device=gpu --set augment.type=uint8" \
	"--set step.precision=bf16 --set step.accumulate=2 --set step.statistics=3 --set step.optimizer=adam"; do
	number=$((number + 1))
	# shellcheck disable=SC2086
	expect_measured "$MLBENCH" run tiny.ini $cuda $way --json --out way$number
	[ "$(python3 -c 'import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
devices = [d for line in lines for d in line.get("devices", [])]
print(len(devices) > 0 and all("test double" in d["name"] and d["step_seconds"] > 0 for d in devices))' way$number/points.jsonl)" = True ] ||
		fail "no device in the record of '$way'"
done

# Two devices sum their gradients in buckets; what passes behind the backward pass is measured, and without overlap it is nothing.
for overlap in on off; do
	MLBENCH_DOUBLE_DEVICES=2 expect_measured "$MLBENCH" run tiny.ini $cuda --set batch.size=4 --set step.devices=2 --set sync.bucket=64KiB --set sync.overlap=$overlap --out overlap-$overlap
	expect 0 "$MLBENCH" show overlap-$overlap --json
	[ "$(json 'any(v["sync_hidden_share"] is not None and (v["sync_hidden_share"] == 0 or "'$overlap'" == "on") for v in d["points"][0]["devices"])')" = True ] || fail "what is hidden of the exchange, sync.overlap = $overlap"
done

# What this device cannot do is the node's lack; what nobody can, the file's mistake.
expect 3 "$MLBENCH" run tiny.ini $cuda --set step.devices=2
says "step.devices = 2: this node has only 1 device"
MLBENCH_DOUBLE_CAPABILITY=80 expect 3 "$MLBENCH" run tiny.ini $cuda --set step.precision=fp8
says "(sm_80) does not support it"
MLBENCH_DOUBLE_MEMORY=1000000 expect 3 "$MLBENCH" run tiny.ini $cuda
says "of device memory"
expect 2 "$MLBENCH" run tiny.ini $cuda --set step.model=mlq
says "did you mean 'mlp'?"
MLBENCH_DOUBLE_DRIVER=12040 expect 3 "$MLBENCH" run tiny.ini $cuda
says "the NVIDIA driver is too old: it supports CUDA 12.4, but the plug-in needs 13.0"
MLBENCH_DOUBLE_DRIVER=0 expect 3 "$MLBENCH" run tiny.ini $cuda
says "no NVIDIA driver"
MLBENCH_DOUBLE_DEVICES=0 expect 3 "$MLBENCH" run tiny.ini $cuda
says "no device"

# A device that is lost takes the repetition with it, not the program, and is named with the step.
MLBENCH_DOUBLE_FAIL=kernel:700 "$MLBENCH" run tiny.ini $cuda --set measure.epochs=9 --out lost >out 2>err
status=$?
[ "$status" -eq 1 ] || [ "$status" -eq 3 ] || fail "exit $status when the device is lost"
says "of batch"
says "unspecified launch failure"
! grep -q "test double: " err || fail "the runtime was misused"
