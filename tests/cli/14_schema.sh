# summary.json is valid against docs/summary.schema.json: whole, failed, interrupted and profiler-off runs.
. "$CLI/lib.sh"
/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
schema="$ROOT/docs/summary.schema.json"
write_config
validate() {
	/usr/bin/python3 - "$1" "$schema" >problems 2>&1 <<-'PY' || { cat problems; fail "$1 is not valid"; }
		import json, sys
		import jsonschema
		instance, schema = (json.load(open(path)) for path in sys.argv[1:])
		found = list(jsonschema.Draft202012Validator(schema).iter_errors(instance))
		print(*("%s: %s" % (error.json_path, error.message) for error in found), sep="\n")
		sys.exit(1 if found else 0)
	PY
}
with_limits whole "$MLBENCH" sweep tiny.ini
validate whole/summary.json
"$MLBENCH" sweep tiny.ini --set decode.workers=1 --set batch.size=96 --set prefetch.depth=150 --set sweep.augment.size=16,4096 --out failing >out 2>err
validate failing/summary.json
"$MLBENCH" run tiny.ini $ONE --set measure.profiler=off --out off >out 2>err
validate off/summary.json
"$MLBENCH" run tiny.ini $ONE --set step.backend=null --set read.engine=memory --set run.verify=on --out memory >out 2>err
validate memory/summary.json
"$MLBENCH" diagnose tiny.ini $ONE --set inject.read_latency=20ms --set read.depth=1 --set measure.duration=400ms --out alone >out 2>err
validate alone/summary.json
grep -q '"reads_alone"' alone/summary.json || fail "no reads alone in the summary"
"$MLBENCH" sweep tiny.ini --set measure.duration=600ms --out stopped >out 2>err &
pid=$!
until_true repetitions stopped 1
kill -INT $pid
wait $pid
validate stopped/summary.json
"$MLBENCH" show "$ROOT/tests/golden/sample" --json >sample.json 2>err || fail "show sample"
validate sample.json
# What is null has its reason, but for what says by null that there is none.
/usr/bin/python3 - whole off memory stopped failing <<'PY' || fail "a null without a reason"
import json, sys
says_none = {"error", "also", "checksums", "scaling", "ci95", "flops_per_sample"}
def unexplained(value, where):
    if isinstance(value, list):
        return [u for i, one in enumerate(value) for u in unexplained(one, "%s[%d]" % (where, i))]
    if not isinstance(value, dict):
        return []
    bad = ["%s.%s" % (where, name) for name, one in value.items()
           if one is None and name not in says_none and name not in value.get("missing", {})]
    return bad + [u for name, one in value.items() for u in unexplained(one, where + "." + name)]
bad = [u for folder in sys.argv[1:] for u in unexplained(json.load(open(folder + "/summary.json")), folder)]
print("\n".join(bad))
sys.exit(bool(bad))
PY
# The schema is strict: it refuses what is not there, and what is too much.
/usr/bin/python3 - "$schema" whole/summary.json <<'PY' || fail "the schema takes nonsense"
import copy, json, sys
import jsonschema
schema, summary = (json.load(open(path)) for path in sys.argv[1:])
validator = jsonschema.Draft202012Validator(schema)
jsonschema.Draft202012Validator.check_schema(schema)
assert validator.is_valid(summary)
def refuse(change):
    other = copy.deepcopy(summary)
    change(other)
    assert not validator.is_valid(other), "taken"
refuse(lambda s: s.pop("points"))
refuse(lambda s: s.update(extra=1))
refuse(lambda s: s["points"][0].update(status="fine"))
refuse(lambda s: s["points"][0]["stages"][0]["service_us"].pop("p99"))
refuse(lambda s: s["points"][0]["throughput"].update(median="fast"))
refuse(lambda s: s["step"].update(emulated="yes"))
refuse(lambda s: s.update(config_hash="xyz"))
refuse(lambda s: s["limits"][0].pop("how"))
PY
# AU: the nominal time of all steps but the first, over the time from its end to that of the last step, which is less than the
# whole run and no less than the steps take.  A null step has none.
/usr/bin/python3 - whole <<'PY' || fail "accelerator utilisation is not by its rule"
import json, sys
points = {p["id"]: p for p in json.load(open(sys.argv[1] + "/summary.json"))["points"]}
runs = [r for r in map(json.loads, open(sys.argv[1] + "/points.jsonl")) if r.get("kind") == "repetition" and r["status"] == "ok"]
assert runs
for run in runs:
    batch = points[run["point"]]["settings"]["batch.size"] if "batch.size" in points[run["point"]]["settings"] else points[run["point"]]["settings"]["batch"]["size"]
    steps = run["windows"][-1][1] / batch
    least = (steps - 1) * 500e-6 / run["wall_seconds"]
    assert least <= run["accelerator_utilisation"] + 1e-9 and run["accelerator_utilisation"] <= 1.001, (least, run["accelerator_utilisation"])
    assert points[run["point"]]["accelerator_utilisation"] > 0
PY
! grep -q '"accelerator_utilisation": [0-9]' memory/summary.json || fail "a null step has an accelerator utilisation"
