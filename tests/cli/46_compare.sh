# compare: the same, a slower step, a slower decoder, sweeps that overlap in part, what is refused, gates, hostile names.
# The runs are real; the throughputs of their repetitions are then set close together, for a machine that is busy
# with other tests would hide what is planted.
. "$CLI/lib.sh"
schema="$ROOT/docs/compare.schema.json"
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i "$1" "$schema" >problems 2>&1 || { cat problems; fail "$1 is not valid"; }
}
write_config
base=(--set decode.workers=1 --set batch.size=8 --set read.engine=memory --set measure.repeats=3 --set step.time=1ms --set inject.decode_wait=20us --set measure.duration=150ms)
measure() { # FOLDER SETTINGS ...
	local folder=$1
	shift
	expect_measured "$MLBENCH" run tiny.ini "${base[@]}" "$@" --out "$folder"
}
# calm FOLDER RATE: repetitions of about RATE samples/s.
calm() {
	/usr/bin/python3 - "$@" <<'PY' || fail "calm $*"
import json, sys
path, rate = sys.argv[1] + "/points.jsonl", float(sys.argv[2])
lines = [json.loads(line) for line in open(path)]
repetitions = [line for line in lines if line.get("kind") == "repetition"]
for i, line in enumerate(repetitions):
    line["throughput"] = rate * (1 + 0.001 * (i - 1))
    line["status"] = "ok"
with open(path, "w") as out:
    for line in lines:
        out.write(json.dumps(line) + "\n")
PY
}
measure a
measure again
measure step --set step.time=2ms
measure decode --set inject.decode_factor=40
calm a 8000
calm again 8004
calm step 4000
calm decode 1240

# The same result twice differs by nothing, and that is said.
expect 0 "$MLBENCH" compare a a --fail-if 'throughput < -5%' --fail-if 'throughput > 5%' --json
prints "the same result"
prints "no difference beyond"
is_json mlbench.compare/1
validate out
[ "$(json 'all(m["change"] in (0, None) for m in d["comparisons"][0]["overall"].values())')" = True ] || fail "a differs from itself"
[ "$(json 'd["comparisons"][0]["explanation"]')" = None ] || fail "nothing is explained"
# So does another run of it, but for noise.
expect 0 "$MLBENCH" compare a again --fail-if 'throughput < -5%' --require 'throughput > -5%'
prints "passes: throughput < -5%: +0.05 % (99 % CI"
prints "within the limit"
prints "no difference beyond"

# A step of twice the time: found, explained by the step, and the gate closes.
expect 1 "$MLBENCH" compare a step --fail-if 'throughput < -30%' --fail-if 'step_time > 1500us' --json
says "2 of 2 conditions fail"
validate out
[ "$(json 'd["comparisons"][0]["overall"]["throughput"]["verdict"]')" = less ] || fail "half the throughput is no difference"
[ "$(json '-0.51 < d["comparisons"][0]["overall"]["throughput"]["change"] < -0.49')" = True ] || fail "not half"
[ "$(json 'abs(d["comparisons"][0]["overall"]["step_time"]["change"] - 1) < 0.02')" = True ] || fail "step_time"
# On a busy machine a replay may not be had, and then it says why.
[ "$(json 'd["comparisons"][0]["explanation"]["by"] == "replay" or len(d["comparisons"][0]["explanation"]["why_no_replay"]) > 0')" = True ] || fail "not explained by replay, without a reason"
! measuring || [ "$(json 'd["comparisons"][0]["explanation"]["by"]')" = replay ] || fail "not explained by replay"
! measuring || [ "$(json 'd["comparisons"][0]["explanation"]["parts"][0]["part"]')" = step ] || fail "not explained by the step"
[ "$(json 'abs(sum(p["share"] for p in d["comparisons"][0]["explanation"]["parts"]) + d["comparisons"][0]["explanation"]["not_explained"] - 1) < 1e-3')" = True ] || fail "parts do not sum to the whole"
[ "$(json '[f["name"] for f in d["comparisons"][0]["differs"] if f["weight"] == "setting"]')" = "['step.time']" ] || fail "what differs"

