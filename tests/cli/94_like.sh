# dataset.recipe = like: a mixture is generated as its text says, found good, packed, run and swept; texts that are none are refused.
. "$CLI/lib.sh"
write_config
cat >like.ini <<'INI'
include = tiny.ini

[dataset]
path = mixed
recipe = like
samples = 40
like = jpeg 120x90~0.1 420 q85 4KB~0.3 50%, jpeg 90x120 444 progressive q92 12KB+3KB 25%, png 40x30 palette 1.4KB 15%, raw 20x20 1.213KB 10%
INI
expect 0 "$MLBENCH" gen like.ini
prints "40 samples made"
expect 0 "$MLBENCH" gen like.ini
prints "0 samples made"
expect 0 "$MLBENCH" gen like.ini --verify
prints "40 files good, 0 bad"
expect 0 "$MLBENCH" gen like.ini --set dataset.path=again
diff -r mixed again >/dev/null || fail "the same recipe gave other files"
[ "$(find mixed -name '*.jpg' | wc -l) $(find mixed -name '*.png' | wc -l) $(find mixed -name '*.ppm' | wc -l)" = "30 6 4" ] ||
	fail "not as many files of each format as their shares say"
# Another mixture is another data set.
expect 2 "$MLBENCH" gen like.ini --set 'dataset.like=jpeg 120x90 4KB 100%'
says "generated from another recipe"

# Other software sees the same pictures.
if /usr/bin/python3 -c 'import PIL' 2>/dev/null; then
	/usr/bin/python3 - <<'PY' || fail "PIL sees other pictures"
import glob, os
from PIL import Image, JpegImagePlugin
count, size = {}, {}
for name in glob.glob("mixed/*/*.*"):
    with Image.open(name) as picture:
        picture.load()
        kind = picture.format
        if kind == "JPEG":
            kind += {0: "444", 1: "422", 2: "420"}[JpegImagePlugin.get_sampling(picture)]
            assert ("444" in kind) == bool(picture.info.get("progressive")), name
        count[kind] = count.get(kind, 0) + 1
        size[kind] = size.get(kind, 0) + os.path.getsize(name)
        assert kind != "PNG" or picture.mode == "P", name
        assert kind != "JPEG444" or picture.size == (90, 120), name
assert count == {"JPEG420": 20, "JPEG444": 10, "PNG": 6, "PPM": 4}, count
for kind, bytes in {"JPEG420": 4000, "JPEG444": 12000, "PNG": 1400, "PPM": 1213}.items():
    assert abs(size[kind] / count[kind] / bytes - 1) < 0.03, (kind, size[kind] / count[kind])
PY
else
	echo "not compared with PIL, which is not here"
fi

# It is read like any data set, and packed like any.
expect_measured "$MLBENCH" run like.ini $ONE --set measure.repeats=1
expect 0 "$MLBENCH" gen like.ini --set dataset.path=packed --set dataset.container=tar --set dataset.shard_samples=16
[ "$(tar -tf packed/shard-000000.tar | grep -c 'jpg$')" -gt 0 ] && [ "$(tar -tf packed/shard-000000.tar | grep -c 'png$')" -gt 0 ] ||
	fail "a shard does not hold several formats"
expect_measured "$MLBENCH" run like.ini $ONE --set measure.repeats=1 --set dataset.path=packed --set dataset.container=tar \
	--set dataset.shard_samples=16 --set read.order=shards

# What is no such text is refused, with its place.
sed 's/1.4KB 15%/1.4KB 12%/' like.ini >short.ini
expect 2 "$MLBENCH" gen short.ini
says "short.ini:7: 'dataset.like': the shares come to 97 %, not to 100 %"
expect 2 "$MLBENCH" gen like.ini --set 'dataset.like=jpg 5x5 1KB 100%'
says "kind of files 1: 'jpg' is no format that can be generated; did you mean 'jpeg'?"
expect 2 "$MLBENCH" gen tiny.ini --set dataset.recipe=like
says "'dataset.like' is not set"
# A text of many kinds is a long line, and comes back whole.
kinds=$(for i in $(seq 25); do printf 'jpeg %dx90~0.123 420 progressive q90 4.567KB~0.321 4%%, ' $((100 + i)); done)
sed "s/^like = .*/like = ${kinds%, }/" like.ini >many.ini
expect 0 "$MLBENCH" gen many.ini --set dataset.path=many --json
head -n 1 many/mlbench-manifest.jsonl >out
[ "$(json 'd["recipe"]["like"]')" = "${kinds%, }" ] || fail "a long text does not come whole to the recipe"

# From a folder of somebody's to a twin of it: what other software wrote is found again by other software, and no name gets in.
if /usr/bin/python3 -c 'import PIL' 2>/dev/null; then
	/usr/bin/python3 - <<'PY' || fail "PIL cannot write pictures"
import os, random
from PIL import Image
rng = random.Random(5)
os.makedirs("theirs/patient_meier")
def noise(mode, size, fine):
    small = Image.frombytes("RGB", (size[0] // fine, size[1] // fine), rng.randbytes(size[0] // fine * (size[1] // fine) * 3))
    return small.resize(size, Image.BILINEAR).convert(mode)
for i in range(60):
    name = "theirs/patient_meier/scan_of_meier_%d\x1b[31m\n" % i
    if i % 10 < 6:
        noise("RGB", (160 + i, 120), 5).save(name + ".jpg", "JPEG", quality=88)
    elif i % 10 < 8:
        noise("RGB", (200, 150), 4).save(name + ".jpeg", "JPEG", quality=80, progressive=True, subsampling=0)
    else:
        noise("L", (64, 64 + i % 3), 2).save(name + ".png", "PNG")
PY
	mkfifo theirs/meier.jpg
	ln -s nowhere theirs/meier_too.jpg
	ln -s .. theirs/patient_meier/up
	: >theirs/empty_meier.jpg
	expect 0 "$MLBENCH" fit theirs --out case.ini
	! grep -i meier case.ini out err || fail "a name of theirs gets out"
	grep -q '^data.files = 60 (60 to 60), measured' case.ini || fail "the number of files"
	MLBENCH_DATA=$PWD/twins expect 0 "$MLBENCH" gen case.ini
	/usr/bin/python3 - twins/*/ <<'PY' || fail "the twin is another data set"
import os, sys
from PIL import Image
def kinds(top):
    sums = {}
    for folder, _, names in os.walk(top):
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                picture = Image.open(path) if os.path.isfile(path) else None
            except OSError:
                picture = None
            if picture:
                of = sums.setdefault((picture.format, picture.mode, bool(picture.info.get("progressive"))), [0, 0, 0])
                of[0] += 1
                of[1] += os.path.getsize(path)
                of[2] += picture.width * picture.height
                picture.close()
    return sums
theirs, twin = kinds("theirs"), kinds(sys.argv[1])
assert theirs.keys() == twin.keys(), (theirs, twin)
files = sum(of[0] for of in twin.values())
for kind, (count, size, pixels) in theirs.items():
    n, bytes, area = twin[kind]
    assert abs(n / files - count / 60) < 0.01, (kind, n, files)
    assert abs(bytes / n / (size / count) - 1) < 0.02, (kind, bytes / n, size / count)
    assert abs(area / n / (pixels / count) - 1) < 0.03, (kind, area / n, pixels / count)
PY
fi
