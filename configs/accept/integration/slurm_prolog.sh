#!/bin/sh
# Slurm's Prolog: no job begins on a node that failed its last test.
#
#	Prolog=/etc/slurm/slurm_prolog.sh
#
# Reads the newest result, in milliseconds, and calls no command of Slurm, as its guide asks of prologs.  A status other
# than 0 drains the node and requeues the job.  With MAX_AGE_HOURS, a node whose newest test is older is tested now, with
# the quick tier: only where jobs get whole nodes, because a test beside a job finds the node busy.
set -u
here=$(dirname "$(readlink -f "$0")")
: "${MLBENCH:=mlbench}"
: "${RESULTS:=/var/lib/mlbench/accept}"
: "${MAX_AGE_HOURS:=0}" # 0: whatever its age
export MLBENCH RESULTS

if [ "$MAX_AGE_HOURS" -gt 0 ] &&
	[ -z "$(find -L "$RESULTS/latest/accept.json" -mmin -$((MAX_AGE_HOURS * 60)) 2>/dev/null)" ]; then
	"$here/accept_latest.sh" --budget 50s >/dev/null 2>&1
fi
[ -e "$RESULTS/latest/accept.json" ] || exit 0 # never tested: that is for the timer to mend
line=$("$MLBENCH" accept "$RESULTS/latest" --format slurm 2>&1)
status=$?
[ "$status" -eq 1 ] || exit 0
logger -t mlbench-accept -- "no job may begin here: $line" 2>/dev/null || echo "no job may begin here: $line" >&2
exit 1
