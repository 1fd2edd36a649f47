# Checkpoints: refused where they cannot be, written and removed, measured, diagnosed, predicted, and shown.
. "$CLI/lib.sh"
write_config
saving=(--set decode.workers=1 --set batch.size=8 --set step.time=10ms --set codec.name=null --set read.engine=memory
	--set measure.duration=700ms --set measure.warmup=100ms --set checkpoint.every=5 --set checkpoint.bytes=256k)

# What could not be is said before anything runs.
expect 2 "$MLBENCH" check tiny.ini --set checkpoint.mode=later
says "sync"
expect 0 "$MLBENCH" gen tiny.ini
expect 2 "$MLBENCH" check tiny.ini --set checkpoint.every=5 --set checkpoint.bytes=900T
says "two of 900 TiB at once"
expect 0 "$MLBENCH" check tiny.ini --set checkpoint.every=5 --set checkpoint.mode=async --set checkpoint.bytes=32M --json
async=$(json 'd["memory_bytes"]')
expect 0 "$MLBENCH" check tiny.ini --set checkpoint.every=5 --json
[ "$(json "$async - d['memory_bytes'] >= 0")" = True ] || fail "the staging buffer is not in the bound on memory"
expect 0 "$MLBENCH" check tiny.ini "${saving[@]}"
prints "checkpoints of 256 KiB in data.checkpoint, two at once"
mkdir taken && echo precious >taken/checkpoint.bin
expect 2 "$MLBENCH" run tiny.ini "${saving[@]}" --verbose --set checkpoint.path=taken
says "was not written by mlbench"
[ "$(cat taken/checkpoint.bin)" = precious ] || fail "somebody's file was touched"
expect 2 "$MLBENCH" run tiny.ini "${saving[@]}" --verbose --set checkpoint.path=/proc/checkpoints
says "/proc"
touch file
for words in "file: Not a directory" "nfs://server/export: is no folder of this machine"; do
	expect 2 "$MLBENCH" run tiny.ini "${saving[@]}" --verbose --set "checkpoint.path=${words%%: *}"
	says "${words##*: }"
done

# Beside the data set, and gone afterwards; or kept.
expect_measured "$MLBENCH" run tiny.ini "${saving[@]}" --verbose --set checkpoint.verify=on --out sync
[ ! -e data.checkpoint ] || fail "the checkpoint was not removed"
reads "256 KiB, sync; they stop the step for"
reads "reading back"
grep -q "256 KiB, sync; they stop the step for" sync/report.html || fail "checkpoints are not in the report"
expect_measured "$MLBENCH" run tiny.ini "${saving[@]}" --verbose --set checkpoint.mode=async --set checkpoint.path=kept/here \
	--set checkpoint.keep=on --out async
reads "256 KiB, async; they stop the step for"
[ "$(stat -c %s kept/here/checkpoint.bin)" -eq 262144 ] || fail "the checkpoint was not kept whole"
[ "$(ls -A kept/here)" = checkpoint.bin ] || fail "more than the checkpoint was kept"
expect 0 "$MLBENCH" show async --json
is_json mlbench.summary/1
[ "$(json '(d["points"][0]["checkpoint"]["mode"], d["points"][0]["checkpoint"]["every"])')" = "('async', 5)" ] ||
	fail "show does not tell of checkpoints"
[ "$(json '[s["per"] for s in d["points"][0]["stages"]]')" = "['sample', 'sample', 'batch', 'checkpoint']" ] ||
	fail "what the times of stages are of"

# A store that takes as long as five steps halves the rate: named, and what async would give is predicted.
slow=("${saving[@]}" --verbose --set inject.checkpoint_bandwidth=5MiB/s --set measure.duration=1500ms)
expect_measured "$MLBENCH" run tiny.ini "${slow[@]}" --out slow
prints "injected: checkpoints are stored at 5.00 MiB/s at most"
expect 0 "$MLBENCH" explain checkpoint/storage
prints "stands still"
expect 0 "$MLBENCH" help "checkpoint stall"
# Few steps on a busy machine are too few to predict from: exit status 3.
expect_measured "$MLBENCH" what-if slow --set checkpoint.mode=async --json
expect_measured "$MLBENCH" what-if slow --set checkpoint.every=50 --json
if measuring; then
	expect 0 "$MLBENCH" diagnose tiny.ini "${slow[@]}" --json --out diagnosed
	[ "$(json '(d["verdict"]["stage"], d["verdict"]["resource"])')" = "('checkpoint', 'storage')" ] ||
		fail "not checkpoint/storage: $(json 'd["verdict"]')"
fi

# What a kill leaves, the next run replaces and removes.
"$MLBENCH" run tiny.ini "${slow[@]}" --set measure.duration=60s --out killed >out 2>err &
until_true test -e data.checkpoint/checkpoint.bin
kill -KILL $!
wait $!
expect_measured "$MLBENCH" run tiny.ini "${saving[@]}" --out after
[ ! -e data.checkpoint ] || fail "what a kill left was not removed"

# Spans of the timeline.
expect_measured "$MLBENCH" run tiny.ini "${saving[@]}" --verbose --set trace.schedule=0,0,0,20,1 --out traced
grep -q '"store checkpoint"' traced/trace*.json || fail "the timeline has no checkpoint"

# Ctrl-C in the middle: nothing is left behind.
"$MLBENCH" run tiny.ini "${slow[@]}" --set measure.duration=60s --out stopped >out 2>err &
until_true test -e data.checkpoint
sleep 0.3
kill -INT $!
wait $!
[ $? -eq 130 ] || fail "an interrupted run does not exit with 130"
[ ! -e data.checkpoint ] || fail "an interrupted run leaves its checkpoint"

# A disk that fills up: one line, and nothing was measured.
[ "$(id -u)" -eq 0 ] || exit 0
mkdir small && mount -t tmpfs -o size=1m tmpfs small 2>/dev/null || exit 0
trap 'umount small' EXIT
dd if=/dev/zero of=small/ballast bs=1k count=600 2>/dev/null
expect 2 "$MLBENCH" check tiny.ini "${saving[@]}" --verbose --set checkpoint.path=small/deep
says "are free"
dd if=/dev/zero of=small/ballast bs=1k count=400 2>/dev/null
"$MLBENCH" run tiny.ini "${slow[@]}" --set measure.duration=60s --set measure.repeats=1 --set checkpoint.path=small/deep \
	--out filled >out 2>err &
until_true test -e small/deep/checkpoint.bin
dd if=/dev/zero of=small/more bs=1k 2>/dev/null
wait $!
[ $? -eq 3 ] || fail "a full disk does not fail the run"
tr -s ' \n' ' ' <err | grep -q "does not fit on the disk" || fail "a full disk is not told: $(tail -n 3 err)"
