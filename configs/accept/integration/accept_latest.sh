#!/bin/sh
# Tests this node and leaves the newest result where others read it: $RESULTS/latest, and metrics in $TEXTFILE if that is
# set.  For a systemd timer (mlbench-accept.service), cron, or Slurm (slurm_health_check.sh).
#
# Ends with mlbench's status: 0 pass or warning, 1 failed, 2 wrong plan, 3 no verdict or no room for it; and 75 if another
# test is running.  An older result never stands for this test: `latest` is gone while it runs, and stays away if it
# leaves no result.  Readers wait for the lock (slurm_prolog.sh).
set -u
: "${MLBENCH:=mlbench}"                   # the program
: "${PLAN:=/etc/mlbench/node.ini}"        # what is asked of the node
: "${TIER:=quick}"                        # quick, standard, burn
: "${RESULTS:=/var/lib/mlbench/accept}"   # a folder for each test, and the link `latest`
: "${KEEP:=20}"                           # newest results that are kept
: "${TEXTFILE:=}"                         # node-exporter's --collector.textfile.directory

mkdir -p "$RESULTS" && touch "$RESULTS/lock" || exit 3
exec 9>"$RESULTS/lock"
flock -w 3 9 || { echo "another test of this node is running" >&2; exit 75; }
rm -f "$RESULTS/latest" || exit 3

while name=$(date -u +%Y%m%dT%H%M%SZ) && [ -e "$RESULTS/$name" ]; do sleep 1; done
"$MLBENCH" accept "$PLAN" --tier "$TIER" --quiet --out "$RESULTS/$name" "$@" 9>&-
status=$?

# Only what this script made, by its names.
ls "$RESULTS" | grep -E '^[0-9]{8}T[0-9]{6}Z$' | sort -r | tail -n +$((KEEP + 1)) | while read -r old; do
	rm -rf "${RESULTS:?}/$old"
done
metrics=$TEXTFILE/mlbench_accept.prom
if [ -e "$RESULTS/$name/accept.json" ]; then
	ln -sfn "$name" "$RESULTS/latest.new" && mv -T "$RESULTS/latest.new" "$RESULTS/latest" || status=3
	[ -z "$TEXTFILE" ] ||
		"$MLBENCH" accept "$RESULTS/$name" --quiet --format openmetrics --out "$metrics" >&2
elif [ -n "$TEXTFILE" ] && [ -e "$metrics" ]; then
	# The last verdict is not this test's: the node has none.
	sed -n '/^mlbench_accept_verdict{/{s/ 1$/ 0/;/verdict="ERROR"/s/ 0$/ 1/;p}' "$metrics" >"$metrics.new" &&
		mv "$metrics.new" "$metrics" || rm -f "$metrics" "$metrics.new"
fi
# A result that readers cannot find is no pass.
[ "$status" -ne 0 ] || [ -e "$RESULTS/latest/accept.json" ] || status=3
exit "$status"
