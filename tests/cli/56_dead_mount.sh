# Storage that does not answer: a FUSE server that was stopped.  Every command ends by itself with status 3 and a sentence that
# names the path, --dry-run and estimates included; one that is caught in the middle still ends at a signal.
. "$CLI/lib.sh"
write_config
mkdir mount
"$TOOLS/with_bad_mount" stopped mount true || skip "no FUSE mount can be made here"
cat >plan.ini <<'INI'
[plan]
name = dead
[burn]
kind = burn
tier = quick
for = 1s
loads = write
burn.wrong = 0
[stored]
kind = repeatable
tier = quick
repeatable.storage = 0
[bought]
kind = expect
tier = quick
cpu.threads >= 1
INI

# Each waits ten seconds for an answer, all of them at once.
declare -A pid_of
begin() { # NAME COMMAND...
	local name=$1
	shift
	"$TOOLS/with_bad_mount" stopped mount "$MLBENCH" "$@" >"$name.out" 2>"$name.err" </dev/null &
	pid_of[$name]=$!
}
begin accept accept plan.ini --tier quick --path mount --json --out kept
begin dry_run accept plan.ini --tier quick --path mount --dry-run
begin lost accept plan.ini --tier quick --out mount/result
begin doctor doctor mount
begin check check tiny.ini --data mount
begin run run tiny.ini $ONE --data mount/set --out ran
printf 'include = mount/base.ini\n' >includes.ini
begin includes check includes.ini
begin gen gen tiny.ini --set dataset.path=mount/set --json
begin baseline baseline mount --out base.json
for name in "${!pid_of[@]}"; do
	wait "${pid_of[$name]}"
	[ $? -eq 3 ] || { cp "$name.err" err; fail "$name did not end with status 3"; }
	cat "$name.out" "$name.err" | tr -s ' \n' ' ' | grep -qE "'mount[a-z/.]*' does not answer" || { cp "$name.err" err; fail "$name does not name the path"; }
done
cp accept.out out
is_json mlbench.accept/1
[ "$(json '[c["verdict"] for c in d["checks"]]')" = "['ERROR', 'ERROR', 'PASS']" ] || fail "not only the checks that write there"
[ -n "$(json 'd["fingerprint"]["cpu"]')" ] || fail "dead storage has cost the facts of the node"
cp gen.out out
is_json mlbench.error/1

# A signal ends the wait for an answer, too.
cat >signal.sh <<'SH2'
"$MLBENCH" "$@" >out 2>err </dev/null &
pid=$!
for _ in $(seq 6000); do
	pgrep -P "$pid" >pids && break
	kill -0 "$pid" 2>/dev/null || exit 99
	sleep 0.05
done
kill "-$SIGNAL" "$pid"
wait "$pid"
SH2
for SIGNAL in INT TERM; do
	export SIGNAL
	"$TOOLS/with_bad_mount" stopped mount bash signal.sh accept plan.ini --tier quick --path mount --dry-run
	status=$?
	[ "$status" -eq 130 ] || fail "exit $status, not 130, at SIG$SIGNAL while an answer is waited for"
done

# A job that waits for it is observed all the same: in time, and with what it waits for.
cat >observed.sh <<'SH2'
cat mount/file &
job=$!
"$MLBENCH" observe "$job" --for 1s --json --out seen >out 2>err </dev/null
status=$?
kill -9 "$job"
exit "$status"
SH2
"$TOOLS/with_bad_mount" stopped mount bash observed.sh
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 1 ] || fail "observe of a job that waits for dead storage: exit $status"
is_json mlbench.observe/1

# A storage that dies later: the main thread waits for it, and one signal ends it all the same.
cat >late.sh <<'SH2'
"$MLBENCH" "$@" >out 2>err </dev/null &
pid=$!
for _ in $(seq 6000); do
	grep -qs request_wait_answer "/proc/$pid/wchan" && ! pgrep -P "$pid" >pids && break
	kill -0 "$pid" 2>/dev/null || exit 99
	sleep 0.05
done
kill -TERM "$pid"
wait "$pid"
SH2
"$TOOLS/with_bad_mount" late mount bash late.sh run tiny.ini $ONE --data mount --set dataset.recipe=none --out late
status=$?
[ "$status" -ne 99 ] || fail "it ended before the storage died"
[ "$status" -eq 130 ] || fail "exit $status, not 130, at a signal while storage does not answer"
says "does not answer"
exit 0
