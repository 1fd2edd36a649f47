# Names that a terminal would obey: whatever a configuration, a folder or an argument is called, no message and no table writes a
# control character of theirs, on stderr at all, on stdout where it is a terminal.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
evil=$(printf 'evil\033]0;owned\007\033[2J\302\2335m\rgone\n\377')
mkdir "$evil" "data $evil"
cp tiny.ini "$evil/$evil.ini"
python=/usr/bin/python3
short="$ONE --set measure.repeats=1 --set measure.duration=60ms --set measure.limits=off"

# obeyed FILE [on-terminal]: nothing but lines (and colours).
obeyed() {
	"$python" - "$@" <<'PY'
import re, sys
text = open(sys.argv[1], "rb").read()
if len(sys.argv) > 2:
    text = re.sub(rb"\x1b\[[0-9;]*m", b"", text).replace(b"\r\n", b"\n")
controls = [c for c in text.decode("utf-8") if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
sys.exit(f"{sys.argv[1]}: {controls[:8]} in {text[:200]!r}" if controls or not text else 0)
PY
}
# on_terminal COMMAND...: its stdout is one; what came there is in ./seen.
on_terminal() {
	"$python" - "$@" >seen <<'PY'
import os, pty, sys
os.environ.update(TERM="xterm-256color", COLUMNS="160")
pty.spawn(["sh", "-c", 'exec "$@" 2>pty.err', "sh", *sys.argv[1:]], lambda fd: os.read(fd, 65536))
PY
	obeyed seen on-terminal && grep -q evil seen || fail "on a terminal: $*"
}

# What is refused is named, in one line.
for words in "show" "run" "sweep" "check" "compare" "history" "report" "top" "explain" "export" "$evil"; do
	"$MLBENCH" "$words" "$evil-not-there" "$evil-not-there" >out 2>err
	[ $? -ge 2 ] || continue # some take a folder that is empty
	obeyed err || fail "$words"
	[ "$(grep -c 'error: ' err)" -eq 1 ] || fail "$words: not one message"
	[ "$(wc -l <err)" -eq 1 ] || fail "$words: not one line"
done
expect 2 "$MLBENCH" run tiny.ini --set "$evil=1"
obeyed err || fail "--set"
expect 2 "$MLBENCH" run tiny.ini "--$evil"
obeyed err || fail "an option"

# What is accepted is told of: the plan, progress, the results' folder, and tables.
expect_measured "$MLBENCH" run "$evil/$evil.ini" $short --out "$evil/results"
obeyed err || fail "the plan"
says "results  evil?]0;owned?"
on_terminal "$MLBENCH" show "$evil/results"
on_terminal "$MLBENCH" compare "$evil/results" "$evil/results"
on_terminal "$MLBENCH" history "$evil"
on_terminal "$MLBENCH" run "$evil/$evil.ini" $short --set "run.name=$(printf 'evil C1 \302\233 2J')" --out none

# A file has the bytes as they are.
expect 0 "$MLBENCH" history "$evil" --json
json 'json.dumps(d)' | grep -q 'owned' || fail "JSON lost the name"
