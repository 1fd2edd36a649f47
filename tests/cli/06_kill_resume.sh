# SIGKILL at random moments of a sweep, again and again; --resume finishes with each repetition exactly once.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
seed=${SEED:-$(date +%s)}
echo "SEED=$seed"
RANDOM=$seed
long=(--set measure.repeats=4 --set measure.limits=on)
resume=()
for round in 1 2 3 4 5; do
	if [ "$round" -eq 1 ]; then resume=(--out run); else resume=(--resume run); fi
	"$MLBENCH" sweep tiny.ini "${long[@]}" "${resume[@]}" >out 2>err &
	pid=$!
	sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	[ -s run/points.jsonl ] || rm -rf run
	[ -d run ] || resume=(--out run)
	if [ ! -d run ]; then break; fi
done
# A torn line, as a kill in the middle of a write leaves it.
[ -d run ] && printf '{"kind":"repetition","point":0,"rep' >>run/points.jsonl
if [ -d run ]; then resume=(--resume run); else resume=(--out run); fi
# And what it leaves beside: files half written, recordings of a repetition whose line was not written.
if [ -d run ]; then
	mkdir -p run/traces
	touch run/summary.json.tmp-999999999 run/traces/p00000-r0.json.tmp-999999999-1 run/traces/p00003-r77.json run/trace-p99999.json
fi
expect_measured "$MLBENCH" sweep tiny.ini "${long[@]}" "${resume[@]}"
[ -z "$(find run -name '*.tmp-*')" ] || fail "a file half written stayed: $(find run -name '*.tmp-*')"
[ ! -e run/traces/p00003-r77.json ] && [ ! -e run/trace-p99999.json ] || fail "a recording without a line stayed"
[ "$(find run/traces -type f | wc -l)" -eq 16 ] || fail "not each repetition has its traces"
python3 - <<'PY' || fail "not each repetition once (SEED=$seed)"
import collections, json
count = collections.Counter()
limits = collections.Counter()
for line in open("run/points.jsonl"):
    row = json.loads(line)
    if row.get("kind") == "repetition":
        count[row["point"], row["repeat"]] += 1
    if row.get("kind") == "limit":
        limits[row["stage"], row["how"].replace(" (unsteady)", "")] += 1
assert sorted(count) == [(p, r) for p in range(4) for r in range(4)], count
assert set(count.values()) == {1}, count
summary = json.load(open("run/summary.json"))
# A busy node may have left no steady point to measure the stages at.
assert {stage for stage, _ in limits} == {"read", "decode", "step", "harness"} or not limits and all(p["status"] != "ok" for p in summary["points"]), limits
assert summary["status"] == "complete", summary["status"]
# Each line came after its traces, whatever moment a kill came at.
for line in open("run/points.jsonl"):
    row = json.loads(line)
    if row.get("kind") == "repetition":
        traces = json.load(open("run/traces/p%05d-r%d.json" % (row["point"], row["repeat"])))
        assert abs(traces["ended"] - row["started"] - row["wall_seconds"]) < 1e-3, row["point"]
PY
# Nothing is left to do: the same again, and nothing is measured.
lines=$(grep -c '"kind":"repetition"' run/points.jsonl)
expect_measured "$MLBENCH" sweep tiny.ini "${long[@]}" --resume run
[ "$(grep -c '"kind":"repetition"' run/points.jsonl)" -eq "$lines" ] || fail "it measured again"
# Without the configuration, from the record alone.
expect_measured "$MLBENCH" sweep --resume run
# Another configuration is refused, and the keys that differ are named.
expect 2 "$MLBENCH" sweep tiny.ini --set measure.repeats=9 --resume run
says "measure.repeats (was 4, now 9)"
expect 2 "$MLBENCH" sweep tiny.ini --out run
says "--resume"
expect 2 "$MLBENCH" sweep tiny.ini --out a --resume b
says "exclude each other"
# A kill before the first line leaves a file that holds nothing: its folder can be measured into, and is no newest run.
mkdir -p results/tiny/29990101T000000Z headless
printf '{"kind":"head' | tee results/tiny/29990101T000000Z/points.jsonl >headless/points.jsonl
expect_measured "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --out headless
expect 0 "$MLBENCH" show headless
expect 2 "$MLBENCH" run tiny.ini $ONE --out headless
says "already holds a run"
expect_measured "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1
expect 0 "$MLBENCH" show tiny
