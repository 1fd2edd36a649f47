# Cases: written by hand, told in words, run as configurations; mistakes are told with their line.
. "$CLI/lib.sh"
validate() { # DOCUMENT
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i "$1" "$ROOT/docs/case.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "$1 is not valid against case.schema.json"; }
}
cat >job.ini <<'INI'
# By hand.
[case]
version = 1
created = 2026-11-26
complaint = The job went from 900 to 600 images/s on <host> since Tuesday, with nothing changed that
complaint = we know of. $# not a comment
scrubbed = 1 host name

[observed]
job.throughput = 600 samples/s (580 to 620), measured by trace
job.workers = 2, derived by observed: processes that load for one trainer
step.time = 4.125 ms, assumed by user

[verdict]
stage = read
resource = latency
confidence = 90%
by = trace

[environment]
cpu = AMD EPYC
cores = 64
cpu_quota = none
memory = 252 GiB
kernel = 6.1.0
file_system = nfs4

[assumed]
batch.size = no source tells it: 8 is usual

[reported]
cores = 64
inject.read_latency = 4ms

[dataset]
path = ${MLBENCH_DATA:-data}/case-1f
recipe = photo
samples = 64
width = 18
height = 18
format = raw

[batch]
size = 8

[augment]
size = 16

[step]
backend = emulated
time = 4125us

[measure]
epochs = 4
warmup = 10ms
window = 10ms
repeats = 2
INI

# In words, in 80 columns, with what it would run as; and as a document.
COLUMNS=80 "$MLBENCH" check job.ini >out 2>err || fail "check job.ini"
reads "we know of. # not a comment"
reads "600 samples/s 580 to 620 measured by trace"
reads "Bottleneck: read, latency-bound (90 % confidence), by trace"
reads "batch.size=8: no source tells it: 8 is usual"
reads "cores=64 memory=252 GiB inject.read_latency=4ms stand in"
reads "mlbench reproduce job.ini runs the twin on this node"
reads "config"
awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out || fail "a line is wider than 80 columns"
expect 0 "$MLBENCH" check job.ini --json
is_json mlbench.case/1
validate out
[ "$(json 'd["plan"]["config_hash"] == d["twin"]["config_hash"], d["verdict"]["resource"]')" = "(True, 'latency')" ] || fail "plan and twin"
hash=$(json 'd["twin"]["config_hash"]')

# It runs as it is: its result is one among others.
expect_measured "$MLBENCH" run job.ini --out results/job/one
expect_measured "$MLBENCH" run job.ini --set decode.workers=1 --out results/job/two
expect_measured "$MLBENCH" show results/job/one --json
[ "$(json 'd["config_hash"], d["name"]')" = "('$hash', 'job')" ] || fail "hash and name of its result"
"$MLBENCH" compare results/job/one results/job/two >out 2>err
[ $? -le 3 ] || fail "compare"
prints "decode.workers"
expect 0 "$MLBENCH" history --where name=job
[ "$(grep -c " job " out)" -eq 2 ] || fail "history"
expect 0 "$MLBENCH" report results/job/one

# It tells what was reported of the job, how it stands beside that, and what was set otherwise than in the case.
expect_measured "$MLBENCH" show results/job/one
reads 'case "The job went from 900 to 600 images/s on <host> since Tuesday, with nothing changed that we know of. # not a comment", 2026-11-26'
reads "reported 600 samples/s (580 to 620); bottleneck then: read, latency-bound (90 % confidence)"
tr -s ' \n' ' ' <out | grep -qE " here [0-9.,]+ samples/s( \([0-9.,]+ to [0-9.,]+\))?: .* reported" || fail "how the twin stands beside the job"
! grep -q "^  changed" out || fail "the twin is said to be another one than the case's"
[ "$(sed -n '/^  case /,/^where/p' out | wc -L)" -le 100 ] || fail "lines are too long"
expect_measured "$MLBENCH" show results/job/two
reads "set otherwise than in the case: decode.workers (was "
expect_measured "$MLBENCH" show results/job/one --json
[ "$(json '[d["case"][k] for k in ("rate", "low", "high", "stage", "resource", "changed")]')" = "[600.0, 580.0, 620.0, 'read', 'latency', '']" ] ||
	fail "the case in the summary"
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
	/usr/bin/python3 -m jsonschema -i out "$ROOT/docs/summary.schema.json" >problems 2>&1 || fail "$(head -n 5 problems)"
