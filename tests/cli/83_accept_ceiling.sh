# mlbench accept, kinds ceiling and pipeline: a core that hogs sit on is not judged, a configuration is run and the stage that
# limits it named, and nothing of them stays.
. "$CLI/lib.sh"
QUICK="--tier quick --budget 30min" # which a loaded machine may take
hogs=()
end_hogs() {
	[ ${#hogs[@]} -eq 0 ] || kill "${hogs[@]}" 2>/dev/null
	hogs=()
}
trap end_hogs EXIT

# The figure of each core, from the saved result: {core: median}.
medians() {
	json '{e["place"]: sorted(e["values"])[len(e["values"]) // 2] for m in d["measured"] for e in m["values"] if e["figure"] == "'"$1"'"}'
}

cat >cores.ini <<'INI'
[plan]
error_rate = 10%
[slow core]
kind = ceiling
tier = quick
budget = 10min
decode.core = within 20 % of best
gemm.core = known
INI
read -r first second < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))')
# Hogs of a nice test weigh nothing against whoever else uses the machine: then this part says nothing.
if [ -n "${second:-}" ] && [ "$(nice)" -eq 0 ]; then
	# So many that it is the slowest core where that is measured: a woken thread may be done before their turn comes.
	for _ in $(seq 8); do
		timeout 1200 taskset -c "$first" sh -c 'while :; do :; done' &
		hogs+=($!)
	done
	"$MLBENCH" accept cores.ini $QUICK --json --out hogged >out 2>err
	status=$?
	end_hogs
	[ "$status" -eq 3 ] || fail "exit $status with hogs on core $first: a busy node is judged"
	is_json mlbench.accept/1
	for figure in $(! measuring || echo decode.core gemm.core); do
		[ "$(python3 -c 'import sys
medians = eval(sys.argv[2])
slow = medians.pop("core " + sys.argv[1])
print(len(medians) > 0 and all(slow < 0.8 * m for m in medians.values()))' "$first" "$(medians $figure)")" = True ] ||
			fail "core $first is not the slowest by $figure: $(medians $figure)"
	done
	# Whoever else runs here may have the other cores busy, too.
	python3 - "core $first" <<'PY' || fail "the core of the hogs is judged, or the reason is not that the node is busy"
import json, sys
d = json.load(open("out"))
here = [f for c in d["checks"] for f in c["findings"] if f["place"] == sys.argv[1] and f["figure"] == "decode.core"]
print(here)
assert [f["verdict"] for f in here] == ["ERROR"]
assert here[0]["condition"] == "busy"
assert "'within 20 % of best' cannot be told: the node is busy: other work took" in here[0]["sentence"]
assert {e["place"] for m in d["measured"] for e in m["conditions"] if e["is"] == "busy"} >= {sys.argv[1]}
assert {e["figure"]: len(e["values"]) > 0 for m in d["measured"] for e in m["values"] if e["place"] == sys.argv[1]} == {"decode.core": True, "gemm.core": True}
PY
fi

# A configuration beside the plan, of whose sweep the plan takes a point; its data set is made in the scratch folder.
write_config
sed -i 's/^path = data/path = made/' tiny.ini
mkdir plans && mv tiny.ini plans/
cat >plans/job.ini <<'INI'
[job]
kind = pipeline
tier = quick
budget = 10min
config = tiny
set.decode.workers = 1
set.batch.size = 8
throughput >= 1 samples/s
decode.p99 = known
INI
"$MLBENCH" accept plans/job.ini $QUICK --json --out job >out 2>err
status=$?
# On a node so busy that too few repetitions became steady, nothing is shown, and it says why.
[ "$status" -eq 0 ] || { [ "$status" -eq 3 ] && grep -q 'the node is busy' out; } || fail "exit $status of a job that asks for nothing"
[ "$(json 'sorted(e["figure"] for m in d["measured"] for e in m["values"])')" = "['decode.p99', 'throughput']" ] || fail "not two figures"
grep -q 'bottleneck: ' job/measured.jsonl || grep -q 'diagnosis is inconclusive' job/measured.jsonl || fail "no diagnosis is noted"
[ ! -e made ] && [ ! -e plans/made ] || fail "a data set is left"
[ -z "$(find . -name '.mlbench-accept*')" ] || fail "a scratch folder is left"

# A step that limits the run is named, and one that was to be another fails.
cat >plans/step.ini <<'INI'
include = job.ini
[job]
set.step.time = 40ms
set.measure.duration = 800ms
throughput = none
decode.p99 = none
bottleneck = is decode
INI
"$MLBENCH" accept plans/step.ini $QUICK --json --out step >out 2>err
status=$?
[ "$status" -eq 1 ] || [ "$status" -eq 3 ] || fail "exit $status where the step limits the run"
if [ "$status" -eq 1 ]; then
	reads "bottleneck is 'step'"
fi

# What is wrong with a configuration is the plan's mistake, with its line, before anything runs.
printf '[job]\nkind = pipeline\ntier = quick\nconfig = tiny\nthroughput = known\n' >plans/sweeps.ini
expect 2 "$MLBENCH" accept plans/sweeps.ini --tier quick --out never
says "plans/sweeps.ini:1: [job]: config = tiny sweeps decode.workers, and a check runs one point"
sed 's/config = tiny/config = tinny/' plans/sweeps.ini >plans/none.ini
expect 2 "$MLBENCH" accept plans/none.ini --tier quick --out never
says "config = tinny: cannot open"
sed 's/^throughput = known/throughputt = known/' plans/sweeps.ini >plans/typo.ini
expect 2 "$MLBENCH" accept plans/typo.ini --tier quick --out never
says "did you mean 'throughput'?"
[ ! -e never ] || fail "a wrong plan has left something"

# A kill of the whole takes the run that it had started along.
sed 's/800ms/600s/' plans/step.ini >plans/long.ini
"$MLBENCH" accept plans/long.ini $QUICK --out killed >out 2>err &
accept=$!
running() { pgrep -f "run $PWD/plans/tiny.ini|run plans/tiny.ini" >pids; }
until_true running
kill -9 "$accept"
wait "$accept" 2>/dev/null
gone() { ! running; }
until_true gone
exit 0
