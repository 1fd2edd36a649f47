# `mlbench efficiency`: loaders of others beside this pipeline.  Loaders are scripts of the shell here, friendly and hostile; none of
# the checks is about speed.
. "$CLI/lib.sh"
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i out "$ROOT/docs/efficiency.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "not valid against efficiency.schema.json"; }
}
write_config
expect 0 "$MLBENCH" gen tiny.ini
# loader NAME: a script of that name is made of standard input.
loader() {
	{ echo '#!/bin/sh' && cat; } >"$1"
	chmod +x "$1"
}
loader friendly <<'SH'
echo "loading $MLBENCH_FOLDER with $MLBENCH_WORKERS workers" >&2
[ -d "$MLBENCH_FOLDER" ] || exit 1
while :; do
	for file in "$MLBENCH_FOLDER"/*; do cat "$file" >/dev/null 2>&1; done
	echo some other line
	echo "batch $MLBENCH_BATCH"
done
SH
efficiency() {
	"$MLBENCH" efficiency tiny.ini $ONE --set measure.duration=300ms --set measure.warmup=50ms --set measure.repeats=2 "$@"
}

# What is no loader.
expect 2 "$MLBENCH" efficiency
expect 2 "$MLBENCH" efficiency tiny.ini $ONE
says "no command of a loader"
expect 2 "$MLBENCH" efficiency tiny.ini -- ./friendly
says "sweeps decode.workers"
expect 2 efficiency -- ./missing
says "cannot start './missing': No such file or directory"
expect 2 efficiency -- /dev/null
says "cannot start '/dev/null': Permission denied"
[ -z "$(find results -name points.jsonl)" ] || fail "a loader that never ran leaves a result"

# One that does as it should: both sides in every round, and the parts of what is lost sum to it.
expect 0 efficiency --json -- ./friendly
is_json mlbench.efficiency/1
validate
python3 - <<'PY' || fail "the document is not as it should be"
import json, math
d = json.load(open("out"))
assert len(d["rounds"]) == d["planned_rounds"] == 2 and d["batch_size"] == 8 and d["workers"] == 1
for side in "loader", "hardware":
    assert d[side]["samples_per_s"]["median"] > 0 and d[side]["cpu_s_per_sample"] >= 0 and d[side]["memory_bytes"] > 0
assert d["loader"]["first_batch_s"] > 0 and d["hardware"]["first_batch_s"] is None
assert math.isclose(d["lost_s_per_sample"], 1 / d["loader"]["samples_per_s"]["median"] - 1 / d["hardware"]["samples_per_s"]["median"], rel_tol=1e-3)
if d["classes"]:
    parts = sum(c["lost_s"] for c in d["classes"]) + (d["run_queue_lost_s_per_sample"] or 0) + d["rest_s_per_sample"]
    assert math.isclose(parts, d["lost_s_per_sample"], rel_tol=0.01, abs_tol=1e-6), (parts, d["lost_s_per_sample"])
assert d["predicted"] or d["no_prediction"]
PY
cp out document

# Others that run beside a side are said.
hogs=""
for core in $(seq "$(nproc)"); do
	sh -c 'while :; do :; done' &
	hogs="$hogs $!"
done
trap 'kill $hogs 2>/dev/null' EXIT
expect 0 efficiency --set measure.repeats=1 --json -- ./friendly
kill $hogs
trap - EXIT
json 'd["notes"]' | grep -q "disturbed: other processes kept [0-9.]* of [0-9]* cores busy while your loader ran and [0-9.]* while" ||
	fail "a disturbed side is not said: $(json 'd["notes"]')"
COLUMNS=80 efficiency --out beside -- ./friendly >out 2>err || fail "exit $?"
reads "Your loader:"
reads "This hardware with the same 1 worker:"
awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out || fail "a line is wider than 80 columns"

# The pipeline's repetitions are a result like any other; the loader's stand beside it, and in none.
expect 0 "$MLBENCH" compare efficiency-tiny beside --json
is_json mlbench.compare/1
expect 0 "$MLBENCH" show efficiency-tiny --json
python3 - <<'PY' || fail "the result that was saved"
import json, os
d, s = json.load(open("document")), json.load(open("out"))
assert json.load(open(os.path.join(d["folder"], "efficiency.json"))) == d
lines = [json.loads(line) for line in open(os.path.join(d["folder"], "points.jsonl"))]
rates = sorted(line["throughput"] for line in lines if line.get("kind") == "repetition")
hardware = sorted(r["hardware"]["samples_per_s"] for r in d["rounds"])
assert len(rates) == 2 and all(abs(a / b - 1) < 1e-6 for a, b in zip(rates, hardware)), (rates, hardware)
assert lines[0]["command"].endswith(" --set measure.repeats=2 -- ./friendly"), lines[0]["command"]
assert s["name"] == "efficiency-tiny" and s["status"] == "complete" and s["step"]["backend"] == "null", s
assert os.listdir(os.path.join(d["folder"], "traces"))
PY
expect 0 "$MLBENCH" show beside
reads "It is another program, measured in turn with this one; efficiency.json has the rest"
expect 2 efficiency --out beside -- ./friendly
says "already holds a run"

# One that prints batches of another size, and lines of `batch` that are none.
loader other_size <<'SH'
while :; do
	echo "batch 4"
	echo "batch four"
	printf 'batch\nbatch 0\nbatch -1\nbatch 99999999999\nbatch 4 4\nBATCH 4\nbatches 4\n'
	sleep 0.01
done
SH
expect 0 efficiency --json -- ./other_size
validate
json 'd["notes"]' | grep -q "last batch had 4 samples" || fail "another batch size is not said"
json 'd["notes"]' | grep -q "had no count" || fail "wrong lines are not said"

# Floods, without a line's end or with: memory stays bounded, and both come to an end.
loader flood <<'SH'
exec yes "batch 8"
SH
expect 0 efficiency --json -- ./flood
validate
loader no_line <<'SH'
head -c 20000000 /dev/zero
head -c 20000000 /dev/zero >&2
exit 0
SH
expect 2 efficiency -- ./no_line
says "closed its output without a line 'batch N'"

# Ends too early, fails, dies; what it said comes out plain.
loader early <<'SH'
echo "batch 8"
SH
expect 2 efficiency -- ./early
says "before it was measured: let it go on"
loader fails <<'SH'
echo "batch 8"
printf 'Traceback:\n  \033[31mno such file\033[0m \007\n' >&2
exit 7
SH
expect 2 efficiency -- ./fails
says "ended with exit status 7"
says "no such file"
! LC_ALL=C grep -q "$(printf '[\033\007]')" err || fail "control characters of a loader reach the terminal"
loader dies <<'SH'
echo "batch 8"
kill -9 $$
SH
expect 2 efficiency -- ./dies
says "ended by signal 9"

# One that never answers, and will not end when it is asked to: Ctrl-C ends all of it.
loader stubborn <<'SH'
trap '' TERM INT
echo $$ >stubborn.pid
while :; do sleep 1; done
SH
"$MLBENCH" efficiency tiny.ini $ONE -- ./stubborn >out 2>err &
pid=$!
until_true test -s stubborn.pid
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fail "an interrupted measurement does not say so"
gone() {
	! kill -0 "$(cat stubborn.pid)" 2>/dev/null || grep -q '^State:.Z' "/proc/$(cat stubborn.pid)/status" 2>/dev/null
}
until_true gone

# Workers that leave its group, and theirs, end with it.
loader breakaway <<'SH'
setsid sh -c 'sh -c "echo \$\$ >>away.pids; exec sleep 300" & echo $$ >>away.pids; wait' &
until [ "$(wc -l <away.pids)" -ge 2 ]; do sleep 0.01; done
while :; do echo "batch 8"; sleep 0.01; done
SH
if command -v setsid >/dev/null; then
	: >away.pids
	expect 0 efficiency --set measure.repeats=1 --json -- ./breakaway
	for pid in $(cat away.pids); do
		! kill -0 "$pid" 2>/dev/null || fail "process $pid of the loader lives on"
	done
fi

# The adaptor for plain Python runs as it is.
expect 0 efficiency --json -- python3 "$ROOT/pipelines/adaptors/python_loader.py"
validate
# That for PyTorch, where it is installed, on a folder of classes.
if /usr/bin/python3 -c 'import torch, torchvision, PIL' 2>/dev/null; then
	expect 0 "$MLBENCH" gen tiny.ini --set dataset.path=classes --set dataset.format=jpeg
	mkdir -p folders/one && cp -r classes/* folders/one 2>/dev/null
	find folders -type f ! -name '*.jpg' -delete
	expect 0 efficiency --set dataset.format=jpeg --data folders --json -- /usr/bin/python3 "$ROOT/pipelines/adaptors/torch_loader.py"
	validate
	json '[d["loader"]["samples_per_s"]["median"] > 0, d["loader_limit"]["stage"]]'
	# That for WebDataset on shards, with the package where it is, else with what stands in for it.
	expect 0 "$MLBENCH" gen tiny.ini --set dataset.path=shards --set dataset.format=jpeg --set dataset.container=tar --set dataset.shard_samples=16
	/usr/bin/python3 -c 'import webdataset' 2>/dev/null || export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$ROOT/tests/cli/webdataset_stand_in
	expect 0 efficiency --set dataset.format=jpeg --set dataset.container=tar --data shards --json -- /usr/bin/python3 "$ROOT/pipelines/adaptors/webdataset_loader.py"
	validate
	json 'd["loader"]["samples_per_s"]["median"] > 0'
	expect 2 efficiency --set dataset.format=jpeg --data folders --json -- /usr/bin/python3 "$ROOT/pipelines/adaptors/webdataset_loader.py"
	says "no *.tar in 'folders'"
else
	echo "PyTorch is not installed: its adaptor is not tried"
fi
