# trace.json: what is in it holds against the states of the threads; schedules; what does not go into one.
. "$CLI/lib.sh"
write_config

# A run: JPEGs, a staging copy, an emulated device.  60 steps, however slow the machine is.
cat >jpeg.ini <<'INI'
[dataset]
path = pictures
recipe = photo
width = 120
height = 100
samples = 48
[augment]
size = 48
[batch]
size = 8
[upload]
mode = copy
[step]
backend = emulated
time = 2ms
[measure]
epochs = 10
warmup = 0s
window = 10ms
repeats = 1
limits = off
[trace]
schedule = 10,1,2,12,2
INI
expect_measured "$MLBENCH" run jpeg.ini --out jpeg
check_trace jpeg/trace.json
checked 'd["slices"]["step"] == 24 and d["slices"]["epoch"] >= 2 and d["arrows"] > 20 and d["async"] > 20'
checked 'all(n in d["slices"] for n in ("sample", "header", "entropy + IDCT + colour", "resize + flip + normalise", "copy batch", "compute", "device step"))'
checked '{"files in flight", "queue: samples", "queue: batches", "queue: uploaded"} <= set(d["counters"])'
head_of jpeg/trace.json 'len(o["windows"]) == 2 and o["windows"][0]["first_step"] == 13 and o["windows"][1]["first_step"] == 28'
head_of jpeg/trace.json 'o["emulated"] and o["dropped"] == {"steps": 0, "entries": 0} and o["schedule"] == "10,1,2,12,2"'
grep -q 'timeline: 24 steps recorded, the first of them step 13' jpeg/points.jsonl || fail "no note"

# Packed; from the first step on, one file at a time, PNG: opens, reads and closes, inflate and unfilter are apart.
expect_measured "$MLBENCH" run jpeg.ini --out png --set dataset.format=png --set dataset.path=png --set codec.png=fast \
	--set read.engine=pread --set trace.schedule=0,0,0,20,1 --set trace.compress=on
[ ! -e png/trace.json ] || fail "two files"
check_trace png/trace.json.gz
checked 'all(n in d["slices"] for n in ("open", "read", "close", "inflate", "unfilter", "join chunks"))'
head_of png/trace.json.gz 'o["windows"][0]["begin_us"] == 0'

# Two devices that train together, and planted conditions; a sweep has a file for each point.
expect_measured "$MLBENCH" sweep jpeg.ini --out sweep --set step.devices=2 --set sync.latency=200us --set inject.lock_share=50% \
	--set inject.read_latency=300us --set trace.schedule=4,0,0,6,1 --set sweep.decode.workers=1,2
for point in 0 1; do
	check_trace "sweep/trace-p0000$point.json"
	checked '"exchange gradients" in d["slices"] and "blocked: checkpoint, evaluation, other devices" in d["slices"]'
	head_of "sweep/trace-p0000$point.json" "o['point'] == $point and len(o['threads']) == 1 + $point + 1 + 2 + 2 + 2"
done
[ ! -e sweep/trace.json ] || fail "a file that is of no point"

# The bound is in the plan; without a schedule there is no file, and none of the notes.
expect 0 "$MLBENCH" check jpeg.ini --set trace.schedule=0,0,0,3,1
prints 'timeline 3 steps from step 0 on'
expect_measured "$MLBENCH" run jpeg.ini --out none --set trace.schedule=
[ -z "$(ls none | grep trace.json)" ] || fail "a file without a schedule"
! grep -q 'timeline: ' none/points.jsonl || fail "a note without a schedule"

# Too late. (What there is no room for: test_timeline.c.)
expect_measured "$MLBENCH" run jpeg.ini --out late --set trace.schedule=100000,0,0,3,1
says 'no trace.json: the repetition ended after'
[ ! -e late/trace.json ] || fail "a file of nothing"

# Mistakes: with file and line, or the override; what goes with the profiler alone.
printf '[dataset]\npath = x\n[trace]\nschedule = 1,2,3\n' >bad.ini
expect 2 "$MLBENCH" check bad.ini
says 'bad.ini:4'
says 'skip,wait,warmup,active,repeat (example: 10,0,2,3,1)'
for schedule in 1 a,b,c,d,e 1,2,3,0,1 -1,0,0,1,1 1,2,3,4,5,6 1.5,0,0,1,1 0,0,0,9999999999,1; do
	expect 2 "$MLBENCH" check jpeg.ini --set "trace.schedule=$schedule"
	says trace.schedule
done
expect 2 "$MLBENCH" check jpeg.ini --set measure.profiler=off
says "'trace.schedule' does not go with 'measure.profiler' = off"

# A name that would be markup, or the end of a string, elsewhere.
name='a"b<script>\u0041'"'"'{}],'
expect_measured "$MLBENCH" run jpeg.ini --set "run.name=$name" --set trace.schedule=3,0,0,2,1 --out hostile
check_trace hostile/trace.json
head_of hostile/trace.json 'o["benchmark"] == '"$(python3 -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$name")" || true
python3 -c 'import json; json.load(open("hostile/trace.json"))' || fail "no JSON"

# No room on the disk for it: one warning, and the run is as it would have been.
if mkdir small && mount -t tmpfs -o size=300k none small 2>/dev/null; then
	"$MLBENCH" run jpeg.ini --set trace.schedule=0,0,0,40,1 --set read.engine=pread --out small/run >out 2>err
	status=$?
	umounted=$(ls small/run | tr '\n' ' ')
	points=$(wc -l <small/run/points.jsonl)
	umount small
	[ "$status" -le 3 ] && [ "$points" -ge 2 ] || fail "exit $status, $points lines: $umounted"
	grep -c 'the run continues without it' err | grep -qx 1 || fail "not one warning"
	[ "$status" -ne 0 ] || fail "a trace that was asked for and is not there is no success"
	case "$umounted" in *trace.json*) fail "left over: $umounted" ;; esac
fi
