# Helpers of the command-line tests; each test sources this.  A failed expectation ends the test.
# shellcheck shell=bash

fail() {
	[ -s out ] && { echo "--- stdout"; head -n 12 out; }
	[ -s err ] && { echo "--- stderr"; tail -n 12 err; }
	echo "FAILED: $*"
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

# True where bounds of time, rates and shares of time are asked for: make bench (tests/measuring.h).
measuring() {
	[ -n "${MLBENCH_MEASURING:-}" ]
}

# until_true COMMAND ...: tries it again and again, for as long as a slow machine may take.
until_true() {
	local tries
	for tries in $(seq 6000); do
		"$@" && return
		sleep 0.05
	done
	fail "it never came: $*"
}

# heeds_interrupts PID: it has said what Ctrl-C does, which the shell has its background jobs ignore; or it has ended.
heeds_interrupts() {
	local mask
	mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
	[ -z "$mask" ] || [ $((0x$mask & 2)) -ne 0 ]
}

# repetitions FOLDER COUNT: at least so many are recorded there.
repetitions() {
	[ "$(grep -c '"kind":"repetition"' "$1/points.jsonl" 2>/dev/null || true)" -ge "$2" ] 2>/dev/null
}

# gone PID ...: not one of them runs (one that nobody has waited for is gone).
gone() {
	local pid
	for pid in "$@"; do
		case $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null) in '' | Z | X) ;; *) return 1 ;; esac
	done
}

# at_once FUNCTION ...: each in a folder of its name, all at the same time; the test fails if one of them does, and shows those.
at_once() {
	local case bad= jobs=()
	for case in "$@"; do
		mkdir "$case"
		(cd "$case" && "$case") >"$case.log" 2>&1 &
		jobs+=($!)
		sleep 0.3
	done
	for case in "$@"; do
		wait "${jobs[0]}" || { bad="$bad $case" && echo "--- $case" && cat "$case.log"; }
		jobs=("${jobs[@]:1}")
	done
	[ -z "$bad" ] || fail "of these:$bad"
}

# check_trace FILE: a timeline that is valid, nested, and within what the clocks counted.  checked EXPRESSION over d, that check's summary.
check_trace() {
	/usr/bin/env python3 "$ROOT/tests/timeline_check.py" "$1" >checked 2>&1 || {
		cat checked
		fail "$1 is not as it should be"
	}
}
checked() {
	python3 -c 'import json, sys
d = json.loads(open("checked").read().splitlines()[-1])
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1" || fail "not so: $1 ($(tail -n 1 checked))"
}
# head_of FILE EXPRESSION over o, a timeline's otherData, and r, what is said of each rank.
head_of() {
	python3 -c 'import gzip, json, sys
raw = open(sys.argv[1], "rb").read()
o = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)["otherData"]
r = o.get("ranks")
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "$2" || fail "not so in $1: $2"
}

# expect STATUS COMMAND ...: runs it with stdout in ./out and stderr in ./err.
expect() {
	local want=$1 status
	shift
	"$@" >out 2>err
	status=$?
	[ "$status" -eq "$want" ] || fail "exit $status, not $want: $*"
}

# says TEXT: the last command's stderr has it.
says() {
	grep -qF -- "$1" err || fail "stderr does not say '$1'"
}

# prints TEXT: its stdout has it.
prints() {
	grep -qF -- "$1" out || fail "stdout does not say '$1'"
}

# reads TEXT: so does it, however its lines are broken.
reads() {
	tr -s ' \n' ' ' <out | grep -qF -- "$1" || fail "stdout does not read '$1'"
}

# The document on stdout is one valid JSON value, with this schema.
is_json() {
	python3 - "$1" <<'PY' || fail "stdout is no JSON document of schema $1"
import json, sys
with open("out") as f:
    document = json.load(f)
assert document["schema"] == sys.argv[1], document["schema"]
PY
}

# json EXPRESSION: python over the document d of ./out.
json() {
	python3 -c 'import json, sys
d = json.load(open("out"))
print(eval(sys.argv[1]))' "$1"
}

# as_if_quiet FOLDER: takes out of a node's result that other work ran beside its checks, which depends on this machine.
as_if_quiet() {
	python3 - "$1/accept.json" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
for check in d["measured"]:
    check["conditions"] = []
json.dump(d, open(sys.argv[1], "w"))
PY
}

