# A case whose truth is planted (a step that waits, a latency of each file) is reproduced where it is so, not where it is not, and cannot be
# told where there is too little; with --as-reported the reported node is emulated.  Kills and interrupts lose nothing that was measured.
. "$CLI/lib.sh"

# write_case FILE THROUGHPUT VERDICT [REPORTED]: 8 samples in a step of 50 ms: 160 samples/s.
write_case() {
	cat >"$1" <<INI
[case]
version = 1
created = 2026-11-24
complaint = slow since Tuesday

[observed]
job.throughput = $2 samples/s, measured by trace

[verdict]
$3

[environment]
cores = 4000
kernel = 4.19
memory = 1 TiB

[assumed]
batch.size = the trace does not tell

[reported]
$4

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

[read]
threads = 1
depth = 1

[decode]
workers = 1

[batch]
size = 8

[step]
backend = emulated
time = 50ms

[measure]
duration = 300ms
warmup = 50ms
window = 20ms
INI
}
# Half a core and stalls are no reason to fail.
WIDE="--tolerance 40% --budget 8m"

valid() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i "$1" "$ROOT/docs/reproduce.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "$1 is not valid against reproduce.schema.json"; }
}

# What is so: the step takes all the time.
write_case step.ini 160 'stage = step' ''
expect 0 "$MLBENCH" reproduce step.ini --out step $WIDE
reads "Reproduced: "
reads "against the reported 160"
reads "The same stage: step, shown by relieving it."
reads "batch.size: the trace does not tell"
[ "$(awk '{ if (length > most) most = length } END { print most }' out)" -le 100 ] || fail "lines are too long"
valid step/reproduce.json
python3 - <<'PY' || fail "reproduce.json of what is so"
import json
d = json.load(open("step/reproduce.json"))
assert d["outcome"] == "reproduced" and d["rate"] == "within" and d["cause"] == "same", d
by = {v["stage"]: v for v in d["variants"]}
assert by["step"]["reported"] and by["step"]["relief"] == "gains" and by["step"]["ratio"] > 1.5, by["step"]
assert not by["read"]["reported"] and by[""]["aside"], by
assert d["here"]["repetitions"] >= 4 and d["band"] == [96, 224], d["here"]
assert d["here"]["ci95"][0] < d["here"]["throughput"] < d["here"]["ci95"][1]
PY
expect 0 "$MLBENCH" show step
reads "reported 160 samples/s; bottleneck then: step here"
reads "'mlbench reproduce' found: reproduced"
expect 0 "$MLBENCH" show step/without-step
reads "set otherwise than in the case: step.backend"
# Its results are like others, and hold each repetition.
grep -q '"name":"step-twin"' step/twin/points.jsonl || fail "the twin's result is not called after its case"
for arm in twin without-step; do
	expect 0 "$MLBENCH" show "step/$arm" --json
	is_json mlbench.summary/1
