# mlbench accept as ranks of a launcher: each node is judged once, by its first rank and into a folder of its own; a check of
# kind network measures the links between all of them, and what does not answer is no pass.
. "$CLI/lib.sh"

cat >links.ini <<'INI'
[plan]
name = links
[bought]
kind = expect
tier = quick
cpu.cores >= 1
[links]
kind = network
tier = quick
budget = 10min
network.bandwidth >= 1 KB/s
network.latency <= 60 s
network.tail <= 60 s
network.ring >= 1 KB/s
network.all_to_all >= 1 KB/s
INI
sed '/^\[links\]/,$d' links.ini >bought.ini

# Alone there is no link: no pass.
expect 3 "$MLBENCH" accept links.ini --check links --out alone
reads "it needs a launcher that starts a rank on each node: mpirun -n 2"

# What a launcher says is believed; ranks that do not judge say nothing at all.
as_rank() { # RANK LOCAL_RANK ...
	local rank=$1 local=$2
	shift 2
	SLURM_STEP_ID=0 SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=$local "$@"
}
expect 0 as_rank 1 1 "$MLBENCH" accept bought.ini --tier quick --out srun
[ ! -s out ] && [ ! -s err ] && [ ! -e srun ] || fail "a rank that does not judge did something"
expect 0 as_rank 2 0 env SLURMD_NODENAME=n7 "$MLBENCH" accept bought.ini --tier quick --json --out srun
[ ! -s out ] || fail "rank 2 has printed"
says "n7: PASS: srun/n7"
[ -s srun/n7/accept.json ] || fail "the node's result is not in a folder of its own"
expect 2 as_rank 2 0 "$MLBENCH" accept bought.ini --tier quick --out srun --node n8
says "--node names one node, and Slurm started ranks on several"
expect 0 as_rank 1 0 "$MLBENCH" accept bought.ini --tier quick --dry-run
[ ! -s out ] || fail "each rank prints the plan"
expect 0 as_rank 1 0 env SLURMD_NODENAME=n9 "$MLBENCH" accept bought.ini --tier quick
[ "$(find results -name accept.json | cut -d/ -f1-3)" = results/links/n9 ] || fail "results/PLAN has no folder of the node"
expect 0 as_rank 1 0 env SLURMD_NODENAME=n9 "$MLBENCH" accept bought.ini --tier quick --resume latest
# Without MPI links cannot be measured.
expect 3 as_rank 0 0 env SLURMD_NODENAME=n9 MLBENCH_MPI_PLUGIN=/nowhere/mpi.so "$MLBENCH" accept links.ini --tier quick --out without
reads "links: the check failed: Slurm started 4 ranks: the MPI plug-in cannot be opened"
reads "PASS bought"

need_ranks
# The jobs below run at the same time.
# Two ranks of a node: one judges it, once.
two_ranks() {
	local node
	expect 0 ranks 2 "$MLBENCH" accept ../links.ini --tier quick --json --out two
	is_json mlbench.accept/1
	node=$(json 'd["node"]["name"]')
	[ "$(find two -name measured.jsonl)" = "two/$node/measured.jsonl" ] || fail "not one result: $(find two -name measured.jsonl)"
	[ "$(grep -c '"check":' "two/$node/measured.jsonl")" = 2 ] || fail "the node was judged twice"
	python3 - <<'PY' || fail "not the links of two ranks"
import json
[links] = [m for m in json.load(open("out"))["measured"] if m["kind"] == "network"]
count = {}
for entry in links["values"]:
    count.setdefault(entry["figure"], {})[entry["place"]] = len(entry["values"])
both = {"rank 0 to rank 1", "rank 1 to rank 0"}
one = {"rank 0 and rank 1"}
assert set(count) == {"network." + f for f in ("bandwidth", "latency", "tail", "ring", "all_to_all")}, count
for figure, places in {"bandwidth": both, "latency": one, "tail": one, "ring": both, "all_to_all": both}.items():
    assert set(count["network." + figure]) == places, (figure, count)
[repeats] = {n for places in count.values() for n in places.values()}
assert repeats >= 12, repeats
assert any("2 ranks of one node" in note and "no network" in note for note in links["notes"]), links["notes"]
assert [m["why"] for m in links["missing"]] == 2 * ["two nodes have one link, and nothing to compare it with: use three"], links["missing"]
assert links["conditions"] == [], links["conditions"]
PY
	expect 2 ranks 2 "$MLBENCH" accept ../links.ini --tier quick --out two
	says "'two/$node' holds a result already"
	expect 0 "$MLBENCH" fleet two --json
	[ "$(json '[n["node"] for n in d["nodes"]]')" = "['$node']" ] || fail "the fleet is not this node"
	# A plan without network checks, which the node fails: once, and with the status of it.
	sed 's/cpu.cores >= 1/cpu.cores >= 100000/' ../bought.ini >large.ini
	expect 1 ranks 2 "$MLBENCH" accept large.ini --tier quick --out large
	[ "$(grep -c FAIL: err)" = 1 ] && [ -s "large/$node/accept.json" ] || fail "not judged once"
}

