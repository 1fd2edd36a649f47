# trace.json of several ranks: one file, all on the leader's clock; each has the same steps, and all put their meetings at the same
# time; who was last; clocks that are 100,000 s apart; what is as alone.
. "$CLI/lib.sh"
need_ranks

write_config
cat >rounds.ini <<'INI'
[dataset]
path = data
recipe = photo
format = raw
width = 18
height = 18
size_sigma = 0
samples = 96
classes = 3
[augment]
size = 16
[batch]
size = 4
[upload]
mode = copy
[step]
backend = emulated
time = 2ms
[sync]
gradients = 256KiB
[measure]
epochs = 5
warmup = 0s
window = 10ms
repeats = 2
limits = off
[trace]
schedule = 10,1,2,12,2
INI

# 40 steps of each rank, of which two windows of 12 are recorded; of the first repetition, by the leader alone.
expect_measured ranks 3 "$MLBENCH" run rounds.ini --out r3
check_trace r3/trace.json
checked 'd["ranks"] == 3 and d["rounds"] == 24 and d["slices"]["step"] == 3 * 24'
checked 'd["slices"]["exchange gradients"] >= 24 and d["slices"]["wait for other ranks"] >= 24 and "exchanging" in d["slices"]'
head_of r3/trace.json 'all([w["first_step"] for w in part["windows"]] == [13, 28] and part["steps_of_run"] == 40 for part in r)'
head_of r3/trace.json '[(part["rank"], part["pid"]) for part in r] == [(0, 1), (1, 3), (2, 5)] and all(part["clock_error_ns"] == 0 for part in r)'
[ "$(grep -c '"ph":"b","name":"gradients"' r3/trace.json)" -ge 72 ] || fail "not the gradients of every round and rank"
[ -z "$(ls -d r3/ranks/*/trace.json* 2>/dev/null)" ] || fail "a follower's result has a trace"
expect 0 "$MLBENCH" top r3
prints 'of 3 ranks'
expect 0 "$MLBENCH" top r3 --json
json 'sum(o["calls"] for o in d["operations"] if o["operation"] == "step" and o["on"] == "thread")' >steps
grep -qx 72 steps || fail "not the steps of all ranks: $(cat steps)"

# Of each rank: how late the last one of each round was, and the worst rounds.
python3 - <<'PY' || fail "rounds are not told as they should be"
import json, sys
for path in ("r3/points.jsonl", "r3/ranks/0001/points.jsonl", "r3/ranks/0002/points.jsonl"):
    for m in map(json.loads, open(path)):
        for r in m.get("ranks", []):
            late = [row[2] for row in r["worst"]]
            assert m["kind"] == "repetition" and 0 < r["lateness"]["count"] <= 40, r
            assert 0 < len(late) <= 16 and late == sorted(late, reverse=True) and late[-1] > 0, late
            assert all(step < 40 and rank < 3 for step, rank, _ in r["worst"]), r
            assert late[0] == r["lateness"]["max_ns"], r
PY

# Continued: what is there is not recorded again.
python3 - <<'PY'
lines = open("r3/points.jsonl").read().splitlines(True)
open("r3/points.jsonl", "w").writelines(l for l in lines if '"repeat":1' not in l)
PY
before=$(cksum <r3/trace.json)
expect_measured ranks 3 "$MLBENCH" run rounds.ini --resume r3
[ "$(grep -c '"kind":"repetition"' r3/points.jsonl)" -eq 2 ] && [ "$(cksum <r3/trace.json)" = "$before" ] || fail "recorded again"

# Packed, and a file for each point; the step on the cores, whose exchange follows it.
expect_measured ranks 2 "$MLBENCH" sweep rounds.ini --out sweep --set step.backend=openblas --set step.model=mlp --set step.threads=1 --set trace.schedule=3,0,0,6,1 \
	--set trace.compress=on --set measure.epochs=1 --set measure.repeats=1 --set sweep.decode.workers=1,2
for point in 0 1; do
	check_trace "sweep/trace-p0000$point.json.gz"
	checked 'd["ranks"] == 2 and d["rounds"] == 6'
	head_of "sweep/trace-p0000$point.json.gz" "o['point'] == $point and all(len(part['threads']) == 5 + $point for part in r)"
done

# No room on the disk, in the middle of the ranks: one warning, all repetitions are there, and no rank waits for another.
if mkdir small && mount -t tmpfs -o size=900k none small 2>/dev/null; then
	ranks 3 "$MLBENCH" run rounds.ini --set trace.schedule=0,0,0,40,1 --out small/run >out 2>err
	status=$?
	left=$(ls small/run)
	kept=$(grep -c '"kind":"repetition"' small/run/points.jsonl)
	umount small
	[ "$status" -eq 3 ] && [ "$kept" -eq 2 ] || fail "exit $status, $kept repetitions"
	grep -c 'the run continues without it' err | grep -qx 1 || fail "not one warning"
	case "$left" in *trace.json*) fail "left over: $left" ;; esac
fi

# One of several that trains alone, and ranks that do not train.
expect_measured ranks 2 "$MLBENCH" run rounds.ini --out one --set run.ranks=1
check_trace one/trace.json
head_of one/trace.json 'r is None and o["windows"][0]["first_step"] == 13'
expect_measured ranks 2 "$MLBENCH" run rounds.ini --out null --set step.backend=null
check_trace null/trace.json
checked 'd["ranks"] == 2 and d["rounds"] == 0 and d["slices"]["step"] == 48'

# A clock that is 100,000 s ahead: mapped within the error that is told of it, and ranks meet by it as by the others.
if unshare -T --monotonic 100000 true 2>/dev/null; then
	run="$MLBENCH run rounds.ini --out apart"
	expect_measured ranks 2 $run : -n 1 unshare -T --monotonic 100000 $run
	check_trace apart/trace.json
	checked 'd["ranks"] == 3 and d["rounds"] == 24'
	head_of apart/trace.json 'r[1]["clock_error_ns"] == 0 and 0 < r[2]["clock_error_ns"] < 10**9'
	head_of apart/trace.json 'abs(r[2]["clock_offset_ns"] + 10**14) <= r[2]["clock_error_ns"]'
else
	echo "no time namespace can be made here: clocks that are apart were not tried"
fi