fi
# Whatever stands there: a page has no tag of it, Markdown no picture, and no output a control character.
mkdir evil
sed '1s|The job went|\\u001b]0;owned\\u0007\\u009b2J<script>alert(1)</script>![x](http://e.invalid)\\n# \\u202e|' results/job/one/points.jsonl >evil/points.jsonl
expect_measured "$MLBENCH" show evil
reads '<script>alert(1)</script>![x](http://e.invalid) # '
expect 0 "$MLBENCH" report evil
cat evil/report.html >>out
expect 0 "$MLBENCH" export evil --format markdown --out evil.md
cat evil.md >>out
! LC_ALL=C grep -qE "$(printf '[\033\007]|\302\233')" out || fail "control characters of a complaint"
grep -q '&lt;script&gt;alert(1)' evil/report.html && ! grep -q '<script>alert' evil/report.html || fail "a complaint is a script on the page"
! grep -qF '![x]' evil.md && ! grep -q '<script>' evil.md && ! grep -q '^# ' <(tail -n +2 evil.md) || fail "a complaint is Markdown"

# A case itself is no result, whichever command takes it for one.
for words in "compare results/job/one" show report; do
	expect 2 "$MLBENCH" $words job.ini
	says "'job.ini' is a case, and no result: 'mlbench run job.ini' makes one of its twin, and 'mlbench reproduce' measures it"
done

# Mistakes.
wrong() { # SED-SCRIPT MESSAGE
	sed "$1" job.ini >wrong.ini
	expect 2 "$MLBENCH" check wrong.ini
	says "$2"
}
wrong 's/^version = 1/version = 2/' "wrong.ini:3: version 2 of a case is newer than this program"
wrong 's/^job.throughput/job.throughputs/' "wrong.ini:10: unknown finding 'job.throughputs'; did you mean 'job.throughput'?"
wrong 's/^resource = latency/resource = latent/' "wrong.ini:16: unknown resource 'latent'; did you mean 'latency'?"
wrong 's/^inject.read_latency/inject.read_latencies/' "wrong.ini:33: unknown key 'inject.read_latencies'; did you mean 'inject.read_latency'?"
wrong 's/^repeats = 2/repeat = 2/' "wrong.ini:57: unknown key 'measure.repeat'; did you mean 'measure.repeats'?"
expect 2 "$MLBENCH" run wrong.ini
sed '/^\[case\]/d' job.ini >wrong.ini
expect 2 "$MLBENCH" run wrong.ini
says "stands outside any section"
sed -n '/^\[observed\]/,$p' job.ini >wrong.ini
expect 2 "$MLBENCH" run wrong.ini
says "wrong.ini:1: [observed] is a section of cases; a case begins with its [case] section"

# `fit` of a result: its setting is the twin, and its measurement what was observed.
expect 0 "$MLBENCH" fit results/job/one --complaint "Slow since Tuesday on node17, see /home/joe/train.py; joe@example.com" --out fitted.ini
says "a result of mlbench"
reads "Slow since Tuesday on <host>, see <path>; <address>"
reads "1 path, 1 host name, 1 mail address"
expect 0 "$MLBENCH" check fitted.ini --json
validate out
[ "$(json '[f["source"] for f in d["observed"] if f["name"] == "job.throughput"]')" = "['result']" ] || fail "throughput"
[ "$(json '{k["key"]: k["value"] for k in d["twin"]["keys"]}["step.time"]')" = 4125us ] || fail "the twin's keys"
cp fitted.ini again.ini
expect 0 "$MLBENCH" fit results/job/one --complaint "Slow since Tuesday on node17, see /home/joe/train.py; joe@example.com" --out again.ini
cmp -s fitted.ini again.ini || fail "the same sources make another case"
expect_measured "$MLBENCH" run fitted.ini --out results/fitted/one

