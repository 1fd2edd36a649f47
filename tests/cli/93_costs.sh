# Costs that a twin of somebody's job declares: recorded step times, and the overhead of its loader.
. "$CLI/lib.sh"
write_config
alone=(--set decode.workers=1 --set batch.size=8 --set step.time=0)

# Bad values: one line, before anything runs.
refused() { # VALUE TEXT
	expect 2 "$MLBENCH" check tiny.ini "${alone[@]}" --set "step.times=$1"
	says "$2"
	[ "$(wc -l <err)" -eq 1 ] || fail "more than one line about step.times=$1"
}
refused "20 21" "'20' has no unit, and none before it has"
refused "20ms -5" "'-5' is not a duration"
refused "20ms nan" "'nan' is not a duration"
refused "quantiles 50%=20ms" "needs two of them at least"
refused "quantiles 50%=20ms 10%=20ms" "is not of a larger share than the one before it"
refused "quantiles 5%=20ms 90%=30 correlation=7" "is not a correlation"
printf '[step]\ntimes = %s\n' "$(yes 1ms | head -n 1000000 | tr '\n' ' ')" >many.ini
expect 2 "$MLBENCH" check many.ini
[ "$(wc -lc <err | awk '{ print $1 == 1 && $2 < 500 }')" = 1 ] || fail "a million times are not refused in one line"
printf '[step]\ntimes = %s\n' "$(yes 1ms | head -n 1025 | tr '\n' ' ' | sed 's/1ms/1/2g')" >many.ini
expect 2 "$MLBENCH" check many.ini
says "many.ini:2: 'step.times': '1' is the 1,025th time"
expect 2 "$MLBENCH" check tiny.ini "${alone[@]}" --set "step.times=2ms 3" --set step.jitter=0.1
says "leave one out"
expect 2 "$MLBENCH" check tiny.ini "${alone[@]}" --set "step.times=2ms 3" --set step.backend=openblas
says "'step.times' are those of an emulated step"

# The series is replayed in its order, whatever else happens.
expect_measured "$MLBENCH" run tiny.ini "${alone[@]}" --set "step.times=2ms 3 4 5 0.006s" \
	--set measure.epochs=12 --set measure.warmup=0s --out series
reads "step: emulated from 5 recorded step times"
python3 - <<'PY' || fail "the steps are not those of the series"
import glob, json
for path in glob.glob("series/traces/*.json"):
    step = [s for s in json.load(open(path))["stages"] if s["stage"] == "step"][0]
    ms = [ns / 1e6 for ns in step["service_ns"]]
    assert len(ms) > 3 and all(2 + (a - 1) % 5 == b for a, b in zip(ms, ms[1:])), ms
PY
expect 0 "$MLBENCH" show series --json
[ "$(json 'd["config"]["step"]["times"]')" = "2ms 3 4 5 0.006s" ] || fail "the result has other step times"
# predicts SETTING EXPRESSION: what-if says so, unless a busy machine left too little to tell.
predicts() {
	"$MLBENCH" what-if series --set "$1" --json >out 2>err
	case $? in
	0) [ "$(json "$2")" = True ] || fail "what-if $1: not $2" ;;
	3) ;;
	*) fail "what-if $1 failed" ;;
	esac
}
predicts "step.times=8ms 2" 'd["alternatives"][0]["throughput"] > 0'
predicts step.time=40ms 'd["alternatives"][0]["throughput"] < 250'

# Quantiles: the same seed gives the same steps, with step.time their mean is that.
drawn=(--set "step.times=quantiles 0%=1ms 50%=2 100%=5 correlation=0.5" --set measure.epochs=3 --set measure.warmup=0s)
expect_measured "$MLBENCH" run tiny.ini "${alone[@]}" "${drawn[@]}" --verbose --out drawn
reads "emulated from 3 quantiles of recorded step times, correlation 0.5"
expect_measured "$MLBENCH" run tiny.ini "${alone[@]}" "${drawn[@]}" --set step.time=5ms --verbose --out scaled
reads "5.00 ms per batch of 8 (step.time)"
python3 - <<'PY' || fail "the drawn steps are not those of their seed"
import glob, json
def steps(name):
    times = {}
    for path in glob.glob(name + "/traces/*.json"):
        step = [s for s in json.load(open(path))["stages"] if s["stage"] == "step"][0]
        for number, ns in zip(step["number"], step["service_ns"]):
            assert times.setdefault(number, ns) == ns, (path, number)
    return times
drawn, scaled = steps("drawn"), steps("scaled")
common = set(drawn) & set(scaled)
assert len(common) > 2 and len({drawn[n] for n in common}) > 2, (drawn, scaled)
mean = 0.5 * 1.5 + 0.5 * 3.5
assert all(abs(scaled[n] / drawn[n] / (5 / mean) - 1) < 1e-4 for n in common), (drawn, scaled)
assert all(1e6 <= ns <= 5e6 for ns in drawn.values()), drawn
PY

