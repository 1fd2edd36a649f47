# What a device did, through every writer: a saved sweep whose repetitions ran on one.
. "$CLI/lib.sh"
schema="$ROOT/docs/summary.schema.json"
cp -r "$ROOT/tests/golden/sample" sample
python3 - sample/points.jsonl <<'PY' || fail "no sample"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
name = 'GPU "0", </script>\x1b[31m'
for line in lines:
    if line.get("kind") != "repetition":
        continue
    line["loss_first"] = 6.5
    line["devices"] = [{
        "index": i, "name": name, "bus": "0000:3b:00.0", "precision": "bf16", "emulated": False,
        "step_seconds": 0.8, "upload_seconds": 0.1, "idle_share": 0.013, "launch_ns": 3e5,
        "upload_bytes": 1.25e9, "flops_per_step": 1e12, "achieved_flops": 6e14, "peak_flops": 9.895e14,
        "model_utilisation": 0.49, "deterministic": True, "sm_clock_mhz": [1695, 1910, 1980], "power_w": [480, 612, 690],
        "samples": 20, "ecc_corrected": 0, "ecc_uncorrected": 1, "throttles": [["power cap", 0.12]],
    } for i in range(2)]
with open(sys.argv[1], "w") as f:
    for line in lines:
        f.write(json.dumps(line) + "\n")
PY
expect 0 "$MLBENCH" show sample
prints 'device 0'
prints 'device 1'
prints 'GPU "0", </script>?[31m bf16: step'
prints '61 % of the published peak'
prints 'power cap 12.0%'
prints ' UNCORRECTED'
expect 0 "$MLBENCH" show sample --json
[ "$(json 'd["points"][1]["devices"][0]["name"] == "GPU \"0\", </script>\x1b[31m"')" = True ] || fail "the name changed"
[ "$(json 'd["points"][1]["devices"][1]["peak_share"] > 0.6')" = True ] || fail "no share of the peak"
[ "$(json 'd["points"][1]["devices"][0]["temperature_c"]')" = None ] || fail "a temperature out of nothing"
[ "$(json 'bool(d["points"][1]["devices"][0]["missing"]["temperature_c"])')" = True ] || fail "no reason"
[ "$(json 'd["points"][1]["first_losses"]')" = same ] || fail "losses were not compared"
/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
cp out summary.json
/usr/bin/python3 -m jsonschema -i summary.json "$schema" >problems 2>&1 || { cat problems; fail "summary.json is not valid"; }
