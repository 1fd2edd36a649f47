# Workers that start anew with each epoch: the same batches, what it costs, its name, and what keeping them would give.
. "$CLI/lib.sh"
write_config
apart=(--set decode.workers=1 --set batch.size=8 --set step.time=2ms --set measure.epochs=8 --set measure.warmup=1ms
	--set run.verify=on --set decode.startup=30ms)
checksum() {
	expect 0 "$MLBENCH" show "$1" --json
	sed -n 's/.*"epoch_checksum":"\([0-9a-f]*\)".*/\1/p' "$1/points.jsonl" | sort -u
}

expect 2 "$MLBENCH" check tiny.ini --set decode.persistent=maybe
expect_measured "$MLBENCH" run tiny.ini "${apart[@]}" --out kept
! grep -q "started anew" out || fail "kept workers are said to start anew"
expect_measured "$MLBENCH" run tiny.ini "${apart[@]}" --set decode.persistent=off --verbose --out anew
reads "epochs that workers started anew for"
[ "$(checksum kept)" = "$(checksum anew)" ] || fail "other batches"
[ "$(checksum anew | wc -l)" -eq 1 ] || fail "no checksum"
expect 0 "$MLBENCH" show anew --json
is_json mlbench.summary/1
[ "$(json 'd["points"][0]["restarts"]["each_s"] >= 0.03')" = True ] || fail "a start takes less than it is declared to"
expect 0 "$MLBENCH" explain decode/startup
prints "persistent_workers=True"
expect 0 "$MLBENCH" help persistent_workers
prints "decode.persistent"

# 12 steps of 2 ms and a start of 30 ms: keeping the workers more than doubles the rate.
"$MLBENCH" what-if anew --set decode.persistent=on --json >out 2>err
if measuring; then
	expect 0 "$MLBENCH" diagnose tiny.ini "${apart[@]}" --set measure.epochs=40 --set decode.persistent=off --json --out told
	[ "$(json '(d["verdict"]["stage"], d["verdict"]["resource"])')" = "('decode', 'startup')" ] ||
		fail "not decode/startup: $(json 'd["verdict"]')"
fi

# Ctrl-C while they start.
"$MLBENCH" run tiny.ini "${apart[@]}" --set decode.persistent=off --set decode.startup=100s --out stopped >out 2>err &
until_true heeds_interrupts $!
sleep 1
kill -INT $!
wait $!
[ $? -eq 130 ] || fail "an interrupted start does not exit with 130"
