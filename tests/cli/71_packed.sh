# Packed data sets, through the whole program: tar and TFRecord shards that are generated give the batches of the same
# samples as files, for any number of workers, engine and order of batches; shards that others wrote are read; and what is
# wrong in one is counted with its reason, follows nowhere and ends nothing.
. "$CLI/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
cat >packed.ini <<'INI'
[dataset]
path = files
recipe = photo
samples = 90
classes = 7
width = 60
height = 40
shard_samples = 20
[augment]
size = 32
[batch]
size = 8
[step]
backend = null
[measure]
duration = 60ms
warmup = 0s
window = 10ms
repeats = 1
limits = off
INI
checked=(--set run.verify=on --set measure.epochs=2 --set sweep.decode.workers=1,2)

# same_sums PATTERN: all repetitions of these results have one checksum.
same_sums() {
	python3 - "$1/points.jsonl" <<'PY' || fail "other batches in $1"
import glob, json, sys
sums = {}
for name in glob.glob(sys.argv[1]):
    for line in open(name):
        row = json.loads(line)
        if row.get("kind") == "repetition":
            sums.setdefault(row["epoch_checksum"], set()).add(name)
assert len(sums) == 1 and None not in sums, sums
PY
}

# The batches of all containers, by all engines.
for container in files tar tfrecord; do
	packed=(--set dataset.container=$container --set dataset.path=$container)
	expect 0 "$MLBENCH" gen packed.ini "${packed[@]}"
	prints "90 samples made"
	expect 0 "$MLBENCH" gen packed.ini "${packed[@]}" --verify
	prints "90 files good, 0 bad"
	for engine in auto pread memory; do
		expect_measured "$MLBENCH" sweep packed.ini "${packed[@]}" "${checked[@]}" --set read.engine=$engine --set batch.order=as-completed \
			--out "same_${container}_$engine"
		prints "checksums of 2 repetitions agree"
	done
done
same_sums 'same_*'

# By shards: each container has an order of its own, the same for any workers and whether samples are read one by one or cut
# out of large requests.
for container in tar tfrecord; do
	packed=(--set dataset.container=$container --set dataset.path=$container --set read.order=shards --set read.shuffle_buffer=30)
	expect_measured "$MLBENCH" sweep packed.ini "${packed[@]}" "${checked[@]}" --set sweep.read.request=0,4k,1MiB --set read.depth=3 \
		--out "shards_$container"
	prints "checksums of 6 repetitions agree"
	expect_measured "$MLBENCH" sweep packed.ini "${packed[@]}" "${checked[@]}" --set read.request=64k --set read.engine=pread --set read.cache=cold \
		--out "shards_again_$container"
done
same_sums 'shards_*'
# Each large request is timed as a file is, and stands in a file's place: latency of the store, whatever samples wait.
expect_measured "$MLBENCH" run packed.ini "${packed[@]}" --set read.request=8k --set inject.read_latency=2ms --set read.depth=2 \
	--set measure.epochs=0 --set measure.duration=300ms --set measure.warmup=100ms --out timed
python3 - timed <<'PY' || fail "large requests are not timed"
import json, sys
row = [json.loads(line) for line in open(sys.argv[1] + "/points.jsonl") if '"kind":"repetition"' in line][-1]
read = row["stages"][0]
assert row["facts"]["reads_large"] and 0 < row["read_requests"] < read["items"]
assert read["service"]["sum_ns"] >= 2e6 * read["service"]["count"] > 0
assert read["service"]["count"] <= row["read_requests"] + 4
traces = json.load(open("%s/traces/p%05d-r%d.json" % (sys.argv[1], row["point"], row["repeat"])))
ramp = traces["stages"][-1]
assert ramp["stage"] == "read ramp" and ramp["number"] == list(range(ramp["count"]))
in_flight = ramp["in_flight"]
assert max(in_flight if isinstance(in_flight, list) else [in_flight]) <= 2
PY
expect 2 "$MLBENCH" check packed.ini --set read.request=1MiB --set read.order=shards --set read.threads=2
says "'read.request' takes one reader thread"
expect 2 "$MLBENCH" check packed.ini --set read.request=1MiB
says "set it to shards or sequential"

