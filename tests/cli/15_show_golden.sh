# The report of a saved sweep, to the letter: three widths, with and without UTF-8.
. "$CLI/lib.sh"
cp -r "$ROOT/tests/golden/sample" sample
for width in 80 100 140; do
	COLUMNS=$width expect 0 "$MLBENCH" show sample
	golden "show_$width.txt"
	[ "$(wc -L <out)" -le $width ] || fail "a line is wider than $width"
done
LC_ALL=C COLUMNS=100 expect 0 "$MLBENCH" show sample
golden show_ascii.txt
! LC_ALL=C grep -q '[^ -~]' out || fail "more than ASCII in the C locale"
expect 0 "$MLBENCH" show sample --verbose
golden show_verbose.txt
expect 0 "$MLBENCH" show sample --json
golden show.json
# On a terminal there is colour, unless NO_COLOR or --no-color is given.
if command -v script >/dev/null; then
	colour() { TERM=xterm-256color script -qec "$*" /dev/null </dev/null | grep -q "$(printf '\033\[')"; }
	colour "$MLBENCH show sample" || fail "no colour on a terminal"
	! colour "$MLBENCH show sample --no-color" || fail "colour with --no-color"
	! NO_COLOR=1 colour "$MLBENCH show sample" || fail "colour with NO_COLOR"
fi
