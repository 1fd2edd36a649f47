# What `check` promises is kept: the memory of real runs of several shapes stays within the printed bound, the time counts the
# step's, a measurement that can hold too few batches is told of before; and a folder of the user's own.
. "$CLI/lib.sh"
write_config

# bounded NAME [--set ...]: what the run of these takes at most, its stages alone included, is within what check says.
bounded() {
	local name=$1
	shift
	"$MLBENCH" check tiny.ini "$@" --json >out 2>err || fail "check $name"
	python3 - "$name" "$@" <<'PY' || fail "$name"
import json, os, subprocess, sys
name, extra = sys.argv[1], sys.argv[2:]
room = int(os.environ.get("DEVICE_MEMORY", 0))  # of the double's device, which lies in this process
plan = json.load(open("out"))
bound = plan["memory_bytes"] + room
command = [os.environ["MLBENCH"], "sweep", "tiny.ini", *extra, "--out", f"of_{name}"]
with open("err", "w") as err:
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err)
    _, status, used = os.wait4(child.pid, 0)
status = os.waitstatus_to_exitcode(status)
# A repetition begins its peak anew, which the kernel's account of the process forgets then.
peaks = [json.loads(line).get("rss_peak_bytes", 0) for line in open(f"of_{name}/points.jsonl")]
peak = max(used.ru_maxrss * 1024, *peaks)
print(f"{name}: {peak / 2**20:.1f} of {bound / 2**20:.1f} MiB")
assert status in (0, 3), status
assert peak <= bound, f"{name}: {peak} bytes were resident, and {bound} were promised"
PY
}
short="--set measure.repeats=1 --set measure.duration=60ms"
expect 0 "$MLBENCH" gen tiny.ini
case "$MLBENCH" in
*/release/*)
	bounded workers $short --set decode.workers=48 --set measure.limits=on
	bounded batches $short --set decode.workers=1 --set prefetch.depth=16 --set augment.size=96 --set sweep.batch.size=8,96
	bounded blas $short $ONE --set step.backend=openblas --set step.model=mlp --set augment.size=96 --set step.threads=2 --set measure.limits=on
	bounded timeline $short $ONE --set trace.schedule=0,0,0,4,1
	# A data set that is larger than all pools: the stages alone have it in memory.
	large="--set dataset.path=large --set dataset.width=640 --set dataset.height=640 --set dataset.samples=64"
	expect 0 "$MLBENCH" gen tiny.ini $large
	bounded alone $short $large --set measure.limits=on --set decode.workers=1 --set batch.size=2
	expect 0 "$MLBENCH" check tiny.ini $large --set measure.limits=on
	reads "where a stage runs alone, from memory"
	export MLBENCH_CUDA_PLUGIN=$(dirname "$MLBENCH")/double/libmlbench-cuda.so
	if [ -e "$MLBENCH_CUDA_PLUGIN" ]; then
		bounded beside $short $ONE
		export MLBENCH_DOUBLE_MEMORY=100000000 DEVICE_MEMORY=100000000
		bounded device $short $ONE --set step.backend=cuda --set step.model=mlp --set measure.limits=on
	fi
	unset MLBENCH_CUDA_PLUGIN MLBENCH_DOUBLE_MEMORY DEVICE_MEMORY
	;;
esac

# Results grow with the points of a sweep, and the bound with them: 120 points more take no more than it grows by.
one="--set measure.repeats=1 --set decode.workers=1 --set batch.size=8"
promised() { # POINTS
	expect 0 "$MLBENCH" check tiny.ini $one --set "sweep.prefetch.depth=1-10+1" --set "sweep.read.depth=$(seq -s, 1 $(($1 / 10)))" --json
	json 'int(d["memory_bytes"])'
}
resident() { # POINTS
	python3 "$CLI/widen_sweep.py" one "wide$1" prefetch.depth="$(seq -s, 1 10)" read.depth="$(seq -s, 1 $(($1 / 10)))"
	python3 -c 'import os, subprocess, sys
child = subprocess.Popen([os.environ["MLBENCH"], "sweep", "--resume", sys.argv[1]], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(used.ru_maxrss * 1024 if os.waitstatus_to_exitcode(status) in (0, 3) else "failed")' "wide$1" 2>err
}
case "$MLBENCH" in
*/release/*)
	expect_measured "$MLBENCH" sweep tiny.ini --set measure.repeats=1 --set sweep.decode.workers=1 --set sweep.batch.size=8 --out one
	room=$(($(promised 1120) - $(promised 1000)))
	used=$(($(resident 150) - $(resident 30)))
	[ "${used:-0}" -gt 0 ] && [ "$used" -le "${room:-0}" ] || fail "120 points more take $used bytes, and $room are promised"
	;;
esac

# The time: a step of 10 s makes 4 batches of the 3 and one that are wanted in 40 s, or in 4 times the duration if that is less.
seconds() { # LEAST MOST OPTIONS...
	local least=$1 most=$2
	shift 2
	expect 0 "$MLBENCH" check tiny.ini $ONE --set measure.repeats=1 --set measure.warmup=1s "$@" --json
	[ "$(json "$least <= d['seconds'] <= $most")" = True ] || fail "$(json 'd["seconds"]') s are expected for $*"
}
seconds 9 9.5 --set measure.duration=8s --set step.time=1ms
[ "$(json 'd["short"]')" = 0 ] || fail "a duration that is long enough"
seconds 33 33.5 --set measure.duration=8s --set step.time=10s
seconds 41 42 --set measure.duration=20s --set step.time=10s
seconds 21 21.5 --set measure.duration=8s --set step.time=10s --set step.devices=2
seconds 41 42 --set measure.duration=20s --set step.time=1s --set inject.step_factor=10
[ "$(json 'd["short"]')" = 1 ] || fail "a duration that is too short"
expect 0 "$MLBENCH" check tiny.ini $ONE --set measure.duration=8s --set step.time=10s
reads "measure.duration of 8 s is enough for only 0.8 of the 3 batches that a measurement needs, at 10 s per batch"
reads "and even then measures too few; measure.duration=40s is enough"
expect 0 "$MLBENCH" check tiny.ini --set measure.duration=8s --set measure.limits=off --set step.time=0ns --set batch.size=8
! grep -q '^  short' out || fail "nothing is short"

# A folder of one's own: never generated into, and measured with --data, which --set may still change.
mkdir -p own/a own/b
cp data/*/* own/a/ && cp data/*/* own/b/
expect 2 "$MLBENCH" check tiny.ini --set dataset.path=own
says "is not empty and not a data set of mlbench"
says "dataset.recipe=none (in short: --data DIR)"
expect 2 "$MLBENCH" run tiny.ini $ONE --set dataset.path=own
says "--data DIR"
expect 0 "$MLBENCH" check tiny.ini --data own
reads "96 samples (no more than dataset.samples), "
reads "in own"
expect 0 "$MLBENCH" check tiny.ini --data own --set dataset.samples=0
reads "192 samples, "
expect 0 "$MLBENCH" check tiny.ini --set dataset.path=own/a --data own
reads "in own/a"
expect_measured "$MLBENCH" run tiny.ini $ONE $short --data own --json --out with_own
[ "$(json 'd["config"]["dataset"]["path"], d["config"]["dataset"]["recipe"]')" = "('own', 'none')" ] || fail "another data set"
expect 2 "$MLBENCH" sweep tiny.ini --data nowhere
says "nowhere"
expect 2 "$MLBENCH" show with_own --data own
says "option '--data' is not one of this command"

# What is refused takes no time: batches that are larger than the data set.
expect 0 "$MLBENCH" check tiny.ini --data own --set dataset.samples=0 --set sweep.batch.size=16 --set decode.workers=1 --json
alone=$(json 'd["seconds"]')
expect 0 "$MLBENCH" check tiny.ini --data own --set dataset.samples=0 --set sweep.batch.size=16,256,512 --set decode.workers=1 --json
[ "$(json "d['refused'] == 2 and d['seconds'] == $alone")" = True ] || fail "the estimate counts points that are refused: $alone, and $(json 'd["seconds"]')"

# A plan of acceptance checks is none of the configurations, and the reverse: each says which command takes it.
write_config
printf '[bought]\nkind = expect\ncpu.cores >= 1\n' >plan.ini
for command in check run sweep gen probe; do
	expect 2 "$MLBENCH" $command plan.ini
	says "'plan.ini' is a plan of acceptance checks, and no configuration: 'mlbench accept plan.ini' runs it"
done
expect 2 "$MLBENCH" accept tiny.ini
says "'tiny.ini' is a configuration, and no plan: 'mlbench run tiny.ini' measures it"
sed -i 's/cpu.cores/cpu.corse/' plan.ini
expect 2 "$MLBENCH" accept plan.ini
says "did you mean 'cpu.cores'?"
