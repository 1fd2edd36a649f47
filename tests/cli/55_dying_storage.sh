# Storage that fails, from the start and in the middle, is no slow storage: the point is failed, and says which file.
# A few bad samples are a share in the verdict's company.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
pread=(--set read.engine=pread --set measure.duration=300ms)

expect 1 "$TOOLS/with_dead_storage" "$MLBENCH" run tiny.ini $ONE "${pread[@]}" --out dead
says "Input/output error"
says "nothing could be measured"
grep -q "class_" err || fail "no file is named"
# An epoch that does not end within the run changes nothing.
expect 1 "$TOOLS/with_dead_storage" "$MLBENCH" run tiny.ini $ONE "${pread[@]}" --set step.time=50ms --json --out slow
is_json mlbench.summary/1
[ "$(json 'd["points"][0]["status"]')" = failed ] || fail "not failed"
json 'd["points"][0]["error"]' | grep -q "Input/output error" || fail "no reason"

# A twentieth of it: measured, and said.
for i in 0 4 8 12; do
	printf 'no picture' | dd of="$(printf 'data/class_%04d/%08d.ppm' $((i % 3)) $i)" conv=notrunc status=none
done
expect_measured "$MLBENCH" run tiny.ini $ONE "${pread[@]}" --set measure.epochs=2 --set measure.warmup=0 --json --out few
[ "$(json '0 < d["points"][0]["bad_share"] < 0.1')" = True ] || fail "share of bad samples"
expect 0 "$MLBENCH" show few
prints "could not be read or decoded, "

# Deleted while it is read: the first epoch was good; most of what follows is not.  Longer where this script was so late that all
# was over.
for seconds in 5 20 60; do
	rm -rf data
	expect 0 "$MLBENCH" gen tiny.ini
	"$MLBENCH" run tiny.ini $ONE "${pread[@]}" --set measure.duration=${seconds}s --set measure.epochs=0 --set step.time=1ms --set measure.repeats=1 \
		--out gone$seconds >out 2>err &
	pid=$!
	until_true [ -e gone$seconds/points.jsonl ]
	sleep 0.5
	rm -rf data
	wait "$pid"
	status=$?
	[ "$status" -ne 0 ] && [ "$status" -ne 3 ] || continue
	break
done
[ "$status" -eq 1 ] || fail "exit $status, not 1, of a data set that was deleted"
says "No such file or directory"
says "the first is"