# The twin of a job that was observed on a node like this one is run.  Its step of 50 ms is so on any machine but a busy one, which
# is no reason to call the twin unlike the job.
cpu=$(sed -n '/^\[environment\]/,/^$/s/^cpu = //p' fitted.ini)
python3 - "$cpu" <<'PY'
import json, sys
acts = {"runs": 0.02, "file": 0, "input": 0, "output": 0, "poll": 0, "lock": 0, "time": 0.98, "child": 0, "ring": 0, "device": 0, "stopped": 0, "other": 0}
process = {"role": "trainer", "seconds": 10, "cpu": 0.01, "run_queue_wait": 0, "read_bytes_per_s": 0, "storage_read_bytes_per_s": 0, "looks": 200, "acts": acts}
loader = dict(process, role="loader", acts=dict(acts, input=0.98, time=0))
json.dump({"schema": "mlbench.observe/1", "observed": {"seconds": 10, "allowed_cpus": 1, "quota_cores": None, "throttled_periods": None},
           "processes": [process, loader], "threads": [], "files": [], "files_per_s": {"value": None}, "mounts": [], "gpus": [], "hang": None,
           "environment": {"cpu": sys.argv[1], "cores": 1}, "verdict": {"stage": "step", "resource": "unknown", "certainty": "likely"}},
          open("observed.json", "w"))
for name, ms in ("right", 50), ("wrong", 10):
    with open(name + ".csv", "w") as log:
        print("step,timestamp,samples,data_time_ms", file=log)
        for i in range(40):
            print("%d,%.6f,8,0.1" % (i, 1795675981 + i * ms / 1e3), file=log)
PY
checked() { # a line of the case begins with one of these words
	grep -qE "^($1) = " checked.ini || fail "not $1: $(sed -n '/^\[case\]/,/^$/p' checked.ini)"
}
WHAT="--set dataset.format=raw --set dataset.width=18 --set dataset.height=18 --set augment.size=16 --budget 6s --out checked.ini"
if [ -n "$cpu" ]; then
	expect 0 "$MLBENCH" fit observed.json right.csv $WHAT
	reads "throughput: 160 samples/s of the job, "
	checked "faithful|unchecked"
	# A step that the user knows better than the job's own log: five times as long.
	expect 0 "$MLBENCH" fit observed.json wrong.csv $WHAT --set step.time=50ms
	checked "unfaithful|unchecked"
	grep -q "^compared = throughput: 800 samples/s of the job, .* of the twin: differs" checked.ini || fail "another throughput agrees"
	if grep -q ^unfaithful checked.ini; then
		expect 3 "$MLBENCH" reproduce checked.ini
		says "is marked unfaithful"
	fi
	expect 0 "$MLBENCH" check checked.ini --json
	validate out
	expect 0 "$MLBENCH" fit observed.json right.csv $WHAT --budget 0
	grep -q "^unchecked = --budget 0" checked.ini || fail "a twin was run without time for it"
fi
# What 'mlbench run' would refuse is no twin.
expect 0 "$MLBENCH" fit right.csv --set sample.kind=tokens --set dataset.recipe=tokens --set dataset.samples=2 --set augment.size=16 --out checked.ini
checked unfaithful
expect 3 "$MLBENCH" reproduce checked.ini

# What the user says counts before it, and is checked.
expect 0 "$MLBENCH" fit results/job/one --set decode.workers=3 --set job.throughput=12.5 --json
is_json mlbench.case/1
validate out
[ "$(json '{k["key"]: k["value"] for k in d["twin"]["keys"]}["decode.workers"]')" = 3 ] || fail "--set of a key"
[ "$(json '[(f["value"], f["source"]) for f in d["observed"] if f["name"] == "job.throughput"]')" = "[(12.5, 'user')]" ] || fail "--set of a finding"
expect 2 "$MLBENCH" fit results/job/one --set decode.worker=3
says "did you mean 'decode.workers'?"
expect 2 "$MLBENCH" fit results/job/one --set dataset.path=/home/joe/data
says "a case holds no folder of yours"
expect 2 "$MLBENCH" fit results/job/one --name /tmp/joe
says "looks like a name of yours"
expect 2 "$MLBENCH" fit results/job/one --set job.throughput=12bananas
says "is no unit of it"
expect 2 "$MLBENCH" fit job.ini
says "is a case already"
expect 2 "$MLBENCH" fit nowhere
says "cannot open 'nowhere'"
: >empty
expect 2 "$MLBENCH" fit empty
says "'empty' is empty"
expect_measured "$MLBENCH" sweep job.ini --set sweep.batch.size=4,8 --out results/swept
expect 2 "$MLBENCH" fit results/swept
says "is a sweep of 2 points"

