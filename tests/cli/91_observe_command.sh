# `mlbench observe -- CMD`: the command is started as a shell does, and what is printed of it comes after what it prints.
. "$CLI/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
job=$ROOT/tests/jobs/loader_job.py
observer=
trap '[ -z "$observer" ] || kill "$observer" 2>/dev/null' EXIT
mkdir data
for i in $(seq 40); do head -c 20000 /dev/zero >"data/$i.jpg"; done

# What is no command, and whose words are whose.
expect 2 "$MLBENCH" observe -- ./missing
says "cannot start './missing': No such file or directory"
expect 2 "$MLBENCH" observe python3 "$job"
says "put -- before it"
expect 2 "$MLBENCH" observe $$ -- true
says "one process ID, or -- and a command"
expect 2 "$MLBENCH" observe --json -- touch started
says "leave it out"
[ ! -e started ] || fail "a refused command was started"

# Too short to be observed is no verdict; a failure of the command is its own.
expect 3 "$MLBENCH" observe -- true
says "while it was still starting"
expect 7 "$MLBENCH" observe -- sh -c 'exit 7'
says "the command ended with exit status 7"
expect 137 "$MLBENCH" observe -- sh -c 'kill -KILL $$'
[ -z "$(ls results 2>/dev/null)" ] || fail "a command of which nothing was seen leaves a result"

# Its streams, limits and options are its own.
echo typed | (ulimit -Sn 200 && "$MLBENCH" observe -- sh -c 'read word; echo "$word $(ulimit -Sn) $*"' sh --for --json) >out 2>err
[ "$(cat out)" = "typed 200 --for --json" ] || fail "its input, limit or options were changed"

# The job is observed from when it has settled, goes on afterwards, gets the signal, and the report follows its last line.
# Its workers begin after 8 s in which one process computes, so that it is observed twice.
"$MLBENCH" observe --for 8s --out seen -- sh -c 'trap "wait; echo its last line; exit 5" TERM
timeout 8 python3 -c "while True: pass"; "$@" & wait' \
	sh python3 "$job" data --seconds 600 --workers 2 --decode 0.05 --step 0 >out 2>&1 &
observer=$!
until_true grep -q "^observed" out
[ -s seen/observe.json ] || fail "the result is not saved before the command ends"
sleep 1
kill -0 "$observer" || fail "the command does not go on"
! grep -q "^what this means" out || fail "the report does not wait for the command's end"
kill -TERM "$observer"
wait "$observer"
[ $? -eq 5 ] || fail "not the command's exit status"
observer=
awk '/its last line/ { last = NR } /^what this means/ { report = NR } END { exit !(last && last < report) }' out ||
	fail "the report does not follow what the command prints"
python3 - <<'PY' || fail "what was observed"
import json
d = json.load(open("seen/observe.json"))
assert sorted(p["role"] for p in d["processes"] if p["role"] != "helper")[:2] == ["loader", "loader"], d["processes"]
assert not any("start was watched" in line for line in d["verdict"]["unknown"])
PY

# On a terminal: Ctrl-Z stops both, the shell continues both, and Ctrl-C reaches the command alone.
cat >terminal.py <<'PY'
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:  # the shell
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        # It forks nothing: one that waits in vfork cannot be stopped.
        os.execv(sys.argv[1], [sys.argv[1], "observe", "--", sys.executable, "-c", """if True:
            import os, signal, time
            signal.signal(signal.SIGINT, lambda *_: (os.write(1, b"caught"), os._exit(9)))
            os.write(1, b"ready")
            while True:
                time.sleep(1)"""])
    os.waitpid(job, os.WUNTRACED)
    stopped = os.tcgetpgrp(0) == job
    print("stopped" if stopped else "kept", flush=True)
    os.tcsetpgrp(0, job)
    os.kill(-job, signal.SIGCONT)
    status = os.waitpid(job, 0)[1]
    os.tcsetpgrp(0, os.getpgrp())
    print("status", os.WEXITSTATUS(status), "terminal", "back", flush=True)
    os._exit(0)
text = ""
typed = {"ready": b"\x1a", "stopped": b"\x03"}  # Ctrl-Z, Ctrl-C
while True:
    try:
        more = os.read(terminal, 4096).decode()
    except OSError:
        break
    text += more
    for word in list(typed):
        if word in text:
            os.write(terminal, typed.pop(word))
os.waitpid(pid, 0)
print(text)
sys.exit("caught" not in text or "status 9" not in text or bool(typed))
PY
timeout 120 python3 terminal.py "$MLBENCH" >out 2>err || fail "on a terminal"
