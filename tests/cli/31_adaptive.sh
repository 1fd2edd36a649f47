# An adaptive sweep: measures some of the grid, marks the rest as predicted everywhere, goes on after a kill.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
# 16 points whose step decides: predictions are easy, so that a generous error is reached on a busy machine.
adaptive=(--set sweep.mode=adaptive --set sweep.error=40% --set sweep.decode.workers=1,2,4,8 --set sweep.batch.size=8,16,24,32
	--set step.time=2ms --set measure.duration=1200ms --set measure.repeats=1)

expect 0 "$MLBENCH" check tiny.ini "${adaptive[@]}"
prints "at most 16 x 1"
expect 2 "$MLBENCH" sweep tiny.ini --set sweep.mode=adaptive --set sweep.augment.size=8,16 --out refused
says "sweep.augment.size"
says "sweep.mode = grid"
[ ! -e refused ] || fail "something was begun"
expect 2 "$MLBENCH" check tiny.ini --set sweep.mode=adaptive --set sweep.read.depth=1-600+1
says "at most 1000 points"

# Killed on the way, then continued.
"$MLBENCH" sweep tiny.ini "${adaptive[@]}" --out run >out 2>err &
pid=$!
until_true repetitions run 2
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
before=$(grep -c '"kind":"repetition"' run/points.jsonl)
[ "$before" -ge 2 ] || fail "nothing was measured in time"
expect_measured "$MLBENCH" show run
prints "interrupted"
expect_measured "$MLBENCH" sweep tiny.ini "${adaptive[@]}" --verbose --resume run
prints "adaptive measured"
cp out printed

python3 - <<'PY' || fail "the files do not tell measured from predicted"
import collections, csv, json
count = collections.Counter()
for line in open("run/points.jsonl"):
    row = json.loads(line)
    if row.get("kind") == "repetition":
        count[row["point"]] += 1
summary = json.load(open("run/summary.json"))
assert summary["status"] == "complete", summary["status"]
points = summary["points"]
assert len(points) == 16
assert set(count.values()) == {1}, count
for p in points:
    measured = p["id"] in count
    assert p["predicted"] == (not measured), p["id"]
    assert (p["throughput"]["median"] is not None) == measured
    if not measured:
        assert p["status"] == "predicted"
        low, high = p["prediction"]["interval90"]
        assert low < p["prediction"]["throughput"] < high
        assert set(p["prediction"]["calibrated_from"]) <= set(count)
        assert "predicted" in p["throughput"]["missing"]["median"]
assert len(count) >= 5
rows = list(csv.DictReader(open("run/points.csv")))
for row, p in zip(rows, points):
    assert (row["predicted"] == "true") == p["predicted"]
    assert (row["samples_per_s"] == "") == p["predicted"]
    assert (row["predicted_samples_per_s"] != "") == p["predicted"]
# What is recommended was measured.
best = max(points, key=lambda p: p["throughput"]["median"] or p["prediction"]["throughput"])
assert not best["predicted"] or best["prediction"]["throughput"] < 1.011 * max(p["throughput"]["median"] or 0 for p in points)
open("measured", "w").write(str(len(count)))
PY
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
	/usr/bin/python3 -m jsonschema -i run/summary.json "$ROOT/docs/summary.schema.json" || fail "summary.json is not valid"
fi
measured=$(cat measured)
if [ "$measured" -lt 16 ]; then
	grep -q "measured $measured of 16 points, predicted $((16 - measured))" printed || fail "the end does not say how many"
	grep -q "predicted from point" printed || fail "the table does not mark predictions"
	grep -q "~ is predicted" printed || fail "the map does not mark predictions"
	[ "$(grep -cE '^ +[1248] +(8|16|24|32) +~' printed)" -eq $((16 - measured)) ] || fail "not every prediction has its ~"
fi
# Shown again: the same predictions, computed anew.  Nothing is left to do.
expect 0 "$MLBENCH" show run --verbose
cmp -s out printed || fail "show prints something else than the sweep"
expect_measured "$MLBENCH" sweep --resume run
[ "$(grep -c '"kind":"repetition"' run/points.jsonl)" -eq "$measured" ] || fail "it measured again"
# A grid of it measures everything, and predicts nothing.
expect_measured "$MLBENCH" sweep tiny.ini --out grid --json
[ "$(json '[p.get("predicted") for p in d["points"]]')" = "[None, None, None, None]" ] || fail "a grid predicts"