# Packed by gzip: the same archives, compressed, without a time in their headers; read in their order alone.
gz=(--set dataset.container=tgz --set dataset.path=packed --set read.order=shards --set read.shuffle_buffer=30)
expect 0 "$MLBENCH" gen packed.ini "${gz[@]}"
prints "90 samples made"
expect 0 "$MLBENCH" gen packed.ini "${gz[@]}" --verify
prints "90 files good, 0 bad"
for shard in tar/*.tar; do
	gzip -dc "packed/$(basename "$shard").gz" | cmp - "$shard" || fail "a compressed shard holds another archive"
	[ "$(od -An -tx1 -N8 "packed/$(basename "$shard").gz" | tr -d ' \n')" = 1f8b080000000000 ] || fail "a time, or a name, in the header"
done
expect_measured "$MLBENCH" sweep packed.ini "${gz[@]}" "${checked[@]}" --set sweep.read.request=0,4k --out "shards_packed"
prints "checksums of 4 repetitions agree"
same_sums 'shards_*'
find packed -name '*.gz' -exec sha256sum {} + | sort >sums
truncate -s -30 packed/shard-000003.tar.gz
expect 2 "$MLBENCH" run packed.ini "${gz[@]}" --set dataset.generate=never
says "shard-000003.tar.gz' is missing or has changed"
rm packed/shard-000001.tar.gz
expect 0 "$MLBENCH" gen packed.ini "${gz[@]}"
prints "40 samples made, 50 existed"
find packed -name '*.gz' -exec sha256sum {} + | sort | cmp - sums || fail "a mended compressed shard has other bytes"
printf 'X' | dd of=packed/shard-000002.tar.gz bs=1 seek=9000 conv=notrunc status=none
expect 1 "$MLBENCH" gen packed.ini "${gz[@]}" --verify
says "shard-000002.tar.gz', the sample at byte"

# Deterministic, mended where a shard is gone or torn, refused where the recipe is another.
find tar -name '*.tar' -exec sha256sum {} + | sort >sums
rm tar/shard-000001.tar
truncate -s -700 tar/shard-000003.tar
expect 2 "$MLBENCH" run packed.ini --set dataset.container=tar --set dataset.path=tar --set dataset.generate=never
expect 0 "$MLBENCH" gen packed.ini --set dataset.container=tar --set dataset.path=tar
prints "40 samples made, 50 existed"
find tar -name '*.tar' -exec sha256sum {} + | sort | cmp - sums || fail "a mended shard has other bytes"
expect 2 "$MLBENCH" gen packed.ini --set dataset.container=tar --set dataset.path=tar --set dataset.shard_samples=30
says "dataset.shard_samples is 20 there and 30 here"
expect 2 "$MLBENCH" gen packed.ini --set dataset.container=tfrecord --set dataset.path=tar
says 'dataset.container is "tar" there and "tfrecord" here'
printf 'X' | dd of=tfrecord/shard-000002.tfrecord bs=1 seek=5000 conv=notrunc status=none
expect 1 "$MLBENCH" gen packed.ini --set dataset.container=tfrecord --set dataset.path=tfrecord --verify
prints "89 files good, 1 bad"
says "its checksum is not the manifest's"
expect 2 "$MLBENCH" check packed.ini --set dataset.container=zip
says "files, tar, tfrecord"

# Written by others: Python's tarfile in its three formats, with long names, classes in .cls or by folder; TFRecords by hand.
python3 - <<'PY' || fail "no foreign shards"
import glob, io, os, struct, tarfile
pictures = sorted(glob.glob("files/class_*/*.jpg"), key=os.path.basename)
def add(tar, name, data, **more):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for key, value in more.items():
        setattr(member, key, value)
    tar.addfile(member, io.BytesIO(data))
