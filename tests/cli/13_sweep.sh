# A sweep from end to end: files, first lines, statuses; a failed point is a row with its reason.
. "$CLI/lib.sh"
write_config
with_limits results/tiny/first "$MLBENCH" sweep tiny.ini --verbose
head -n 1 out | grep -q 'emulated' || fail "the first line does not say that the step is emulated"
head -n 1 err | grep -q 'emulated' || grep -q 'generat' err || fail "the plan does not say that the step is emulated"
prints "limits of this node"
prints "harness"
prints "verdict  "
run=results/tiny/first
for file in points.jsonl summary.json points.csv; do
	[ -s "$run/$file" ] || fail "no $file"
done
# Service times in sequence beside each repetition, of the part that was measured.
python3 - "$run" <<'PY' || fail "a repetition is without its traces"
import json, sys
for line in open(sys.argv[1] + "/points.jsonl"):
    row = json.loads(line)
    if row.get("kind") != "repetition":
        continue
    traces = json.load(open("%s/traces/p%05d-r%d.json" % (sys.argv[1], row["point"], row["repeat"])))
    assert traces["schema"] == "mlbench.traces/1"
    assert abs(traces["ended"] - row["started"] - row["wall_seconds"]) < 1e-3, traces["ended"]
    assert [s["stage"] for s in traces["stages"]] == [s["name"] for s in row["stages"]] + ["read ramp"]
    ramp = traces["stages"].pop()  # the first files, which are in no measured part
    assert ramp["number"] == list(range(ramp["count"])) and 0 < ramp["count"] <= 256
    for stage in traces["stages"]:
        service = stage["service_ns"]  # one number when all are alike
        assert 0 < stage["count"] <= 4096, stage["stage"]
        assert isinstance(service, int) or len(service) == stage["count"], stage["stage"]
        ends = [ns / 1e9 for ns in stage["end_ns"]]
        assert traces["begin_s"] - 1e-6 <= min(ends) and max(ends) <= traces["end_s"] + 1e-6
PY
cp out printed
expect 0 "$MLBENCH" show tiny --verbose
cmp -s out printed || fail "show prints something else than the sweep"
expect 0 "$MLBENCH" show "$run/summary.json"
[ "$(wc -l <"$run/points.csv")" -eq 5 ] || fail "points.csv has not a row per point"
[ "$(grep -c '"kind":"repetition"' "$run/points.jsonl")" -eq 8 ] || fail "not 8 repetitions"

# The limits are those of the setting that the verdict speaks of, whichever that is on this machine.
with_limits limits "$MLBENCH" sweep tiny.ini --set step.time=20ms --set measure.repeats=1 --json
best=$(json '" ".join(f"{key}={value}" for key, value in d["points"][d["best"]]["settings"].items())')
[ "$(json '{l["settings"] for l in d["limits"] if l["stage"] != "decode"}')" = "{'$best'}" ] ||
	fail "the limits are those of other settings"
batch=${best##* }
[ "$(json '[l["settings"] for l in d["limits"] if l["stage"] == "decode"]')" = \
	"['decode.workers=1 $batch', 'decode.workers=2 $batch']" ] || fail "decode alone has other settings"
expect 0 "$MLBENCH" show limits
prints "limits of this node, each stage alone, at $best"
# One that the pipeline surpassed is told with what it was measured with.
mkdir surpassed
other=batch.size=$((24 - ${batch#*=}))
sed '/"kind":"limit"/{ s/"capacity":[0-9.e+-]*/"capacity":1.5/; s/'"$batch/$other"'/; }' limits/points.jsonl >surpassed/points.jsonl
expect 0 "$MLBENCH" show surpassed
tr -s ' \n' ' ' <out | grep -qF "The read limit (1.50/s) was measured with ${best% *} $other; the best point uses $best." ||
	fail "a limit that was measured with something else is not told so"

# The batches of the second point do not fit into any memory.
expect 1 "$MLBENCH" sweep tiny.ini --set decode.workers=1 --set batch.size=96 --set prefetch.depth=150 --set sweep.augment.size=16,4096 --json --out failing
is_json mlbench.summary/1
[ "$(json '[p["status"] == "failed" for p in d["points"]]')" = "[False, True]" ] || fail "not exactly the second failed"
json 'd["points"][1]["error"]' | grep -q 'batch' || fail "no reason"
expect 0 "$MLBENCH" show failing
prints "failed:"
# What failed is tried again by --resume, and only that.
expect 1 "$MLBENCH" sweep --resume failing
says "2 repetitions that failed"

# Injected conditions are announced in every output.
expect_measured "$MLBENCH" run tiny.ini $ONE --set inject.read_latency=1ms --out slow
prints "injected"
prints "read_latency 1ms"
says "read_latency 1ms"
expect 0 "$MLBENCH" show slow
prints "read_latency 1ms"
expect_measured "$MLBENCH" run tiny.ini $ONE --set step.backend=null --out null --json
[ "$(json 'd["step"]["emulated"]')" = False ] || fail "null is not emulated"
