# `mlbench status`: a run as another process sees it; one that is stopped, one whose reader hangs, one whose process is gone,
# and what is no run.  The document is valid against docs/status.schema.json.
. "$CLI/lib.sh"
write_config
mkdir runtime && chmod 700 runtime
export XDG_RUNTIME_DIR=$PWD/runtime
pids=
trap 'for p in $pids; do kill -CONT "$p" 2>/dev/null; kill -KILL "$p" 2>/dev/null; done' EXIT
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i out "$ROOT/docs/status.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "not valid against status.schema.json"; }
}
# begin NAME [--set ...]: in the background; pid is its.  Returns when it measures.
begin() {
	local name=$1
	shift
	"$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --set measure.duration=1h "$@" --out "$name" >"$name.out" 2>"$name.err" &
	pid=$!
	pids="$pids $pid"
	for _ in $(seq 3000); do
		"$MLBENCH" status "$pid" >out 2>err
		grep -qE '^ *phase +measuring' out && return
		sleep 0.05
	done
	fail "$name does not measure"
}
# until_says STATUS TEXT: what `status $pid` comes to within some seconds.
until_says() {
	local status
	for _ in $(seq 3000); do
		COLUMNS=190 "$MLBENCH" status "$pid" >out 2>err
		status=$?
		[ "$status" -eq "$1" ] && grep -qE -- "$2" out && return
		sleep 0.05
	done
	fail "status $pid does not come to $1 '$2'"
}

# pictures PID: whether there is one.  In a container the folder has the namespace's number, too.
pictures() {
	compgen -G "runtime/mlbench-$(id -u)*/$1.live" >/dev/null
}

# lists PID: among the runs, others of which may go on meanwhile.
lists() {
	expect 0 "$MLBENCH" status
	grep -qE "^ *$1 " out
}

# Nobody's number; not a run; no number.
! lists $$ || fail "this shell is no run"
expect 0 "$MLBENCH" status --json
is_json mlbench.status/1
validate
expect 2 "$MLBENCH" status 999999999
says "there is no process 999999999"
expect 2 "$MLBENCH" status $$
says "shows no picture"
expect 2 "$MLBENCH" status one
says "'one' is not a process ID"
expect 2 "$MLBENCH" status --watch
says "needs the process ID"

# One that goes on.
expect 0 "$MLBENCH" gen tiny.ini
begin moving
lists "$pid" || fail "it is not listed"
grep -qE "^ *$pid +run +tiny +measuring " out || fail "the list does not say what it does"
until_says 0 'health +moving'
for stage in read decode step; do
	grep -qE "^ +$stage +[0-9]+ +(working|starved|blocked) " out || fail "no thread of $stage"
done
grep -qE 'samples/s over the last' out || fail "no throughput"
prints "(the step is emulated)"
until_says 0 'verdict +(forming: |none yet: )'
expect 0 "$MLBENCH" status "$pid" --json
is_json mlbench.status/1
validate
[ "$(json 'd["runs"][0]["health"]["kind"], d["runs"][0]["picture"]["phase"], len(d["runs"][0]["threads"])')" = "('moving', 'measuring', 3)" ] ||
	fail "the document: $(json 'd["runs"][0]["health"]')"
[ "$(json 'all(t["kernel"]["state"] in "RSD" for t in d["runs"][0]["threads"])')" = True ] || fail "threads"
[ "$(json 'd["runs"][0]["picture"]["samples"] > 0')" = True ] || fail "figures"

# A run in a container may share the folder; it knows other processes by these numbers.
contained=(unshare --pid --fork --mount-proc)
if "${contained[@]}" true 2>/dev/null; then
	expect_measured "${contained[@]}" "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --set measure.duration=20ms --out contained
	lists "$pid" || fail "a run in a namespace of its own has taken it for one that is gone"
fi

# Stopped, and going on again.
kill -STOP "$pid"
until_says 1 'health +stopped: the process is stopped by a signal'
expect 1 "$MLBENCH" status "$pid" --json
validate
[ "$(json 'd["runs"][0]["health"]["stuck"]')" = True ] || fail "not stuck"
kill -CONT "$pid"
until_says 0 'health +moving'
# Looking disturbed nothing: it ends as any other, and its picture goes.
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] || fail "interrupted run"
! pictures "*" || fail "the picture is still there"

# Killed: what it left is not listed, and the next run clears it away.
begin killed
kill -KILL "$pid"
wait "$pid" 2>/dev/null
pictures "$pid" || fail "there was no picture"
! lists "$pid" || fail "a dead process is listed"
expect 2 "$MLBENCH" status "$pid"
killed=$pid

# A storage that answers after a minute: the step starves, since the decoders do, since the readers wait.
begin hung --set inject.read_latency=50s
! pictures "$killed" || fail "the dead process's picture is still there"
until_says 1 'health +waiting: no progress for .* s: step starved .* <- decode starved .* <- read: [0-9]+ files in flight'
expect 1 "$MLBENCH" status "$pid" --json
validate
[ "$(json '[link.split()[0] for link in d["runs"][0]["health"]["chain"]]')" = "['step', 'decode', 'read:']" ] || fail "chain"
kill -KILL "$pid"
wait "$pid" 2>/dev/null

# Without the profiler it says what is not known; without a folder a run goes on.
begin plain --set measure.profiler=off
prints "measure.profiler"
expect 0 "$MLBENCH" status "$pid" --json
validate
kill -KILL "$pid"
wait "$pid" 2>/dev/null
ln -s /nonexistent elsewhere
XDG_RUNTIME_DIR=$PWD/elsewhere expect_measured "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --verbose --out nowhere
