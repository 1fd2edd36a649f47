# --watch: the view in a real terminal (tmux) at several sizes, its keys, and the terminal as it was whatever ends the run; a
# terminal that takes nothing holds up no run; where there can be no view the run says so and goes on.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
mkdir runtime && chmod 700 runtime
export XDG_RUNTIME_DIR=$PWD/runtime
short="$ONE --set measure.repeats=1 --set measure.duration=2s"
long="$ONE --set measure.repeats=1 --set measure.duration=60s"

# No terminal, or one that can do nothing.
setsid "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --watch --out none >out 2>err </dev/null
case $? in 0 | 3) ;; *) fail "without a terminal" ;; esac
says "no live view: there is no terminal; the run goes on without it"

python=/usr/bin/python3
"$python" -c 'import pty, termios' 2>/dev/null || skip "python3 has no pty"
# drive SCENARIO EXPRESSION COMMAND...: python's expression over what came of it holds.
drive() {
	local scenario=$1 expression=$2
	shift 2
	timeout 60 "$python" "$CLI/51_watch.py" "$scenario" "$@" >out 2>err || fail "$scenario: $(tail -n 3 err)"
	[ "$(json "bool($expression)")" = True ] || fail "$scenario: $(cat out)"
}
sane='d["entered"] and d["left"] and d["same_modes"]'
drive quit "$sane and d['status'] == 130 and d['warned']" "$MLBENCH" run tiny.ini $long --watch --out quit
drive small "$sane and d['status'] == 130" "$MLBENCH" run tiny.ini $long --watch --out small
drive crash "$sane and d['status'] == -11" "$MLBENCH" run tiny.ini $long --watch --out crash
drive stopped-output "$sane and d['status'] in (0, 3) and d['seconds'] < 25" \
	"$MLBENCH" run tiny.ini $short --watch --json --out stopped
grep -q '"schema": "mlbench.summary' watched.out || fail "no document though the terminal was stopped"
drive frozen "d['entered'] and d['status'] in (0, 3) and d['seconds'] < 25" \
	"$MLBENCH" run tiny.ini $short --watch --json --out frozen
grep -q '"schema": "mlbench.summary' watched.out || fail "no document though the terminal was frozen"
[ "$(python3 -c 'import json
print([round(json.loads(l)["wall_seconds"], 1) < 3 for l in open("frozen/points.jsonl") if "wall_seconds" in l])')" = "[True]" ] ||
	fail "the frozen terminal held up the measuring"
drive hangup "d['status'] != 'hangs'" "$MLBENCH" run tiny.ini $long --watch --out hangup

command -v tmux >/dev/null 2>&1 || skip "tmux is not installed"
socket=$PWD/tmux.socket
t() { tmux -S "$socket" -f /dev/null "$@"; }
trap 't kill-server 2>/dev/null' EXIT
t new-session -d -x 100 -y 32 "env PS1='$ ' bash --norc --noprofile"
# shows TEXT: the screen has it within some seconds.
shows() {
	for _ in $(seq 200); do
		t capture-pane -p >screen
		grep -qE -- "$1" screen && return
		sleep 0.05
	done
	cat screen
	fail "the screen does not show '$1'"
}
cat >watched.sh <<SH
stty -g >before
'$MLBENCH' run tiny.ini $long --watch --out watched
echo status \$?
stty -g >after
SH
t send-keys "bash watched.sh" Enter
shows '^verdict +(forming|none yet)'
shows '^mlbench run  tiny .* measuring'
for stage in read decode step; do grep -qE "^$stage x[0-9]+" screen || fail "no $stage: $(cat screen)"; done
grep -qE '^(samples|batches) .*[0-9]+/[0-9]+' screen || fail "no queues"
grep -qE '^samples/s +[0-9.,]+' screen || fail "no throughput"
t resize-window -x 40 -y 10
shows '^q stop the run'
[ "$(wc -l <screen)" -le 10 ] || fail "more than the screen"
t resize-window -x 80 -y 24
shows '^samples/s '
t send-keys '?'
shows 'starved +waits for the stage above'
t send-keys '?' p
shows 'view paused'
t send-keys p
t send-keys C-z
shows 'Stopped'
! grep -q '^verdict' screen || fail "the view is still there when the run is suspended"
t send-keys fg Enter
shows '^mlbench run  tiny .* measuring'
# The same view from outside.
pid=$("$MLBENCH" status --json | python3 -c 'import json, sys; print([r["pid"] for r in json.load(sys.stdin)["runs"] if (r["picture"] or {}).get("folder") == "watched"][0])')
t new-window "'$MLBENCH' status $pid --watch"
shows '^q leave'
shows '^read x1'
t send-keys q
shows '^q stop the run'
t send-keys q
shows '^status 130'
for _ in $(seq 40); do [ -s after ] && break; sleep 0.05; done
cmp before after || fail "the terminal is not as it was: $(diff before after)"
