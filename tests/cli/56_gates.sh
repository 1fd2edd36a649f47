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
