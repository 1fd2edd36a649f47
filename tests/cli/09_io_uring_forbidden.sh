# io_uring forbidden by seccomp: auto reads with pread and says why; asked for by name it exits 3.
. "$CLI/lib.sh"
forbidden=("$TOOLS/failing_call" io_uring_setup EPERM)
[ -x "$TOOLS/failing_call" ] || skip "the seccomp helper could not be built"
"${forbidden[@]}" true || skip "seccomp filters cannot be set here"
write_config
expect 0 "$MLBENCH" gen tiny.ini
expect 3 "${forbidden[@]}" "$MLBENCH" run tiny.ini $ONE --set read.engine=io_uring
says "io_uring"
says "EPERM"
[ ! -e results ] || fail "it made results"
expect 3 "${forbidden[@]}" "$MLBENCH" run tiny.ini $ONE --set read.engine=io_uring --json
is_json mlbench.error/1
[ "$(json 'd["exit_status"]')" = 3 ] || fail "exit_status"
expect_measured "${forbidden[@]}" "$MLBENCH" run tiny.ini $ONE --set read.engine=auto --json --out auto
is_json mlbench.summary/1
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
