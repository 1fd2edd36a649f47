#!/bin/sh
# Slurm's HealthCheckProgram: tests a node that has no job, and drains it with the reason where it fails.
#
#	HealthCheckProgram=/etc/slurm/slurm_health_check.sh
#	HealthCheckInterval=86400
#	HealthCheckNodeState=IDLE,CYCLE
#
# Slurm ends it after 60 s, hence the budget.  It ends with 0 when the node was drained, since slurmd registers only after
# that.  A node that was drained stays so until somebody resumes it.
set -u
here=$(dirname "$(readlink -f "$0")")
: "${MLBENCH:=mlbench}"
: "${SCONTROL:=scontrol}"
: "${RESULTS:=/var/lib/mlbench/accept}"
: "${NODE:=${SLURMD_NODENAME:-$(uname -n | cut -d. -f1)}}"
: "${NO_VERDICT:=keep}" # drain: a node that could not be judged is taken out of service, too
export MLBENCH RESULTS

say() {
	logger -t mlbench-accept -- "$1" 2>/dev/null || echo "$1" >&2
}

"$here/accept_latest.sh" --node "$NODE" --budget 50s >/dev/null
status=$?
case $status in
0 | 75) exit 0 ;; # fit, or another test goes on
1) ;;
3) [ "$NO_VERDICT" = drain ] || { say "$NODE: no verdict: $("$MLBENCH" accept "$RESULTS/latest" --format slurm)"; exit 0; } ;;
*)
	say "$NODE: the test could not be run (status $status)"
	exit 0
	;;
esac
reason=$("$MLBENCH" accept "$RESULTS/latest" --format slurm)
say "$NODE: $reason"
"$SCONTROL" update nodename="$NODE" state=drain reason="${reason:-mlbench: the node failed its test}"
