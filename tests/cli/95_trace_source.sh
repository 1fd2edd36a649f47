# `mlbench fit` of traces of torch.profiler and of logs of step times.  What is asked of a real trace lies between what the job
# plants (it sleeps at least so long) and what its own clock says around it: true however slow the machine is.
. "$CLI/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
# knows FILE EXPRESSION: python over the findings of a case: value("step.time") in ms, MiB or without unit, near("...", x) within 0.1 %,
# how("..."), notes.
knows() {
	python3 - "$1" "$2" <<'PY' || fail "not so: $2: $(cat "$1")"
import re, sys
known, notes, section = {}, "", ""
units = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3, "MiB": 1, "KiB": 1 / 1024, "%": 0.01}
for line in open(sys.argv[1]):
    section = line.strip() if line.startswith("[") else section
    if section != "[observed]":
        continue
    if line.startswith("note = "):
        notes += line[7:]
    found = re.match(r"([\w.]+) = ([\d.e+-]+) ?([^ ,(]*).*?, (\w+) by ([\w ]+)", line)
    if found:
        known[found[1]] = (float(found[2]) * units.get(found[3], 1), found[4], found[5])
value = lambda name: known[name][0] if name in known else None
near = lambda name, x: abs(value(name) - x) <= 1e-3 * x
how = lambda name: known[name][1] if name in known else "unknown"
assert eval(sys.argv[2], globals()), (known, notes)
PY
}
# refuses WORDS COMMAND ...: exit 2, and one line that says so.
refuses() {
	expect 2 "${@:2}"
	says "$1"
	[ "$(grep -c 'error:' err)" -eq 1 ] || fail "not one line: $(cat err)"
	[ ! -s out ] || fail "it prints something"
}

# --- a trace as a GPU's would be: 50 ms a step, 20 of them waits, the device at work for 24 ------------------------------------
cat >plant.py <<'PY'
import json, sys
rank, world, wait = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
factor = float(sys.argv[5]) if len(sys.argv) > 5 else 1
at, events = 4818987873651.916, []
def event(cat, name, begin, length, pid=2035, **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 7, "ts": round(at + begin * factor, 3),
                   "dur": length * factor, "args": args})
for step in range(12):
    t = 50000.0 * step
    event("user_annotation", "ProfilerStep#%d" % step, t, 49990)
    event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", t, wait)
    event("cpu_op", "aten::conv2d", t + wait, 50, **{"Input Dims": [[128, 3, 224, 224], [64, 3, 7, 7], []]})
    event("cpu_op", "\x1b[31mSECRET\x07/home/SECRET/x.py", t + wait, 50)
    for i in range(6):
        event("cpu_op", "aten::empty", t + wait + 10 * i, 3)
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", t + wait, 1500, 0, device=0, stream=7, bytes=77070336)
    for i in range(4):
        event("kernel", "SECRET_kernel", t + wait + 1500 + 6000 * i, 6000, 0, device=0, stream=7 + i % 2)
events.sort(key=lambda e: e["name"])
json.dump({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": world},
           "deviceProperties": [{"id": i, "name": "SECRET"} for i in range(2)], "traceEvents": events,
           "traceName": "/home/SECRET/trace.json"}, open(sys.argv[1], "w"))
PY
python3 plant.py rank0.json 0 2 20000
python3 plant.py rank1.json 1 2 22000
expect 0 "$MLBENCH" fit rank0.json --out one.ini
knows one.ini 'near("step.period", 50) and near("step.wait", 20) and near("step.time", 30)'
knows one.ini 'value("job.batch_size") == 128 and value("job.ranks") == 2 and near("job.throughput", 5120)'
knows one.ini 'near("upload.bytes", 73.5) and near("upload.time", 1.5) and how("job.workers") == "assumed"'
knows one.ini 'abs(value("device.busy") - 0.48) < 0.001 and "idled 20.0 ms during waits" in notes'
expect 0 "$MLBENCH" check one.ini
! grep -q "SECRET" one.ini out err || fail "a name of the trace got out"
gzip -k rank1.json
expect 0 "$MLBENCH" fit rank0.json rank1.json.gz --out both.ini
knows both.ini 'near("step.wait", 21) and value("job.ranks") == 2'
grep -q '^step.wait = 21 ms (20 to 22)' both.ini || fail "the interval does not hold both ranks"

