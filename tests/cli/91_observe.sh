# `mlbench observe`: jobs of other programs, watched from outside.  Truths are planted by the job's arguments and are orders and
# counts: who waits more, how many loaders there are; no speed.
. "$CLI/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
job=$ROOT/tests/jobs/loader_job.py
pids=
inner=
trap '[ -z "$inner" ] || kill -KILL "$inner"; for p in $pids; do kill -CONT "$p" 2>/dev/null; kill "$p" 2>/dev/null; done' EXIT
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i out "$ROOT/docs/observe.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "not valid against observe.schema.json"; }
}
mkdir -p data
for i in $(seq 40); do head -c $((20000 + i * 500)) /dev/zero >"data/private_name_$i.jpg"; done
# begin ARGUMENT ...: pid is the job's; returns when its workers have begun.
begin() {
	: >started
	python3 "$job" data --seconds 600 "$@" >started 2>problems &
	pid=$!
	pids="$pids $pid"
	until_true grep -q started started
}
# end: the job was not disturbed: it still runs.
end() {
	kill -0 "$pid" 2>/dev/null || fail "the job did not survive being observed"
	kill "$pid"
	wait "$pid" 2>/dev/null || true
}
# observed [LOOKS]: the document on the job, after as many looks as shares need, however seldom a slow node has time for one; and
# the job ends.
observed() {
	local span
	for span in 2 4 8 16 32 64; do
		expect 0 "$MLBENCH" observe "$pid" --for ${span}s --json
		[ "$(json "d['observed']['state_looks'] >= ${1:-60}")" != True ] || break
	done
	end
	validate
}
# python over the document: roles(NAME) lists processes of a role, waits(p) is the share that one waits for input.
holds() {
	python3 - "$1" <<'PY' || fail "not so: $1"
import json, sys
d = json.load(open("out"))
roles = lambda name: [p for p in d["processes"] if p["role"] == name]
waits = lambda p: p["acts"]["input"] + p["acts"]["poll"]
mean = lambda values: sum(values) / len(values)
assert eval(sys.argv[1]), json.dumps([d["verdict"]["words"], d["life"], d["ranks"]] + [[p["role"], p["acts"]] for p in d["processes"]])[:2000]
PY
}

# What is no job.
expect 2 "$MLBENCH" observe
expect 2 "$MLBENCH" observe one
says "'one' is not a process ID"
expect 2 "$MLBENCH" observe 999999999
says "there is no process 999999999"
expect 2 "$MLBENCH" observe $$ --for never
says "not a time"
expect 2 "$MLBENCH" observe $$ --for 10ms
says "at least 1s"
python3 -c 'import os, time
pid = os.fork()
if not pid: os._exit(0)
print(pid, flush=True)
time.sleep(600)' >zombie &
pids="$pids $!"
is_zombie() {
	[ -s zombie ] && grep -q '^State:.Z' "/proc/$(cat zombie)/status"
}
until_true is_zombie
expect 2 "$MLBENCH" observe "$(cat zombie)" --for 1s
says "zombie"

