# Storage that does not answer: a FUSE server that was stopped, from the start or after some requests, one of which it may have in
# its hands.  Every command ends by itself with status 3 and a sentence that names the path, --dry-run and estimates included; one
# that is caught in the middle still ends at a signal.
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
cat >train.ini <<'INI'
[plan]
name = dead
[train]
kind = pipeline
tier = quick
config = tiny
set.dataset.path = mount/set
set.decode.workers = 1
set.batch.size = 8
throughput >= 1 samples/s
[bought]
kind = expect
tier = quick
cpu.threads >= 1
INI

mkdir mount.files
none=(--data mount/set --set dataset.recipe=none)
expect 0 "$MLBENCH" gen tiny.ini --set dataset.path=mount.files/set
expect_measured "$MLBENCH" run tiny.ini $ONE --data mount.files/set --out mount.files/saved
# What it remembers of the folder spares later runs the look into each file.
expect_measured "$TOOLS/with_bad_mount" 0:0 mount "$MLBENCH" run tiny.ini $ONE "${none[@]}" --out good

# Each waits for an answer, all of them at once.
declare -A pid_of
begin_with() { # KIND NAME COMMAND...: of with_bad_mount
	local kind=$1 name=$2
	shift 2
	"$TOOLS/with_bad_mount" $kind mount "$MLBENCH" "$@" >"$name.out" 2>"$name.err" </dev/null &
	pid_of[$name]=$!
}
begin() { # NAME COMMAND...
	begin_with stopped "$@"
}
# In the middle: of a walk, of a look into files, of a run's reads, of writing results.
lookup=1 rename=12 open=14 read=15 write=16 opendir=27 create=35
long=(--set measure.epochs=4 --set measure.repeats=1)
unseen=(--set dataset.samples=90)
begin_with $opendir:3 walk run tiny.ini $ONE "${none[@]}" "${unseen[@]}" --out walked
begin_with $lookup:12:taken look check tiny.ini "${none[@]}" "${unseen[@]}"
begin_with $open:5:taken head sweep tiny.ini "${none[@]}" "${unseen[@]}" --json --out headed
begin_with $create:5:taken made gen tiny.ini --set dataset.path=mount/made
begin_with $read:9 fitted fit mount/set --out fitted.ini
begin_with $open:2:taken diagnosed diagnose mount/saved
begin_with $open:200:taken pread run tiny.ini $ONE "${none[@]}" "${long[@]}" --set read.engine=pread --out of_pread
begin_with $read:250:taken mmap run tiny.ini $ONE "${none[@]}" "${long[@]}" --set read.engine=mmap --out of_mmap
begin_with $open:200:taken ring run tiny.ini $ONE "${none[@]}" "${long[@]}" --set read.engine=auto --out of_ring
begin_with $write:2 appended run tiny.ini $ONE --data mount.files/set --out mount/appended
begin_with $rename:1:taken renamed run tiny.ini $ONE --data mount.files/set --out mount/renamed
# Slow is not silent: each answer takes half as long again as an answer is waited for at the start.
cat >slow.sh <<'SH2'
begun=$SECONDS
"$MLBENCH" "$@"
status=$?
[ $((SECONDS - begun)) -ge 15 ] || exit 99
exit $status
SH2
"$TOOLS/with_bad_mount" $read:250:slow mount bash slow.sh run tiny.ini $ONE "${none[@]}" "${long[@]}" --set read.engine=pread --out slowly >slow.out 2>slow.err </dev/null &
slow=$!
begin accept accept plan.ini --tier quick --path mount --json --out kept
begin train accept train.ini --tier quick --path . --json --out trained
begin_with $open:1:taken die accept train.ini --tier quick --path . --json --out died
begin train_dry accept train.ini --tier quick --path . --dry-run
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
	cat "$name.out" "$name.err" | tr -s ' \n' ' ' | grep -qE "'([^']*/)?mount[a-z0-9_/.-]*' does not answer" || { cp "$name.err" err; fail "$name does not name the path"; }
