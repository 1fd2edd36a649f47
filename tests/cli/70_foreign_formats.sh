# Data sets as other tools leave them: what they hold is counted rightly, or refused with what to do.
. "$CLI/lib.sh"
cat >one.ini <<'INI'
[dataset]
path = none
[decode]
workers = 1
[batch]
size = 4
drop_last = off
[step]
backend = null
[measure]
epochs = 1
warmup = 0s
repeats = 1
limits = off
INI
python3 - <<'PY' || fail "the data sets could not be made"
import gzip, io, lzma, os, struct, tarfile, zipfile, zlib

def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)

def picture(i):
    return b"P6\n4 4\n255\n" + bytes([i]) * 48

# A tar: {name: bytes}.
def tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()

def shard(classes):
    return [(f"{i:05d}.{end}", data) for i, name in enumerate(classes) for end, data in (("ppm", picture(i)), ("cls", name))]

classes = [b"0", b" 1", b"2\n", b"0", b"+1", b"2"]
mac = [(prefix + name, data if not prefix else b"\0\5\x16\7" * 20) for name, data in shard(classes) for prefix in ("._", "")]
put("mac/a.tar", tar(mac))
put("unlabelled/a.tar", tar(shard([b"-1"] * 6)))
put("half/a.tar", tar(shard([b"-1", b"3"] * 3)))
put("gz/a.tar", gzip.compress(tar(shard(classes))))
put("gz2/a.tar.gz", gzip.compress(tar(shard(classes))))
put("xz/a.tar.xz", lzma.compress(tar(shard(classes))))
put("plain/a.tgz", tar(shard(classes)))

# TFRecord: field(number, bytes) and varint by the wire format, CRC-32C bit by bit.
def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])

def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data

def crc(data):
    c = 0xFFFFFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    c ^= 0xFFFFFFFF
    return struct.pack("<I", (c >> 15 | c << 17) + 0xA282EAD8 & 0xFFFFFFFF)

def record(i, label):
    features = {b"image": field(1, field(1, picture(i))), b"label": field(3, field(1, varint(label)))}
    message = field(1, b"".join(field(1, field(1, k) + field(2, v)) for k, v in features.items()))
    head = struct.pack("<Q", len(message))
    return head + crc(head) + message + crc(message)

records = b"".join(record(i, -1) for i in range(6))
put("tfds/a.tfrecord", records)
put("kaggle/a.tfrec", b"".join(record(i, i) for i in range(6)))
put("hidden_gz/a.tfrecord", gzip.compress(records))
put("named_gz/a.tfrecord.gz", gzip.compress(records))

# NumPy files, without NumPy.
def npy(descr, shape, data):
    text = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, "".join("%d," % n for n in shape))).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data

def npz(path, how, **arrays):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with zipfile.ZipFile(path, "w", how) as z:
        for name, data in arrays.items():
            z.writestr(name + ".npy", data)

volume = npy("|u1", (8, 8, 8), bytes(range(256)) * 2)
for how, name in ((zipfile.ZIP_STORED, "stored"), (zipfile.ZIP_DEFLATED, "deflated")):
    npz(f"npz_{name}/a.npz", how, label=npy("<i8", (), bytes(8)), image=volume)
    # One bit behind the box that is taken, of which the format's own reader hears by the CRC-32 alone.
    whole = bytearray(open(f"npz_{name}/a.npz", "rb").read())
    if how == zipfile.ZIP_STORED:
        whole[whole.rindex(bytes(range(250, 256))) + 5] ^= 1
        put("npz_bad/a.npz", bytes(whole))
