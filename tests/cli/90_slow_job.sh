# A real PyTorch job on a mount with 4 ms a read: observed, fitted, reproduced, bisected to the latency; its owner's fix predicted and
# confirmed (tests/jobs/slow_job.py, whose output docs/REPRODUCE.md shows).
. "$CLI/lib.sh"

code=0
timeout -k 10 1500 /usr/bin/python3 "$ROOT/tests/jobs/slow_job.py" "$MLBENCH" walk >walk.log 2>&1 || code=$?
[ "$code" -ne 77 ] || skip "$(grep -m 1 skipped: walk.log)"
[ "$code" -eq 0 ] || fail "$(tail -n 5 walk.log)"
python3 - walk/facts.json <<'PY' || fail "the walk: $(tail -n 40 walk.log)"
import json, sys
facts = json.load(open(sys.argv[1]))
assert facts["slow"] < 0.8 * facts["good"], facts
assert facts["reproduce_status"] == 0, "not reproduced"
assert facts["bisect_status"] == 0, "not bisected"
PY
