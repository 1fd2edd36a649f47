#!/bin/sh
# Tests this node and leaves the newest result where others read it: $RESULTS/latest, and metrics in $TEXTFILE if that is
# set.  For a systemd timer (mlbench-accept.service), cron, or Slurm (slurm_health_check.sh).
#
# Ends with mlbench's status: 0 pass or warning, 1 failed, 2 wrong plan, 3 no verdict; and 75 where a test goes on.
set -u
: "${MLBENCH:=mlbench}"                   # the program
: "${PLAN:=/etc/mlbench/node.ini}"        # what is asked of the node
: "${TIER:=quick}"                        # quick, standard, burn
: "${RESULTS:=/var/lib/mlbench/accept}"   # a folder for each test, and the link `latest`
: "${KEEP:=20}"                           # newest results that are kept
: "${TEXTFILE:=}"                         # node-exporter's --collector.textfile.directory

mkdir -p "$RESULTS" || exit 3
exec 9>"$RESULTS/lock" || exit 3
flock -n 9 || { echo "another test of this node goes on" >&2; exit 75; }

while name=$(date -u +%Y%m%dT%H%M%SZ) && [ -e "$RESULTS/$name" ]; do sleep 1; done
"$MLBENCH" accept "$PLAN" --tier "$TIER" --quiet --out "$RESULTS/$name" "$@" 9>&-
status=$?
[ -e "$RESULTS/$name/accept.json" ] || { rmdir "$RESULTS/$name" 2>/dev/null; exit "$status"; }

# A reader sees the old result or the new one, never none.
ln -sfn "$name" "$RESULTS/latest.new" && mv -T "$RESULTS/latest.new" "$RESULTS/latest"
if [ -n "$TEXTFILE" ]; then
	"$MLBENCH" accept "$RESULTS/$name" --quiet --format openmetrics --out "$TEXTFILE/mlbench_accept.prom" >&2
fi
# Only what this script made, by its names.
ls "$RESULTS" | grep -E '^[0-9]{8}T[0-9]{6}Z$' | sort -r | tail -n +$((KEEP + 1)) | while read -r old; do
	rm -rf "${RESULTS:?}/$old"
done
exit "$status"