# A decoder of forty times the time: another limit.
expect 1 "$MLBENCH" compare a decode --fail-if 'throughput < -5%' --json
prints "B is slower"
prints "planted conditions"
prints "inject.decode_factor"
validate out
! measuring || [ "$(json 'd["comparisons"][0]["explanation"]["parts"][0]["part"]')" = decode ] || fail "not explained by decode"
! measuring || [ "$(json 'd["comparisons"][0]["limit_b"]["stage"] in ("decode", "none")')" = True ] || fail "another limit"

# Without service times in sequence the capacities explain, and that is said.
cp -r decode untraced
rm -r untraced/traces
expect 0 "$MLBENCH" compare a untraced --json
[ "$(json 'd["comparisons"][0]["explanation"]["by"]')" = capacities ] || fail "no replay can be had"
! measuring || [ "$(json 'd["comparisons"][0]["explanation"]["parts"][0]["part"]')" = decode ] || fail "capacities do not explain"
# A busy machine may have another reason in A.
[ "$(json 'len(d["comparisons"][0]["explanation"]["why_no_replay"]) > 0')" = True ] || fail "why there is no replay"
! measuring || grep -q 'no service times' out || fail "the reason is not that B has no service times"

# Several results beside one; a sweep beside a single run, of which one point is matched.
expect_measured "$MLBENCH" sweep tiny.ini "${base[@]}" --set measure.repeats=2 --set sweep.batch.size=16,8 --out swept
expect 0 "$MLBENCH" compare a step swept --json
validate out
[ "$(json 'len(d["comparisons"])')" = 2 ] || fail "two comparisons"
[ "$(json '[(p["a"], p["b"], p["settings"]) for p in d["comparisons"][1]["points"]]')" = "[(0, 1, {'batch.size': 8})]" ] || fail "the point is not matched"
[ "$(json 'd["comparisons"][1]["only_in_b"]')" = "[{'point': 0, 'settings': {'batch.size': 16}}]" ] || fail "the other one is dropped"
measure other --set batch.size=32
expect 2 "$MLBENCH" compare swept other
says "they have no point with the same settings"

# What is not the same work is refused, in one line.
measure size --set augment.size=8
expect 2 "$MLBENCH" compare a size
says "augment.size"
[ "$(wc -l <err)" -eq 1 ] || fail "more than a line"
measure null --set step.backend=null
expect 2 "$MLBENCH" compare a null --json
is_json mlbench.error/1
says "an emulated device"
cp -r again grown
sed -i '1s/"bytes": *[0-9.]*\([,}]\)/"bytes": 12345678.0\1/; 1s/"samples": *96.0/"samples": 97.0/' grown/points.jsonl
expect 2 "$MLBENCH" compare a grown
says "dataset."
# Another node is compared, and said.
cp -r again moved
sed -i '1s/"model": *"[^"]*", *"microcode"/"model": "Another CPU", "microcode"/' moved/points.jsonl
expect 0 "$MLBENCH" compare a moved --verbose
prints "cpu.model"
prints "Another CPU"
prints "may be the whole cause"

