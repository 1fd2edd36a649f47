# Closed, broken and full standard streams are no crash.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
"$MLBENCH" help keys | head -n 1 >/dev/null
[ "${PIPESTATUS[0]}" -eq 0 ] || fail "exit ${PIPESTATUS[0]} when the reader leaves"
"$MLBENCH" run tiny.ini $ONE --out piped 2>err | true
status=${PIPESTATUS[0]}
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status when nobody reads"
[ -s piped/summary.json ] || fail "no results when nobody reads"
"$MLBENCH" run tiny.ini $ONE --out closed >&- 2>err
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status with stdout closed"
python3 -c 'import json; json.load(open("closed/summary.json"))' || fail "results were written over"
head -c 1 closed/points.jsonl | grep -q '{' || fail "points.jsonl was written over"
"$MLBENCH" run tiny.ini $ONE --out quiet >out 2>&- </dev/null
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status with stderr closed"
if [ -e /dev/full ]; then
	"$MLBENCH" list >/dev/full 2>err
	[ $? -eq 3 ] || fail "a full stdout is not told by the exit status"
	says "standard output"
fi
# No escape sequences in a pipe, and -q says nothing on stderr.
"$MLBENCH" show piped >out
! grep -q "$(printf '\033')" out || fail "colour in a pipe"
"$MLBENCH" run tiny.ini $ONE --out silent -q >out 2>err
[ ! -s err ] || grep -qv 'warning' err && [ -s err ] && fail "chatter with --quiet"
grep -q 'samples/s' out || fail "no report with --quiet"
