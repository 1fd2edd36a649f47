# The recipes at the heads of source.h, codec.h, sample.h, container.h, backend.h, chart.h and command.h hold: tests/recipes has what each of them
# leads to, touches no more files than it says, and builds and works in a copy of the tree.
. "$CLI/lib.sh"
objects=$(dirname "$MLBENCH")
[ "$(basename "$objects")" = release ] && [ -e "$objects/harness/main.o" ] && [ -e "$ROOT/build/charts/vega.js" ] ||
	skip "it needs the objects of a release build, and Vega (make)"
git -C "$ROOT" ls-files >/dev/null 2>&1 || skip "the tree is no git checkout"

# touches NAME NEW FILE ...: the patch makes so many files, and one line more in each of those named, and in no others.
touches() {
	python3 - "$ROOT/tests/recipes/$1.patch" "${@:2}" <<'PY' || fail "$1.patch touches more than its recipe says"
import sys
new, changed, removed, added = 0, set(), {}, {}
for line in open(sys.argv[1]):
    if line.startswith("--- "):
        made = line.strip() == "--- /dev/null"
        new += made
    elif line.startswith("+++ "):
        name = line[6:].strip()
        if not made:
            changed.add(name)
    elif line[0] in "+-" and not made:
        counts = added if line[0] == "+" else removed
        counts[name] = counts.get(name, 0) + 1
assert new == int(sys.argv[2]), new
assert changed == set(sys.argv[3:]), changed
for name in changed:
    assert added[name] <= 2 and added[name] - removed.get(name, 0) <= 1, (name, added, removed)
PY
}
touches source 1 harness/config/tables.h
touches codec 1 harness/config/codecs.def
touches kind 1 harness/config/tables.h
touches container 1 harness/config/tables.h
touches backend 1 harness/config/tables.h
touches chart 3 harness/report/html/charts.def
touches command 1 harness/command/commands.def

# A copy that knows what is built already; what the patches touch is compiled anew, without optimising.
mkdir tree
(cd "$ROOT" && git ls-files -co --exclude-standard | while read -r file; do [ ! -e "$file" ] || printf '%s\n' "$file"; done |
	tar cf - -T - build/charts/vega.js) | tar xf - -C tree || fail "the tree cannot be copied"
(cd "$ROOT" && tar cf - build/release/{harness,workloads,pipelines,generated,with,libmeasuring.a,libreading.a}) |
	tar xf - -C tree || fail "the objects cannot be copied"
for name in source codec kind container backend chart command; do
	(cd tree && patch -s -p1 <"$ROOT/tests/recipes/$name.patch") >out 2>err || fail "$name.patch does not apply"
done
(unset MAKEFLAGS MAKELEVEL MFLAGS && cd tree &&
	timeout 1800 nice -n 10 make -j2 OPTIMISE='-O0 -g0' build/release/mlbench) >out 2>err || fail "the patched tree does not build"
grep -q 'workloads/source/stdio.c' out || fail "the new engine was not compiled"
grep -q '/phases.c' out && fail "what no recipe touches was compiled anew"
MLBENCH=$PWD/tree/build/release/mlbench

# The source: it is listed, reads the same samples as pread does, and is known by the same facts.
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
run=(run tiny.ini --set decode.workers=1 --set batch.size=8)
checked=(--set run.verify=on --set measure.epochs=2 --set measure.warmup=0s --set measure.repeats=1 --set step.backend=null)
expect 0 "$MLBENCH" list sources
prints "stdio"
for engine in pread stdio; do
	expect_measured "$MLBENCH" "${run[@]}" "${checked[@]}" --set read.engine=$engine --out "$engine"
done
# first FOLDER EXPRESSION: python over r, the first repetition of a result.
first() {
	python3 -c 'import json, sys
r = next(r for r in map(json.loads, open(sys.argv[1] + "/points.jsonl")) if r.get("kind") == "repetition")
print(eval(sys.argv[2]))' "$@"
}
sum=$(first pread 'r["epoch_checksum"]')
[ "${#sum}" -eq 16 ] && [ "$(first stdio 'r["epoch_checksum"]')" = "$sum" ] || fail "stdio reads other bytes than pread"
[ "$(first stdio 'r["facts"]')" = "$(first pread 'r["facts"]')" ] || fail "the facts of stdio are not those of pread"
[ "$(first stdio 'r["engine"]')" = stdio ] || fail "another engine read"
expect_measured "$MLBENCH" diagnose stdio