# A hostile complaint of a megabyte: bounded, and inert.
python3 -c 'import sys
sys.stdout.write("\x1b[31mred\n[dataset]\npath = /etc/shadow\n" + "/home/joe/secret_%d.jpg " % 7 * 40000)' >complaint
expect 0 "$MLBENCH" fit results/job/one --complaint-file complaint --out hostile.ini
! grep -qE 'shadow|joe|secret' hostile.ini || fail "a name is in the case"
! grep -q "$(printf '\033')" hostile.ini || fail "an escape is in the case"
[ "$(wc -c <hostile.ini)" -le 8000 ] || fail "a case of $(wc -c <hostile.ini) bytes"
expect 0 "$MLBENCH" check hostile.ini
host=$(uname -n)
[ "${#host}" -lt 3 ] || ! grep -qwF "$host" fitted.ini || fail "the name of this node is in a case"

# A stranger's case takes nothing out: it expands no variable, includes no file, and contacts no host and writes to no folder
# elsewhere unless the user says so.  The listener counts who calls.
cat >listen.py <<'PY'
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], file=open("port.part", "w"), flush=True)
__import__("os").rename("port.part", "port")
while True:
    server.accept()[0].close()
    open("called", "a").write("x")
PY
python3 listen.py &
listener=$!
trap 'kill "$listener" 2>/dev/null' EXIT
until_true test -e port
export CASE_SECRET=hunter2
stranger() { # stranger PATH-LINE
	printf '[case]\nversion = 1\n[dataset]\n%s\n' "$1" >stranger.ini
}
commands() { # commands TEXT: each refuses stranger.ini with it
	local command
	for command in check run gen reproduce "bisect job.ini"; do
		# shellcheck disable=SC2086 # words
		expect 2 timeout 600 "$MLBENCH" $command stranger.ini
		says "$1"
	done
	! grep -q hunter2 out err || fail "a secret is printed"
}
stranger "path = nfs://127.0.0.1:$(cat port)/x/\${CASE_SECRET:-none}"
commands "expands no variables"
stranger "path = \${MLBENCH_DATA:-data}/\${CASE_SECRET}"
commands "expands no variables"
for path in "nfs://127.0.0.1:$(cat port)/x" "$PWD/elsewhere" ../elsewhere '${MLBENCH_DATA:-data}/../elsewhere'; do
	stranger "path = $path
recipe = photo
samples = 8"
	commands "names no server, and no folder outside"
done
[ ! -e elsewhere ] && [ ! -e ../elsewhere ] || fail "data was generated elsewhere"
# The order of sections, and the file that includes, change nothing.
printf '[dataset]\npath = x/${CASE_SECRET}\n[case]\nversion = 1\n' >stranger.ini
commands "expands no variables"
printf 'include = job.ini\n[case]\nversion = 1\n' >stranger.ini
commands "'include' "
printf '[case]\nversion = 1\n[dataset]\npath = data/case-1f\n[reported]\ndataset.path = nfs://127.0.0.1/x\n' >stranger.ini
expect 2 "$MLBENCH" reproduce --as-reported stranger.ini
says "'dataset.path' does not emulate a node"
stranger "path = nfs://127.0.0.1:$(cat port)/x"
printf 'include = stranger.ini\n' >outer.ini
expect 2 "$MLBENCH" check outer.ini
says "names no server"
[ ! -e called ] || fail "a host was contacted"
timeout 600 "$MLBENCH" check stranger.ini --data "nfs://127.0.0.1:$(cat port)/x" >out 2>err
[ -e called ] || fail "the user's own address was not called"
kill "$listener"

