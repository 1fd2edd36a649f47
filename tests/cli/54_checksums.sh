# run.verify's checksums are held beside each other: by the run itself, by show, and by compare.
. "$CLI/lib.sh"
validate() { # FILE SCHEMA
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i "$1" "$ROOT/docs/$2.schema.json" >problems 2>&1 || { cat problems; fail "$1 is not valid"; }
}
# doctor FOLDER POINT REPEAT: its checksum is another.
doctor() {
	/usr/bin/python3 - "$@" <<'PY' || fail "doctor $*"
import json, sys
path, point, repeat = sys.argv[1] + "/points.jsonl", int(sys.argv[2]), int(sys.argv[3])
lines = [json.loads(line) for line in open(path)]
with open(path, "w") as out:
    for line in lines:
        if line.get("kind") == "repetition" and (line["point"], line["repeat"]) == (point, repeat):
            assert line["epoch_checksum"], "no checksum to change"
            line["epoch_checksum"] = "0123456789abcdef"
        out.write(json.dumps(line) + "\n")
PY
}
write_config
checked=(--set run.verify=on --set measure.epochs=2 --set measure.warmup=0s --set step.time=0 --set step.backend=null --set read.engine=memory)

# Any number of workers, and of threads within them, in any order: two sizes of a batch, four repetitions of each.
expect_measured "$MLBENCH" sweep tiny.ini "${checked[@]}" --set batch.order=as-completed --out whole
prints "checksums of 8 repetitions agree"
expect_measured "$MLBENCH" sweep tiny.ini "${checked[@]}" --set decode.queue=7 --set decode.threads=3 --set sweep.decode.workers=1,2 --out again
status=0
"$MLBENCH" compare whole again --json >out 2>err || status=$?
[ "$status" -eq 0 ] || fail "equal checksums: exit $status"
validate out compare
[ "$(json '(d["comparisons"][0]["checksums"]["compared"], d["comparisons"][0]["checksums"]["agree"])')" = "(16, True)" ] || fail "compared"
"$MLBENCH" show whole --json >out 2>err
validate out summary
[ "$(json '(d["checksums"]["checked"], d["checksums"]["compared"], d["checksums"]["agree"])')" = "(8, 8, True)" ] || fail "the summary"

# One repetition has other batches: each command says which, and fails.
cp -r whole wrong
doctor wrong 2 1
expect 1 "$MLBENCH" show wrong
prints "checksums differ"
says "point 2 repetition 1"
expect 1 "$MLBENCH" show wrong --json
[ "$(json 'd["checksums"]["agree"]')" = False ] || fail "the summary agrees"
validate out summary
expect 1 "$MLBENCH" compare again wrong
says "B point 2 repetition 1"
# Every repetition of one result, which agrees with itself alone.
cp -r whole other
for point in 0 1 2 3; do for repeat in 0 1; do doctor other $point $repeat; done; done
expect 1 "$MLBENCH" compare whole other --json
validate out compare
[ "$(json 'd["comparisons"][0]["checksums"]["agree"]')" = False ] || fail "compare agrees"
says "checksums differ"
# A run that comes to it itself: what an interrupted one lacks is measured, and does not agree.
cp -r whole rest
doctor rest 0 0
/usr/bin/python3 - <<'PY'
lines = open("rest/points.jsonl").read().splitlines()
repetitions = [i for i, line in enumerate(lines) if '"repetition"' in line and not '0123456789abcdef' in line]
with open("rest/points.jsonl", "w") as out:
    out.write("".join(line + "\n" for i, line in enumerate(lines) if i != repetitions[-1] and '"kind": "end"' not in line and '"kind":"end"' not in line))
PY
expect 1 "$MLBENCH" sweep --resume rest
says "checksums differ"

# Another seed has other batches, and nothing must agree; nor where there are none.
expect_measured "$MLBENCH" sweep tiny.ini "${checked[@]}" --set run.seed=2 --out seed
expect 0 "$MLBENCH" compare whole seed --json
[ "$(json 'd["comparisons"][0]["checksums"]')" = None ] || fail "another seed was compared"
