# The recipe of docs/cluster for PBS, in the environment that PBS gives a job: a sweep that its own limit ends, one whose
# processes all get SIGTERM as qdel sends it, and the rest of it.
. "$CLI/lib.sh"
need_ranks
write_config
sed -i 's/^time = .*/time = 10ms/' tiny.ini # ranks that wait for each other take their cores
sed -i -e 's/^duration = .*/duration = 400ms/' tiny.ini
expect 0 "$MLBENCH" gen tiny.ini
{ uname -n && uname -n; } >nodes
export PBS_O_WORKDIR=$PWD PBS_JOBID=17.server PBS_NODEFILE=$PWD/nodes CONFIG=tiny.ini ARGS="--set sync.gradients=64KiB"
export PLACE="--bind-to none --oversubscribe" OMPI_MCA_odls_base_sigkill_timeout=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

expect 1 env OUT=limited LIMIT=1 "$ROOT/docs/cluster/pbs.sh"
[ ! -e limited/summary.json ] || [ "$(python3 -c 'import json; print(json.load(open("limited/summary.json"))["status"])')" = interrupted ] ||
	fail "the limit did not end it"

python3 - "$ROOT/docs/cluster/pbs.sh" <<'PY' || fail "no session of its own"
import contextlib, os, signal, subprocess, sys, time
job = subprocess.Popen(["bash", sys.argv[1]], stdout=open("out", "w"), stderr=subprocess.STDOUT, start_new_session=True)
def session():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == job.pid and fields[0] != "Z":
            yield int(pid)
measured = lambda: os.path.exists("results/pbs-17/points.jsonl") and '"kind":"repetition"' in open("results/pbs-17/points.jsonl").read()
while not measured():
    assert job.poll() is None, open("out").read()
    time.sleep(0.05)
for pid in list(session()):
    with contextlib.suppress(ProcessLookupError): # it ended with the one before
        os.kill(pid, signal.SIGTERM)
job.wait()
while list(session()):
    time.sleep(0.05)
PY
expect 0 "$MLBENCH" show results/pbs-17
prints "interrupted"
expect_measured "$ROOT/docs/cluster/pbs.sh"
python3 - <<'PY' || fail "not each repetition once, of each rank"
import collections, json
for folder in ("results/pbs-17", "results/pbs-17/ranks/0001"):
    rows = [json.loads(line) for line in open(folder + "/points.jsonl")]
    count = collections.Counter((row["point"], row["repeat"]) for row in rows if row.get("kind") == "repetition")
    assert sorted(count) == [(p, r) for p in range(4) for r in range(2)], (folder, count)
    assert set(count.values()) == {1}, (folder, count)
    assert rows[-1]["kind"] == "end" and not rows[-1]["interrupted"], (folder, rows[-1])
assert json.load(open("results/pbs-17/summary.json"))["status"] == "complete"
PY
