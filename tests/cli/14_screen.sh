# What run, sweep, diagnose and compare print last fits a terminal of 24 lines and 80 columns, and ends with the answer.
. "$CLI/lib.sh"
write_config
export COLUMNS=80

# on_a_screen LABEL ...: ./out has at most 22 lines, none too wide, and its last paragraph has these labels, among others that
# are there now and then.
on_a_screen() {
	local labels
	[ "$(wc -l <out)" -le 22 ] || { cat out; fail "$(wc -l <out) lines"; }
	[ "$(wc -L <out)" -le 80 ] || fail "a line is wider than 80"
	labels=$(awk '/^$/ { text = "" } /^  [a-z]/ { text = text $1 "\n" } END { printf "%s", text }' out |
		grep -vxE 'load|left|bad|enough|memory|advice|more|note|unlike|because' | uniq)
	[ "$(echo $labels)" = "$*" ] || { cat out; fail "the last labels are '$(echo $labels)', not '$*'"; }
}

with_limits swept "$MLBENCH" sweep tiny.ini
on_a_screen best verdict page
# The map of 5 lines, unless the answer, which is longer on a busy node, leaves no room for it.
grep -qF "samples/s over decode.workers" out || [ "$(wc -l <out)" -gt 16 ] || fail "no map, though there is room"
grep -q '^  *[12]  *\(8\|16\) ' out || fail "no point is shown"
prints "swept/report.html"
# The rest is in what is asked for.
expect 0 "$MLBENCH" show swept
prints "limits of this node"
prints "where the time went"
tail -n 1 out | grep -q '^  page     swept/report.html$' || fail "show does not end with the page"

# A loader without its cost is no better setting: each workload has a best one, and the verdict is of the first.
expect_measured "$MLBENCH" sweep tiny.ini --set batch.size=8 --set sweep.overhead.sample=1ms,0 --set measure.duration=300ms --out costs
on_a_screen best verdict page
reads "best of overhead.sample=1ms: "
reads " of overhead.sample=0: "
tr -s ' \n' ' ' <out | grep -q 'best of overhead.sample=1ms: [0-9.,]* samples/s at decode.workers=[12]' || fail "which knobs are best"
expect 0 "$MLBENCH" show costs
tr -s ' \n' ' ' <out | grep -q 'at the best point, [^;]*overhead.sample=1ms' || fail "the stages are those of another workload"

expect_measured "$MLBENCH" run tiny.ini $ONE --out ran
on_a_screen best verdict page
head -n 1 out | grep -q emulated || fail "the first line does not say that the step is emulated"
grep -q '^  step  *1 ' out || fail "no stages"

"$MLBENCH" diagnose swept >out 2>err
on_a_screen verdict page
expect_measured "$MLBENCH" run tiny.ini $ONE --set step.time=4ms --out slower
"$MLBENCH" compare ran slower --fail-if 'throughput < -5%' >out 2>err
on_a_screen verdict result gate
tail -n 3 out | grep -q "^  gate " || fail "compare does not end with its gate"
expect 0 "$MLBENCH" compare swept swept
on_a_screen verdict result
tail -n 4 out | grep -q "^  result " || fail "compare does not end with its answer"

# The committed sample, too: unsteady, failed and missing points, under load.
cp -r "$ROOT/tests/golden/sample" sample
"$MLBENCH" diagnose sample >out 2>err
on_a_screen verdict results
expect 0 "$MLBENCH" compare sample sample
on_a_screen verdict result

# Half of a terminal, and any other width: nothing is cut, and no line is too long but by a word that has no place elsewhere.
for step in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "iter $step: loss 3.2115, time 10$((step % 3)).25ms, mfu 12.05%"; done >step.log
fits() {
	local status=0
	COLUMNS=$width timeout 120 "$MLBENCH" "$@" >wide 2>err </dev/null || status=$?
	[ -s wide ] || [ $status -ne 3 ] || return 0 # too few samples on a slow machine
	python3 - "$width" "$*" <<'PY' || fail "mlbench $* at $width columns"
import sys
width, command = int(sys.argv[1]), sys.argv[2]
text = open("wide", encoding="utf-8").read()
assert text.strip(), "nothing is printed"
assert "…" not in text, "a word is cut"
for line in text.splitlines():
    before, _, last = line.rpartition(" ")
    if len(line) > width and (len(before.split()) > 2 or len(last) < 13):
        sys.exit(f"{len(line)} columns: {line}")
PY
}
expect_measured "$MLBENCH" run tiny.ini $ONE --set measure.duration=2500ms --out long
# A command that is broken in two is one for a shell all the same.
COLUMNS=42 expect 0 "$MLBENCH" help compare
sed -n "/^  mlbench compare /,\$p" out | bash -c 'mlbench() { printf "%s|" "$@"; }; . /dev/stdin' >words
[ "$(cat words)" = "compare|results/main|results/branch|--fail-if|throughput < -5%|" ] || fail "the example is another command: $(cat words)"
for width in 40 60 120; do
	for what in "show swept --verbose" "diagnose swept" "compare ran slower" "what-if long --set decode.workers=3" \
		list help "help keys" "help sweep" "help read.depth" "help bottleneck" explain "explain decode/cpu" doctor "check tiny.ini" \
		"fit step.log --out case$width.ini" "top ran" "accept $ROOT/tests/golden/accept/fail.json"; do
		fits $what
	done
done
width=40
fits run tiny.ini $ONE --out narrow
fits sweep tiny.ini --set measure.repeats=1 --out narrow_sweep
