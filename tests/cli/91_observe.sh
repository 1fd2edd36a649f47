# `mlbench observe`: jobs of other programs, watched from outside.  Truths are planted by the job's arguments and are orders and
# counts: who waits more, how many loaders there are; no speed.
. "$CLI/lib.sh"
. "$CLI/observe_lib.sh"

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
