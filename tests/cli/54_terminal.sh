# What a terminal gets, at 80 and at 200 columns: colours of ours as escape sequences and never as text, names' own never as more than
# text, progress that stays within the columns; and what a pipe gets of the same.
. "$CLI/lib.sh"
python=/usr/bin/python3
"$python" -c 'import pty, termios' 2>/dev/null || skip "python3 has no pty"
write_config
expect 0 "$MLBENCH" gen tiny.ini
unset COLUMNS
evil=$(printf 'evil\033[35m\033[8m\033]0;x\007\r\302\2335m %0150d' 0)
cp tiny.ini "$evil.ini"
short="--set measure.repeats=1 --set measure.duration=60ms"

# on_terminal COLUMNS COMMAND...: stdout and stderr are a terminal of so many; what came there is in ./seen.
on_terminal() {
	"$python" - "$@" >seen <<'PY'
import fcntl, os, pty, struct, sys, termios
pid, main = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(sys.argv[1]), 0, 0))
    os.environ["TERM"] = "xterm-256color"
    os.execvp(sys.argv[2], sys.argv[2:])
try:
    while piece := os.read(main, 65536):
        sys.stdout.buffer.write(piece)
except OSError:
    pass  # the end of a terminal
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(0 if status in (0, 3) else f"exit {status}")
PY
}
# is_right COLUMNS EXPRESSION: of ./seen all escape sequences are whole and among ours, nothing else is obeyed, the live line fits,
# and the expression over `text` (without sequences) and `raw` holds.
is_right() {
	"$python" - "$@" <<'PY' || fail "on a terminal of $1 columns: $(tail -c 600 seen | cat -v)"
import re, sys
columns, raw = int(sys.argv[1]), open("seen", encoding="utf-8", newline="").read()
ours = {"0", "1", "2", "31", "32", "33", "36"}
for codes in re.findall("\x1b\\[([0-9;]*)m", raw):
    assert codes in ours or re.fullmatch("48;5;[0-9]+;38;5;(16|255)", codes), f"not ours: {codes}"
text = re.sub("\x1b\\[[0-9;]*m", "", raw)
live = [line.split("\r")[0] for line in text.split("\r\x1b[K")[1:]]
text = text.replace("\r\x1b[K", "").replace("\r\n", "\n")
assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), "something is obeyed"
assert live and all(len(line.split("\n")[0]) <= columns for line in live if "samples/s  ETA" in line), "too long"
assert any(len(line) > columns - 30 for line in live), "the live line has less than the terminal's columns"
assert eval(sys.argv[2]), sys.argv[2]
PY
}

for columns in 80 200; do
	on_terminal $columns "$MLBENCH" sweep tiny.ini $short --verbose --out sweep$columns || fail "the sweep"
	is_right $columns '"\x1b[36m█" in raw and "█" in text and "?[" not in text and "4/4  " in text'
	is_right $columns '"\x1b[48;5;" in raw and "samples/s over decode.workers" in text'
	on_terminal $columns "$MLBENCH" run "$evil.ini" $ONE $short --verbose --out evil$columns || fail "an evil name"
	is_right $columns '"1/1  evil-[35m" in text and "evil?[35m?[8m" in text and "\x1b[36m█" in raw'
done
# Without colour there is none, and no mark of one.
NO_COLOR=1 on_terminal 80 "$MLBENCH" sweep tiny.ini $short --out grey || fail "without colour"
is_right 80 '"\x1b[36m" not in raw and "\x1b[48" not in raw and "4/4  " in text and "?" not in text'
on_terminal 80 "$MLBENCH" sweep tiny.ini $short --no-color --out grey_too || fail "without colour"
is_right 80 'not re.search("\x1b\\[[0-9;]*m", raw) and "4/4  " in text'

# A pipe has a line with a rate, the mean since the warm-up: none that only says that there is none yet, but the first.
expect_measured "$MLBENCH" sweep tiny.ini $short --set measure.repeats=2 --out piped
[ "$(grep -c ' - samples/s' err)" -le 1 ] || fail "a pipe is told of nothing: $(grep samples/s err)"
! grep -q $'\033' err out || fail "colours in a pipe"