# The overhead of a loader: refused where it is none, announced everywhere, and the batches are the same.
for bad in overhead.sample=-1ms overhead.sample=fast overhead.batch=nan overhead.step=1000h overhead.sampel=1ms; do
	expect 2 "$MLBENCH" check tiny.ini --set "$bad"
	[ "$(wc -l <err)" -eq 1 ] || fail "more than one line about $bad"
done
says "did you mean 'overhead.sample'"
costly=(--set overhead.sample=1ms --set overhead.batch=4ms --set overhead.step=2ms)
twin=(--set decode.workers=1 --set batch.size=8 --set measure.epochs=2 --set measure.warmup=0s --set run.verify=on)
checksum() {
	sed -n 's/.*"epoch_checksum":"\([0-9a-f]*\)".*/\1/p' "$1/points.jsonl" | sort -u
}
expect 0 "$MLBENCH" check tiny.ini "${costly[@]}"
reads "declared overhead.sample 1ms, overhead.batch 4ms, overhead.step 2ms: CPU time of a loader"
expect_measured "$MLBENCH" run tiny.ini "${twin[@]}" --out plain
! grep -q "declared" out || fail "an overhead is declared where there is none"
expect_measured "$MLBENCH" run tiny.ini "${twin[@]}" "${costly[@]}" --verbose --out costly
reads "declared overhead.sample 1ms, overhead.batch 4ms, overhead.step 2ms: CPU time of a loader"
reads "declared overhead: 4.00 ms of CPU time of a worker for each batch, emulated (overhead.batch)"
[ "$(checksum plain)" = "$(checksum costly)" ] || fail "other batches"
grep -q "Declared costs:" costly/report.html || fail "the report does not announce the overhead"
expect 0 "$MLBENCH" show costly
reads "declared overhead.sample 1ms"
expect 0 "$MLBENCH" show costly --json
[ "$(json 'd["config"]["overhead"]')" = "{'sample': '1ms', 'lock': 0.0, 'batch': '4ms', 'step': '2ms', 'objects': 0.0, 'object': '250us', 'bandwidth': '0', 'index': '0'}" ] || fail "not in the document"
# CPU time is wall time at least: 24 batches of 8, whatever the speed.
python3 - <<'PY' || fail "what was declared is not in the account"
import json
rows = [json.loads(line) for line in open("costly/points.jsonl")]
rows = [r for r in rows if r.get("kind") == "repetition"]
assert rows
for row in rows:
    stages = {s["name"]: s for s in row["stages"]}
    decode, step = stages["decode"], stages["step"]
    working = dict(zip(("starved", "working", "blocked"), decode["seconds"]))["working"]
    assert decode["overhead_seconds"] >= 18 * 0.004, decode["overhead_seconds"]
    assert working >= decode["overhead_seconds"] + 18 * 8 * 0.001, decode
    assert step["overhead_seconds"] == 0 and step["seconds"][1] >= 18 * 0.002, step["seconds"]
PY

expect 2 "$MLBENCH" check tiny.ini --set inject.cpus=1 --set run.affinity=compact
says "leave one out"
expect 2 "$MLBENCH" check tiny.ini "${costly[@]}" --set overhead.lock=50% --set inject.lock_share=1
says "leave one out"
expect_measured "$MLBENCH" run tiny.ini "${twin[@]}" "${costly[@]}" --set overhead.lock=50% --verbose --out locked
reads "declared overhead: 500 us of a sample's is under one lock of all workers, emulated (overhead.lock)"

# What-if on it, and each stage alone: no stage has another's overhead.
predicts overhead.sample=4ms 'd["alternatives"][0]["throughput"] < 300'
predicts overhead.batch=40ms 'd["alternatives"][0]["throughput"] < 250'
predicts overhead.step=40ms 'd["alternatives"][0]["throughput"] < 250'
predicts overhead.objects=20 'd["alternatives"][0]["throughput"] < 250'
predicts overhead.index=1ms 'd["alternatives"][0]["throughput"] < 250'
predicts overhead.lock=50% 'd["alternatives"][0]["throughput"] > 0'
expect_measured "$MLBENCH" run tiny.ini --set decode.workers=1 --set batch.size=8 --set measure.limits=on --set measure.duration=200ms \
	--set overhead.sample=4ms --set overhead.step=8ms --out alone
expect 0 "$MLBENCH" show alone --json
python3 - <<'PY' || fail "the limits of the stages are not their own"
import json
document = json.load(open("out"))
limits = {l["stage"]: l["capacity"] for l in document["limits"]}
assert not limits.get("decode") or limits["decode"] <= 1.05 / 0.004, limits
assert not limits.get("step") or limits["step"] <= 1.05 * 8 / 0.0085, limits
# Where the node was too busy for the point itself, there is no setting to measure the stages at.
assert set(limits) <= {"read", "decode", "step", "harness"} and (limits or document["points"][0]["status"] != "ok"), document["limits"]
PY
expect 0 "$MLBENCH" explain decode/cpu
prints "overhead.sample"
expect 0 "$MLBENCH" help collate_fn
prints "overhead.batch"
