# Ranks: what a node has for them, what they cannot do, sweeps of their number, and which cores they get.
. "$CLI/lib.sh"

# Whatever is missing is said, with what follows and what to do.
MLBENCH_MPI_PLUGIN=$PWD/nowhere.so expect 0 "$MLBENCH" list parts --json
[ "$(json '[row["unavailable"] for row in d["parts"] if row["name"] == "ranks"][0].startswith("the MPI plug-in cannot be opened: ")')" = True ] || fail "a plug-in that is not there"
MLBENCH_MPI_PLUGIN=$PWD/nowhere.so expect 0 "$MLBENCH" doctor
reads "fix: install libopenmpi-dev, then 'make'"
# What ranks cannot do is refused when it is planned, and so are more of them than were started.
write_config
expect 2 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$MLBENCH" check tiny.ini $ONE --set step.devices=2
says "run.ranks = 2: ranks exchange gradients of one device each"
expect 0 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$MLBENCH" check tiny.ini $ONE --set step.devices=2 --set run.ranks=1
expect 2 "$MLBENCH" check tiny.ini --set sweep.ranks=1,2
says "run.ranks = 2 needs a launcher that starts them: mpirun -n 2 mlbench"
expect 2 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "$MLBENCH" check tiny.ini $ONE --set sweep.run.ranks=1,2,8
says "run.ranks = 8, but Open MPI started 4"

need_ranks
expect 0 env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 "$MLBENCH" list parts --json
[ "$(json '[row["unavailable"] for row in d["parts"] if row["name"] == "ranks"]')" = "[None]" ] || fail "no ranks here"
reads "Open MPI v"
reads "this process was started by Open MPI as rank 1 of 4"
expect 0 env PATH= "$MLBENCH" doctor
reads "no launcher (mpirun, srun) is on PATH; this process was started alone"
reads "fix: install openmpi-bin"
expect 0 "$MLBENCH" doctor
reads "ok ranks Open MPI v"

# Of four that were started one, two and all train, in any order.
swept=($ONE --set sweep.ranks=1,2,4 --set sweep.mode=grid --set run.verify=on --set measure.epochs=2 --set measure.warmup=0s --set sync.gradients=4KiB)
expect_measured ranks 4 "$MLBENCH" sweep tiny.ini "${swept[@]}" --out swept
prints "checksums of 6 repetitions agree: the sum over all ranks is"
says "3 x 2 repetitions"
! grep -q $'\033' out || fail "colours in a file: Open MPI gives stdout a terminal"
# What goes to stderr, a pipe of mpirun, is as wide as the terminal that stdout has.
if command -v script >/dev/null; then
	# script gives its command to $SHELL, which may be dash: it does not hand on functions of bash.
	declare -f ranks >wide.sh
	echo "stty cols 60; ranks 2 '$MLBENCH' run tiny.ini $ONE --out wide 2>wide.err" >>wide.sh
	env -u COLUMNS script -qec "bash wide.sh" /dev/null >typed </dev/null
	grep -q 'ranks    2 on' wide.err || fail "no plan: $(tail -n 3 wide.err typed)"
	[ "$(grep '^  memory' wide.err | wc -L)" -le 60 ] || fail "beyond the terminal's 60 columns: $(grep '^  memory' wide.err)"
fi
python3 - <<'PY' || fail "whose figures points.csv has"
import csv
rows = list(csv.DictReader(open("swept/points.csv")))
assert [row["ranks.count"] for row in rows] == ["", "2", "4"]
assert all(float(row["ranks.samples_per_s"]) >= float(row["samples_per_s"]) for row in rows[1:])
PY
python3 - <<'PY' || fail "who trained"
import json
def points(path):
    rows = [json.loads(line) for line in open(path + "/points.jsonl")]
    return sorted(row["point"] for row in rows if row.get("kind") == "repetition")
assert points("swept") == [0, 0, 1, 1, 2, 2]
assert points("swept/ranks/0001") == [1, 1, 2, 2]
assert points("swept/ranks/0002") == points("swept/ranks/0003") == [2, 2]
PY

# bound COUNT OPTION ...: a run of so many ranks, of which points.jsonl says how many cores each had.
bound() {
	rm -rf out.d
	expect_measured ranks "$@" "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --set sync.gradients=4KiB --out out.d
	cores=$(cat out.d/points.jsonl out.d/ranks/*/points.jsonl | grep -o '"cores_allowed":[0-9]*' | cut -d: -f2 | tr '\n' ' ')
}
# The plan's line, then what they have: of cores that a launcher left to all of them each gets its own, where there are enough.
node=$(nproc)
[ "$node" -ge 2 ] || skip "one core: none can be divided"
each=$((node / 2 + node % 2))
bound 2 --bind-to none
says "ranks    2 on "
says ", $each core"
[ "$cores" = "$each $each " ] || fail "cores of ranks that were not bound: $cores"
[ "$(grep -ho '"cores: 2 ranks of this node were left the same [0-9]*; this one took [0-9,-]*"' out.d/points.jsonl out.d/ranks/0001/points.jsonl | sort -u | wc -l)" -eq 2 ] ||
	fail "which cores each took"
expect 0 "$MLBENCH" export out.d --format openmetrics
[ "$(grep -c '^mlbench_result_ranks{.*} 2$' out)" -eq "$(grep -c '^mlbench_result_throughput_samples_per_second{' out)" ] ||
	fail "whose throughput it is: $(grep ranks out)"
bound $((node + 1)) --bind-to none
says "$((node + 1)) on "
says ", which share $node cores"
[ "$(tr ' ' '\n' <<<"$cores" | sort -u | tr -d '\n')" = "$node" ] || fail "cores of more ranks than cores: $cores"
# Bound to a core each, as Open MPI does it: that is kept, and warned of where others have no rank.
bound 2 --bind-to core
says "ranks    2 on "
! grep -q 'were left the same' out.d/points.jsonl || fail "bound ranks were bound anew"
bound 2 --bind-to none taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')"
says "mlbench: warning: Open MPI bound rank 0 on "
says "(and others) to 1 core, fewer than its 3 threads, and no rank has "
says "start them with 'mpirun --bind-to none'"
grep -q '"cores: Open MPI bound rank 0 on ' out.d/points.jsonl || fail "the result does not say how its ranks were bound"
[ "$(grep -c 'warning: ' err)" -eq "$(grep 'warning: ' err | sort -u | wc -l)" ] || fail "more than one rank warns"
