# A full disk while generating and while writing results: a clear line, exit 3, and what was measured is printed.
. "$CLI/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "needs root to mount a small tmpfs"
mkdir small
mount -t tmpfs -o size=256k tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here"
trap 'umount small' EXIT
write_config
# Known beforehand, or met on the way.
"$MLBENCH" gen tiny.ini --set dataset.path=small/data --set dataset.samples=2000 >out 2>err
status=$?
[ "$status" -eq 3 ] || fail "exit $status on a full disk, not 3"
grep -qE 'No space left|free' err || fail "the reason is not told"
[ "$(wc -l <err)" -le 5 ] || fail "more than a few lines about a full disk"
rm -rf small/data
expect 0 "$MLBENCH" gen tiny.ini
dd if=/dev/zero of=small/ballast bs=1k count=180 2>/dev/null
expect 3 "$MLBENCH" sweep tiny.ini --set measure.repeats=30 --out small/run
says "No space left"
prints "samples/s"
prints "emulated"
rm small/ballast
dd if=/dev/zero of=small/ballast bs=1k count=20 2>/dev/null
# With room again, the rest is measured; the torn line is gone.
expect_measured "$MLBENCH" show small/run
python3 - <<'PY' || fail "a line of points.jsonl is torn"
import json
lines = open("small/run/points.jsonl").read().split("\n")
for line in lines[:-1]:
    json.loads(line)
PY
umount small
mount -t tmpfs -o size=256k tmpfs small || fail "mount"
dd if=/dev/zero of=small/ballast bs=1k count=256 2>/dev/null
expect 3 "$MLBENCH" sweep tiny.ini --json --out small/run
is_json mlbench.error/1
# What was observed is printed, and that it was not saved is said once.  Status 1 is that of a job that stands still.
python3 -c 'while True: pass' &
expect 3 "$MLBENCH" observe $! --for 1s --out small/seen
kill $!
prints "what this means"
[ "$(grep -c "No space left" err)" -eq 1 ] || fail "the full disk is not told once"
"$MLBENCH" observe $$ --for 1s --out seen >/dev/full 2>err
[ $? -eq 3 ] || fail "exit status of output that finds no room"
! grep -q "makes a case" out || fail "a case of what was not saved"
