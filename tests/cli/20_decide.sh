# The experiment that decides, made by diagnose itself: reads alone, forth and back, by the key that has an effect there.  The
# storage is emulated and slow, so that neither speed nor quiet matters.
. "$CLI/lib.sh"
base=(--set dataset.recipe=photo --set dataset.samples=64 --set dataset.width=32 --set dataset.height=32 --set augment.size=16
	--set batch.size=4 --set step.backend=emulated --set step.time=1ms --set inject.read_latency=10ms --set read.depth=1)
short=(--set measure.duration=400ms --set measure.warmup=100ms --set measure.repeats=2)
printf '[dataset]\npath = data\n' >slow.ini

blocks() { # RESULT: "key value value ..."
	python3 - "$1" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/points.jsonl")]
blocks = [line for line in lines if line.get("kind") == "reads_alone"]
print(blocks[0]["key"] if blocks else "none", *[block["value"] for block in blocks])
for block in blocks:
    assert block["read"]["files"] > 0 and block["read"]["seconds"] > 0, block
    assert block["as_set"] == (block["value"] == blocks[0]["value"]), block
PY
}
told() { # WANT RESULT [words for CONFIG]
	local want=$1 result=$2
	shift 2
	expect 0 "$MLBENCH" diagnose slow.ini "${base[@]}" "$@" --json --out "$result"
	[ "$(blocks "$result")" = "$want" ] || fail "$result: blocks '$(blocks "$result")', not '$want'"
	[ "$(json 'd["verdict"]["stage"] + "/" + d["verdict"]["resource"]')" = read/latency ] || fail "$result: not read/latency"
	before=$(json 'd["sentence"]')
	expect 0 "$MLBENCH" diagnose "$result" --json
	[ "$(json 'd["sentence"]')" = "$before" ] || fail "$result: another verdict from what was saved"
}

told "read.depth 1 2 4 4 2 1" ring "${short[@]}"
told "read.threads 1 2 4 4 2 1" blocking "${short[@]}" --set read.engine=pread
told "decode.workers 1 2 4 4 2 1" workers "${short[@]}" --set read.by=workers --set decode.workers=1
told "read.depth 1 2 4 4 2 1" needed

# Not where only the set depth was asked for, nor in a run whose times are set.
"$MLBENCH" diagnose slow.ini "${base[@]}" "${short[@]}" --set measure.depths=off --json --out off >out 2>err
[ "$(blocks off)" = none ] || fail "measure.depths = off: $(blocks off)"
expect 0 "$MLBENCH" run slow.ini "${base[@]}" "${short[@]}" --json --out run
[ "$(blocks run)" = none ] || fail "a run: $(blocks run)"

# Where no time is set, check and run tell the same plan.
expect 0 "$MLBENCH" check slow.ini "${base[@]}"
grep -q "more until the answer is clear, at most 20 s" out || fail "check does not say how long it may take"

# Two stages that limit alike: each alone, forth and back, and the lines say of which stage they are.
balanced=(--set dataset.recipe=photo --set dataset.samples=64 --set dataset.width=32 --set dataset.height=32 --set augment.size=16
	--set batch.size=4 --set step.backend=emulated --set step.time=20ms --set decode.workers=4 --set inject.decode_wait=20ms
	--set measure.duration=500ms --set measure.warmup=100ms --set measure.repeats=2)
stages() { # RESULT: "stage stage stage stage"
	python3 - "$1" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/points.jsonl")]
blocks = [line for line in lines if line.get("kind") == "stage_alone"]
for block in blocks:
    assert block["read"]["files"] > 0 and block["read"]["seconds"] > 0 and block["key"] == "", block
summary = json.load(open(sys.argv[1] + "/summary.json"))["points"][0].get("stages_alone", [])
assert [s["stage"] for s in summary] == [b["stage"] for b in blocks], summary
assert not [line for line in lines if line.get("kind") == "reads_alone" and line.get("stage")]
print(*[block["stage"] for block in blocks])
PY
}
# Beside others decoding may take so much longer that nothing is left open.
asked=
for i in 1 2 3; do
	expect 0 "$MLBENCH" diagnose slow.ini "${balanced[@]}" --set dataset.path=balanced --json --out "alike$i"
	asked=$(stages "alike$i")
	[ -z "$asked" ] || break
	case $(json '"%s %s" % (d["verdict"]["also"], d["verdict"]["resource"])') in
	"step wait" | "decode compute") fail "alike$i: a pair, and no stage was run alone" ;;
	esac
done
# A disturbed round is run once more.
round="(decode step step decode|step decode decode step)"
[[ $asked =~ ^($round( $round)?)?$ ]] || fail "blocks of stages alone: '$asked'"
if [ -n "$asked" ]; then
	before=$(json 'd["sentence"]')
	json '" ".join(d["verdict"]["evidence"])' | grep -q "Alone, .* samples/s and" || fail "the verdict does not say what they gave alone"
	expect 0 "$MLBENCH" diagnose "alike$i" --json
	[ "$(json 'd["sentence"]')" = "$before" ] || fail "alike$i: another verdict from what was saved"
fi
