#!/bin/sh
# Slurm's Prolog: a job begins only on a node whose newest test passed.
#
#	Prolog=/etc/slurm/slurm_prolog.sh
#
# Reads the newest result, in milliseconds, and calls no command of Slurm, as its guide asks of prologs.  A status other
# than 0 drains the node and requeues the job: where the test failed, gave no verdict, was never made, or its result cannot
# be read.  Test the nodes before you install it.  With MAX_AGE_HOURS, a node whose newest test is older is tested now, with
# the quick tier: only where jobs get whole nodes, because a test beside a job finds the node busy.
set -u
here=$(dirname "$(readlink -f "$0")")
: "${MLBENCH:=mlbench}"
: "${RESULTS:=/var/lib/mlbench/accept}"
: "${MAX_AGE_HOURS:=0}"    # 0: any age
: "${WAIT_S:=90}"          # for a test that is running
: "${NODE:=}"               # the name that the result must be of; empty: any
: "${JUDGE_BY:=}"           # a plan that judges the result again, so that none of another plan passes; empty: its own
: "${NO_VERDICT:=refuse}"  # allow: a job may begin on a node that has no verdict
export MLBENCH RESULTS

say() {
	logger -t mlbench-accept -- "$1" 2>/dev/null || echo "$1" >&2
}
# A date in the future does not count: a clock was wrong.
fresh() {
	[ -n "$(find -L "$RESULTS/latest/accept.json" -mmin "-$((MAX_AGE_HOURS * 60))" ! -newermt '+5 minutes' 2>/dev/null)" ]
}

case $MAX_AGE_HOURS in
'' | *[!0-9]*)
	say "no job may begin here: MAX_AGE_HOURS is '$MAX_AGE_HOURS', which is no number of hours"
	exit 1
	;;
esac
if [ "$MAX_AGE_HOURS" -gt 0 ] && ! fresh; then
	"$here/accept_latest.sh" --budget 50s >/dev/null 2>&1
	[ $? -eq 75 ] || fresh || rm -f "$RESULTS/latest"
fi
# A test that is running is waited for, and none begins while its result is read.
set -- "$RESULTS/latest/accept.json"
[ -z "$JUDGE_BY" ] || set -- "$JUDGE_BY" --judge "$1"
[ -z "$NODE" ] || set -- "$@" --node "$NODE"
line=$(flock -s -w "$WAIT_S" -E 3 "$RESULTS/lock" "$MLBENCH" accept "$@" --format slurm 2>&1)
status=$?
: "${line:=a test of this node is still running}"
case $status in
0) exit 0 ;;
1) ;;
*)
	if [ "$NO_VERDICT" = allow ]; then
		say "a job begins without a verdict on the node: $line"
		exit 0
	fi
	;;
esac
say "no job may begin here: $line"
exit 1