# Gates are strict, and never pass open.
refuse() { # CONDITION TEXT
	expect 2 "$MLBENCH" compare a again --fail-if "$1"
	says "$2"
}
refuse 'throughputt < -5%' "did you mean 'throughput'"
refuse 'decode.capacty < -5%' "did you mean 'decode.capacity'"
refuse 'throughput = 5%' "expected METRIC < VALUE"
refuse '< 5%' "expected METRIC < VALUE"
refuse 'throughput < ' "is not a value of throughput"
refuse 'throughput < -5 %%' "is not a value of throughput"
refuse 'throughput < fast' "is not a value of throughput"
refuse 'throughput < -5' "is always above 0"
refuse 'throughput < -100%' "nothing can fall by 100 %"
refuse 'step_time > 3 parsecs' "is not a value of step_time"
expect 3 "$MLBENCH" compare a again --fail-if 'device.power > 500' --fail-if 'upload.capacity < -5%' --json
[ "$(json '[g["outcome"] for g in d["comparisons"][0]["gates"]]')" = "['inconclusive', 'inconclusive']" ] || fail "passes open"
prints "not available in both results"
expect 1 "$MLBENCH" compare a again --require 'device.power < 500'
expect 2 "$MLBENCH" compare a again --significance 50%
says "--significance"
expect 2 "$MLBENCH" compare a again --format yaml
says "text, markdown, json or html"
expect 2 "$MLBENCH" compare a
says "needs A B"

# Half-written, foreign, empty, missing.
mkdir empty
expect 2 "$MLBENCH" compare a empty
expect 2 "$MLBENCH" compare empty a
expect 2 "$MLBENCH" compare a nowhere
says "nowhere"
cp -r again old
sed -i '1s#mlbench.points/1#mlbench.points/0#' old/points.jsonl
expect 2 "$MLBENCH" compare a old
says "mlbench.points/0"
cp -r again torn
head -c -4000 again/points.jsonl >torn/points.jsonl
expect 0 "$MLBENCH" compare a torn
prints "B was interrupted"
head -n 1 again/points.jsonl >torn/points.jsonl
expect 2 "$MLBENCH" compare a torn
says "has no measured point"
head -c 100 again/points.jsonl >torn/points.jsonl
expect 2 "$MLBENCH" compare a torn
# A single repetition tells nothing of noise: nobody passes by it, nobody is told a difference.
measure single --set measure.repeats=1 --set step.time=3ms
calm single 2667
expect 3 "$MLBENCH" compare single single --fail-if 'throughput < -5%'
prints "inconclusive: 1 repetition; about 3 would decide"
prints "about 3 repetitions would"

# Names that are markup elsewhere, and bytes that a terminal obeys.
hostile=$'x<script>alert(1)</script>|`_*\e[31m"&'
mkdir -p "$(dirname "$hostile")"
cp -r step "$hostile"
"$MLBENCH" compare a "$hostile" >out 2>err || fail "a hostile name"
! grep -q "$(printf '\033')" out || fail "an escape sequence in the terminal"
expect 0 "$MLBENCH" compare a "$hostile" --format markdown --out note.md
[ ! -s out ] || fail "--out leaves standard output alone"
grep -q '^### ' note.md || fail "no Markdown"
! grep -q '<script>' note.md || fail "markup in Markdown"
! grep -q "$(printf '\033')" note.md || fail "an escape sequence in Markdown"
expect 0 "$MLBENCH" compare a "$hostile" --json --format html --out page.html
is_json mlbench.compare/1
validate out
[ "$(json 'd["comparisons"][0]["result"]["folder"].startswith("x<script>")')" = True ] || fail "the name in JSON"
! grep -q '<script>alert(1)' page.html || fail "markup in HTML"
! grep -q "$(printf '\033')\[31m" page.html || fail "an escape sequence in HTML"
grep -q 'Capacities and service times' page.html || fail "no page"
expect 2 "$MLBENCH" compare a step --json --format html
says "needs --out"

# It fits narrow terminals, and plain ones.
COLUMNS=60 expect 0 "$MLBENCH" compare swept a
[ "$(wc -L <out)" -le 60 ] || fail "a line is wider than 60"
prints "A only"
prints "batch.size=16"
LC_ALL=C COLUMNS=80 expect 1 "$MLBENCH" compare a decode --verbose --fail-if 'throughput < -5%'
prints "FAILS"
prints "decode.lock_wait"
[ "$(wc -L <out)" -le 80 ] || fail "a line is wider than 80"
! LC_ALL=C grep -q '[^ -~]' out || fail "more than ASCII in the C locale"
