# The first claim of configs/story.ini proved by experiment: the link's latency takes it all, and what is
# recommended gives what was predicted.  Other tests share the machine, so intervals are asked, and twice.
# measuring
. "$CLI/lib.sh"
export MLBENCH_DATA="$PWD/data"
prove() {
	"$MLBENCH" diagnose "$ROOT/configs/story.ini" --set measure.duration=2500ms --set measure.repeats=1 \
		--set batch.size=4 --set step.time=3ms --verify --budget 42s --json --out "proved_$1" >out 2>err
	status=$?
	[ "$status" -le 1 ] || fail "exit $status"
	python3 - <<'PY'
import json
d = json.load(open("out"))
by = {(e["kind"], e["stage"], e["factor"]): e for e in d["verification"]}
kinds = [e["kind"] for e in d["verification"]]
assert kinds.count("knob") == 1 and kinds.count("substitute") == 3 and kinds.count("slow") == 6, kinds
def holds(interval, low, high):
    return interval[0] <= high and interval[1] >= low
knob = next(e for e in d["verification"] if e["kind"] == "knob")
assert knob["measured"] > 1.5 and holds(knob["measured_90"], *[p * f for p, f in zip(knob["predicted_90"], (0.9, 1.1))]), knob
assert by["substitute", "read", 1]["measured"] > 1.2, by["substitute", "read", 1]
assert holds(by["substitute", "step", 1]["measured_90"], 0.9, 1.1), by["substitute", "step", 1]
e = {s["stage"]: s for s in d["measured_elasticities"]["stages"]}
assert holds(e["read"]["interval"], 0.85, 1.15), e
assert holds(e["decode"]["interval"], -0.15, 0.15) and holds(e["step"]["interval"], -0.15, 0.15), e
assert holds(d["measured_elasticities"]["sum_interval"], 0.9, 1.1), d["measured_elasticities"]
PY
}
# The live line counts to what the budget has room for, and never beyond it.
counts() {
	python3 - <<'PY'
import re
told = [(int(n), int(of)) for n, of in re.findall(r"^(\d+) of at most (\d+) ", open("err").read(), re.M)]
assert told and all(n <= of for n, of in told), told
PY
}
prove 1 || prove 2 || fail "the experiments do not bear the diagnosis out"
counts || fail "the progress of the experiments"