with zipfile.ZipFile("npz_bad/b.npz", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("image.npy", volume)
whole = bytearray(open("npz_bad/b.npz", "rb").read())
directory = whole.rindex(b"PK\1\2")
whole[directory + 16] ^= 1
put("npz_bad/b.npz", bytes(whole))
npz("npz_two/a.npz", zipfile.ZIP_DEFLATED, image=volume, mask=volume)
for i in range(4):
    put(f"unet/case_{i:05d}_x.npy", npy("|u1", (8, 8, 8), bytes(512)))
    put(f"unet/case_{i:05d}_y.npy", npy("|u1", (8, 8, 8), bytes(512)))

# Token files: 20,000 ids, which are 78 sequences of 256.
ids = [i % 50000 for i in range(20000)]
def index(code, size):
    lengths = [500] * 40
    return (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1) + struct.pack("<40i", *lengths) +
            struct.pack("<40q", *(500 * size * i for i in range(40))) + struct.pack("<41q", *range(41)))
put("megatron/a.bin", struct.pack("<20000i", *ids))
put("megatron/a.idx", index(4, 4))
put("megatron64/a.bin", struct.pack("<20000q", *ids))
put("megatron64/a.idx", index(5, 8))
put("torn/a.bin", struct.pack("<19000H", *ids[:19000]))
put("torn/a.idx", index(8, 2))
put("llmc/a.bin", struct.pack("<256i", *([20240520, 1, 20000] + [0] * 253)) + struct.pack("<20000H", *ids))
put("npy_bin/a.bin", npy("<u2", (20000,), struct.pack("<20000H", *ids)))

# A folder of pictures with what tools leave beside them, and one of no pictures.
for path in ("a/1.ppm", "a/2.ppm", "b/1.ppm", "b/2.ppm", ".hidden/1.ppm", "a/.ipynb_checkpoints/1.ppm", "a/._1.ppm", "a/3.ppm.tmp"):
    put("tree/" + path, picture(1))
put("tree/a/Thumbs.db", b"x")
for i in range(3):
    put(f"raw/c/{i}.jpg", os.urandom(20000))
    put(f"raw/c/{i}.mds", os.urandom(20000))
PY

# counts TEXT FOLDER ARGUMENT...: check tells so many samples.
counts() {
	local text=$1 folder=$2
	shift 2
	expect 0 "$MLBENCH" check one.ini --data "$folder" "$@"
	reads "$text"
}
# refuses TEXT FOLDER ARGUMENT...
refuses() {
	local text=$1 folder=$2
	shift 2
	expect 2 "$MLBENCH" check one.ini --data "$folder" "$@"
	says "$text"
}
image=(--set augment.size=4)
tar=("${image[@]}" --set dataset.container=tar)
records=("${image[@]}" --set dataset.container=tfrecord)
volume=(--set sample.kind=volume --set volume.crop=4x4x4 --set volume.flip=0)
tokens=(--set sample.kind=tokens --set tokens.length=256)

# Classes, and what is none.
counts "6 samples," mac "${tar[@]}"
says "left out: a.tar: 12 members whose names begin with a dot"
! grep -q "has a class and no sample" err || fail "a Mac's files cost the samples their classes"
counts "6 samples," unlabelled "${tar[@]}"
counts "6 samples," half "${tar[@]}"
counts "6 samples," tfds "${records[@]}"
! grep -q warning err || fail "-1 is warned of"
counts "6 samples," kaggle "${records[@]}"

# What is packed is named.
refuses "packed by gzip: name it .tar.gz and set dataset.container = tgz" gz "${tar[@]}"
refuses "packed by gzip: set dataset.container = tgz" gz2 "${tar[@]}"
refuses "packed by xz: unpack it with unxz" xz "${tar[@]}"
refuses "it is not packed by gzip" plain "${image[@]}" --set dataset.container=tgz --set read.order=shards
refuses "packed by gzip: unpack it with gunzip" hidden_gz "${records[@]}"
refuses "packed by gzip: unpack it with gunzip" named_gz "${records[@]}"

