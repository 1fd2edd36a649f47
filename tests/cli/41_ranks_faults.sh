# Ranks that die, freeze, are slow or are told to end: the job ends or goes on, says which rank it was and what to do, and what is
# finished is kept.  All of these jobs run at the same time.
. "$CLI/lib.sh"
need_ranks
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
cat >>tiny.ini <<'INI'
[sync]
gradients = 64KiB

[sweep]
batch.size = 8,16
INI
sed -i -e "s#^path = data#path = $PWD/data#" -e 's/^time = 500us/time = 20ms/' -e 's/^duration = 60ms/duration = 400ms/' tiny.ini
expect 0 "$MLBENCH" gen tiny.ini
config=$PWD/tiny.ini
host=$(uname -n)
# mpirun waits for so long before it tells its processes to end, and again before it kills them.
patient="--mca odls_base_sigkill_timeout 4"
long="--set measure.duration=4s"

# begin N [OPTION ...] -- OPTION ...: ranks of a sweep into ./job; $pids are theirs.
begin() {
	local count=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	start_ranks "$count" ${options[@]+"${options[@]}"} "$MLBENCH" sweep "$config" --out job "$@"
	until_true started "$count"
}

# started N: so many ranks; they heed signals by then, since the first repetition is over.
started() {
	kill -0 "$launcher" 2>/dev/null || fail "the job ended before its first repetition"
	repetitions job 1 && ranks_started "$1"
}

# ended STATUS: with this one the job ends, and leaves no process and readable results of all ranks behind.
ended() {
	local status folder
	wait "$launcher"
	status=$?
	[ "$status" -eq "$1" ] || fail "exit $status, not $1"
	until_true gone "$launcher" "${pids[@]}"
	mv out job.out
	mv err job.err
	for folder in job job/ranks/*; do
		expect 0 "$MLBENCH" show "$folder"
		# What a leader that is killed had taken and not kept is measured again.
		[ -z "$(comm -23 <(repetitions_of job) <(repetitions_of "$folder"))" ] || fail "$folder lacks repetitions of job"
	done
	mv job.out out
	mv job.err err
}

# Those that did not fail.
repetitions_of() {
	grep '"kind":"repetition"' "$1/points.jsonl" | grep -v '"status":"failed"' | sed -E 's/.*("point":[0-9]+,"repeat":[0-9]+).*/\1/' | sort -u
}

# resumes N: as many ranks measure what is missing, for the same requeued job.
resumes() {
	local folder
	expect_measured ranks "$1" "$MLBENCH" sweep --resume job
	for folder in job job/ranks/*; do
		[ "$(repetitions_of "$folder" | wc -l)" -eq 4 ] || fail "--resume does not measure the rest of $folder"
	done
}

frozen_rank() {
	begin 3 --
	kill -STOP "${pids[2]}"
	ended 3
	says "rank 2 on $host has not answered for 1"
	says "results are kept; 'mpirun -n 3 mlbench sweep --resume job' measures the rest"
	[ "$(grep -c '^mlbench: error: ' err)" -eq 1 ] || fail "more than one line says it"
	! grep -q 'no progress' err || fail "it is not named"
	expect 2 ranks 2 "$MLBENCH" sweep --resume job
	says "run.ranks = 3, but Open MPI started 2: start as many"
	expect 2 "$MLBENCH" sweep --resume job
	says "run.ranks = 3 needs a launcher that starts them: mpirun -n 3 mlbench"
	resumes 3
}

# The first of the others to say so ends the job.
frozen_leader() {
	begin 3 --
	kill -STOP "${pids[0]}"
	ended 3
	grep -qE "^mlbench: error: rank [12] on $host: rank 0 on $host has not answered for 1" err || fail "it is not named"
}

frozen_for_a_while() {
	begin 2 -- --set measure.duration=1s
	kill -STOP "${pids[1]}"
	sleep 3
	kill -CONT "${pids[1]}"
	wait "$launcher"
	status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status"
	! grep -qE 'error:|failed' err || fail "a rank was given up"
	[ "$(repetitions_of job | wc -l)" -eq 4 ] || fail "a repetition is missing"
	gone "${pids[@]}" || fail "a process stays"
}

# It runs for a fifth of the time.
slow_rank() {
	begin 2 --
	while kill -STOP "${pids[1]}" 2>/dev/null; do
		sleep 0.08
		kill -CONT "${pids[1]}"
		sleep 0.02
	done
	wait "$launcher"
	status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status"
	! grep -qE 'error:|failed' err || fail "a rank was given up"
	[ "$(repetitions_of job | wc -l)" -eq 4 ] || fail "a repetition is missing"
}

# mpirun says who it was, and the leader what is kept before it is ended, too.
killed_rank() {
	begin 3 $patient -- $long
	kill -KILL "${pids[2]}"
	ended 137
	says "rank 2 with PID"
	says "interrupted: results are kept; 'mpirun -n 3 mlbench sweep --resume job' measures the rest"
}

killed_leader() {
	begin 3 --
	kill -KILL "${pids[0]}"
	ended 137
	says "rank 0 with PID"
	resumes 3
}

# mpirun has a status of its own.
interrupted() {
	begin 2 $patient -- $long
	kill -INT "$launcher"
	ended 1
	says "interrupted: results are kept; 'mpirun -n 2 mlbench sweep --resume job' measures the rest"
}

told_to_end() {
	begin 2 --
	kill -TERM "${pids[@]}"
	ended 130
	says "interrupted: results are kept; 'mpirun -n 2 mlbench sweep --resume job' measures the rest"
	resumes 2
}

one_told_to_end() {
	begin 2 -- --json
	kill -TERM "${pids[1]}"
	ended 3
	is_json mlbench.summary/1
	says "rank 1 on $host was stopped; stopping here: results are kept; 'mpirun -n 2 mlbench sweep --resume job' measures the rest"
}

at_once frozen_rank frozen_leader frozen_for_a_while slow_rank killed_rank killed_leader interrupted told_to_end one_told_to_end
