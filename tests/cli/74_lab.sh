# `mlbench lab`: a lab of its own from start to end.  Orders, files and counts alone: the planted latency costs a factor of seven,
# the step is a clock, and what is read lies in memory, so that half a core is enough.
. "$CLI/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
mkdir -p configs/labs
cat >configs/labs/90_tiny.ini <<'INI'
[dataset]
path = data/tiny
recipe = photo
format = raw
samples = 128
width = 16
height = 16
size_sigma = 0
[read]
engine = memory
depth = 1
[augment]
crop = none
size = 16
[decode]
workers = 1
[batch]
size = 2
[step]
backend = emulated
time = 2ms
[measure]
duration = 200ms
warmup = 50ms
repeats = 1
[lab]
number = 90
title = Tiny
minutes = 1
page = docs/workshop/labs/90.md
goal = Feed the step.
plant = inject.read_latency = 7ms..9ms
knob = read.depth = 1..64
knob = decode.workers = 1..4
best = read.depth = 32
wrong = more-workers, decode.workers=4: Workers wait for files.
ask = now, rate: How many samples/s as it stands?
ask = most, best: How many samples/s at best?
ask = stage, stage: Which stage?
cause = read/latency | read/depth
evidence = depth: One read is in flight, all the time.
evidence = cpu: The cores are mostly idle.
right = depth
check = 8s
hint1 = 5: Who waits?
hint2 = 10: How many reads?
hint3 = 20: read.depth.
explain = Each file takes {inject.read_latency}: {inject.read_latency*1000} ms.
INI
lab() { "$MLBENCH" lab "$@"; }
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i "$1" "$ROOT/docs/lab.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "$1 is not valid against lab.schema.json"; }
}

# The file is a configuration as any other, and the section is none of it.
expect 0 "$MLBENCH" check configs/labs/90_tiny.ini
expect 0 lab list
prints Tiny
[ ! -e mlbench-labs ] || fail "list made a folder"

# Bad input: one line, exit status 2.
refused() { # TEXT ARGUMENT ...
	local text=$1
	shift
	expect 2 lab "$@"
	says "$text"
	[ "$(grep -c . err)" -eq 1 ] || fail "more than one line: $*"
	[ ! -s out ] || fail "it printed something: $*"
}
refused "did you mean 'start'" strat
refused "which lab" start
refused "there is no lab '91'" start 91
refused "mlbench lab start" predict 90 now=3
refused "no public key" start 90 teacher=nobody
expect 0 lab key teacher
expect 2 lab key teacher
[ "$(stat -c %a teacher)" = 600 ] || fail "the secret key is readable"
expect 0 lab start 90 student=nobody
expect 2 lab open mlbench-labs key=teacher
expect 0 lab start 90 student=anna teacher=teacher.pub
prints "read.depth = 1 (1..64)"
prints "How many samples/s at best?"
refused "predict first: now, most, stage" measure 90
refused "is not asked here" predict 90 never=3
refused "no number" predict 90 now=x
refused "no stage" predict 90 stage=xyzzy
expect 0 lab predict 90 now=60..200 most=900@60% stage=storage@90%
refused "measure first" check 90 cause=read/latency evidence=depth
refused "cannot be changed" measure 90 inject.read_latency=0
refused "1..64" measure 90 read.depth=65
refused "not passed yet" explain 90

# A kill in the middle loses the measurement and nothing else.
"$MLBENCH" lab measure 90 >killed.out 2>/dev/null &
pid=$!
until_true test -e mlbench-labs/90/m001/points.jsonl
kill -9 $pid
wait $pid 2>/dev/null
# On a busy machine it may have been done before the kill came.
if [ -s killed.out ]; then mv killed.out out; else expect 0 lab measure 90; fi
prints "you said now"
prints "evidence depth"
prints "where the time went"
! grep -qiE 'verdict|bottleneck|what to do|evidence  *[0-9]' out || fail "what is to be found is told"
python3 - <<'PY' || fail "the state is not what was done"
import json
lab = json.load(open("mlbench-labs/90.json"))
assert lab["state"] == "measured" and lab["student"] == "anna", lab["state"]
assert len(lab["measurements"]) == 1, lab["measurements"]
assert lab["predictions"][0]["measured"] == lab["measurements"][0]["rate"]
header = json.loads(open("mlbench-labs/90/m001/points.jsonl").readline())
assert header["config"]["inject"]["read_latency"] in (0, "0"), header["config"]["inject"]
PY
validate mlbench-labs/90.json
[ ! -e mlbench-labs/90/m001/diagnoses.json ] || fail "the verdict lies beside the measurement"
# What is planted stands in no file and no output, but for a note that something is.
! grep -rlE 'injected:|inject\.read_latency' mlbench-labs --include=*.json --include=*.jsonl --include=*.csv || fail "the plant can be read"
for command in show diagnose report what-if top fit; do
	expect 2 "$MLBENCH" "$command" mlbench-labs/90/m001
	says "is a measurement of lab 90"
