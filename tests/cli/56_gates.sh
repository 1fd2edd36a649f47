# Gates: three outcomes, the burden of proof, how many repetitions would decide.
. "$CLI/lib.sh"
schema="$ROOT/docs/compare.schema.json"
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i "$1" "$schema" >problems 2>&1 || { cat problems; fail "$1 is not valid"; }
}
write_config
expect_measured "$MLBENCH" run tiny.ini $ONE --set read.engine=memory --set measure.repeats=3 --set step.time=1ms --out a
cp -r a again

# Three outcomes: 26 % less by two repetitions that tell nothing is neither a pass nor a failure, unless B has to prove it.
rates() { # FOLDER RATE ...: the throughput of each repetition; those beyond are dropped
	/usr/bin/python3 - "$@" <<'PY' || fail "rates $*"
import json, sys
path, rates = sys.argv[1] + "/points.jsonl", [float(rate) for rate in sys.argv[2:]]
lines = [json.loads(line) for line in open(path)]
with open(path, "w") as out:
    for line in lines:
        if line.get("kind") == "repetition":
            if not rates:
                continue
            line["throughput"], line["status"] = rates.pop(0), "ok"
        out.write(json.dumps(line) + "\n")
PY
}
sed -i '1s/"started": *[0-9.]*/"started": 1790000000.0/' again/points.jsonl
cp -r a two
cp -r again less
rates two 1000 1150
rates less 700 900
expect 3 "$MLBENCH" compare two less --fail-if 'throughput < -5%'
prints "INCONCLUSIVE: throughput < -5%: -26.0 % (99 % CI"
prints "cannot show that"
says "1 of 1 condition is inconclusive"
expect 1 "$MLBENCH" compare two less --require 'throughput > -5%'
prints "FAILS: throughput > -5%: -26.0 % (99 % CI"
# Spread that more repetitions overcome: how many is said, and the worst outcome of several gates counts.
cp -r a wide
cp -r again near
rates wide 8000 8060 7940
rates near 7990 8050 7930
expect 3 "$MLBENCH" compare wide near --fail-if 'throughput < -5%' --fail-if 'throughput > 60%' --json
validate out
[ "$(json '[(g["outcome"], g["kind"], g["failed"]) for g in d["comparisons"][0]["gates"]]')" = "[('inconclusive', 'fail-if', False), ('within', 'fail-if', False)]" ] || fail "outcomes"
[ "$(json '4 <= d["comparisons"][0]["gates"][0]["repeats_needed"] <= 40')" = True ] || fail "how many would do"
prints "repetitions would"
expect 1 "$MLBENCH" compare wide near --fail-if 'throughput < -5%' --fail-if 'throughput > -50%'

