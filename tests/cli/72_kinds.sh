# Samples that are not pictures, through the whole program: the configurations that teach them, made tiny; the same batches
# for 1, 2 and 4 workers; damaged files counted with their reason; and settings that do not go together refused.
. "$CLI/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
tiny=(--set measure.duration=60ms --set measure.warmup=0s --set measure.window=10ms --set measure.repeats=1 --set measure.limits=off)
checked=(--set run.verify=on --set measure.epochs=2 --set sweep.decode.workers=1,2,4 --set step.backend=null)
expect 0 "$MLBENCH" list kinds
for kind in image volume; do prints "$kind"; done

# Volumes: generated, checked, swept, diagnosed.
volumes=(--set dataset.path=volumes --set dataset.samples=12 --set dataset.depth=12 --set dataset.height=14 --set dataset.width=16
	--set volume.crop=8x8x8 --set batch.size=3)
expect 0 "$MLBENCH" check "$ROOT/configs/unet3d_like.ini" "${volumes[@]}"
expect 0 "$MLBENCH" gen "$ROOT/configs/unet3d_like.ini" "${volumes[@]}"
prints "12 samples made"
expect 0 "$MLBENCH" gen "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" --verify
prints "12 files good, 0 bad"
expect_measured "$MLBENCH" sweep "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" "${tiny[@]}" --set step.time=1ms --out swept
expect_measured "$MLBENCH" diagnose swept
! grep -qE 'codec\.|pictures' out || fail "advice about pictures"
expect_measured "$MLBENCH" sweep "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" "${tiny[@]}" "${checked[@]}" --set read.depth=2 --out same
prints "checksums of 3 repetitions agree"
for packing in npz npz-deflated; do
	expect_measured "$MLBENCH" sweep "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" "${tiny[@]}" "${checked[@]}" --set read.depth=2 \
		--set dataset.volume_format=$packing --set dataset.path=$packing --out "same_$packing"
	prints "checksums of 3 repetitions agree"
done
# However the same arrays are packed, the batches are the same.
python3 - <<'PY' || fail "packed volumes give other batches"
import json
sums = set()
for folder in ("same", "same_npz", "same_npz-deflated"):
    for line in open(folder + "/points.jsonl"):
        row = json.loads(line)
        if row.get("kind") == "repetition":
            sums.add(row["checksum"])
assert len(sums) == 1, sums
PY

# A folder of one's own: what is no array is left out, and what turns out to lie is counted, each with its reason.
cp -r volumes own
rm own/mlbench-manifest.jsonl
first=$(find own -name '*.npy' | sort | head -n 1)
second=$(find own -name '*.npy' | sort | sed -n 2p)
truncate -s -4 "$first"
printf 'no array' >own/class_0000/other.npy
printf 'PK\003\004 and no directory' >own/class_0000/torn.npz
own=(--set dataset.path=own --set dataset.recipe=none --set dataset.samples=0)
expect_measured "$MLBENCH" run "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" "${tiny[@]}" "${own[@]}" --set step.backend=null --set decode.workers=1 \
	--set read.depth=1 --set measure.epochs=1 --out own_run
says "left out: class_0000/other.npy: no npy file"
says "left out: ${first#own/}: npy: its header stands for"
grep -q "bad sample 'class_0000/torn.npz': npz: it has no zip directory" own_run/points.jsonl || fail "the torn zip is not counted"

# What does not go together.
expect 2 "$MLBENCH" check "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" --set volume.crop=64x64
says "'volume.crop' = 64x64 is not depth x height x width"
expect 2 "$MLBENCH" check "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" --set augment.size=64
says "'augment.size' is about sample.kind = image"
expect 2 "$MLBENCH" gen "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" --set sample.kind=image --set dataset.path=none
says "dataset.recipe = volume makes .npy files"
[ ! -e none ] || fail "something was generated"