# The codec: its files are found, told apart from damaged ones, and decoded to the right pixels.
python3 - <<'PY'
import os, struct
for c in range(2):
    os.makedirs(f"pictures/{c}")
    os.makedirs(f"same/{c}")
    for i in range(8):
        value = 16 * (8 * c + i)
        with open(f"pictures/{c}/{i}.ff", "wb") as file:
            file.write(b"farbfeld" + struct.pack(">II", 20, 20) + struct.pack(">HHHH", value * 257, 0, 65535, 9) * 400)
        with open(f"same/{c}/{i}.ppm", "wb") as file:
            file.write(b"P6\n20 20\n255\n" + bytes((value, 0, 255)) * 400)
PY
pictures=("${checked[@]}" --set dataset.recipe=none --set read.engine=pread --set augment.size=16)
expect 0 "$MLBENCH" list codecs
prints "farbfeld"
for folder in pictures same; do
	expect_measured "$MLBENCH" "${run[@]}" "${pictures[@]}" --set dataset.path=$folder --out "of-$folder"
done
sum=$(first of-same 'r["epoch_checksum"]')
[ "${#sum}" -eq 16 ] && [ "$(first of-pictures 'r["epoch_checksum"]')" = "$sum" ] || fail "farbfeld is decoded to other pixels"
cp -r pictures damaged
truncate -s 1000 damaged/1/3.ff
"$MLBENCH" check tiny.ini --set dataset.recipe=none --set dataset.path=damaged >out 2>err
cat out err | grep -q '1/3.ff' || fail "a farbfeld that is cut off is not told"

# The kind: other samples of the same files, the same ones whoever reads them; keys of images are refused.
expect 0 "$MLBENCH" list kinds
prints "head"
expect 2 "$MLBENCH" "${run[@]}" "${checked[@]}" --set sample.kind=head --out refused
says "'augment.size' is about sample.kind = image, and has no effect on head"
taken=("${checked[@]}" --set sample.kind=head --set augment.size=224)
for engine in pread stdio; do
	expect_measured "$MLBENCH" "${run[@]}" "${taken[@]}" --set read.engine=$engine --out "bytes-$engine"
done
sum=$(first bytes-pread 'r["epoch_checksum"]')
[ "${#sum}" -eq 16 ] && [ "$(first bytes-stdio 'r["epoch_checksum"]')" = "$sum" ] || fail "bytes are not the same twice"
[ "$sum" != "$(first pread 'r["epoch_checksum"]')" ] || fail "bytes are images"
[ "$(first bytes-pread 'r["bad_samples"]')" = 0 ] || fail "some files gave no bytes"
expect_measured "$MLBENCH" "${run[@]}" --set sample.kind=head --set augment.size=224 --set measure.limits=on --out bytes-limits
expect_measured "$MLBENCH" diagnose bytes-limits

# The container: generated and verified, and the batches of the same samples as files, of either kind.
expect 0 "$MLBENCH" list containers
prints "lengths"
for container in files lengths; do
	packed=("${checked[@]}" --set dataset.container=$container --set dataset.path=packed-$container)
	expect 0 "$MLBENCH" gen tiny.ini "${packed[@]}"
	expect 0 "$MLBENCH" gen tiny.ini "${packed[@]}" --verify
	prints " 0 bad"
	expect_measured "$MLBENCH" "${run[@]}" "${packed[@]}" --out "packed-$container-images"
	expect_measured "$MLBENCH" "${run[@]}" "${packed[@]}" --set sample.kind=head --set augment.size=224 --out "packed-$container-bytes"
done
ls packed-lengths/*.cat >/dev/null || fail "no file of the container"
for kind in images bytes; do
	sum=$(first packed-files-$kind 'r["epoch_checksum"]')
	[ "${#sum}" -eq 16 ] && [ "$(first packed-lengths-$kind 'r["epoch_checksum"]')" = "$sum" ] || fail "packed $kind are others"
done

# The backend steps, the chart is on the page, and the command is listed and runs.
expect 0 "$MLBENCH" list backends
prints "touch"
expect_measured "$MLBENCH" "${run[@]}" --set step.backend=touch --set step.time=0 --out touched
prints "touch: reads each batch once"
grep -q "Capacity of each stage" touched/report.html || fail "the chart is not on the page"
grep -q "has the least capacity" touched/report.html || fail "the chart has no finding"
if can_draw; then
	expect 0 draw tree/harness/report/charts/capacity.vl.json touched/report.html
fi
expect 0 "$MLBENCH" help
prints "count the points and repetitions"
expect 0 "$MLBENCH" count touched
prints "2 repetitions of 1 points in"
