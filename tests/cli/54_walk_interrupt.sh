# Ctrl-C while a folder is walked: answered in words at once, heard before the walk is over; and while reads hang.
. "$CLI/lib.sh"
write_config
mkdir -p folders
# A link to where it lies makes the walk as long as wanted: each level doubles it, and none is above another.
mkdir -p level_00
for i in $(seq 0 24); do
	next=$(printf 'level_%02d' $((i + 1)))
	mkdir -p "$next"
	ln -s "../$(printf 'level_%02d' "$i")" "$next/a"
	ln -s "../$(printf 'level_%02d' "$i")" "$next/b"
done
"$MLBENCH" run tiny.ini $ONE --set dataset.recipe=none --set dataset.path=level_25 --json --out walked >out 2>err &
pid=$!
walks() {
	heeds_interrupts "$pid" && { find "/proc/$pid/fd" -lname '*/level_*' 2>/dev/null | grep -q . || ! kill -0 "$pid" 2>/dev/null; }
}
until_true walks
kill -INT "$pid" || fail "the walk of 2^25 folders was over at once"
until_true grep -q 'interrupted' err
says "mlbench: interrupted: waiting for storage: examining the files of the data set; once more quits at once"
wait "$pid"
status=$?
[ "$status" -eq 130 ] || fail "exit $status, not 130"
is_json mlbench.error/1
grep -q "stopped while 'level_25' was listed" out || fail "it does not say what was stopped"
[ ! -e walked ] || fail "results without a run"

# Quiet is quiet.
mkdir runtime && chmod 700 runtime
export XDG_RUNTIME_DIR=$PWD/runtime
reads_wait() {
	"$MLBENCH" status "$pid" 2>/dev/null | grep -qE '^ +read +[0-9]+ .*sleeping' || ! kill -0 "$pid" 2>/dev/null
}
expect 0 "$MLBENCH" gen tiny.ini
for quiet in "" --quiet; do
	"$MLBENCH" run tiny.ini $ONE $quiet --set measure.duration=60s --set inject.read_latency=50s --set read.engine=pread \
		--out "slow$quiet" >out 2>err &
	pid=$!
	until_true reads_wait
	kill -INT "$pid"
	wait "$pid"
	status=$?
	[ "$status" -eq 130 ] || fail "exit $status, not 130"
	if [ -z "$quiet" ]; then
		says "interrupted: waiting for the reads and the steps that are under way; once more quits at once"
	else
		! grep -q 'once more' err || fail "--quiet, and a word about the interruption"
	fi
done
