# Samples that are not pictures, through the whole program: the configurations that teach them, made tiny; the same batches
# for 1, 2 and 4 workers; damaged files counted with their reason; and settings that do not go together refused.
. "$CLI/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
tiny=(--set measure.duration=60ms --set measure.warmup=0s --set measure.window=10ms --set measure.repeats=1 --set measure.limits=off)
checked=(--set run.verify=on --set measure.epochs=2 --set sweep.decode.workers=1,2,4 --set step.backend=null)
expect 0 "$MLBENCH" list kinds
for kind in image volume tokens record bytes; do prints "$kind"; done

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
            sums.add(row["epoch_checksum"])
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

# Tokens: files of ids, of which sequences are read as parts.
tokens=(--set dataset.path=tokens --set dataset.samples=3 --set dataset.file_tokens=5000 --set dataset.document_tokens=40
	--set batch.size=4)
expect 0 "$MLBENCH" check "$ROOT/configs/tokens.ini" "${tokens[@]}"
expect 0 "$MLBENCH" gen "$ROOT/configs/tokens.ini" "${tokens[@]}"
prints "3 samples made"
expect 0 "$MLBENCH" check "$ROOT/configs/tokens.ini" "${tokens[@]}" --set sweep.tokens.length=16
prints "3 files, 29.3 KiB, in tokens: 936 samples"
expect_measured "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tokens[@]}" "${tiny[@]}" --set sweep.tokens.length=16,64 --set step.time=1ms \
	--out lengths
# Attention grows with the square of the length: 4 x the tokens are more than 4 x the work.
python3 - <<'PY' || fail "the FLOPs of a step do not follow the length of the sequences"
import json
flops = {}
for line in open("lengths/points.jsonl"):
    row = json.loads(line)
    if row.get("kind") == "repetition":
        flops.setdefault(row["point"] // 2, set()).add(row["flops_per_sample"])
short, long = (flops[point].pop() for point in sorted(flops))
assert 4 < long / short < 4.1, (short, long)
PY
expect_measured "$MLBENCH" diagnose lengths
! grep -qE 'codec\.|pictures' out || fail "advice about pictures"
# The same sequences for any number of workers, whoever reads them: at any place of a file, past the page cache as well.
for packing in stream documents; do
	number=0
	for how in read.engine=io_uring read.engine=pread read.engine=memory read.direct=on read.order=sequential \
		"read.order=sequential --set read.request=4K"; do
		expect_measured "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tokens[@]}" "${tiny[@]}" "${checked[@]}" --set $how \
			--set tokens.length=33 --set tokens.packing=$packing --set sweep.decode.workers=1,4 --out "$packing$((number++))"
		prints "checksums of 2 repetitions agree"
	done
done
python3 - <<'PY' || fail "the engines, or the kinds of packing, do not give the batches that they should"
import json
def sums(packing, numbers):
    found = set()
    for number in numbers:
        for line in open("%s%d/points.jsonl" % (packing, number)):
            row = json.loads(line)
            if row.get("kind") == "repetition":
                found.add(row["epoch_checksum"])
    return found
stream, documents = sums("stream", range(4)), sums("documents", range(4))
assert len(stream) == 1 and len(documents) == 1 and stream != documents, (stream, documents)
in_order = sums("stream", [4, 5])
assert len(in_order) == 1 and in_order != stream, in_order
PY

# A folder of one's own: nanoGPT's files, Megatron's index, and what is wrong with either.
python3 - <<'PY'
import os, struct
os.makedirs("texts/a")
ids = [i % 90 for i in range(101)]
open("texts/a/good.bin", "wb").write(struct.pack("<101H", *ids))
open("texts/a/odd.bin", "wb").write(struct.pack("<101H", *ids) + b"x")
open("texts/a/beyond.bin", "wb").write(struct.pack("<17H", *[95] * 17))
open("texts/a/short.bin", "wb").write(struct.pack("<17H", *ids[:17]))
open("texts/a/indexed.bin", "wb").write(struct.pack("<101H", *ids))
def index(name, lengths, documents):
    at = [2 * sum(lengths[:i]) for i in range(len(lengths))]
    with open(name, "wb") as out:
        out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(documents)))
        out.write(struct.pack("<%di" % len(lengths), *lengths) + struct.pack("<%dq" % len(at), *at))
        out.write(struct.pack("<%dq" % len(documents), *documents))
