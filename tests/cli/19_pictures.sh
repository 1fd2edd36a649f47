# A folder with every kind of picture and every kind of damage, through the whole program: what can be decoded is,
# the rest is counted with a reason, and nothing ends the run.
. "$CLI/lib.sh"
/usr/bin/python3 -c 'import PIL' 2>/dev/null || skip "python3-pil is not installed"
write_config
mkdir -p own/a
/usr/bin/python3 - <<'PY'
import struct, zlib
from PIL import Image
image = Image.radial_gradient("L").resize((80, 60))
rgb = Image.merge("RGB", (image, image.rotate(90), image.rotate(180)))
rgb.save("own/a/plain.jpg")
rgb.save("own/a/progressive.jpg", progressive=True)
rgb.convert("CMYK").save("own/a/cmyk.jpg")
image.save("own/a/gray.jpg")
image.save("own/a/gray.png")
rgb.save("own/a/rgb.png")
rgb.convert("P").save("own/a/palette.png")
rgb.convert("RGBA").save("own/a/rgba.png")
image.convert("I").point(lambda v: v * 256).convert("I;16").save("own/a/gray16.png")
rgb.save("own/a/photo.webp")
rgb.save("own/a/scan.tiff", compression="tiff_lzw")
for name in ("one.heic", "two.heic", "three.gif"): # by their names alone
    open("own/a/" + name, "wb").write(b"not looked at")
for name in ("plain.jpg", "rgb.png"): # cut in the middle: the header is whole, the data is not
    data = open("own/a/" + name, "rb").read()
    open("own/a/cut_" + name, "wb").write(data[: len(data) // 2])
data = bytearray(open("own/a/rgb.png", "rb").read())
data[len(data) // 2] ^= 0x55
open("own/a/corrupt.png", "wb").write(data)
open("own/a/zero.jpg", "wb").close()
def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
open("own/a/huge.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b""))
PY
export XDG_CACHE_HOME="$PWD/cache"
have() { "$MLBENCH" list codecs | grep "^  $1 " | grep -qv 'without'; }
optional=
have webp && optional="$optional photo.webp"
have tiff && optional="$optional scan.tiff"
none=(--set dataset.recipe=none --set dataset.samples=0 --set dataset.path=own --set batch.size=4 --set decode.workers=2
	--set measure.epochs=4 --set measure.warmup=0) # every file is read, however slow the machine is
for png in fast libpng; do
	expect_measured "$MLBENCH" run tiny.ini "${none[@]}" --set codec.png=$png --json --out "run_$png"
	is_json mlbench.summary/1
	[ "$(json 'd["points"][0]["throughput"]["median"] > 0')" = True ] || fail "nothing was measured"
	[ "$(json 'd["points"][0]["bad_samples"] > 0')" = True ] || fail "no bad sample is counted"
	[ "$(json 'd["points"][0]["rss_peak_bytes"] < 200e6')" = True ] || fail "a claim of 60000 x 60000 pixels took memory"
	for name in cut_plain.jpg cut_rgb.png corrupt.png; do
		json 'd["points"][0]["notes"]' | grep -q "$name" || fail "$png: $name is not listed as bad"
	done
	for name in /plain.jpg progressive.jpg cmyk.jpg gray.jpg gray.png /rgb.png palette.png rgba.png gray16.png $optional; do
		! json 'd["points"][0]["notes"]' | grep -q "a$name" || fail "$png: $name is listed as bad"
	done
done
expect 0 "$MLBENCH" check tiny.ini "${none[@]}"
prints "left out"
says "left out by their names: 1 .gif, 2 .heic"
"$MLBENCH" check tiny.ini "${none[@]}" --verbose >out 2>&1
for name in zero.jpg huge.png; do
	grep -q "$name" out err || fail "$name is not listed"
done
