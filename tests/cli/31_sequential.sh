# A sequential sweep: every point once, then again where the answer is open; its plan, its files, what a kill leaves, and results
# of before, when some points of a sweep were predicted.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
sed -i '/^repeats/d; /^duration/d; /^warmup/d' tiny.ini

# What it is, what it takes, and what settings make of it.
expect 0 "$MLBENCH" check tiny.ini --json
[ "$(json 'd["repeats"]')" = 5 ] || fail "not at most 5 repetitions"
[ "$(json 'd["seconds"] < d["seconds_most"] < 60')" = True ] || fail "the usual and the longest time are wrong"
expect 0 "$MLBENCH" check tiny.ini
prints "points   4, each once, then again where the answer is open, at most 5 times"
# Restarts come once an epoch: a second may hold none.
expect 0 "$MLBENCH" check tiny.ini --set decode.persistent=off --json
[ "$(json 'd["seconds_most"] > 60')" = True ] || fail "a repetition is too short for what comes once an epoch"
expect 0 "$MLBENCH" check tiny.ini --set measure.repeats=2
prints "4 x 2 repetitions in seeded random order"
expect 0 "$MLBENCH" check tiny.ini --set measure.repeats=2 --set sweep.mode=sequential
prints "at most 2 times"
expect 0 "$MLBENCH" check tiny.ini --set sweep.mode=grid --json
[ "$(json 'd["repeats"]')" = 3 ] || fail "a grid has not its 3 repetitions"
expect 2 "$MLBENCH" check tiny.ini --set sweep.mode=adaptive
says "sequential"

# The step decides: with two workers or one, batches of 8 take 20 ms and those of 32 take 20 ms.
decided=(--set step.time=20ms --set sweep.batch.size=8,32 --set measure.duration=400ms --set measure.warmup=50ms)
# Killed on the way, then continued.
"$MLBENCH" sweep tiny.ini "${decided[@]}" --out run >out 2>err &
pid=$!
until_true repetitions run 2
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
before=$(grep -c '"kind":"repetition"' run/points.jsonl)
[ "$before" -ge 2 ] || fail "nothing was measured in time"
expect_measured "$MLBENCH" show run
prints "interrupted"
expect_measured "$MLBENCH" sweep tiny.ini "${decided[@]}" --verbose --resume run
cp out printed
grep -qE '^ +workers .* n ' printed || fail "the table has no column of repetitions"

python3 - <<'PY' || fail "the files do not say what was measured"
import collections, csv, json
count = collections.Counter()
rounds = collections.defaultdict(list)
for line in open("run/points.jsonl"):
    row = json.loads(line)
    if row.get("kind") == "repetition":
        count[row["point"]] += 1
        rounds[row["repeat"]].append(row["point"])
summary = json.load(open("run/summary.json"))
assert summary["status"] == "complete", summary["status"]
points = summary["points"]
# Every point in the first round, nothing twice in a round, no round left out, and no more than five of them.
assert sorted(rounds[0]) == [0, 1, 2, 3], rounds
assert all(len(set(r)) == len(r) for r in rounds.values()), rounds
assert sorted(rounds) == list(range(len(rounds))) and len(rounds) <= 5, rounds
assert sum(p["decision"] == "fastest" for p in points) == 1, [p["decision"] for p in points]
rows = list(csv.DictReader(open("run/points.csv")))
for row, p in zip(rows, points):
    repeats = p["throughput"]["repeats"]
    assert 1 <= len(repeats) <= count[p["id"]]
    assert int(row["repeats"]) == len(repeats)
    # One repetition, too, has an interval: by the spread that the points share.
    low, high = p["throughput"]["ci95"]
    assert low <= p["throughput"]["median"] <= high, p["throughput"]
fastest = next(p for p in points if p["decision"] == "fastest")
if all(p["status"] == "ok" for p in points):
    assert fastest["settings"]["batch.size"] == 32
    assert count[fastest["id"]] >= 3, count
PY
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
	/usr/bin/python3 -m jsonschema -i run/summary.json "$ROOT/docs/summary.schema.json" || fail "summary.json is not valid"
fi
# Shown again: the same.  Nothing is left to do.
expect 0 "$MLBENCH" show run --verbose
cmp -s out printed || fail "show prints something else than the sweep"
all=$(grep -c '"kind":"repetition"' run/points.jsonl)
expect_measured "$MLBENCH" sweep --resume run
[ "$(grep -c '"kind":"repetition"' run/points.jsonl)" -eq "$all" ] || fail "it measured again"

# A result of before 2026-11-29, of a sweep that predicted points: it is read, and what was not measured has no figure.
mkdir older
python3 - <<'PY'
import json
lines = open("run/points.jsonl").read().splitlines()
head = json.loads(lines[0])
assert "mode = sequential" in head["resolved"]
head["resolved"] = head["resolved"].replace("mode = sequential", "mode = adaptive\nerror = 5%")
kept = [line for line in lines[1:] if json.loads(line).get("point") != 0]
open("older/points.jsonl", "w").write("\n".join([json.dumps(head)] + kept) + "\n")
PY
expect_measured "$MLBENCH" show older --json
[ "$(json 'd["status"], d["points"][0]["status"]')" = "('complete', 'interrupted')" ] || fail "an older result is not read"
# And one of before, of a grid.
expect_measured "$MLBENCH" sweep tiny.ini "${decided[@]}" --set measure.repeats=1 --out grid
python3 - <<'PY'
lines = open("grid/points.jsonl").read()
assert "mode = grid" in lines
open("grid/points.jsonl", "w").write(lines.replace("mode = grid\\n", "mode = grid\\nerror = 5%\\n", 1))
PY
expect_measured "$MLBENCH" show grid --json
[ "$(json '[len(p["throughput"]["repeats"]) for p in d["points"] if p["status"] == "ok"]' | tr -d '[], 1')" = "" ] || fail "an older grid is not read"