# Loaders that have all the work: the trainer waits, and they do not.
begin --workers 2 --decode 0.05 --step 0
observed
is_json mlbench.observe/1
holds 'len(roles("trainer")) == 1 and len(roles("loader")) == 2'
holds 'roles("trainer")[0]["pid"] == d["observed"]["pid"] and {p["trainer"] for p in roles("loader")} == {d["observed"]["pid"]}'
holds 'waits(roles("trainer")[0]) > mean([waits(p) for p in roles("loader")])'
holds 'mean([p["acts"]["runs"] for p in roles("loader")]) > roles("trainer")[0]["acts"]["runs"]'
holds 'd["verdict"]["stage"] != "step" and d["hang"] is None'
holds 'd["verdict"]["certainty"] in ("unknown", "possible", "likely") and d["verdict"]["unknown"]'
# Its loaders compute in Python, as far as the kernel lets their CPU time be sampled.
holds 'd["cpu_time"]["why"] or d["cpu_time"]["samples"] < 10 or max(d["cpu_time"]["classes"], key=lambda c: c["loader"] or 0)["class"] == "python"'
saved=(results/observe-*/*/observe.json)
cmp -s out "${saved[-1]}" || fail "what was saved is not what was printed"
! grep -q private_name "${saved[-1]}" || fail "a name of a file is in the result"
COLUMNS=80 "$MLBENCH" observe $$ --for 1s --out shell >out 2>err || fail "observing this shell failed"
awk 'length($0) > 80 && !/saved:/ { print; bad = 1 } END { exit bad }' out || fail "a line is wider than 80 columns"

# A step that has all the time: its loaders wait, and the trainer does not.
begin --workers 2 --decode 0 --step 0.3 --prefetch 4
observed
holds 'waits(d["processes"][0]) < mean([waits(p) for p in d["processes"] if p["parent"] == d["observed"]["pid"]])'
holds 'd["verdict"]["stage"] not in ("loader", "read")'

# Causes that are told by what threads are found in.  Where the node has no core for the job, that may be the verdict; and what is
# not seen is unknown: but nothing else is "likely".
# cause STAGE/RESOURCE ... ARGUMENTS of the job after --
cause() {
	local allowed=
	while [ "$1" != -- ]; do
		allowed="$allowed $1"
		shift
	done
	shift
	begin "$@"
	observed 35
	python3 - $allowed <<'PY' || fail "a wrong cause for $*"
import json, sys
v = json.load(open("out"))["verdict"]
told = v["stage"] + "/" + v["resource"]
crowded = v["resource"] in ("external", "cores", "threads", "quota")
assert v["certainty"] != "likely" or crowded or told in sys.argv[1:], (told, v["words"])
PY
}
# A lock on a file around each sample: workers that sleep while they hold it use no core, however busy the node is.
cause loader/lock -- --workers 2 --decode 0.02 --step 0 --flock
holds 'd["verdict"]["resource"] == "lock" and "locks on files" in d["verdict"]["words"]'
holds 'mean([p["acts"]["file_lock"] for p in roles("loader")]) > 0.2 and all(p["acts"]["semaphore"] < 0.2 for p in roles("loader"))'
cause loader/lock -- --workers 3 --decode 0.02 --step 0 --lock
holds 'd["verdict"]["resource"] == "lock" and mean([p["acts"]["semaphore"] for p in roles("loader")]) > 0.3'
# Python threads: they wait for their turn, and never use more than a core in sum.
cause loader/gil -- --workers 4 --decode 0.02 --step 0 --threads
holds 'd["processes"][0]["cpu"] < 1.3 and sum(t["acts"]["turn"] or 0 for t in d["threads"]) > 0.3'
# The trainer's own thread has the work, which is none of BLAS.
cause trainer/cpu -- --workers 2 --decode 0 --step 0.05 --trainer-cpu
holds 'd["verdict"]["stage"] in ("trainer", "step", "unknown", "loader and step")'
# Writes that are synchronised with each batch, by the trainer's first thread.
cause step/write -- --workers 2 --decode 0 --step 0 --fsync 4096
holds 'd["verdict"]["stage"] not in ("loader", "read") and d["processes"][0]["acts"]["read"] < 0.5'
# Bytes through a pipe.
cause trainer/hand-over step/cpu -- --workers 2 --decode 0 --step 0 --message 8000000
# All of the job may run on one core.
if command -v taskset >/dev/null && [ "$(nproc)" -gt 1 ]; then
	begin --workers 3 --decode 0.05 --step 0
	for p in $pid $(cat "/proc/$pid/task/$pid/children"); do
		taskset -a -p 1 "$p" >/dev/null || true
	done
	observed 35
	holds 'all(p["allowed_cpus"] == 1 for p in d["processes"] if p["role"] != "helper" and not p["ended"])'
	holds 'd["verdict"]["certainty"] != "likely" or d["verdict"]["resource"] in ("affinity", "external")'
fi

# A worker that never answers again, and a job that is stopped: both stand still, and it is said who waits for whom.
begin --workers 1 --decode 0 --step 0 --hang 5
stands_still() {
	"$MLBENCH" observe "$pid" --for 4s >out 2>err
	[ $? -eq 1 ]
}
until_true stands_still
reads "The job stands still"
grep -qE "process $pid: .*waits for process [0-9]+" <(tr -s ' \n' ' ' <out) || fail "it is not said whom the trainer waits for"
expect 1 "$MLBENCH" observe "$pid" --for 4s --json
validate
end

# A store of which each read takes 20 ms, where FUSE can be had: its loaders are found in calls on files, these files have sizes
# and a file system, and one operating point does not tell latency from a full store.
store=
mounted() {
	[ -e slow/private_name_1.jpg ] || ! kill -0 "$store" 2>/dev/null
}
if [ -w /dev/fuse ] && pkg-config --exists fuse3 2>/dev/null && mkdir slow &&
	gcc -O1 -w "$ROOT/tests/bank/real/slowfs.c" -o slowfs $(pkg-config --cflags --libs fuse3) -lpthread -lm 2>problems; then
	./slowfs data slow --latency 20000 --direct-io 2>problems &
	store=$!
	pids="$pids $store"
	until_true mounted
fi
if [ -e slow/private_name_1.jpg ]; then
	: >started
	python3 "$job" slow --seconds 600 --decode 0 --step 0 >started 2>problems &
	pid=$!
	pids="$pids $pid"
	until_true grep -q started started
	observed
	holds 'len(roles("loader")) == 2 and mean([p["acts"]["read"] for p in roles("loader")]) > mean([waits(p) for p in roles("loader")])'
	holds 'any(f["file_system"].startswith("fuse") and f["kind"] == "jpg" and 20000 <= f["mean_bytes"] <= 40000 for f in d["files"])'
	holds 'd["verdict"]["stage"] != "step" and d["verdict"]["resource"] not in ("latency", "device")'
	holds '(d["environment"]["file_system"], d["environment"]["device"]) == ("fuse", "network")'
	! grep -q private_name out || fail "a name of a file is in the result"
	kill "$store"
	wait "$store" || true
fi

# Workers that end with each epoch: all are told as loaders, the dead ones too, and one with one thread that works uses no more than a
# core, however short it lived.
begin --workers 2 --decode 0.02 --step 0 --epoch 40
observed
holds 'len(roles("loader")) >= 2 and all(p["cpu"] is None or p["seconds"] < 0.5 or p["cpu"] < 1.3 for p in d["processes"])'
holds 'd["verdict"]["stage"] != "step" and d["observed"]["beyond_bounds"] == 0'

# Workers whose start takes most of an epoch: they are the verdict, with how many there are at a time and how long a start takes.
begin --workers 2 --decode 0.002 --step 0.005 --epoch 20 --start 2
until_sure() {
	expect 0 "$MLBENCH" observe "$pid" --json
	[ "$(json 'd["observed"]["state_looks"] >= 60 and d["life"]["generations"] >= 2')" = True ]
}
until_true until_sure
end
validate
holds 'round(d["life"]["workers"]) == 2 and 0.3 < d["life"]["start_s"] < d["life"]["period_s"] and d["observed"]["seconds"] <= 31'
holds '(d["verdict"]["stage"], d["verdict"]["resource"]) == ("loader", "restarts") and d["verdict"]["certainty"] != "unknown"'

# A shell loop that runs a program for each file: none of them is told of alone, and what they do together is the verdict.
cat >decode <<SH
#!$(command -v bash)
SH
cat >>decode <<'SH'
i=0
while [ $i -lt 20000 ]; do i=$((i + 1)); done
SH
chmod +x decode
cat >loop.sh <<'SH'
echo started
while :; do
	for file in data/*; do ./decode "$file"; date >/dev/null; done
done
SH
bash loop.sh >started &
pid=$!
pids="$pids $pid"
until_true grep -q started started
programs() {
	expect 0 "$MLBENCH" observe "$pid" --for 8s --json
	[ "$(json 'd["programs"] is not None and d["programs"]["looks"] >= 30')" = True ]
}
until_true programs
end
validate
holds 'd["programs"]["pid"] == d["observed"]["pid"] and d["programs"]["names"][0]["name"] == "decode"'
holds '[p["name"] for p in roles("whole")] == ["bash"] and not roles("loader")'
holds 'd["verdict"]["stage"] == "process" and d["verdict"]["resource"] in ("cpu", "external", "cores", "quota")'

# Two ranks of one launcher that wait for each other's word after each step: the second one's steps take long.
cat >ranks.py <<'PY'
import os, signal, socket, subprocess, sys, time
if len(sys.argv) > 1:
    rank, other = int(os.environ["RANK"]), socket.socket(fileno=int(sys.argv[1]))
    while other.send(b"x"):
        other.recv(1)
        until = time.thread_time() + rank * 0.05
        while time.thread_time() < until:
            sum(range(200))
    sys.exit()
ends = socket.socketpair()
ranks = [subprocess.Popen([sys.executable, __file__, str(end.fileno())], pass_fds=[end.fileno()], env=dict(os.environ, RANK=str(i), WORLD_SIZE="4"))
         for i, end in enumerate(ends)]
signal.signal(signal.SIGTERM, lambda *_: [rank.kill() for rank in ranks] and sys.exit())
print("started", ranks[1].pid, flush=True)
ranks[0].wait()
PY
python3 ranks.py >started &
pid=$!
pids="$pids $pid"
until_true grep -q started started
observed
slow=$(sed 's/started //' started)
holds 'sorted(r["rank"] for r in d["ranks"]) == [0, 1] and any("2 of 4 ranks" in line for line in d["verdict"]["unknown"])'
holds '(d["verdict"]["stage"], d["verdict"]["resource"]) == ("sync", "imbalance")'
[[ "$(json 'd["verdict"]["words"]')" == *"process $slow (rank 1)"* ]] || fail "it is not said which rank is slow"

# In a PID namespace of its own, as containers are.
if unshare --pid --fork true 2>/dev/null; then
	: >started
	unshare --pid --fork --kill-child python3 "$job" data --seconds 600 --decode 0.05 --step 0 >started 2>problems &
	pids="$pids $!"
	until_true grep -q started started
	pid=$(cat "/proc/$!/task/$!/children")
	pid=${pid%% *}
	pids="$pids $pid"
	inner=$pid # the first of its namespace ends of nothing else
	observed
	kill -KILL "$inner"
	inner=
	holds 'len(roles("trainer")) == 1 and len(roles("loader")) == 2 and d["processes"][0]["pid"] == d["observed"]["pid"]'
fi

# One process with pools of threads and no interpreter: hundreds that never run do not use up the looks at those that do.
if command -v gcc >/dev/null && gcc -O1 -w "$ROOT/tests/jobs/pool_job.c" -o pool -lpthread 2>problems; then
	: >started
	./pool data 2 2 20000 100 300 >started &
	pid=$!
	pids="$pids $pid"
	until_true grep -q started started
	observed
	holds 'd["verdict"]["stage"] in ("loader", "process", "unknown")'
	holds 'd["processes"][0]["role"] == "whole" and d["processes"][0]["threads"] == 305'
	# 64 threads that compute, on as many cores as there are.
	: >started
	./pool data 1 64 20000 100 0 >started &
	pid=$!
	pids="$pids $pid"
	until_true grep -q started started
	observed 35
	holds 'd["processes"][0]["runnable_threads"] > 30'
	holds '"cores" in d["verdict"]["words"] or d["observed"]["node_cores"] > 16'
fi

# One that ends meanwhile.
sleep 600 &
pid=$!
"$MLBENCH" observe "$pid" --for 60s --json >out 2>err &
watcher=$!
until_true grep -q observing err
sleep 1
kill "$pid"
wait "$watcher" || fail "exit $?: a job that ended"
validate
holds 'd["observed"]["ended_after"] is not None and d["observed"]["seconds"] < 60'

# Without permission: what is missing is said, and the rest goes on.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && setpriv --reuid=65534 --clear-groups test -x "$MLBENCH"; then
	mkdir theirs && chmod 777 theirs
	expect 0 setpriv --reuid=65534 --clear-groups "$MLBENCH" observe $$ --for 1s --json --out theirs/result
	holds 'any("Permission denied" in line for line in d["verdict"]["unknown"]) and d["processes"][0]["cpu"] is not None'
fi
