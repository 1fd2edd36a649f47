# Ranks: what a node has for them.
. "$CLI/lib.sh"

# Whatever is missing is said, with what follows and what to do.
MLBENCH_MPI_PLUGIN=$PWD/nowhere.so expect 0 "$MLBENCH" list parts --json
[ "$(json '[row["unavailable"] for row in d["parts"] if row["name"] == "ranks"][0].startswith("the MPI plug-in cannot be opened: ")')" = True ] || fail "a plug-in that is not there"
MLBENCH_MPI_PLUGIN=$PWD/nowhere.so expect 0 "$MLBENCH" doctor
reads "fix: install libopenmpi-dev, then 'make'"
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
