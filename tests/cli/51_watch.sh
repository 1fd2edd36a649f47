# --watch: the view in a real terminal (tmux) at several sizes, its keys, and the terminal as it was whatever ends the run; a
# terminal that takes nothing holds up no run; where there can be no view the run says so and goes on.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
mkdir runtime && chmod 700 runtime
export XDG_RUNTIME_DIR=$PWD/runtime
short="$ONE --set measure.repeats=1 --set measure.duration=1s"
long="$ONE --set measure.repeats=1 --set measure.duration=1h"

# No terminal, or one that can do nothing.
setsid "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --watch --out none >out 2>err </dev/null
case $? in 0 | 3) ;; *) fail "without a terminal" ;; esac
says "no live view: there is no terminal; the run continues without it"

python=/usr/bin/python3
"$python" -c 'import pty, termios' 2>/dev/null || skip "python3 has no pty"
# drive SCENARIO COMMAND...: in a folder of its own, beside the others.
drive() {
	local scenario=$1
	shift
	mkdir "$scenario"
	ln -s ../data ../tiny.ini "$scenario/"
	(cd "$scenario" && exec timeout 600 "$python" "$CLI/51_watch.py" "$scenario" "$@" >out 2>err) &
}
# came SCENARIO EXPRESSION: python's expression over what came of it holds.
came() {
	cp "$1/out" out
	cp "$1/err" err
	[ -s out ] || fail "$1: $(tail -n 3 err)"
	[ "$(json "bool($2)")" = True ] || fail "$1: $(cat out)"
}
for scenario in quit small crash hangup; do
	drive $scenario "$MLBENCH" run tiny.ini $long --watch --out result
done
for scenario in stopped-output frozen; do
	drive $scenario "$MLBENCH" run tiny.ini $short --watch --json --out result
done
wait
sane='d["entered"] and d["left"] and d["same_modes"]'
came quit "$sane and d['status'] == 130 and d['warned']"
came small "$sane and d['status'] == 130"
came crash "$sane and d['status'] in (-11, 1, 66)" # 1, 66: handlers of sanitizers, after ours
came hangup "d['status'] == 130"
[ -s hangup/result/report.html ] || fail "a terminal that went away took the report with it"
came stopped-output "$sane and d['status'] in (0, 3)"
came frozen "d['entered'] and d['status'] in (0, 3)"
for scenario in stopped-output frozen; do
	grep -q '"schema": "mlbench.summary' $scenario/watched.out || fail "$scenario: no document"
done
! measuring || [ "$(python3 -c 'import json
print([round(r["wall_seconds"], 1) < 3 for r in map(json.loads, open("frozen/result/points.jsonl")) if "wall_seconds" in r])')" = "[True]" ] ||
	fail "the frozen terminal held up the measuring"

command -v tmux >/dev/null 2>&1 || skip "tmux is not installed"
socket=$PWD/tmux.socket
t() { tmux -S "$socket" -f /dev/null "$@"; }
trap 't kill-server 2>/dev/null' EXIT
t new-session -d -x 100 -y 32 "env PS1='$ ' bash --norc --noprofile"
# shows TEXT: the screen has it within some seconds.
shows() {
	for _ in $(seq 3000); do
		t capture-pane -p >screen
		grep -qE -- "$1" screen && return
		sleep 0.05
	done
	cat screen
	fail "the screen does not show '$1'"
}
# The shell's own job, so that its word of the suspension comes after the view was left.
t send-keys "stty -g >before; clear" Enter
t send-keys "'$MLBENCH' run tiny.ini $long --watch --out watched" Enter
shows '^verdict +(forming|none yet)'
shows '^mlbench run  tiny .* measuring'
for stage in read decode step; do shows "^$stage x[0-9]+"; done
shows '^(samples|batches) .*[0-9]+/[0-9]+'
shows '^samples/s +[0-9.,]+'
t resize-window -x 40 -y 10
shows '^q stop the run'
[ "$(wc -l <screen)" -le 10 ] || fail "more than the screen"
t resize-window -x 80 -y 24
shows '^samples/s '
t send-keys '?'
shows 'starved +waiting for input from the stage above'
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
shows '^mlbench: warning: interrupted'
t send-keys 'echo status $?; stty -g >after' Enter
shows '^status 130'
for _ in $(seq 3000); do [ -s after ] && break; sleep 0.05; done
cmp before after || fail "the terminal is not as it was: $(diff before after)"