# Larger than anything else that is read: it is streamed.
{
	head -c -1 rank0.json | sed 's/"traceEvents": \[.*/"traceEvents": [/'
	yes '{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "ts": 1, "args": {}},' | head -n 900000
	sed 's/.*"traceEvents": \[//' rank0.json
} >large.json
[ "$(stat -c %s large.json)" -gt 70000000 ] || fail "it is not large"
expect 0 "$MLBENCH" fit large.json --out large.ini
rm large.json
knows large.ini 'near("step.period", 50) and near("step.wait", 20) and "no JSON" not in notes'

# --- torn, and what is no trace -----------------------------------------------------------------------------------------------
head -c $(($(stat -c %s rank0.json) * 3 / 4)) rank0.json >torn.json
expect 0 "$MLBENCH" fit torn.json --out torn.ini
knows torn.ini '"its end is missing" in notes or "end of the trace is missing" in notes'
head -c $(($(stat -c %s rank1.json.gz) * 3 / 4)) rank1.json.gz >torn.json.gz
expect 0 "$MLBENCH" fit torn.json.gz --out torn.ini
knows torn.ini '"end of the trace is missing" in notes'
sed 's/"dur": 50,/"dur": NaN,/' rank0.json >broken.json
expect 0 "$MLBENCH" fit broken.json --out broken.ini
knows broken.ini 'near("step.period", 50) and "1 event without a usable time" in notes'
sed 's/"dur": 50,/"dur": 5 0,/' rank0.json >broken.json
expect 0 "$MLBENCH" fit broken.json --out broken.ini
knows broken.ini 'near("step.period", 50) and "is no JSON in 1 place" in notes and how("device.busy") == "unknown"'
sed 's/"dur": [0-9.]*/"dur": NaN/g' rank0.json >broken.json
refuses "no training steps" "$MLBENCH" fit broken.json
echo '{"traceEvents": [{"ph": "X", "cat": "devtools.timeline", "name": "RunTask", "ts": 1, "dur": 1}]}' >browser.json
refuses "no training steps" "$MLBENCH" fit browser.json
python3 plant.py nanoseconds.json 0 1 20000 1000
refuses "not in microseconds" "$MLBENCH" fit nanoseconds.json
: >empty.json
refuses "'empty.json' is empty" "$MLBENCH" fit empty.json
echo '{"a": 1}' >other.json
refuses "no source that is known" "$MLBENCH" fit other.json

# --- logs of step times -------------------------------------------------------------------------------------------------------
{
	echo "step,step_time_ms,data_time_ms,images_per_s"
	echo "0,3000,100,21"
	for i in $(seq 40); do echo "$i,$((46 + i % 3 * 4)).0,20.0,$((64000 / (46 + i % 3 * 4)))"; done
} >steps.csv
expect 0 "$MLBENCH" fit steps.csv --out steps.ini
knows steps.ini 'abs(value("step.period") - 50) < 0.2 and value("step.wait") == 20 and value("job.batch_size") == 64'
grep -q '^times = ' steps.ini || fail "the series of step times is not in the twin"
knows steps.ini '"1 slow step" in notes'
expect 0 "$MLBENCH" check steps.ini
# A profiler slows the steps that it records: the log counts before the trace.
expect 0 "$MLBENCH" fit rank0.json steps.csv --set job.workers=2 --out mixed.ini
knows mixed.ini 'abs(value("step.time") - 30) < 0.2 and value("job.workers") == 2 and known["step.period"][2] == "step log"'
# So does its rate, with the batch of the trace.
{
	echo "step,step_time_ms"
	for i in $(seq 40); do echo "$i,40.0"; done
} >times.csv
expect 0 "$MLBENCH" fit rank0.json times.csv --set job.workers=2 --out mixed.ini
knows mixed.ini 'near("job.throughput", 6400) and known["job.throughput"][2] == "step log" and value("job.batch_size") == 128'
# Which of two counts is told as it is.
{
	echo "step,step_time_ms,data_time_ms"
	for i in $(seq 40); do echo "$i,80.0,20.0"; done
} >slower.csv
expect 0 "$MLBENCH" fit rank0.json slower.csv --set job.workers=2 --out mixed.ini
knows mixed.ini 'value("step.time") == 60 and known["step.time"][2] == "step log"'
grep -q '^note = step.time is 30 ms by trace, but 60 ms by step log; the second one counts' mixed.ini ||
	fail "the case does not say which step time counts"
refuses "is a second source of its kind (step log)" "$MLBENCH" fit steps.csv slower.csv
# What programs print, JSON, and ranks.
for i in $(seq 0 30); do echo "iter $i: loss 9.0, time $((95 + i % 3 * 5)).00ms, mfu 30.12%"; done >nanogpt.txt
expect 0 "$MLBENCH" fit nanogpt.txt --out lines.ini
knows lines.ini 'abs(value("step.period") - 100) < 0.5 and "as nanoGPT writes them" in notes'
echo '{"log_history": [{"loss": NaN, "step": 10}, {"step": 600, "train_runtime": 60.2, "train_samples_per_second": 318.9,
	"train_steps_per_second": 9.966}]}' >trainer_state.json
