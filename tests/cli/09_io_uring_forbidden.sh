# io_uring forbidden by seccomp, as in a container of Docker or containerd: auto reads with pread and says why, in every
# command and by default; asked for by name it exits 3 and names the remedy.
. "$CLI/lib.sh"
forbidden=("$TOOLS/failing_call" io_uring EPERM)
[ -x "$TOOLS/failing_call" ] || skip "the seccomp helper could not be built"
"${forbidden[@]}" true || skip "seccomp filters cannot be set here"
write_config
expect 0 "$MLBENCH" gen tiny.ini
expect 3 "${forbidden[@]}" "$MLBENCH" run tiny.ini $ONE --set read.engine=io_uring
says "io_uring"
says "EPERM"
says "set read.engine = auto"
[ ! -e results ] || fail "it made results"
expect 3 "${forbidden[@]}" "$MLBENCH" run tiny.ini $ONE --set read.engine=io_uring --json
is_json mlbench.error/1
[ "$(json 'd["exit_status"]')" = 3 ] || fail "exit_status"
expect_measured "${forbidden[@]}" "$MLBENCH" run tiny.ini $ONE --set read.engine=auto --json --out auto
is_json mlbench.summary/1
[ "$(json 'd["points"][0]["engine"]')" = pread ] || fail "the record does not say that pread reads"
json 'd["points"][0]["notes"]' | grep -q 'pread' || fail "the notes do not say that pread reads"
json 'd["points"][0]["notes"]' | grep -q 'io_uring' || fail "the notes do not say why not io_uring"
expect 0 "${forbidden[@]}" "$MLBENCH" list sources
grep 'io_uring' out | grep -q 'not here' || fail "list does not say that io_uring cannot be had"
expect 0 "${forbidden[@]}" "$MLBENCH" doctor
# A folder of the user's is scanned all the same: the same manifest.
cp -r data own && rm own/mlbench-*
printf 'no picture' >own/class_0000/bad.jpg
none=(--set dataset.recipe=none --set dataset.path=own)
for samples in 0 20; do
	XDG_CACHE_HOME=$PWD/with expect 0 "$MLBENCH" check tiny.ini "${none[@]}" --set dataset.samples=$samples
	XDG_CACHE_HOME=$PWD/without expect 0 "${forbidden[@]}" "$MLBENCH" check tiny.ini "${none[@]}" --set dataset.samples=$samples
done
[ "$(find with -name '*.jsonl' | wc -l)" -eq 2 ] || fail "not a manifest of all and one of 20"
diff -r with/mlbench without/mlbench || fail "another manifest without io_uring"
# One of two swept engines: its points are rows with the reason, the others run.
expect 1 "${forbidden[@]}" "$MLBENCH" sweep tiny.ini $ONE --set sweep.read.engine=pread,io_uring --json --out both
is_json mlbench.summary/1
[ "$(json '[p["status"] == "failed" for p in d["points"]]')" = "[False, True]" ] || fail "not exactly the second failed"
json 'd["points"][1]["error"]' | grep -q 'io_uring' || fail "no reason"

# A filter may forbid one of the calls alone.
for call in io_uring_enter io_uring_register; do
	expect_measured "$TOOLS/failing_call" "$call" EPERM "$MLBENCH" run tiny.ini $ONE --json --out "$call"
	[ "$(json 'd["points"][0]["engine"]')" = pread ] || fail "without $call it does not read by pread"
done

# A shipped configuration works by its defaults, and so does every command.
small=(--set dataset.samples=48 --set dataset.width=64 --set dataset.height=48 --set dataset.bytes=0 --set batch.size=8
	--set measure.duration=60ms --set measure.warmup=10ms --set measure.window=10ms --set measure.repeats=1 --set measure.limits=off
	--set dataset.path=main)
main=("$ROOT/configs/imagenet_like.ini" "${small[@]}" --set step.backend=null)
expect 0 "${forbidden[@]}" "$MLBENCH" check "${main[@]}"
reads "pread (io_uring: a seccomp filter"
reads "raise read.threads instead of read.depth"
expect_measured "${forbidden[@]}" "$MLBENCH" sweep "${main[@]}" --set sweep.decode.workers=1,2 --set prefetch.depth=1 --json --out swept
[ "$(json '{p["engine"] for p in d["points"]}')" = "{'pread'}" ] || fail "not every point was read by pread"
json 'd["environment"]["mlbench"]["engine"]' | grep -q '^pread; io_uring: ' || fail "the record does not say why"
expect_measured "${forbidden[@]}" "$MLBENCH" diagnose tiny.ini $ONE --out diagnosed
expect 0 "${forbidden[@]}" "$MLBENCH" probe tiny.ini $ONE --quick --json
[ "$(json 'd["engine"]')" = pread ] || fail "probe does not read by pread"
write_iops_plan plan.ini
expect 0 "${forbidden[@]}" "$MLBENCH" accept plan.ini --tier quick --budget 30min --json