done
wait "$slow"
status=$?
cp slow.err err
[ "$status" -ne 99 ] || fail "no answer was slow"
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status, not 0 (or 3, unsteady), on slow storage"
! grep -q "does not answer" err || fail "slow storage is taken for dead"
repetitions slowly 1 || fail "nothing was measured on slow storage"
cp accept.out out
is_json mlbench.accept/1
[ "$(json '[c["verdict"] for c in d["checks"]]')" = "['ERROR', 'ERROR', 'PASS']" ] || fail "not only the checks that write there"
[ -n "$(json 'd["fingerprint"]["cpu"]')" ] || fail "dead storage has cost the facts of the node"
for name in train die; do
	cp $name.out out
	[ "$(json '[c["verdict"] for c in d["checks"]]')" = "['ERROR', 'PASS']" ] || fail "$name: not only the check whose data are there"
	json 'd["checks"][0]["sentence"]' | grep -q "'mount/set' does not answer" || fail "$name: the sentence does not name the path"
done
for name in gen head; do
	cp $name.out out
	is_json mlbench.error/1
	[ "$(json 'd["exit_status"]')" = 3 ] || fail "$name: another status in its document"
done
# Who hangs says which file; and what such a command leaves is whole and free.
grep -q "mount/set/class_" pread.err || { cp pread.err err; fail "the file that was opened is not named"; }
for of in pread ring; do
	expect_measured "$TOOLS/with_bad_mount" 0:0 mount "$MLBENCH" run --resume of_$of
done

# Storage that fails is no storage without files: never status 0 or 2, and the reason is its own.
printf 'key\n' >key
while read -r line; do
	read -ra words <<<"$line"
	expect 3 "$TOOLS/with_bad_mount" eio mount "$MLBENCH" "${words[@]}"
	grep -qE "Input/output error|could not be measured" err || fail "it does not say why: $line"
done <<'LIST'
check tiny.ini --data mount
gen tiny.ini --set dataset.path=mount
show mount
show mount/x
report mount/x
compare mount mount/x
export mount/x --format csv
fleet mount
fleet mount/x.json
baseline mount
history mount
accept mount
accept mount/x.json
accept plan.ini --judge mount
accept plan.ini --baseline mount/b.json
run mount/x.ini
run --resume mount/x
what-if mount/x --set decode.workers=2
diagnose mount/x
top mount/x
fit mount
reproduce mount/x.ini
lab list --dir mount
lab start 1 --dir mount
lab scores mount
LIST

# A signal ends the wait for an answer, too.  The process that works may be a child of the one that the shell knows.
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

# Who asks for the process that the shell knows gets the one that works, which has the threads and serves the metrics.
cat >shown.sh <<'SH2'
"$MLBENCH" "$@" >out 2>err </dev/null &
pid=$!
for _ in $(seq 6000); do
	"$MLBENCH" status "$pid" --json >shown 2>shown.err && grep -q '"measuring"' shown && break
	kill -0 "$pid" 2>/dev/null || exit 99
	sleep 0.05
done
pgrep -P "$pid" >worker
# Stopped and continued together: the shell is to see it once the terminal has been given back.
is() { for _ in $(seq 6000); do [[ $(sed 's/.*) //' "/proc/$1/stat") == $2* ]] && return; sleep 0.05; done; exit 98; }
kill -STOP "$(cat worker)"
is "$pid" T
kill -CONT "$pid"
is "$(cat worker)" '[RSD]'
kill -TERM "$pid"
wait "$pid"
SH2
"$TOOLS/with_bad_mount" 0:0 mount bash shown.sh run tiny.ini $ONE "${none[@]}" --set measure.duration=600s --listen=0 --out shown.run
status=$?
[ "$status" -ne 99 ] || fail "the run ended before it was seen"
[ "$status" -ne 98 ] || fail "the two do not stop and go on together"
[ "$status" -eq 130 ] || fail "exit $status, not 130, at a signal to a run that serves its metrics"
grep -q "\"pid\": *$(cat worker)\b" shown || { cp shown out; fail "status shows another process than $(cat worker)"; }

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

# With a request in its server's hands a thread cannot be killed: the command comes back all the same, at one signal.
cat >held.sh <<'SH2'
"$MLBENCH" "$@" >out 2>err </dev/null &
pid=$!
for _ in $(seq 1200); do
	cat /proc/$(pgrep -P "$pid")/task/*/wchan 2>/dev/null | grep -q request_wait_answer && break
	kill -0 "$pid" 2>/dev/null || exit 99
	sleep 0.05
done
kill -INT "$pid"
wait "$pid"
SH2
"$TOOLS/with_bad_mount" $open:200:taken mount bash -m held.sh run tiny.ini $ONE "${none[@]}" "${long[@]}" --set read.engine=pread --json --out held
status=$?
[ "$status" -eq 130 ] || fail "exit $status, not 130, at a signal while a server has the request"
exit 0
