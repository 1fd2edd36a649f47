#!/usr/bin/env bash
# tests/device/run.sh itself, tried on the test double: what it says and how it exits.
#   tests/device/try_run.sh BUILD_FOLDER
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); echo "ok    $1"; }
bad() { failed=$((failed + 1)); echo "FAIL  $1"; tail -n 25 "$work/log" | sed 's/^/      /'; }
# try NAME STATUS PATTERN COMMAND …: the command's exit status, and a line that it prints.
try() {
	local name=$1 want=$2 pattern=$3 status
	shift 3
	timeout -k 10 2400 "$@" >"$work/log" 2>&1
	status=$?
	if [ $status -ne "$want" ]; then
		echo "exit $status, not $want" >>"$work/log"
		bad "$name"
	elif ! grep -qE -- "$pattern" "$work/log"; then
		echo "no '$pattern'" >>"$work/log"
		bad "$name"
	else
		ok "$name"
	fi
}

[ -e "$build/double/libmlbench-cuda.so" ] || { echo "skipped: no test double in '$build/double'"; exit 77; }
run=tests/device/run.sh

try "wrong use" 2 'no such step: nothing' $run "$build" --double --only nothing
try "an unknown option" 2 'no such option' $run "$build" --quickly
try "no device" 3 'no GPU can be used: .*no ' env MLBENCH_DOUBLE_DEVICES=0 $run "$build" --double --out "$work/none"
try "no time" 1 'NOT MEASURED +doctor +no time left' $run "$build" --double --only doctor --limit 1 --out "$work/late"
try "the short steps" 0 '[1-9][0-9]* passed, 0 failed, 0 not measured' $run "$build" --double --only doctor,repeat,sweep --out "$work/all"
grep -q 'PASS.*the same bits' "$work/all/summary.txt" && grep -q 'TEST DOUBLE' "$work/all/summary.txt" && ok "its summary" ||
	bad "its summary"
grep -q 'NOT RUN *bank' "$work/all/summary.txt" && ok "what was not run is said" || bad "what was not run is said"
try "each precision, each feature, one device" 0 'PASS +models +mlp fp8: fp8, 1 device' $run "$build" --double --only models,features,devices,throttle \
	--out "$work/all"
grep -q 'INFO *devices *two devices: not run: .*this node has only 1 device' "$work/all/summary.txt" && ok "one device is said" || bad "one device is said"
try "two devices" 0 'PASS +devices +two devices: .*2 devices' env MLBENCH_DOUBLE_DEVICES=2 $run "$build" --double --only devices --out "$work/two"
try "another step, into the same folder" 0 'PASS +resnet50 +augment on cpu' $run "$build" --double --only resnet50 --out "$work/all"
grep -q 'the same bits' "$work/all/summary.txt" && grep -q 'resnet50' "$work/all/summary.txt" && ok "both are in the summary" ||
	bad "both are in the summary"
try "the benches" 0 'INFO +bench +overlap: .*not judged' $run "$build" --double --only bench --out "$work/all"
[ "$(ls "$work"/all/bench_*.json 2>/dev/null | wc -l)" -eq "$(ls tests/bench/device/bench_*.c | wc -l)" ] && ok "a result of each" ||
	bad "a result of each"

# A missed bar, a crash and a test that fails are failures of the whole.
fake=$work/fake
mkdir -p "$fake/double"
ln -s "$PWD/$build/mlbench" "$fake/mlbench"
cp "$build"/double/*.so* "$fake/double/"
cat >"$fake/double/bench_missed" <<'S'
#!/bin/sh
printf 'FAIL\tmissed: a ratio: 0.5, at least 0.95\n' >"$5"
echo '{}' >"$3"
exit 1
S
cat >"$fake/double/test_broken" <<'S'
#!/bin/sh
printf '[  PASSED  ] 3 test(s).\n[  FAILED  ] 1 test(s), listed below:\n'
exit 1
S
printf '#!/bin/sh\nkill -SEGV $$\n' >"$fake/double/bench_crash"
chmod +x "$fake"/double/bench_* "$fake"/double/test_*
try "a missed bar" 1 'FAIL +bench +missed: a ratio' $run "$fake" --double --only bench --out "$work/missed"
grep -q 'FAIL.*bench_crash: exit 139' "$work/log" && ok "a crash" || bad "a crash"
try "a test that fails" 1 'FAIL +numerics +test_broken: 1 failed' $run "$fake" --double --only numerics --out "$work/broken"

# Stopped: what is known stays.
# Again where this script was so late that all was over.
for try in 1 2 3 4 5; do
	rm -rf "$work/stopped" "$work/log" # what the run before said would be taken for this one's
	$run "$build" --double --only probe --out "$work/stopped" >"$work/log" 2>&1 &
	pid=$!
	until grep -qs 's left)' "$work/log" || ! kill -0 $pid; do sleep 0.1; done
	kill -INT $pid 2>/dev/null
	kill -TERM $pid
	wait $pid
	status=$?
	[ $status -eq 0 ] || break
done
{ [ $status -eq 130 ] && grep -q interrupted "$work/stopped/summary.txt"; } && ok "stopped" ||
	{ echo "exit $status" >>"$work/log"; bad "stopped"; }

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