os.makedirs("foreign")
for k, form in enumerate((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
    with tarfile.open(f"foreign/web-{k:06d}.tar", "w", format=form) as tar:
        for i, path in enumerate(pictures[30 * k:30 * k + 30]):
            key = f"{30 * k + i:06d}" if form == tarfile.USTAR_FORMAT else "long" * 40 + f"/{30 * k + i:06d}"
            data = open(path, "rb").read()
            number = str(int(path.split("/")[1][6:])).encode()
            if i % 2:
                add(tar, f"./{key}.cls", number + b"\n", mtime=1.5)
                add(tar, f"./{key}.seg.json", b"{}")
                add(tar, f"./{key}.JPG", data)
            else:
                add(tar, f"{key}.jpg", data, mtime=1.5)
                add(tar, f"{key}.cls", number)
import gzip, shutil
os.makedirs("foreign_gz"), os.makedirs("tgz"), os.makedirs("bad/tgz")
for k in range(3):
    with tarfile.open(f"foreign/web-{k:06d}.tar") as old, tarfile.open(f"foreign_gz/web-{k:06d}." + ("tgz" if k else "tar.gz"), "w:gz") as new:
        for member in old:
            new.addfile(member, old.extractfile(member))
for path in glob.glob("tar/*.tar"):
    whole = open(path, "rb").read()
    packed = gzip.compress(whole[:5000]) + gzip.compress(whole[5000:])
    open("tgz/" + os.path.basename(path) + ".gz", "wb").write(packed)
flipped = bytearray(packed); flipped[-6] ^= 1
open("bad/tgz/sum.tar.gz", "wb").write(flipped)
open("bad/tgz/torn.tar.gz", "wb").write(packed[:-6000])
open("bad/tgz/good.tgz", "wb").write(packed)
open("bad/tgz/bomb.tgz", "wb").write(gzip.compress(bytes(80 << 20)))
open("bad/tgz/plain.tgz", "wb").write(whole)
os.makedirs("folders")
with tarfile.open("folders/all.tar", "w") as tar:
    tar.add("files", filter=lambda m: None if m.name.endswith("jsonl") else m)

def crc(data):
    c = 0xffffffff
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    c ^= 0xffffffff
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff
def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])
def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data
def record(data):
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", crc(head)) + data + struct.pack("<I", crc(data))
def example(features):
    return field(1, b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in features))
def made(i, path):
    data, label = open(path, "rb").read(), int(path.split("/")[1][6:])
    numbers = field(1, varint(label)) if i % 2 else varint(1 << 3) + varint(label)
    features = [("image/class/label", field(3, numbers)), ("image/height", field(3, field(1, varint(40)))),
        ("image/encoded", field(1, field(1, data)))]
    return record(example(features if i % 3 else features[::-1]))
os.makedirs("records")
for k in range(3):
    with open(f"records/train-{k:05d}-of-00003", "wb") as out:
        for i in range(30 * k, 30 * k + 30):
            out.write(made(i, pictures[i]))
os.makedirs("bad/tar"), os.makedirs("bad/tfrecord")
good = open(pictures[0], "rb").read()
with tarfile.open("bad/tar/hostile.tar", "w") as tar:
    add(tar, "1.jpg", good)
    for name, kind in (("2.jpg", tarfile.SYMTYPE), ("3.jpg", tarfile.LNKTYPE), ("4.jpg", tarfile.CHRTYPE), ("5.jpg", tarfile.FIFOTYPE),
            ("6", tarfile.DIRTYPE)):
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
    add(tar, "/etc/7.jpg", good)
    add(tar, "a/../../8.jpg", good)
    add(tar, "9" * 4096 + ".jpg", good)
    add(tar, "10.jpg", b"")
    add(tar, "11.jpg", b"no picture")
    add(tar, "12.cls", b"3")
    add(tar, "13.jpg", good), add(tar, "13.cls", b"three")
    add(tar, "14.jpg", good)
