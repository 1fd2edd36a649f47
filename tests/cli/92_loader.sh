# Loaders of other kinds: workers that read for themselves, whole batches, turns with the step.  The same batches, where their
# time went, and what makes no sense is refused.
. "$CLI/lib.sh"
write_config
one=(--set decode.workers=3 --set batch.size=8 --set measure.epochs=3 --set measure.warmup=0s --set run.verify=on
	--set batch.drop_last=off --set dataset.samples=92 --set read.engine=pread)
refused() { # TEXT SETTING ...
	local text=$1 sets=() set
	shift
	for set in "$@"; do sets+=(--set "$set"); done
	expect 2 "$MLBENCH" check tiny.ini "${sets[@]}"
	says "$text"
	[ "$(wc -l <err)" -eq 1 ] || fail "more than one line"
}

refused "it is one of: readers, workers" read.by=worker
refused "'read.threads' does not go with 'read.by' = workers: there are no reader threads" read.by=workers read.threads=2
refused "'read.depth' does not go with 'read.by' = workers" read.by=workers read.depth=32
refused "'decode.queue' does not go with 'read.by' = workers" read.by=workers decode.queue=4
refused "'read.request' does not go with 'read.by' = workers" read.by=workers read.request=1M read.order=sequential
refused "'decode.share' = batches needs 'read.by' = workers" decode.share=batches
refused "one worker makes it" prefetch.depth=0 read.by=workers decode.share=batches decode.workers=2
refused "'prefetch.depth' = 0 does not go with 'upload.mode' = copy" prefetch.depth=0 upload.mode=copy
refused "'prefetch.depth' = 0 does not go with 'read.request'" prefetch.depth=0 read.request=1M read.order=sequential
refused "set 'read.by' to readers" dataset.container=tgz read.order=shards read.by=workers
refused "which is inflated ahead" dataset.container=tgz read.order=shards prefetch.depth=0
refused "batch.size=8 read.by=workers: 'read.threads' does not go" sweep.read.by=readers,workers read.threads=2
# One file at a time is no setting that is ignored.
expect 0 "$MLBENCH" check tiny.ini --set read.by=workers --set read.depth=1 --set read.threads=1

