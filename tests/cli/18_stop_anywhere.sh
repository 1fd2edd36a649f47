# Ctrl-C ends the program long before what it waits for or computes is over; within a second, where that is measured.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
most=${STOP_MS:-1000}

stops() { # NAME SECONDS OPTIONS ...: SIGINT so long after the start
	local name=$1 after=$2 try begun status took=0
	shift 2
	for try in 1 2; do # the better of them is measured
		"$MLBENCH" run tiny.ini $ONE --set measure.duration=1h --out "$name$try" "$@" >out 2>err &
		local pid=$!
		until_true [ -e "$name$try/points.jsonl" ] # a signal from before that would be lost
		sleep "$after"
		begun=$(date +%s%N)
		kill -INT "$pid" || fail "$name: it ended before it was stopped"
		wait "$pid"
		status=$?
		took=$((($(date +%s%N) - begun) / 1000000))
		[ "$status" -eq 130 ] || fail "$name: exit $status, not 130"
		measuring && [ "$took" -ge "$most" ] || break
	done
	echo "$name: $took ms"
	! measuring || [ "$took" -lt "$most" ] || fail "$name: it took $took ms to stop"
}

stops warm_up 0.3 --set measure.warmup=30s
stops measuring 0.5
stops long_step 0.5 --set step.time=100s
stops slow_reads 0.5 --set inject.read_latency=100s
stops slow_pread 0.5 --set inject.read_latency=100s --set read.engine=pread
stops narrow_reads 0.5 --set inject.read_bandwidth=1k
stops slow_decode 0.5 --set inject.decode_factor=1000 --set inject.slow_share=1 --set inject.slow_factor=10000
stops held_lock 0.5 --set decode.workers=4 --set inject.lock_share=100% --set inject.decode_factor=1000 \
	--set inject.slow_share=1 --set inject.slow_factor=10000
stops hogs 0.5 --set inject.cpu_hog=4 --set inject.memory_hog=2
stops waiting_decode 0.5 --set inject.decode_wait=100s
stops slow_copy 0.5 --set upload.mode=copy --set inject.upload_bandwidth=1
stops slow_launch 0.5 --set inject.step_launch=100s
stops cold 0.3 --set read.cache=cold
stops computed_step 1.5 --set step.backend=openblas --set step.model=resnet50 --set batch.size=64 --set measure.warmup=0
