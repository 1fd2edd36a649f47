#!/bin/bash
# A sweep on all nodes of a job of OpenPBS or PBS Professional, as one training job of many ranks:
#
#	qsub -v CONFIG=configs/imagenet_like.ini,ARGS="--set dataset.path=/shared/photos" docs/cluster/pbs.sh
#
# The result is results/pbs-JOBNUMBER in the folder where qsub was called. To finish a job that was deleted or reached its time
# limit, name its result: qsub -v OUT=results/pbs-17,... (with the same CONFIG and ARGS).
#
#PBS -N mlbench
#PBS -j oe
#PBS -l select=2:ncpus=32:mpiprocs=4
#PBS -l place=scatter:exclhost
#PBS -l walltime=01:00:00
# mpiprocs: ranks of a node. When a node fails, the job starts again and measures what is missing:
#PBS -r y
set -u
cd "$PBS_O_WORKDIR" || exit 3
: "${MLBENCH:=mlbench}"
: "${CONFIG:=configs/imagenet_like.ini}"
: "${ARGS:=}"
: "${PLACE:=--map-by slot:PE=8}" # cores of a rank: ncpus / mpiprocs. Else Open MPI binds it to one core, or to a package
: "${LIMIT:=3480}"               # s, the walltime less two minutes: then the ranks stop
: "${OUT:=results/pbs-${PBS_JOBID%%.*}}" # on a file system that all nodes share, or on the first node alone

how=--out
! grep -qs '}$' "$OUT/points.jsonl" || how=--resume # something was measured: go on

# Open MPI that was built without PBS (Debian's) starts the other nodes by ssh, or by PBS's own substitute for it.
if command -v pbs_tmrsh >/dev/null; then export OMPI_MCA_plm_rsh_agent=pbs_tmrsh; fi
# mpirun that gets SIGTERM waits so many seconds, sends it to the ranks, waits again, and kills them. Its default is 1.
: "${OMPI_MCA_odls_base_sigkill_timeout:=10}"
export OMPI_MCA_odls_base_sigkill_timeout

# shellcheck disable=SC2086
mpirun -n "$(wc -l <"$PBS_NODEFILE")" --hostfile "$PBS_NODEFILE" $PLACE "$MLBENCH" sweep "$CONFIG" $ARGS "$how" "$OUT" &
job=$!
timeout "$LIMIT" tail --pid="$job" -f /dev/null || kill -TERM "$job"
wait "$job"
