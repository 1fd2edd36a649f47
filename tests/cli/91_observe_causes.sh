# `mlbench observe`: causes that are told by what threads are found in.  Where the node has no core for the job, that may be the
# verdict, and what is not seen is unknown; but nothing else is "likely".
. "$CLI/lib.sh"
. "$CLI/observe_lib.sh"

# cause STAGE/RESOURCE ... ARGUMENTS of the job after --
cause() {
	local allowed=
	while [ "$1" != -- ]; do
		allowed="$allowed $1"
		shift
	done
	shift
	begin "$@"
	observed 35
	python3 - $allowed <<'PY' || fail "a wrong cause for $*"
import json, sys
v = json.load(open("out"))["verdict"]
told = v["stage"] + "/" + v["resource"]
crowded = v["resource"] in ("external", "cores", "threads", "quota")
assert v["certainty"] != "likely" or crowded or told in sys.argv[1:], (told, v["words"])
PY
}
# A lock on a file around each sample: workers that sleep while they hold it use no core, however busy the node is.
cause loader/lock -- --workers 2 --decode 0.02 --step 0 --flock
holds 'd["verdict"]["resource"] == "lock" and "locks on files" in d["verdict"]["words"]'
holds 'mean([p["acts"]["file_lock"] for p in roles("loader")]) > 0.2 and all(p["acts"]["semaphore"] < 0.2 for p in roles("loader"))'
cause loader/lock -- --workers 3 --decode 0.02 --step 0 --lock
holds 'd["verdict"]["resource"] == "lock" and mean([p["acts"]["semaphore"] for p in roles("loader")]) > 0.3'
# Python threads: they wait for their turn, and never use more than a core in sum.
cause loader/gil -- --workers 4 --decode 0.02 --step 0 --threads
holds 'd["processes"][0]["cpu"] < 1.3 and sum(t["acts"]["turn"] or 0 for t in d["threads"]) > 0.3'
# The trainer's own thread has the work, which is none of BLAS.
cause trainer/cpu -- --workers 2 --decode 0 --step 0.05 --trainer-cpu
holds 'd["verdict"]["stage"] in ("trainer", "step", "unknown", "loader and step")'
# Writes that are synchronised with each batch, by the trainer's first thread.
cause step/write -- --workers 2 --decode 0 --step 0 --fsync 4096
holds 'd["verdict"]["stage"] not in ("loader", "read") and d["processes"][0]["acts"]["read"] < 0.5'
# Bytes through a pipe.
cause trainer/hand-over step/cpu -- --workers 2 --decode 0 --step 0 --message 8000000
# All of the job may run on one core.
if command -v taskset >/dev/null && [ "$(nproc)" -gt 1 ]; then
	begin --workers 3 --decode 0.05 --step 0
	for p in $pid $(cat "/proc/$pid/task/$pid/children"); do
		taskset -a -p 1 "$p" >/dev/null || true
	done
	observed 35
	holds 'all(p["allowed_cpus"] == 1 for p in d["processes"] if p["role"] != "helper" and not p["ended"])'
	holds 'd["verdict"]["certainty"] != "likely" or d["verdict"]["resource"] in ("affinity", "external")'
fi
if command -v gcc >/dev/null && gcc -O1 -w "$ROOT/tests/jobs/pool_job.c" -o pool -lpthread 2>problems; then
	# 64 threads that compute, on as many cores as there are.
	: >started
	./pool data 1 64 20000 100 0 >started &
	pid=$!
	pids="$pids $pid"
	until_true grep -q started started
	observed 35
	holds 'd["processes"][0]["runnable_threads"] > 30'
	holds 'd["verdict"]["certainty"] != "likely" or d["verdict"]["resource"] in ("threads", "external", "affinity", "quota") or d["observed"]["node_cores"] > 16'
fi