# Any of them: the same batches in the same order, and every thread's time told.
number=0
for mode in "read.by=readers" "read.by=workers" "read.by=workers read.engine=memory" "read.by=workers read.engine=io_uring" \
	"read.by=workers decode.share=batches prefetch.depth=6" \
	"read.by=workers decode.share=batches prefetch.depth=1 batch.order=as-completed" \
	"prefetch.depth=0" "read.by=workers prefetch.depth=0" \
	"read.by=workers decode.share=batches prefetch.depth=0 decode.workers=1" \
	"read.by=workers decode.share=batches decode.persistent=off decode.startup=1ms" \
	"read.by=workers decode.share=batches evaluate.every=5 checkpoint.every=7 checkpoint.bytes=64k"; do
	sets=()
	for set in $mode; do sets+=(--set "$set"); done
	number=$((number + 1))
	"$MLBENCH" run tiny.ini "${one[@]}" "${sets[@]}" --out "way$number" >out 2>err
	case $? in
	0 | 3) ;;
	*)
		grep -q "io_uring" <<<"$mode" && grep -q "cannot be used here" err && continue
		fail "exit $?: $mode"
		;;
	esac
	expect 0 "$MLBENCH" show "way$number" --json
	sum=$(/usr/bin/env python3 -c 'import json, sys
for line in open(sys.argv[1]):
    if "repetition" in line:
        print(json.loads(line)["epoch_checksum"])' "way$number/points.jsonl" | sort -u)
	[ "$(wc -l <<<"$sum")" -eq 1 ] && [ -n "$sum" ] || fail "no one checksum: $mode"
	[ "$sum" = "${first:=$sum}" ] || fail "other batches: $mode"
	# A thread that gets its first core late has no clock until then.
	if measuring; then
		[ "$(json 'abs(d["points"][0]["accounted"] - 1) < 0.01')" = True ] || fail "not all time is told of: $mode"
	fi
done

# A worker that reads is a thread of both stages, and either is idle while the other works.
expect 0 "$MLBENCH" show way2 --json
[ "$(json '[s["workers"] for s in d["points"][0]["stages"] if s["name"] in ("read", "decode")]')" = "[3, 3]" ] ||
	fail "not three workers that read: $(json 'd["points"][0]["stages"]')"
expect 0 "$MLBENCH" show way2 --verbose
prints "by the decode workers"

# A sweep over them, with each stage alone.
expect_measured "$MLBENCH" sweep tiny.ini --set batch.size=8 --set sweep.decode.workers=1,2 --set sweep.read.by=readers,workers \
	--set measure.limits=on --set measure.repeats=1 --set dataset.samples=92 --out swept
[ "$(grep -c '"kind":"repetition"' swept/points.jsonl)" -eq 4 ] || fail "not four points"

# The timeline: reads on the tracks of reading, and each moment of a worker in one of the two.
expect_measured "$MLBENCH" run tiny.ini "${one[@]}" --set read.by=workers --set decode.share=batches --set measure.repeats=1 \
	--set trace.schedule=2,0,0,12,1 --set measure.window=10ms --out shown
/usr/bin/env python3 "$ROOT/tests/timeline_check.py" shown/trace.json >checked 2>&1 || { cat checked; fail "no timeline"; }
/usr/bin/env python3 - shown/trace.json <<'PY' || fail "reading and making overlap in the timeline"
import json, sys
d = json.load(open(sys.argv[1]))["traceEvents"]
names = {e["tid"]: e["args"]["name"] for e in d if e.get("name") == "thread_name"}
open_spans, spans = {}, {"sample": [], "read": []}
for e in d:
    if e.get("ph") == "B":
        open_spans.setdefault(e["tid"], []).append((e["name"], e["ts"]))
    elif e.get("ph") == "E":
        name, begin = open_spans[e["tid"]].pop()
        if name in spans:
            spans[name].append((names[e["tid"]], begin, e["ts"]))
assert spans["sample"] and spans["read"]
assert any(e.get("name") == "starved: the worker reads, or has no file" for e in d)
assert all(n.startswith("read") for n, _, _ in spans["read"]), spans["read"][0]
assert all(n.startswith("decode") for n, _, _ in spans["sample"]), spans["sample"][0]
for name, begin, end in spans["read"]:
    own = name.replace("read", "decode")
    assert not any(n == own and b < end - 0.002 and begin < e - 0.002 for n, b, e in spans["sample"]), (name, begin)
PY

# Advice and predictions: more workers, never a depth of reads; one engine says nothing of another.
planted=(--set batch.size=8 --set decode.workers=2 --set read.by=workers --set inject.read_latency=2ms --set dataset.samples=92
	--set measure.duration=1s --set measure.warmup=300ms --set measure.window=50ms)
expect_measured "$MLBENCH" run tiny.ini "${planted[@]}" --out planted
"$MLBENCH" diagnose planted --json >out 2>err
! measuring || [ "$(json 'd["verdict"]["stage"] in ("read", "none")')" = True ] || fail "not read: $(json 'd["verdict"]')"
! grep -q "read.depth" out || fail "workers are advised to read deeper"
"$MLBENCH" what-if planted --set decode.workers=4 >out 2>err
case $? in
0) prints "decode.workers=4" ;;
3) ;;
*) fail "what-if: exit $?" ;;
esac
expect 3 "$MLBENCH" what-if planted --set read.by=readers
grep -qE "set read.engine|recorded|inconclusive" err || fail "readers of another engine are predicted"

# Ctrl-C while every worker waits for its file.
"$MLBENCH" run tiny.ini --set decode.workers=2 --set batch.size=8 --set read.by=workers --set decode.share=batches \
	--set inject.read_latency=90s --set dataset.samples=92 --set measure.epochs=2 --out stopped >out 2>err &
until_true heeds_interrupts $!
sleep 1
kill -INT $!
wait $!
[ $? -eq 130 ] || fail "interrupted reads of workers do not exit with 130"