index("texts/a/indexed.idx", [50, 51], [0, 1, 2])
index("texts/a/short.idx", [10], [0, 1])
PY
texts=(--set dataset.path=texts --set dataset.recipe=none --set dataset.samples=0 --set tokens.vocabulary=90 --set tokens.end_of_document=89
	--set sweep.tokens.length=16 --set tokens.packing=documents --set batch.size=2 --set step.backend=null
	--set sweep.decode.workers=1 --set measure.epochs=1)
expect_measured "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tiny[@]}" "${texts[@]}" --out texts_run
says "left out: a/odd.bin: 203 bytes, an odd number"
grep -q "bad sample 'a/beyond.bin' at byte [0-9]*: id 95 is not in the vocabulary of 90" texts_run/points.jsonl || fail "ids beyond the vocabulary are not counted"
grep -q "bad sample 'a/short.bin' at byte [0-9]*: index: it has 10 tokens" texts_run/points.jsonl || fail "an index that disagrees is not counted"
expect 2 "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tiny[@]}" "${texts[@]}" --set tokens.packing=stream --out texts_stream
says "'a/short.idx': index: its last sequence ends at byte 20, and the file has 34 (index and data disagree)"
expect_measured "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tiny[@]}" "${texts[@]}" --set tokens.packing=stream --set 'dataset.exclude=short.*' --out texts_stream
expect 2 "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tiny[@]}" "${texts[@]}" --set tokens.type=uint32
says "'a/indexed.idx': index: its ids are uint16: set tokens.type = uint16"
expect 2 "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tiny[@]}" "${texts[@]}" --set tokens.type=uint32 --set 'dataset.exclude=*.idx,indexed.*'
says "'a/beyond.bin': 34 bytes are no whole number of ids of 4 bytes"
expect 2 "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tiny[@]}" "${texts[@]}" --set sweep.tokens.length=4096
says "no file of 'texts' is as long as one sample"

# A file each or packed with others: the same samples of each kind, whatever the container.
packed=(--set sweep.dataset.container=files,tar,tgz,tfrecord --set dataset.shard_samples=2 --set read.order=sequential --set read.threads=1
	--set step.backend=null --set run.verify=on --set measure.epochs=1)
expect_measured "$MLBENCH" sweep "$ROOT/configs/tokens.ini" "${tokens[@]}" "${tiny[@]}" "${packed[@]}" --set dataset.path=packed_tokens \
	--set sweep.tokens.length=64 --set sweep.decode.workers=2
prints "checksums of 4 repetitions agree"
expect_measured "$MLBENCH" sweep "$ROOT/configs/unet3d_like.ini" "${volumes[@]}" "${tiny[@]}" "${packed[@]}" --set dataset.path=packed_volumes \
	--set sweep.decode.workers=2 --set read.depth=2
prints "checksums of 4 repetitions agree"

# What computes takes tokens where its model has an embedding.
expect 2 "$MLBENCH" check "$ROOT/configs/tokens.ini" "${tokens[@]}" --set step.backend=openblas --set step.model=resnet50
says "step.model = resnet50 has no embedding, and takes no tokens: set step.model = gpt2_small"
expect 2 "$MLBENCH" check "$ROOT/configs/tokens.ini" "${tokens[@]}" --set tokens.vocabulary=70000
says "has ids that uint16 does not hold"
expect 2 "$MLBENCH" check "$ROOT/configs/tokens.ini" "${tokens[@]}" --set dataset.recipe=none --set dataset.samples=0 \
	--set dataset.path=nfs://127.0.0.1/none --set tokens.packing=documents
says "looks for an index beside each file"
expect 2 "$MLBENCH" gen "$ROOT/configs/tokens.ini" "${tokens[@]}" --set sample.kind=volume --set dataset.path=none

