# The story of configs/story.ini: from a device that swings between idle and busy to one that is fed, by the
# diagnosis's own advice alone, step by step, and then all at once.  STORY_VERIFY=1: each step is proved by
# experiments, too, and one that fails fails the test (about two minutes a step).
# measuring
. "$CLI/lib.sh"
export MLBENCH_DATA="$PWD/data"
short=(--set measure.duration=2500ms --set measure.repeats=1)
STEPS=6
proof=()
[ -z "${STORY_VERIFY:-}" ] || proof=(--verify --budget 110s)
sets=()
first=
for step in $(seq 0 $STEPS); do
	"$MLBENCH" diagnose "$ROOT/configs/story.ini" "${short[@]}" "${sets[@]}" "${proof[@]}" --json --out "step_$step" >out 2>err
	status=$?
	[ "$status" -eq 0 ] || fail "step $step: exit $status"
	now=$(json 'd["measured"]')
	echo "step $step: $(json 'd["sentence"]')"
	[ -n "$first" ] || first=$now
	[ "$step" -gt 0 ] || [ "$(json 'd["verdict"]["stage"] + "/" + d["verdict"]["resource"]')" = read/latency ] ||
		fail "the first limit is the link's latency"
	[ "$(json 'len(d["recommendations"])')" -gt 0 ] || break
	for setting in $(json '" ".join(d["recommendations"][0]["settings"])'); do
		# Nothing that is planted may be turned.
		case $setting in inject.* | dataset.* | step.*) fail "it recommends $setting" ;; esac
		sets+=(--set "$setting")
	done
done
[ "$step" -lt "$STEPS" ] || fail "it still recommends after $STEPS settings"
python3 -c 'import sys; sys.exit(not float(sys.argv[2]) >= 3 * float(sys.argv[1]))' "$first" "$now" ||
	fail "from $first to $now samples/s is not three times"
[ "$(json 'd["verdict"]["stage"]')" = step ] || [ "$(json 'd["verdict"]["also"]')" = step ] ||
	fail "at the end the step binds, not $(json 'd["verdict"]["stage"]')"

# The same by itself.
expect 0 "$MLBENCH" diagnose "$ROOT/configs/story.ini" "${short[@]}" --follow --json --out followed
python3 - <<'PY' || fail "--follow does not go the way"
import json
follow = json.load(open("out"))["follow"]
steps = follow["steps"]
kept = [s["measured"] for s in steps if s["kept"]]
assert kept[-1] >= 3 * kept[0], kept
assert kept == sorted(kept), kept
assert follow["set"].startswith("--set "), follow["set"]
PY
expect 0 "$MLBENCH" diagnose followed