done
expect 0 "$MLBENCH" history mlbench-labs --json
[ "$(json '[(row["verdict"] or {}).get("stage") for row in d["results"]]')" = "[None]" ] || fail "history tells the verdict"
# Nor does a copy of it, or an edited or a missing state: each action asks whether the program wrote it.
cp -r mlbench-labs/90/m001 copied
expect 2 "$MLBENCH" show copied
says "is a measurement of a lab: it opens in its student's folder"
cp mlbench-labs/90.json kept.json
for edit in 's/"state": "measured"/"state": "passed"/' 's/"points": null/"points": 100/' 's/"attempt": 1/"attempt": 0/'; do
	sed -i "$edit" mlbench-labs/90.json
	for action in explain "explain --force" hint measure start "check read.depth=32 cause=read/latency evidence=depth" "predict now=3"; do
		# shellcheck disable=SC2086 # words
		refused "counts as nothing" ${action%% *} 90 $(expr "$action" : '[a-z]* \(.*\)')
	done
	expect 2 "$MLBENCH" show mlbench-labs/90/m001
	says "is a measurement of lab 90"
	expect 0 lab list
	prints unverified
	cp kept.json mlbench-labs/90.json
done
rm mlbench-labs/90.json
expect 2 "$MLBENCH" show mlbench-labs/90/m001
says "is a measurement of a lab"
cp kept.json mlbench-labs/90.json
! grep -q 'storage is emulated' mlbench-labs/90/m001/points.jsonl || fail "the result tells that reads are slowed"
expect 0 lab open mlbench-labs key=teacher
prints "inject.read_latency="
expect 0 lab key other
expect 2 lab open mlbench-labs key=other
planted=$(lab open mlbench-labs key=teacher --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["labs"][0]["drawn"]["plants"]["inject.read_latency"])')
! grep -rqF "$planted" mlbench-labs/90.json mlbench-labs/student.json || fail "the state names the plant"
# The key lies outside of the folder, for its owner alone.
key=$(echo "$XDG_STATE_HOME"/mlbench/labs/*.json)
[ "$(stat -c %a $key)" = 600 ] || fail "the key is readable: $key"
! grep -rqF "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["secret"])' "$key")" mlbench-labs || fail "the secret lies in the folder"
# student.json is asked for by every action, too; a teacher who has the key alone sees who edited what.
cp mlbench-labs/student.json student.kept
sed -i 's/"attempts"/"attempted"/' mlbench-labs/student.json
for action in explain hint measure start reset "predict now=3"; do
	# shellcheck disable=SC2086 # words
	refused "student.json' was changed by hand and counts as nothing" ${action%% *} 90 $(expr "$action" : '[a-z]* \(.*\)')
done
expect 2 lab list
expect 1 env XDG_STATE_HOME=/nowhere "$MLBENCH" lab open mlbench-labs key=teacher
prints "COUNTS AS NOTHING: it was of a student.json that was changed by hand"
cp student.kept mlbench-labs/student.json
expect 0 env XDG_STATE_HOME=/nowhere "$MLBENCH" lab open mlbench-labs key=teacher
prints "can forge them"
expect 2 env XDG_STATE_HOME=/nowhere "$MLBENCH" lab hint 90
says "is not on this account"
expect 0 env XDG_STATE_HOME=/nowhere "$MLBENCH" lab scores mlbench-labs --json
[ "$(json '[s["labs"][0]["state"] for s in d["students"]], d["students"][0]["labs"][0]["authentic"]')" = "(['unverified'], None)" ] || fail "scores believe what they cannot check"
expect 0 env XDG_STATE_HOME=/nowhere "$MLBENCH" lab scores mlbench-labs key=teacher --json
[ "$(json 'd["students"][0]["labs"][0]["authentic"]')" = True ] || fail "the teacher's key does not check a state"

expect 0 lab hint 90
prints "Who waits?"
# A hint cannot be given back by a copy of one file, nor of all of them.
cp mlbench-labs/90.json newest.json
cp kept.json mlbench-labs/90.json
refused "put back from a copy and counts as nothing" hint 90
expect 1 lab open mlbench-labs key=teacher
prints "COUNTS AS NOTHING: it was put back from a copy"
cp mlbench-labs/student.json student.newest
cp student.kept mlbench-labs/student.json
refused "put back from a copy and counts as nothing" hint 90
cp newest.json mlbench-labs/90.json
cp student.newest mlbench-labs/student.json
# The right word without the gain does not pass, nor the gain with the wrong cause; on a node that is too noisy neither is said.
check() { # STATUS ARGUMENT ...
	local want=$1
	shift
	lab check 90 "$@" >out 2>err
	status=$?
	[ "$status" -eq "$want" ] || [ "$status" -eq 3 ] || fail "exit $status, not $want: check $*"
	[ ! -e mlbench-labs/90/check ] || fail "what the check measured is still there"
}
refused "'evidence=NAME' is missing" check 90 read.depth=32 cause=io/rtt
refused "STAGE/RESOURCE" check 90 read.depth=32 cause=read evidence=depth
check 1 decode.workers=4 cause=read/latency evidence=depth
prints "NOT "
check 1 read.depth=32 cause=decode/cpu evidence=depth
prints "NOT "
check 0 read.depth=32 cause=io/rtt evidence=depth
passed=$status
if [ "$passed" -eq 0 ]; then
	prints "PASSED with"
	expect 0 lab open mlbench-labs key=teacher
	prints "passed, the answer is right (judged again)"
	expect 0 lab explain 90
else
	expect 0 lab explain 90 --force
fi
prints "inject.read_latency = $planted"
python3 - "$planted" <<'PY' || fail "the explanation does not fill in what was planted"
import sys
ms = float(sys.argv[1].rstrip("mus")) * (1e-3 if sys.argv[1].endswith("us") else 1)
wanted = "Each file takes %.2f ms: %s ms." % (ms, "%.2f" % ms if ms % 1 else "%d" % ms)
assert wanted in " ".join(open("out").read().split()), wanted
PY
prints "decode.workers=4"
prints "mlbench show mlbench-labs/90/m001"
expect 0 "$MLBENCH" show mlbench-labs/90/m001 --verbose
! grep -q injected out || fail "show tells the plant"
prints "conditions are planted"
validate mlbench-labs/90.json
expect 2 lab check 90 read.depth=32 cause=io/rtt evidence=depth
expect 0 lab list
prints "$([ "$passed" -eq 0 ] && echo passed || echo given-up)"

# A lab that is over opens no other, nor counts twice.
cp mlbench-labs/90.json mlbench-labs/89.json
cp -r mlbench-labs/90 mlbench-labs/89
expect 2 "$MLBENCH" show mlbench-labs/89/m001
says "is a measurement of lab 89"
expect 1 lab open mlbench-labs key=teacher
prints "COUNTS AS NOTHING: it was copied from another lab"
# What lacks a field is told all the same.
sed -i '/"attempt":/d' mlbench-labs/89.json
expect 1 lab open mlbench-labs key=teacher
[ "$(grep -c ', lab 90: ' out)" -eq 2 ] || fail "a state without its attempt is left out"
rm -r mlbench-labs/89.json mlbench-labs/89

# Anew: other values, and the attempt is remembered.
expect 0 lab reset 90
refused "is not begun" measure 90
expect 0 lab start 90
python3 -c '
import json
lab = json.load(open("mlbench-labs/90.json"))
assert lab["attempt"] == 2 and len(lab["earlier"]) == 1 and lab["state"] == "started", lab
' || fail "the attempt is forgotten"
expect 0 lab explain 90 --force --json
validate out

# A class: two students, and a folder that is torn.
mkdir -p class/torn
cp -r mlbench-labs class/anna
expect 0 lab start 90 --dir class/group/ben student=ben
printf '{' >class/torn/student.json
expect 0 lab scores class
prints anna
prints ben
says "class/torn"
expect 0 lab scores class --json
validate out
python3 - <<'PY' || fail "scores are not what they should be"
import json
document = json.load(open("out"))
assert [s["student"] for s in document["students"]] == ["anna", "ben"]
assert document["labs"][0]["started"] == 2 and document["labs"][0]["given_up"] == 1
assert all(lab["authentic"] for s in document["students"] for lab in s["labs"])
assert len(document["skipped"]) == 1
PY
sed -i 's/"points": 0.0/"points": 100.0/' class/anna/90.json
expect 0 lab scores class
prints "not as written"
prints unverified
expect 0 lab scores class --json
validate out
[ "$(json '[s["labs"][0]["points"] for s in d["students"]]')" = "[None, None]" ] || fail "an edited state has points"
# Begun anew, it can be worked on; the mark stays.
expect 0 lab reset 90 --dir class/anna
expect 0 lab start 90 --dir class/anna
expect 0 lab scores class --json
[ "$(json '[s["labs"][0]["authentic"] for s in d["students"]]')" = "[False, True]" ] || fail "the mark of an edit is gone"
expect 0 lab scores class --format html --out class.html
grep -q "2 students passed 0 of the 2 labs" class.html || fail "the class's page does not count its students"
grep -q "1 file is not what the program wrote" class.html || fail "the class's page does not tell of a changed file"
refused "text or html" scores class --format pdf
refused "options of 'mlbench lab scores'" hint 90 --format html
refused "no student's folder" scores configs
printf '{' >class/group/ben/90.json
expect 2 lab hint 90 --dir class/group/ben
says "90.json"
sed -i 's/^right = .*/right = nobody/' configs/labs/90_tiny.ini
refused "names no line 'evidence'" start configs/labs/90_tiny.ini
