# The recipes of docs/cluster for Slurm, on a Slurm of this test's own with four nodes: a sweep on two and on four ranks, on one
# node and on two; one that is cancelled, and finished by another job; one that the time limit interrupts and one that is
# requeued, which go on by themselves; and a test of each node, which `mlbench fleet` reads.
. "$CLI/lib.sh"
need_ranks
write_config
sed -i 's/^time = .*/time = 10ms/' tiny.ini # ranks that wait for each other take their cores
printf '[sync]\ngradients = 64KiB\n' >>tiny.ini
printf '[inventory]\nkind = expect\ntier = quick\ncpu.cores = >= 1\n' >plan.ini
expect 0 "$MLBENCH" gen tiny.ini

cat >jobs.sh <<'JOBS'
. "$CLI/lib.sh"
export OMPI_MCA_mpi_yield_when_idle=1 # more ranks than cores
srun --mpi=list 2>&1 | grep -q pmix || { echo "srun knows no --mpi=pmix"; exit 77; }

# Open MPI may end ranks that srun starts without PMIx, and blames itself: what to do was said before.
! srun --mpi=none -n 2 "$MLBENCH" run tiny.ini $ONE --out none >out 2>err || fail "ranks met without PMIx"
says "start them with srun --mpi=pmix"

submit() { # NODES RANKS_PER_NODE ARGUMENT ...; prints the job
	local nodes=$1 ranks=$2
	shift 2
	sbatch --parsable --nodes="$nodes" --ntasks-per-node="$ranks" --cpus-per-task=1 "$ROOT/docs/cluster/slurm.sbatch" tiny.ini "$@"
}
about() { # JOB NAME: what Slurm says of it
	scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}
is_over() {
	case $(about "$1" JobState) in PENDING | RUNNING | COMPLETING | CONFIGURING | REQUEUED) sleep 0.3 && return 1 ;; esac
}
# Finished, with 3 if nothing was steady on a busy machine; and its result has each repetition once, of each rank.
is_complete() { # JOB RESULT RANKS NODES
	until_true is_over "$1"
	case $(about "$1" ExitCode) in 0:0 | 3:0) ;; *)
		cat "mlbench-$1.log"
		fail "job $1 is $(about "$1" JobState), exit code $(about "$1" ExitCode)"
		;;
	esac
	python3 - "${@:2}" <<'PY' || fail "job $1: the result $2 is not what was asked for"
import collections, glob, json, sys
result, ranks, nodes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
summary = json.load(open(result + "/summary.json"))
assert summary["status"] == "complete", summary["status"]
folders = [result] + sorted(glob.glob(result + "/ranks/*"))
assert len(folders) == ranks, folders
names = collections.Counter()
for folder in folders:
    rows = [json.loads(line) for line in open(folder + "/points.jsonl")]
    assert f"ranks = {ranks}\n" in rows[0]["resolved"], folder
    names[rows[0]["environment"]["node"]["name"]] += 1
    count = collections.Counter((row["point"], row["repeat"]) for row in rows if row.get("kind") == "repetition")
    assert sorted(count) == [(p, r) for p in range(4) for r in range(2)], (folder, count)
    assert set(count.values()) == {1}, (folder, count)
assert list(names.values()) == [ranks // nodes] * nodes, names
PY
}
# interrupted COMMAND ...: a job of two ranks, of which one repetition at least was measured; the command gets its number.
interrupted() {
	local job
	job=$(submit 1 2 $long)
	until_true repetitions "results/slurm-$job" 1
	"$@" "$job" && echo "$job"
}

# In the middle: cancelled; stopped by SIGTERM to its ranks, as --signal=TERM@60 sends it; requeued.
long="--set measure.duration=400ms"
interrupted scancel >cancelled &
interrupted scancel --signal=TERM >limited &
TURNS=0 interrupted scontrol requeue >requeued &
wait
read -r cancelled <cancelled && read -r limited <limited && read -r requeued <requeued || fail "not all were interrupted"
until_true is_over "$cancelled"
[ "$(about "$cancelled" JobState)" = CANCELLED ] || fail "the cancelled job is $(about "$cancelled" JobState)"
expect 0 "$MLBENCH" show "results/slurm-$cancelled" # rank 0 kept what it had, in the time that Slurm gives it
prints "interrupted"
rest=$(OUT=results/slurm-$cancelled submit 1 2 $long)

# Over two nodes; and each node tested.
wide=$(submit 2 2)
accept=$(sbatch --parsable --nodes=2 "$ROOT/docs/cluster/slurm_accept.sbatch" plan.ini)
is_complete "$wide" "results/slurm-$wide" 4 2
is_complete "$rest" "results/slurm-$cancelled" 2 1
until_true is_over "$accept"
[ "$(about "$accept" ExitCode)" = 0:0 ] || { cat "mlbench-accept-$accept.log"; fail "accept: exit code $(about "$accept" ExitCode)"; }
grep -q 'fleet  2 nodes: 2 PASS' "mlbench-accept-$accept.log" && grep -q '2 of 2 reported' "mlbench-accept-$accept.log" ||
	{ cat "mlbench-accept-$accept.log"; fail "not a result of each node"; }
for job in $limited $requeued; do
	is_complete "$job" "results/slurm-$job" 2 1
	[ "$(about "$job" Restarts)" = 1 ] || fail "job $job was started $(about "$job" Restarts) times again, not once"
	grep -q 'repetitions to go' "mlbench-$job.log" || fail "job $job did not go on"
done
JOBS
"$ROOT/tests/cluster/with_slurm.sh" --nodes 4 bash -u jobs.sh >log 2>&1
status=$?
[ $status -ne 77 ] || skip "$(tail -n 1 log)"
[ $status -eq 0 ] || { cat log; fail "exit $status"; }