# What a job would not read after the scan, it does not read here: TFRecord's checksums, those of a zip.
expect_measured "$MLBENCH" run one.ini --data kaggle "${records[@]}" --out good
stamp=$(stat -c %y kaggle/a.tfrec)
printf '\7' | dd of=kaggle/a.tfrec bs=1 seek=70 conv=notrunc status=none
touch -d "$stamp" kaggle/a.tfrec # the scan is not repeated: the run itself has to see it
"$MLBENCH" run one.ini --data kaggle "${records[@]}" --out rotten >out 2>err
grep -q '"bad_samples":1,' rotten/points.jsonl || fail "a sample with another checksum is good"
for name in stored deflated; do
	expect_measured "$MLBENCH" run one.ini --data npz_$name "${volume[@]}" --out npz_$name.out
	grep -q '"bad_samples":0,' npz_$name.out/points.jsonl || fail "npz: $name: the label was taken"
done
expect 1 "$MLBENCH" run one.ini --data npz_bad "${volume[@]}" --out npz_bad.out
says "npz: its array is damaged: CRC-32"
expect 1 "$MLBENCH" run one.ini --data npz_two "${volume[@]}" --out npz_two.out
says "set volume.array to one of image (8x8x8), mask (8x8x8)"
expect 1 "$MLBENCH" run one.ini --data npz_two "${volume[@]}" --set volume.array=x --out npz_x.out
says "it has no array 'x' (volume.array), but image, mask"
expect_measured "$MLBENCH" run one.ini --data npz_two "${volume[@]}" --set volume.array=mask --out npz_mask.out

# What a companion or a header declares is used, or refused.
refuses "'a.idx': index: its ids are int32: set tokens.type = uint32" megatron "${tokens[@]}"
refuses "set tokens.type = uint32" megatron "${tokens[@]}" --set tokens.packing=documents
counts "78 samples" megatron "${tokens[@]}" --set tokens.type=uint32
refuses "its ids are int64, which is not read" megatron64 "${tokens[@]}" --set tokens.type=uint32
refuses "index and data disagree" torn "${tokens[@]}"
counts "78 samples" llmc "${tokens[@]}"
refuses "its header says that ids have 2 bytes: set tokens.type = uint16" llmc "${tokens[@]}" --set tokens.type=uint32
counts "78 samples" npy_bin "${tokens[@]}"
counts "8 samples," unet "${volume[@]}"
says "4 of 8 files look like labels of others"
counts "4 samples," unet "${volume[@]}" --set "dataset.exclude=*_y.*"
! grep -q "look like" err || fail "labels that were left out are warned of"

# Fewer samples than a batch has.
refuses "batch.size = 64 is larger than the data set's 4 samples, and batch.drop_last is on: set batch.size to 4 or less, or batch.drop_last to off" \
	tree "${image[@]}" --set batch.size=64 --set batch.drop_last=on

refuses "'dataset.exclude' leaves files of a folder of your own out" made "${image[@]}" --set dataset.recipe=photo \
	--set dataset.samples=8 --set dataset.exclude=x

# Hidden names are left out and counted, and a fit counts the same files.
counts "4 samples," tree "${image[@]}"
says "left out by their names: 1 .db, 1 .tmp, 3 hidden files or folders"
expect 0 "$MLBENCH" fit tree
prints "data.files = 4 "

# Any file, where nothing is to be decoded.
refuses "none of the 3 pictures" raw "${image[@]}"
counts "3 samples," raw "${image[@]}" --set codec.name=null
counts "6 samples," raw --set sample.kind=bytes
expect_measured "$MLBENCH" run one.ini --data raw --set sample.kind=bytes --set run.verify=on --out raw.out
grep -q '"bad_samples":0,' raw.out/points.jsonl || fail "any file is no sample"

# What is there, and the key that reads it.
refuses "there: 1 .tar: set dataset.container = tar" mac
refuses "there: 1 .tar.xz: set dataset.container = tar" xz
refuses "there: 1 .tar.gz: set dataset.container = tgz" gz2
refuses "there: 1 .tfrec: set dataset.container = tfrecord" kaggle
refuses "there: 8 .npy: set sample.kind = volume" unet
refuses "there: 1 .bin, 1 .idx: set sample.kind = tokens" megatron
refuses "2 hidden files or folders: set dataset.container = files" tree/a "${tar[@]}"