whole = open("bad/tar/hostile.tar", "rb").read()
open("bad/tar/torn.tar", "wb").write(whole[:900])
open("bad/tar/sum.tar", "wb").write(whole[:100] + b"9" + whole[101:])
open("bad/tar/end.tar", "wb").write(whole[:512 + (len(good) + 511) // 512 * 512])
open("bad/tar/empty.tar", "wb").write(b"")
open("bad/tar/none.tar", "wb").write(bytes(10240))
open("bad/tar/small.tar.gz", "wb").write(gzip.compress(whole))
# What is behind members of unusual types is read all the same: a vendor's, and a sparse one's with more of its map, as GNU has it.
def typed(name, kind, data, more=b""):
    info = tarfile.TarInfo(name)
    info.size, info.type = len(data), kind
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[482] = bool(more)
    head[148:156] = b"%06o\0 " % sum(head[:148] + b" " * 8 + head[156:])
    return bytes(head) + more + data + bytes(-len(data) % 512)
os.makedirs("types")
open("types/types.tar", "wb").write(typed("dump", b"D", bytes(700)) + typed("sparse.jpg", b"S", bytes(512), bytes(504) + b"\1" + bytes(519)) +
    typed("link.jpg", b"1", b"") + typed("renamed", b"X", b"18 path=again.jpg\n") + typed("1.jpg", b"0", good) + typed("2.jpg", b"7", good) + bytes(1024))
with tarfile.open("types/classes.tar", "w") as tar:
    add(tar, "3.jpg", good), add(tar, "4.jpg", good), add(tar, "4.cls", b"7")
one = made(0, pictures[0])
flipped = bytearray(one); flipped[50] ^= 1
huge = struct.pack("<Q", 1 << 60)
open("bad/tfrecord/a.tfrecord", "wb").write(one + bytes(flipped) + record(b"\xff" * 40) + record(example([("x", field(3, b""))])) + one)
open("bad/tfrecord/b.tfrecord", "wb").write(one + one[:-7])
open("bad/tfrecord/c.tfrecord", "wb").write(one + b"\x01" + one)
open("bad/tfrecord/d.tfrecord", "wb").write(huge + struct.pack("<I", crc(huge)) + bytes(100))
open("bad/tfrecord/e.tfrecord", "wb").write(record(example([("image/encoded", field(1, field(1, good))),
    ("image/class/label", field(3, varint(1 << 3) + varint(1 << 40)))])))
PY
own=(--set dataset.recipe=none --set dataset.samples=0)
for folder in foreign:tar folders:tar records:tfrecord foreign_gz:tgz; do
	expect_measured "$MLBENCH" sweep packed.ini "${own[@]}" "${checked[@]}" --set dataset.path="${folder%:*}" --set dataset.container="${folder#*:}" \
		--set read.order=sequential --out "read_${folder%:*}"
	prints "checksums of 2 repetitions agree"
	! grep 'left out: ' err | grep -qv '8 folders in it, which hold nothing' || fail "left out: $folder"
done
# In the order of names it is the generated set again; by folder it is that of a scan of the files.
expect_measured "$MLBENCH" run packed.ini --set run.verify=on --set measure.epochs=2 --set read.order=sequential --out read_files
expect_measured "$MLBENCH" run packed.ini "${own[@]}" --set run.verify=on --set measure.epochs=2 --set read.order=sequential --out scan_files
python3 - <<'PY' || fail "foreign shards give other batches"
import json
def sums(name):
    rows = map(json.loads, open(name + "/points.jsonl"))
    return {row["epoch_checksum"] for row in rows if row.get("kind") == "repetition"}
assert len(sums("read_files") | sums("read_foreign") | sums("read_records") | sums("read_foreign_gz")) == 1
assert sums("scan_files") == sums("read_folders")
PY

# What is wrong in them.
expect_measured "$MLBENCH" run packed.ini "${own[@]}" --set dataset.path=bad/tar --set dataset.container=tar --set batch.size=1 --out bad_tar
for text in "end.tar: it has no end mark" "empty.tar: an empty file" "hostile.tar: '2.jpg': it is a link" "hostile.tar: '3.jpg': it is a link" \
	"hostile.tar: '4.jpg': it is a device or a pipe" "hostile.tar: '/etc/7.jpg': its name is an absolute path" \
	"hostile.tar: 'a/../../8.jpg': its name leads out of the folder" "left out:"; do
	says "$text"
done
expect_measured "$MLBENCH" run packed.ini "${own[@]}" --set dataset.path=bad/tfrecord --set dataset.container=tfrecord --set batch.size=1 --out bad_tfrecord
for text in "a.tfrecord: the record at byte" "has a wrong checksum" "the message is damaged" "it is no example with an 'image/encoded'" \
	"b.tfrecord: it is cut short: the record at byte" "c.tfrecord: the length of the record at byte" "d.tfrecord: it is cut short" \
	"e.tfrecord: the sample at byte"; do
	says "$text"
done
expect 0 "$MLBENCH" check packed.ini "${own[@]}" --set dataset.path=types --set dataset.container=tar --set batch.size=1
prints "1 sample,"
for text in "classes.tar: 1 sample without a class, which others" "types.tar: 'dump': it is of a kind that is not known here" \
	"types.tar: 'sparse.jpg': it is a sparse file" "types.tar: 'link.jpg': it is a link" "types.tar: 2 samples without a class"; do
	says "$text"
done
mkdir gz && mv bad/tar/small.tar.gz gz
expect 2 "$MLBENCH" run packed.ini "${own[@]}" --set dataset.path=gz --set dataset.container=tar
says "packed by gzip: set dataset.container = tgz"

# Packed by gzip: the batches of the plain shards, whatever the size of requests, inflated by the one reader.
tgz=("${own[@]}" --set dataset.path=tgz --set dataset.container=tgz --set read.order=shards --set read.shuffle_buffer=30)
expect_measured "$MLBENCH" sweep packed.ini "${tgz[@]}" --set dataset.path=tar --set dataset.container=tar "${checked[@]}" --out plain_tar
expect_measured "$MLBENCH" sweep packed.ini "${tgz[@]}" "${checked[@]}" --set sweep.read.request=0,4k --verbose --out plain_tgz
prints "checksums of 4 repetitions agree"
prints "pread"
! grep -q "inflated again" err || fail "shards were inflated more than once"
expect_measured "$MLBENCH" run packed.ini "${tgz[@]}" --set run.verify=on --set measure.epochs=2 --set read.engine=memory --out plain_memory
same_sums 'plain_*'
grep -q 'inflated by the reader' plain_tgz/points.jsonl || fail "who inflates is not in the results"
expect_measured "$MLBENCH" run packed.ini "${tgz[@]}" --set dataset.path=bad/tgz --set batch.size=1 --out bad_tgz
for text in "sum.tar.gz: its checksum or length is not that of its bytes" "torn.tar.gz: its compressed bytes are cut short" \
	"bomb.tgz: it inflates to more than 200 times its size" "plain.tgz: it is not packed by gzip"; do
	says "$text"
done
for refused in "read.order=shuffle:'read.order' = shuffle asks for samples in any order: set it to shards or sequential, or unpack" \
	"read.threads=2:takes one reader thread" "read.engine=io_uring:set it to pread, or unpack"; do
	expect 2 "$MLBENCH" check packed.ini "${tgz[@]}" --set dataset.samples=90 --set "${refused%%:*}"
	says "${refused#*:}"
done
mkdir nothing
expect 2 "$MLBENCH" run packed.ini "${own[@]}" --set dataset.path=nothing --set dataset.container=tfrecord
says "no .tfrecord, .tfrec or NAME-00000-of-00001 file in"

# Storage forms, swept: each is a data set of its own beside the others, with the same batches however the samples are packed;
# tables, JSON and compare say what differs.
forms=(--set dataset.path=forms --set sweep.dataset.container=files,tar,tgz,tfrecord --set sweep.dataset.format=jpeg,raw --set read.order=sequential)
expect 2 "$MLBENCH" check packed.ini "${forms[@]}" --set sweep.dataset.container=files,zip
expect 0 "$MLBENCH" gen packed.ini "${forms[@]}" --json
[ "$(json '[(e["path"], e["made"]) for e in d["forms"]][1]')" = "('forms/files-raw', 90)" ] || fail "forms"
expect 0 "$MLBENCH" gen packed.ini "${forms[@]}" --verify
[ "$(grep -c '90 files good, 0 bad' out)" -eq 8 ] || fail "eight forms are verified"
expect_measured "$MLBENCH" sweep packed.ini "${forms[@]}" --set run.verify=on --set measure.epochs=2 --verbose --out forms_swept
prints "storage forms"
prints "checksums of 8 repetitions agree"
grep -q 'Storage forms' forms_swept/report.html || fail "no table in the report"
python3 - <<'PY' || fail "what storage forms take"
import json
points = json.load(open("forms_swept/summary.json"))["points"]
by = {(p["settings"]["dataset.container"], p["settings"]["dataset.format"]): p["storage"] for p in points}
assert by["files", "jpeg"]["files"] == 90 and by["tar", "jpeg"]["files"] == 5, by
assert by["tar", "jpeg"]["bytes"] > by["tfrecord", "jpeg"]["bytes"] > by["files", "jpeg"]["bytes"], by
assert by["tgz", "raw"]["files"] == 5 and by["tgz", "raw"]["bytes"] < by["tar", "raw"]["bytes"], by
assert by["files", "raw"]["bytes"] > by["files", "jpeg"]["bytes"], by
PY
for form in files tar; do
	expect_measured "$MLBENCH" run packed.ini --set dataset.path=$form --set dataset.container=$form --set run.verify=on --set measure.epochs=2 \
		--out "alone_$form"
done
"$MLBENCH" compare alone_files alone_tar >out 2>err
[ $? -ne 2 ] || fail "storage forms cannot be compared"
reads "the storage form differs, of the same samples: dataset.container is files in A and tar in B"