# A tiny data set and a sweep of 2 x 2 points x 2 repeats in a second or so.
write_config() {
	cat >tiny.ini <<'INI'
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

[step]
backend = emulated
time = 500us

[measure]
duration = 60ms
warmup = 10ms
window = 10ms
repeats = 2
limits = off

[sweep]
decode.workers = 1,2
batch.size = 8,16
INI
}

# one point of it
ONE="--set decode.workers=1 --set batch.size=8"

# Finished, or nothing was steady on a busy machine: both are complete runs.
expect_measured() {
	"$@" >out 2>err
	local status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status, not 0 (or 3, unsteady): $*"
	! grep -q 'nothing could be measured' err || fail "nothing was measured: $*"
}

# predictable FOLDER CHANGE COMMAND ...: the result of the run or sweep, measured as long as what-if takes to tell what the change
# gives: on a busy machine a short one may be too noisy, or hold too little.
predictable() {
	local folder=$1 change=$2 seconds
	shift 2
	for seconds in 1500ms 3s 6s 20s 60s; do
		rm -rf "$folder"
		expect_measured "$@" --set measure.duration=$seconds --out "$folder"
		"$MLBENCH" what-if "$folder" --set "$change" --json >out 2>err && return
		grep -qE 'inconclusive|no measurement' err || fail "no answer, for another reason than too little: what-if $folder --set $change"
	done
	fail "what-if tells nothing of a run of $seconds"
}

# with_limits FOLDER COMMAND ...: the result of the run or sweep, with each stage measured alone, for which a point must be steady:
# tried again, and for longer, where a busy machine leaves none.
with_limits() {
	local folder=$1 duration
	shift
	for duration in 60ms 200ms 200ms 1s 5s; do
		rm -rf "$folder"
		expect_measured "$@" --set measure.limits=on --set measure.duration=$duration --out "$folder"
		grep -q '"kind":"limit"' "$folder/points.jsonl" && return
	done
	fail "no point is steady, and no stage was measured alone: $*"
}

# write_iops_plan FILE: a check that measures small reads, and asks for none in particular.
write_iops_plan() {
	cat >"$1" <<'INI'
[speed]
kind = ceiling
tier = quick
budget = 10min
read.iops = known
INI
}

# need_ranks: skips the test where ranks cannot be started.
need_ranks() {
	mpirun --version 2>/dev/null | grep -q 'Open MPI' || skip "no mpirun of Open MPI here (Debian's openmpi-bin)"
	[ -e "${MLBENCH%/*}/libmlbench-mpi.so" ] || skip "this build has no MPI plug-in (Debian's libopenmpi-dev)"
}

# ranks N [OPTION ...] COMMAND ...: that many of it, started by mpirun with these options on however few cores there are, by root, too.
ranks() {
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n "$@"
}

# start_ranks N ...: the same in the background, with its output in ./out and ./err; $launcher is mpirun's process.
start_ranks() {
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n "$@" >out 2>err </dev/null &
	launcher=$!
}

# ranks_started N: so many run below $launcher; pids[RANK] are theirs.
ranks_started() {
	local pid rank
	pids=()
	for pid in $(pgrep -P "$launcher"); do
		rank=$(tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
		[ -z "$rank" ] || pids[rank]=$pid
	done
	[ ${#pids[@]} -eq "$1" ]
}

# What differs from run to run, in one place.
normalise() {
	sed -E \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/TIME/g' \
		-e 's/[0-9]{8}T[0-9]{6}Z(-[0-9]+)?/TIME/g' \
		-e 's/about [0-9.]+ (ms|s|min [0-9]+ s|h [0-9]+ min)/about N s/g' \
		-e "s#$ROOT#ROOT#g"
}

# golden NAME: ./out, normalised, is tests/golden/NAME.
golden() {
	local file="$ROOT/tests/golden/$1"
	normalise <out >out.normal
	if [ "${UPDATE:-}" = 1 ]; then
		mkdir -p "$(dirname "$file")"
		cp out.normal "$file"
		return
	fi
	diff -u "$file" out.normal >difference || {
		cat difference
		fail "output differs from tests/golden/$1 (UPDATE=1 tests/cli/run.sh writes it anew)"
	}
}

# can_draw: charts can be drawn here.  draw FILE...: in Chromium, as tests/browser/charts.py says.
can_draw() {
	grep -q '^const vega' "$ROOT/build/charts/vega.js" 2>/dev/null && command -v chromium chromedriver >/dev/null &&
		/usr/bin/python3 -c 'import selenium' 2>/dev/null
}
draw() {
	timeout -k 5 1200 /usr/bin/python3 "$ROOT/tests/browser/charts.py" "$ROOT/build/charts/vega.js" "$@"
}