# Rows of numbers: row groups, of which some columns are read.
rows=(--set dataset.samples=20 --set dataset.file_groups=6 --set dataset.columns=12 --set record.rows=32 --set batch.size=3)
for layout in columns rows; do
	stored=(--set dataset.path=$layout --set record.layout=$layout)
	expect 0 "$MLBENCH" gen "$ROOT/configs/record.ini" "${rows[@]}" "${stored[@]}"
	prints "20 samples made"
	expect 0 "$MLBENCH" check "$ROOT/configs/record.ini" "${rows[@]}" "${stored[@]}" --set sweep.record.columns=3,12
	prints "4 files, 32.8 KiB, in $layout: 20 samples"
	expect_measured "$MLBENCH" sweep "$ROOT/configs/record.ini" "${rows[@]}" "${stored[@]}" "${tiny[@]}" "${checked[@]}" \
		--set sweep.record.columns=3,12 --set sweep.decode.workers=1,4 --out "rows_$layout"
	prints "checksums of 4 repetitions agree"
done
# By column or by row the batches are the same, and three columns of twelve are a quarter of the bytes.
python3 - <<'PY' || fail "row groups do not give the batches or the reads that they should"
import json
sums, bytes_of = {}, {}
for layout in ("columns", "rows"):
    for line in open("rows_%s/points.jsonl" % layout):
        row = json.loads(line)
        if row.get("kind") == "repetition":
            columns = 3 if row["point"] < 2 else 12
            sums.setdefault(columns, set()).add(row["epoch_checksum"])
            bytes_of[layout, columns] = row["file_bytes_mean"]
assert len(sums[3]) == 1 and len(sums[12]) == 1 and sums[3] != sums[12], sums
head = 16 + 8 * 12
assert bytes_of["rows", 3] == bytes_of["rows", 12] == bytes_of["columns", 12] == head + 4 * 12 * 32, bytes_of
assert bytes_of["columns", 3] == head + 4 * 3 * 32, bytes_of
PY
expect_measured "$MLBENCH" sweep "$ROOT/configs/record.ini" "${rows[@]}" --set dataset.path=columns "${tiny[@]}" --set record.parse=2us \
	--set sweep.record.columns=3 --set sweep.decode.workers=1 --out parse
grep -q "record.parse: 2.00 us of CPU time for each value, 192 us a sample, are spun in place of parsing" parse/points.jsonl ||
	fail "the declared cost is not announced"
expect_measured "$MLBENCH" diagnose parse
! grep -qE 'codec\.|pictures' out || fail "advice about pictures"
expect_measured "$MLBENCH" sweep "$ROOT/configs/record.ini" "${rows[@]}" --set dataset.path=columns "${tiny[@]}" --set step.backend=openblas \
	--set step.model=mlp --set step.threads=1 --set sweep.record.columns=3 --set sweep.decode.workers=1 --out computed
# A folder of one's own, where a file and a group lie, and another layout than is asked for.
mkdir -p other/a
cp "$(find columns -name '*.rows' | sort | head -n 1)" other/a/torn.rows
cp other/a/torn.rows other/a/group.rows
cp other/a/torn.rows other/a/good.rows
truncate -s -1 other/a/torn.rows
python3 - <<'PY'
data = bytearray(open("other/a/group.rows", "rb").read())
at = data.index(b"RGRP")
data[at] = 0
open("other/a/group.rows", "wb").write(data)
open("other/a/none.rows", "w").write("no rows, but enough bytes for a header")
PY
others=(--set dataset.path=other --set dataset.recipe=none --set dataset.samples=0 --set step.backend=null --set measure.epochs=1
	--set sweep.record.columns=3 --set sweep.decode.workers=1)
expect_measured "$MLBENCH" sweep "$ROOT/configs/record.ini" "${rows[@]}" "${tiny[@]}" "${others[@]}" --out other_run
says "left out: a/none.rows: rows: it does not begin with MLROWS1"
says "left out: a/torn.rows: rows: a row group of 32 rows at byte"
grep -q "bad sample 'a/group.rows' at byte [0-9]*: rows: no row group begins here" other_run/points.jsonl || fail "the group that lies is not counted"
expect 2 "$MLBENCH" sweep "$ROOT/configs/record.ini" "${rows[@]}" "${tiny[@]}" "${others[@]}" --set sweep.record.columns=13
says "its rows have 12 columns, and record.columns is 13"