# Several sources: a folder's headers, a log of step times, and what the user says; what is derived follows from all of them.
cat >steps.csv <<'CSV'
step,step_time_ms,data_time_ms
CSV
for i in $(seq 40); do echo "$i,$((20 + i % 3)),$((5 + i % 2))" >>steps.csv; done
expect 0 "$MLBENCH" fit data/case-1f steps.csv --set batch.size=8 --set decode.workers=2 --complaint "it went from 900 to 600 images/s" --json
validate out
[ "$(json 'sorted({f["source"] for f in d["observed"]})')" = "['folder', 'step log', 'user']" ] || fail "sources: $(json 'sorted({f["source"] for f in d["observed"]})')"
[ "$(json '[f["value"] for f in d["observed"] if f["name"] == "data.files"]')" = "[64.0]" ] || fail "files"
[ "$(json 'sorted(k["key"] for k in d["twin"]["keys"] if k["key"].startswith("step."))')" = "['step.backend', 'step.times']" ] ||
	[ "$(json 'sorted(k["key"] for k in d["twin"]["keys"] if k["key"].startswith("step."))')" = "['step.backend', 'step.time']" ] || fail "the step"
[ "$(json '"batch.size" in [k["key"] for k in d["assumed"]], "augment.size" in [k["key"] for k in d["assumed"]]')" = "(False, True)" ] || fail "guesses"

# Sources that contradict each other: both are told, and the first one counts.
{ echo "step,step_time_ms,images/s"; for i in $(seq 40); do echo "$i,$((800 + i % 3)),10"; done; } >rate.csv
expect 0 "$MLBENCH" fit results/job/one rate.csv --out both.ini
says "job.throughput is "
says "the first one counts"
grep -q "^note = job.throughput is .* by result, but .* by step log; the first one counts" both.ini || fail "the contradiction is not in the case"
grep -q "^job.throughput = .*, measured by result" both.ini || fail "the first source does not count"

# The public cases: listed with what they teach, found by name from any folder, described by check, and run as they are and with
# the change that gains nothing and the one that helps, whose keys the list has.
expect 0 "$MLBENCH" list cases --json
is_json mlbench.list/1
cp out cases.json
[ "$(json 'len(d["cases"]) >= 20, [c["name"] for c in d["cases"] if c["unavailable"] or not (c["reported"] and c["source"] and c["decoys"] and c["fixes"])]')" = "(True, [])" ] ||
	fail "public cases"
[ "$(json '[(c["cause"], [k["key"] for f in c["fixes"] for k in f["keys"]], c["fixes"][0]["gained"]) for c in d["cases"] if c["name"] == "cases/few_workers"]')" = \
	"[({'stage': 'decode', 'resource': 'wait'}, ['decode.workers', 'prefetch.depth'], 4.3)]" ] || fail "a public case in the list"
expect 0 "$MLBENCH" list cases
reads "(geti issue 5958) Cause: decode/wait. No help: prefetch.depth=8. Fix: decode.workers=9 prefetch.depth=18 (reported: 4.3 times as fast)."
expect 0 "$MLBENCH" check cases/few_workers
reads "source geti issue 5958"
reads "no help prefetch.depth=8: "
reads "fix decode.workers=9 prefetch.depth=18 (4.3 times as fast then): "
expect 0 "$MLBENCH" check cases/one_connection --json
validate out
[ "$(json '[f["gained"] for f in d["fixes"]]')" = "[47.0, 3.4]" ] || fail "a ladder of two fixes"
for change in none decoys fixes; do
	settings=$(python3 -c 'import json, sys
case = [c for c in json.load(open("cases.json"))["cases"] if c["name"] == "cases/few_workers"][0]
print(" ".join("--set %s=%s" % (k["key"], k["value"]) for c in case.get(sys.argv[1], []) for k in c["keys"]))' $change)
	# shellcheck disable=SC2086
	expect_measured "$MLBENCH" run cases/few_workers $settings --set run.verify=on --set measure.epochs=1 --set measure.repeats=1 --set measure.warmup=0s --set dataset.samples=64 --out "results/few/$change"
	grep -o '"checksum_samples":64,\|"epoch_checksum":"*[0-9a-fx]*' "results/few/$change/points.jsonl" | sort >"sums.$change"
	[ "$(wc -l <"sums.$change")" -eq 2 ] && cmp sums.none "sums.$change" || fail "the samples of one epoch, $change"
done
