# diagnose: measured now and from a saved result, too short, verified within a budget, interrupted, refused.  What it finds
# on this machine is asked where that is measured.
. "$CLI/lib.sh"
schema="$ROOT/docs/diagnosis.schema.json"
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i "$1" "$schema" >problems 2>&1 || { cat problems; fail "$1 is not valid"; }
}
write_config
quick=(--set decode.workers=1 --set batch.size=8 --set measure.duration=600ms --set measure.warmup=100ms --set step.time=2ms)

# diagnoses ARGUMENT ...: to a verdict, which a machine that is not quiet may not have.
diagnoses() {
	"$MLBENCH" diagnose "$@" >out 2>err
	status=$?
	[ $status -eq 0 ] || { ! measuring && [ $status -eq 3 ]; } || fail "exit $status: diagnose $*"
}

# A step of 2 ms for 8 samples is the limit of tiny pictures: 4,000 samples/s.
diagnoses tiny.ini "${quick[@]}" --verbose --out one
! measuring || prints "Bottleneck: step, compute-bound"
! measuring || prints "elasticity (predicted): throughput gained, in %"
prints "page     one/report.html"
diagnoses one --json
is_json mlbench.diagnosis/1
validate out
! measuring || [ "$(json 'd["verdict"]["stage"]')" = step ] || fail "stage"
[ "$(json 'd["verification"] == [] and d["measured_elasticities"] is None and d["follow"] is None')" = True ] || fail "more than was asked for"
! measuring || [ "$(json 'abs(d["replayed"] / d["measured"] - 1) < 0.15')" = True ] || fail "the replay is far off"
cp out document
diagnoses one/points.jsonl --json
cmp -s out document || fail "another answer for points.jsonl than for its folder"

# Without service times only wait states are judged, and that is said.
cp -r one untraced
rm -r untraced/traces
"$MLBENCH" diagnose untraced >out 2>err
prints "none: "
prints "no service times were recorded"

# Too short a run: a reason, never a guess.  Three batches in an epoch are too few, whatever the machine.
expect 3 "$MLBENCH" diagnose tiny.ini "${quick[@]}" --set measure.epochs=1 --set measure.warmup=0 --set batch.size=32 --set measure.repeats=1 --out short
prints "Inconclusive"
expect 3 "$MLBENCH" diagnose short --json
validate out
[ "$(json 'd["cannot_tell"].startswith("Inconclusive")')" = True ] || fail "no reason in the document"
# The reason comes with the way out: the key, and its value.
[ "$(json '"; set measure." in d["cannot_tell"] and d["verdict"]["advice"].startswith("set measure.")')" = True ] || fail "no way out"
# Where repetitions do, they are made: an epoch of 6 batches is too little, whatever the machine; the bound is said first.
diagnoses tiny.ini "${quick[@]}" --set measure.epochs=1 --set measure.warmup=0 --set batch.size=16 --set measure.repeats=1 --out grown
says "up to 4 repetitions if it needs more"
says "too little for a verdict: measuring "
repetitions grown 2 || fail "it did not measure on"
! repetitions grown 5 || fail "more than the bound"

# Advice that did not come true: kept beside the result, and dearer than before.
cp -r one failed
printf '{"schema": "mlbench.trials/1", "trials": [{"set": "decode.workers=4", "before": 100, "before_half": 0.01, "rate": 101,
 "half": 0.01, "predicted": 400, "predicted_low": 390, "predicted_high": 410, "settings": ["decode.workers=4"]}]}' >failed/trials.json
"$MLBENCH" diagnose one --json >out 2>err
sure=$(json 'd["verdict"]["confidence"] if d["cannot_tell"] is None else -1')
"$MLBENCH" diagnose failed --json >out 2>err
validate out
python3 - "$sure" <<'PY' || fail "a prediction that failed costs nothing"
import json, sys
v, was = json.load(open("out"))["verdict"], float(sys.argv[1])
odds = was / (1 - was) / 4
assert was < 0 or abs(v["confidence"] - odds / (1 + odds)) < 1e-6 and "did not come true" in " ".join(v["evidence"]), v
PY
echo '{"schema"' >failed/trials.json
expect 2 "$MLBENCH" diagnose failed
says "trials.json"

# A point of a sweep: the fastest, or the one that is asked for.
expect_measured "$MLBENCH" sweep tiny.ini --set measure.duration=300ms --set step.time=2ms --out swept
"$MLBENCH" diagnose swept >out 2>err
prints "(the best of 4; --point N for another)"
"$MLBENCH" diagnose swept --point 0 >out 2>err
prints "0, decode.workers=1 batch.size=8"
expect 2 "$MLBENCH" diagnose swept --point 4
says "there is no point 4"

# Experiments within a budget, of the one stage that is there: saved, and shown again.
alone=(--set read.engine=memory --set codec.name=null)
"$MLBENCH" diagnose tiny.ini "${quick[@]}" "${alone[@]}" --verify --budget 20s --json --out proved >out 2>err
status=$?
[ "$status" -le 1 ] || { ! measuring && [ $status -eq 3 ]; } || fail "exit $status"
is_json mlbench.diagnosis/1
validate out
! measuring || [ "$(json 'len(d["verification"]) >= 3 and all(len(e["log_ratios"]) >= 2 for e in d["verification"])')" = True ] ||
	fail "not every experiment has its two blocks"