# --until-sure makes them: A and B in turn, from the configurations that they were saved with, into new results.
measure() { # FOLDER SETTINGS ...: as a was, slow enough for any machine
	local folder=$1
	shift
	expect_measured "$MLBENCH" run tiny.ini $ONE --set read.engine=memory --set measure.repeats=2 --set measure.duration=100ms --set step.time=5ms "$@" --out "$folder"
}
measure quick
measure slow --set step.time=20ms
rates quick 1000 1300
rates slow 700 1000
expect 1 "$MLBENCH" compare quick slow --fail-if 'throughput < -20%' --require 'throughput < 20%' --until-sure 20min --json
says "inconclusive: measuring A and B again, in turn"
validate out
[ "$(json '[g["outcome"] for g in d["comparisons"][0]["gates"]]')" = "['worse', 'within']" ] || fail "not decided"
new_a=$(json 'd["baseline"]["folder"]')
new_b=$(json 'd["comparisons"][0]["result"]["folder"]')
case "$new_a $new_b" in results/tiny/*\ results/tiny/*) ;; *) fail "the new results: $new_a $new_b" ;; esac
# As many of each are made, looked at after 5, 10, 20, ... and where the time is over; a busy machine may leave some of them out.
[ "$(json 'min(d["comparisons"][0]["points"][0]["metrics"]["throughput"]["repeats"]) >= 2')" = True ] || fail "decided by too few"
/usr/bin/python3 - "$new_a" "$new_b" <<'PY' || fail "not in turn"
import json, sys
sides = [[json.loads(line) for line in open(f + "/points.jsonl")] for f in sys.argv[1:]]
order = sorted((l["started"], s, l["repeat"]) for s in (0, 1) for l in sides[s] if l.get("kind") == "repetition")
assert all({order[i][1], order[i + 1][1]} == {0, 1} and order[i][2] == order[i + 1][2] for i in range(0, len(order), 2)), order
assert order[-1][2] >= 1, order
assert {s[0]["config"]["measure"]["repeats"] for s in sides} == {len(order) // 2}
PY
expect 1 "$MLBENCH" compare "$new_a" "$new_b" --fail-if 'throughput < -20%'
prints "A and B were measured in turn"
expect 0 "$MLBENCH" show "$new_a"
prints "1 point x"
# What is decided already is not measured; what cannot be measured again stays inconclusive, and says why.
runs=$(ls results/tiny | wc -l)
again_but() { # TEXT ARGUMENTS ...
	local text=$1
	shift
	expect 3 "$MLBENCH" compare "$@" --fail-if 'throughput < -20%'
	says "$text"
	[ "$(ls results/tiny | wc -l)" -eq "$runs" ] || fail "measured, though $text"
}
expect 1 "$MLBENCH" compare "$new_a" "$new_b" --fail-if 'throughput < -20%' --until-sure 60s
says "the saved results decide"
again_but "the same configuration" two less --until-sure 60s
again_but "take about" quick slow --until-sure 10ms
fact() { # FOLDER GROUP NAME VALUE
	/usr/bin/python3 - "$@" <<'PY' || fail "fact $*"
import json, sys
path = sys.argv[1] + "/points.jsonl"
lines = open(path).read().splitlines()
header = json.loads(lines[0])
assert header["environment"][sys.argv[2]][sys.argv[3]] != sys.argv[4]
header["environment"][sys.argv[2]][sys.argv[3]] = sys.argv[4]
open(path, "w").write("\n".join([json.dumps(header)] + lines[1:]) + "\n")
PY
}
cp -r slow older
fact older mlbench version 0.0.1
again_but "was measured by mlbench 0.0.1" quick older --until-sure 60s
cp -r slow elsewhere
fact elsewhere cpu model "Another CPU"
again_but "this node has changed since B was measured: cpu.model" quick elsewhere --until-sure 60s
mv data gone
again_but "the data of A is missing" quick slow --until-sure 60s
mv gone data
refuse() { # TEXT ARGUMENTS ...
	local text=$1
	shift
	expect 2 "$MLBENCH" compare "$@"
	says "$text"
}
refuse "is not a time" quick slow --until-sure soon --fail-if 'throughput < -20%'
refuse "give one with --fail-if" quick slow --until-sure 5s
refuse "not 3" quick slow slow --until-sure 5s --fail-if 'throughput < -20%'
# Stopped, it keeps what it has.
"$MLBENCH" compare quick slow --fail-if 'step_utilisation < 100%' --fail-if 'throughput < -75%' --until-sure 60s >out 2>err &
pid=$!
for _ in $(seq 6000); do
	last=$(ls -d results/tiny/* | tail -n 1)
	[ "$(ls results/tiny | wc -l)" -gt "$runs" ] && grep -q '"repetition"' "$last/points.jsonl" && break
	kill -0 $pid 2>/dev/null || break
	sleep 0.05
done
kill -INT $pid
wait $pid
status=$?
[ "$status" -eq 130 ] || fail "stopped: exit $status"
says "are kept in 'results/tiny/"
expect 0 "$MLBENCH" history --where name=tiny