# Three: each link, a ring, and all of them in pairs; a wrong plan is said once.
three_ranks() {
	sed 's/^name = .*/&\nerror_rate = 10 %/' ../links.ini >sooner.ini # fewer repetitions: three links take long
	ranks 3 "$MLBENCH" accept sooner.ini --check links --json --out three >out 2>err
	python3 - $? <<'PY' || fail "not the links of three ranks"
import json, sys
document = json.load(open("out"))
assert int(sys.argv[1]) == document["exit_status"] == 0, document["sentence"]
[links] = document["measured"]
places = {f: sorted(e["place"] for e in links["values"] if e["figure"] == "network." + f) for f in ("bandwidth", "latency", "ring", "all_to_all")}
pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
to = ["rank %d to rank %d" % pair for pair in pairs]
assert places["bandwidth"] == places["all_to_all"] == to, places
assert places["latency"] == ["rank %d and rank %d" % (a, b) for a, b in pairs if a < b], places
assert places["ring"] == ["rank 0 to rank 1", "rank 1 to rank 2", "rank 2 to rank 0"], places
# Of each link and each rank it is known whether it is slow, or why not.
said = {e["place"] for e in links["facts"] + links["missing"] if e["figure"] == "network.slow.bandwidth"}
slow = {e["place"] for e in links["events"]}
assert said | slow >= set(to) | {"rank %d" % i for i in range(3)} or slow, (said, slow)
PY
	sed 's/network.ring/network.rign/' ../links.ini >wrong.ini
	expect 2 ranks 2 "$MLBENCH" accept wrong.ini --tier quick --out never
	[ "$(grep -c "did you mean 'network.ring'" err)" = 1 ] || fail "a wrong plan is not said once"
	[ ! -e never ] || fail "a wrong plan has left something"
}

# Another plan on another rank: nobody measures half of one.
two_plans() {
	sed 's/1 KB/2 KB/' ../links.ini >other.ini
	expect 3 ranks 2 sh -c 'plan=../links.ini; [ "$OMPI_COMM_WORLD_RANK" = 0 ] || plan=other.ini; exec "$0" accept $plan --tier quick --out mixed' "$MLBENCH"
	tr -s ' \n' ' ' <out | grep -q "rank 1 on .* has another plan, --check or --tier than rank 0" || fail "two plans in one job"
}

# The process that speaks for rank 1 does not answer: the check says so in its time, the others are judged.
speaker_of_rank_1() {
	ranks_started 2 && speaker=$(pgrep -P "${pids[1]}")
}
silent_rank() {
	local status
	sed 's/10min/4s/' ../links.ini >silent.ini
	NO_COLOR=1 start_ranks 2 "$MLBENCH" accept silent.ini --tier quick --out silent
	until_true speaker_of_rank_1
	kill -STOP "$speaker"
	wait "$launcher"
	status=$?
	kill -KILL "$speaker" 2>/dev/null
	[ "$status" = 3 ] || fail "exit $status, not 3, where a rank does not answer"
	reads "PASS bought"
	tr -s ' \n' ' ' <out | grep -qE 'links: .*(was abandoned|did not end|has not answered)' || fail "nothing says that a rank did not answer"
	[ -s silent/*/accept.json ] || fail "the result is not kept"
}

at_once silent_rank three_ranks two_ranks two_plans