expect 0 "$MLBENCH" fit trainer_state.json --out state.ini
knows state.ini 'near("step.period", 100.3) and value("job.batch_size") == 32 and near("job.throughput", 318.9)'
{
	echo "rank,step,step_time_ms"
	for i in $(seq 40); do printf '0,%d,100\n1,%d,150\n' "$i" "$i"; done
} >ranks.csv
expect 0 "$MLBENCH" fit ranks.csv --out ranks.ini
knows ranks.ini 'value("step.period") == 150 and value("job.ranks") == 2 and "2 ranks: the steps of rank 1 count" in notes'
echo '[{"step": 1, "iter_time_ms": 10}, {"step": 2, "iter_time_ms": 10}, {"step": 3, "iter_time_ms": 10}]' >list.json
expect 0 "$MLBENCH" fit list.json --out list.ini
knows list.ini 'value("step.period") == 10'

printf '31.5\n32\n33\n' >bare.csv
refuses "without a unit: write step_time_ms" "$MLBENCH" fit bare.csv
printf 'step,step_time\n1,31.5\n2,32\n3,33\n' >unit.csv
refuses "name the column step_time_ms" "$MLBENCH" fit unit.csv
printf 'SECRET,loss\n1,31.5\n2,32\n3,33\n' >loss.csv
refuses "no column of step times" "$MLBENCH" fit loss.csv
! grep -q "SECRET" out err || fail "a name of the log got out"

# Without an observation, the waits alone say what limits the job, by how much, and what to measure next.
waiting() { # WAIT_MS STEP_MS
	awk -v wait="$1" -v step="$2" 'BEGIN { print "step,timestamp,samples,data_time_ms"
		for (i = 0; i < 40; i++) printf "%d,%.6f,8,%s\n", i, 1795675981 + i * (wait + step) / 1000, wait }' >waiting.csv
	expect 0 "$MLBENCH" fit waiting.csv --out waiting.ini
}
waiting 60 40
reads "input-bound: the step waits 60 % of the time for data; a perfect loader would give at most 2.5 times the throughput; measure next: 'mlbench observe'"
grep -q '^stage = read or decode' waiting.ini && grep -q '^by = step log' waiting.ini || fail "no verdict from waits"
grep -q '^unchecked = nothing tells which node' waiting.ini || fail "a twin of nowhere is said to be checked"
waiting 1 99
reads "step-bound: the step waits 1 % of the time for data; a perfect loader would give at most 1.01 times the throughput"
grep -q '^stage = step' waiting.ini || fail "no verdict from steps"
waiting 15 85
reads "the input costs little: the step waits 15 % of the time"
! grep -q '^stage' waiting.ini || fail "a verdict from waits that are neither long nor short"

# --- a real job ---------------------------------------------------------------------------------------------------------------
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "PyTorch is not installed: traces that are made here alone were tried"
for workers in 0 2; do
	/usr/bin/python3 "$ROOT/tests/jobs/traced_job.py" real$workers.json --workers $workers >out 2>err || fail "the job itself failed"
	expect 0 "$MLBENCH" fit real$workers.json --out real$workers.ini
done
between() { # WORKERS
	knows "real$1.ini" "(lambda t: t['planted_step'] <= value('step.time') and
		t['planted_wait'] * (0 if $1 else 1) <= value('step.wait') <= max(t['waits']) and
		value('step.time') + value('step.wait') <= max(t['periods']) and
		(not t['shapes'] or value('job.batch_size') == t['batch']))(__import__('json').load(open('real$1.json.truth')))"
}
between 0
between 2
knows real0.ini 'value("job.workers") == 0 and how("job.workers") == "measured"'
knows real2.ini 'how("job.workers") == "assumed" and value("step.wait") < value("step.period")'
measuring || exit 0
mean() { # WORKERS: within a twentieth of what the job's clock says, for the steps that count
	knows "real$1.ini" "(lambda t, mean: abs(value('step.wait') - mean(t['waits'][3:])) < 0.05 * mean(t['periods'][3:-1]) and
		abs(value('step.period') - mean(t['periods'][3:-1])) < 0.05 * mean(t['periods'][3:-1]))(
		__import__('json').load(open('real$1.json.truth')), lambda v: sum(v) / len(v))"
}
mean 0
mean 2