! measuring || [ "$(json '{e["kind"] for e in d["verification"]} >= {"substitute", "slow"}')" = True ] || fail "kinds"
[ "$(json '"failed" in [e["outcome"] for e in d["verification"]]')" = "$([ $status = 1 ] && echo True || echo False)" ] ||
	fail "the status does not say whether a prediction failed"
# The step is all there is: slowed down by a tenth, the throughput falls by that.
! measuring || [ "$(json '[e["interval"][0] < 1.2 and e["interval"][1] > 0.8 for e in d["measured_elasticities"]["stages"] if e["stage"] == "step"]')" = "[True]" ] ||
	fail "the elasticity of the step: $(json 'd["measured_elasticities"]')"
json '[e["log_ratios"] for e in d["verification"]]' >then
"$MLBENCH" diagnose proved --json >out 2>err
json '[e["log_ratios"] for e in d["verification"]]' >now
cmp -s then now || fail "the saved experiments are not shown as they were"
"$MLBENCH" diagnose proved >out 2>err
# On a busy machine nothing can be told, and nothing is tried.
if [ "$(tr -d '[], \n' <then)" ]; then
	prints "experiments: throughput relative to the baseline"
	prints "verified"
fi
# A rate that is called measured is the geometric mean of runs that were made.
"$MLBENCH" diagnose proved --json >out 2>err
python3 - <<'PY' || fail "a measured rate that no run had"
import json, math
for e in json.load(open("out"))["verification"]:
    if not e["log_ratios"]:
        continue  # no time was left for it
    logs = [r + sum(map(math.log, b)) / 2 for r, b in zip(e["log_ratios"], e["baselines"])]
    assert math.isclose(e["measured_throughput"], math.exp(sum(logs) / len(logs)), rel_tol=1e-6), e
PY

# Interrupted among the experiments: what is done is kept, exit 130.
"$MLBENCH" diagnose proved --verify --budget 2m --json >out 2>err &
pid=$!
rm -f proved/verification.json
for _ in $(seq 2400); do
	[ -e proved/verification.json ] && break
	kill -0 "$pid" 2>/dev/null || break
	sleep 0.05
done
kill -INT "$pid"
wait "$pid"
status=$?
# On a busy machine there may be no verdict, and so no experiment to interrupt.
[ "$status" -eq 130 ] || { ! measuring && [ "$status" -eq 3 ]; } || fail "exit $status when interrupted, not 130"
was=$status
is_json mlbench.diagnosis/1
if [ "$was" -eq 130 ]; then
	[ "$(json '1 <= sum(len(e["log_ratios"]) for e in d["verification"]) < 24')" = True ] || fail "blocks that were done are lost"
	# Shown again, that is said; the status is that of showing it.
	"$MLBENCH" diagnose proved --json >out 2>err
	status=$?
	[ "$status" -le 1 ] || fail "exit $status of a diagnosis whose experiments were interrupted before"
	[ "$(json 'd["verification_incomplete"].startswith("interrupted")')" = True ] || fail "it is not said to be incomplete"
	"$MLBENCH" diagnose proved >out 2>err
	prints "partly   interrupted"
fi
echo '{"schema": "mlbench.verification/1"' >proved/verification.json
expect 2 "$MLBENCH" diagnose proved
says "verification.json"

# What means nothing is refused.
expect 2 "$MLBENCH" diagnose tiny.ini
says "sweeps decode.workers, batch.size"
expect 2 "$MLBENCH" diagnose one --set decode.workers=2
says "--set needs a CONFIG"
expect 2 "$MLBENCH" diagnose one --follow
expect 2 "$MLBENCH" diagnose tiny.ini "${quick[@]}" --point 0
expect 2 "$MLBENCH" diagnose one --budget 3s
says "--verify"
expect 2 "$MLBENCH" diagnose one --verify --budget soon
# On a slow machine that result may be too short for a verdict, which is said first.
"$MLBENCH" diagnose one --verify --budget 1s >out 2>err
case $? in
2)
	says "--budget = 1 s is too short: "
	says "blocks of 4 runs of"
	;;
3) prints "Inconclusive" ;;
*) fail "a budget of 1 s is taken" ;;
esac
# Before anything is measured, generated or written, too.
expect 2 "$MLBENCH" diagnose tiny.ini "${quick[@]}" "${alone[@]}" --verify --budget 1s --out unborn
says "--budget = 1 s is too short: 3 experiments in blocks of 4 runs of"
[ ! -e unborn ] || fail "it ran before it looked at --budget"
# The least budget is named.
least=$(grep -oE 'budget [0-9]+s' err | grep -oE '[0-9]+')
[ "$least" -gt 2 ] || fail "no least budget is named"
expect 2 "$MLBENCH" diagnose tiny.ini --follow=0
expect 2 "$MLBENCH" diagnose nothing.ini