done
# Of all that was measured in turns the history has one line and one series; inside its folder, in CSV and in JSON, each result.
arms=$(ls -d step/*/ | wc -l)
expect 0 "$MLBENCH" history . --metric throughput
reads "step-twin +$((arms - 1)) "
reads "+ so many more were measured in turns with it"
reads "$arms of $arms results in ."
! grep -q without-step out || fail "a variant has a line of its own"
expect 0 "$MLBENCH" history step
reads "step-without-step "
! grep -q " +[0-9]" out || fail "the twin stands for variants that are shown"
expect 0 "$MLBENCH" history . --where name=step-without-step --json
[ "$(json '[(r["session"], r["variant_of"], r["variants"]) for r in d["results"]]')" = "[('step', None, 0)]" ] || fail "a variant alone"
expect 0 "$MLBENCH" history . --format csv
[ "$(grep -c ',step/twin$' out)" -eq $((arms - 1)) ] || fail "CSV has no column of what a variant is of"
expect 0 "$MLBENCH" history . --format html --out history.html
grep -q 'step-twin +' history.html && ! grep -q without-step history.html || fail "the page of the history"
# Compared is the twin, whichever side it is on.
expect 0 "$MLBENCH" compare step step/more-workers --json
is_json mlbench.compare/1
[ "$(json 'd["baseline"]["folder"]')" = step/twin ] || fail "compare takes another result than the twin"
"$MLBENCH" diagnose step/twin >out 2>err || [ $? -eq 3 ] || fail "the twin's result cannot be diagnosed"
expect 0 "$MLBENCH" report step/twin
repetitions step/twin 4 || fail "fewer than four repetitions of the twin"
repetitions step/without-read 4 || fail "fewer than four repetitions of a variant"

# What was measured is judged by another case of the same twin without measuring again.
# With a resource, the diagnosis has a say, too; where it abstains on a busy machine, it is said.
write_case whole.ini 160 "stage = step
resource = compute
confidence = 90 %" ''
"$MLBENCH" reproduce whole.ini --resume step --tolerance 40% --budget 1s >out 2>err
case $? in
0) reads "The same stage and resource: step, compute" ;;
3) reads "is not shown: the diagnosis here says" ;;
*) fail "a step that limits, with its resource" ;;
esac
# An observation leaves several open.
write_case several.ini 160 "stage = step
resource = compute or launch" ''
"$MLBENCH" reproduce several.ini --resume step --tolerance 40% --budget 1s >out 2>err
case $? in
0) reads "The same stage, step, shown by relieving it; and a resource that the report allows:" ;;
3) reads "that step/compute or launch limits it is not shown: the diagnosis here says" ;;
*) fail "a step that limits, with several resources" ;;
esac

# What is not so: another throughput, and another reason.
write_case fast.ini 600 'stage = step' ''
expect 1 "$MLBENCH" reproduce fast.ini --resume step --tolerance 40% --budget 1s --json
is_json mlbench.reproduce/1
cp out fast.json
valid fast.json
cmp -s fast.json step/reproduce.json || python3 -c 'import json; assert json.load(open("fast.json")) == json.load(open("step/reproduce.json"))' ||
	fail "what is printed is not what is saved"
python3 - <<'PY' || fail "reproduce.json of another throughput"
import json
d = json.load(open("fast.json"))
assert d["outcome"] == "not reproduced" and d["rate"] == "below", d
names = [x["name"] for x in d["differences"]]
assert "cores" in names and "kernel" in names, names
assert {x["name"]: x["weight"] for x in d["differences"]}["kernel"] == "unlikely"
assert any("cpu" in line["words"] for line in d["unknown"]), d["unknown"]
if d["no_replay"] is None:
    step = [n["factor"] for n in d["needs"] if n["stage"] == "step" and n["resource"] == "compute"]
    assert step and (step[0] is None or step[0] < 0.7), d["needs"]  # none: on a busy machine something else is as slow
PY
write_case other.ini 160 'stage = decode' ''
expect 1 "$MLBENCH" reproduce other.ini --resume step --tolerance 40% --budget 1s
reads "Another stage limits it: relieving step gains most here, not decode"

# The reported node's latency of 30 ms a file: 33 samples/s, which only its emulation shows.
write_case late.ini 33 'stage = read' 'inject.read_latency = 30ms'
sed -i 's/^duration = .*/duration = 600ms/' late.ini
expect 1 "$MLBENCH" reproduce late.ini --out late $WIDE
reads "mlbench reproduce CASE --as-reported emulates what the case says of its node"
python3 - <<'PY' || fail "a latency that is not emulated"
import json
d = json.load(open("late/reproduce.json"))
quiet = not d["here"]["disturbed"]  # by other programs, to which something else may be due
assert (d["rate"] == "above" or not quiet) and d["could_emulate"] and not d["emulated"], d
latency = [x for x in d["differences"] if x["name"] == "read latency"]
assert latency and latency[0]["reported"] == "30 ms", d["differences"]
if d["no_replay"] is None and quiet:
    assert d["differences"][0]["name"] == "read latency", d["differences"]
    assert d["differences"][0]["weight"] == "explains it", d["differences"]
PY
# With a sixteenth of a core it is slower yet, and something else may hold it up.
"$MLBENCH" reproduce late.ini --out emulated $WIDE --as-reported >out 2>err
status=$?
[ $status -eq 0 ] || { [ $status -le 3 ] && ! measuring; } || fail "exit $status: the latency, emulated"
reads "inject.read_latency = 30ms: more for each file, as reported"
[ $status -ne 0 ] || reads "The same stage: read, shown by relieving it."
grep -q '"command":"mlbench reproduce late.ini --as-reported"' emulated/twin/points.jsonl ||
	fail "the result does not say how it was measured"
grep -q '"notes".*emulated' emulated/twin/points.jsonl || fail "the result does not say that it is emulated"

# Fewer cores and a quota, where they can be had; a larger node never.
write_case node.ini 160 'stage = step' "cores = 1
cpu_quota = 0.9"
"$MLBENCH" reproduce node.ini --out node --tolerance 40% --budget 5s --as-reported >out 2>err
[ $? -le 3 ] || fail "a smaller node"
[ "$(nproc)" -eq 1 ] || reads "1 of $(nproc) cores, as reported"
grep -q "CPU quota of 0.9 cores" out || fail "nothing is said of the quota"
if grep -q "  a CPU quota of 0.9 cores, as reported" out && repetitions node/twin 1; then # on a busy machine there may be none in time
	grep -q "emulated node: " node/twin/points.jsonl || fail "the result does not say that its node is emulated"
fi
# Less memory: what it was like, or why it cannot be; a run that does not fit is refused and not killed.
sed 's/^memory = 1 TiB/memory = 1 GiB/' step.ini >memory.ini
"$MLBENCH" reproduce memory.ini --out memory --tolerance 40% --budget 5s --as-reported >out 2>err
[ $? -le 3 ] || fail "a node with less memory"
grep -q "1 GiB of memory, page cache included, as reported" out || reads "not the memory of the reported node, 1 GiB: "
if grep -q "1 GiB of memory, page" out; then
	grep -q "emulated node: 1.00 GiB of memory" memory/twin/points.jsonl || fail "the result does not say that its memory is emulated"
	sed 's/^memory = 1 TiB/memory = 64 MiB/' step.ini >tiny-node.ini
	expect 3 "$MLBENCH" reproduce tiny-node.ini --out tiny-node --budget 5s --as-reported
	says "more than the 64.0 MiB of the emulated node"
fi
write_case large.ini 160 'stage = step' 'cores = 4000'
"$MLBENCH" reproduce large.ini --out large --budget 1s --as-reported >out 2>err
[ $? -le 3 ] || fail "a larger node"
reads "only slower nodes can be emulated"

# Too short for an answer; what was measured counts when it goes on.
expect 3 "$MLBENCH" reproduce step.ini --out short --tolerance 40% --budget 1s
reads "Cannot tell: "
reads "--resume"
says "too short"
before=$(grep -c '"kind":"repetition"' short/twin/points.jsonl || true)
expect 0 "$MLBENCH" reproduce step.ini --resume short $WIDE
[ "$(grep -c '"kind":"repetition"' short/twin/points.jsonl)" -gt "$before" ] || fail "nothing was added"
expect 2 "$MLBENCH" reproduce step.ini --resume short --set batch.size=16 --budget 1m
says "another configuration"
expect 2 "$MLBENCH" reproduce step.ini --out short --budget 1m
says "--resume"

# A kill loses the repetition in flight; Ctrl-C ends it with a document.
"$MLBENCH" reproduce fast.ini --out killed $WIDE >out 2>err &
pid=$!
until_true repetitions killed/twin 2
kill -KILL $pid
wait $pid
kept=$(grep -c '"kind":"repetition"' killed/twin/points.jsonl)
expect 1 "$MLBENCH" reproduce fast.ini --resume killed $WIDE
[ "$(grep -c '"kind":"repetition"' killed/twin/points.jsonl)" -ge "$kept" ] || fail "a kill lost repetitions"
expect 0 "$MLBENCH" show killed/twin
"$MLBENCH" reproduce step.ini --out stopped --tolerance 1% --budget 8m --json >out 2>err &
pid=$!
until_true repetitions stopped/twin 1
kill -INT $pid
wait $pid
[ $? -eq 130 ] || [ -s out ] || fail "an interrupt"
is_json mlbench.reproduce/1
valid out

# From a twin that is known to be unlike the job nothing is concluded; from one that is like it, or was not checked, it is.
sed 's/^version = 1/&\nunfaithful = twice as fast as the job/' step.ini >unfaithful.ini
expect 3 "$MLBENCH" reproduce unfaithful.ini --out unfaithful --budget 1m
says "'unfaithful.ini' is marked unfaithful, so nothing is concluded from it: twice as fast as the job"
[ ! -e unfaithful ] || fail "an unfaithful twin was measured"
for check in "faithful = as fast as the job" "unchecked = the node is busy"; do
	sed "s/^version = 1/&\\n$check/" step.ini >checked.ini
	expect 0 "$MLBENCH" reproduce checked.ini --resume step --tolerance 40% --budget 1s
done

# What is wrong is refused before anything runs.
write_config
expect 2 "$MLBENCH" reproduce tiny.ini
says "no [case] section"
expect 2 "$MLBENCH" reproduce missing.ini
expect 2 "$MLBENCH" reproduce step.ini --tolerance 0
says "--tolerance"
expect 2 "$MLBENCH" reproduce step.ini --budget soon
says "--budget"
expect 2 "$MLBENCH" reproduce step.ini --resume nothing-here
expect 2 "$MLBENCH" reproduce step.ini --set sweep.decode.workers=1,2
says "sweep"
expect 2 "$MLBENCH" reproduce step.ini --set batch.size=none
says "batch.size"
sed 's/^version = 1/version = 77/' step.ini >new.ini
expect 2 "$MLBENCH" reproduce new.ini
says "version"
