#!/bin/sh
# Slurm's HealthCheckProgram: tests a node that has no job, and drains it with the reason if it fails.
#
#	HealthCheckProgram=/etc/slurm/slurm_health_check.sh
#	HealthCheckInterval=86400
#	HealthCheckNodeState=IDLE,CYCLE
#
# Slurm ends it after 60 s, hence the budget.  It ends with 0 when the node was drained, since slurmd registers only after
# that.  A node that was drained stays so until somebody resumes it.  Only a verdict drains: status 1 with a line that says
# FAIL, both of the test that was just made.  A full disk is no verdict on the node.
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

line=$("$here/accept_latest.sh" --node "$NODE" --budget 50s --format slurm)
status=$?
case "$status $line" in
"0 "* | "75 "*) exit 0 ;; # fit, or another test is running
"1 mlbench FAIL "*) reason=$line ;;
*)
	reason="mlbench: no verdict (status $status)${line:+: ${line#mlbench }}"
	say "$NODE: $reason"
	[ "$NO_VERDICT" = drain ] || exit 0
	;;
esac
say "$NODE: $reason"
"$SCONTROL" update nodename="$NODE" state=drain reason="$reason"
