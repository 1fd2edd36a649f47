#!/usr/bin/env bash
# `mlbench fleet` and `mlbench baseline` over 1,000 results of the size of the standard tier: time and memory (issue: under
# 30 s and 1 GiB).   tests/bench/bench_fleet.sh BUILD_FOLDER [NODES]
set -eu
build=$(cd "$1" && pwd)
nodes=${2:-1000}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo '{"node007": {"slow": 0.05}, "node500": {"core": [40, 0.2]}, "node900": {"read": 0.4}}' >"$work/plant.json"
"$here/make_nodes.py" "$work/fleet" --nodes "$nodes" --cores 64 --points 600 --plant "$work/plant.json"
echo "$nodes results, $(du -sm "$work/fleet" | cut -f1) MiB"
measure() {
	local begun ended
	begun=$(date +%s%N)
	/usr/bin/env python3 - "$work/use" "$@" <<'PY'
import resource, subprocess, sys
with open("/dev/null", "w") as null:
    status = subprocess.run(sys.argv[2:], stdout=null).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss // 1024, status, "%.1f" % (used.ru_utime + used.ru_stime), file=open(sys.argv[1], "w"))
PY
	ended=$(date +%s%N)
	read -r rss status cpu <"$work/use"
	printf '%-9s %-5s %6.1f s (%s s of CPU)  %5d MiB  exit %d\n' "$2" "$label" "$(echo "($ended - $begun) / 1000000000" | bc -l)" "$cpu" "$rss" "$status"
	[ "$rss" -lt 1024 ] && [ $(((ended - begun) / 1000000000)) -lt 30 ] || missed=1
}
missed=0
label=text measure "$build/mlbench" fleet "$work/fleet"
label=html measure "$build/mlbench" fleet "$work/fleet" --format html --out "$work/fleet.html"
label=json measure "$build/mlbench" fleet "$work/fleet" --format json --out "$work/fleet.json"
label=json measure "$build/mlbench" baseline "$work/fleet" --out "$work/baseline.json"
ls -la "$work"/fleet.html "$work"/fleet.json "$work"/baseline.json | awk '{print $5, $9}' | sed "s|$work/||"
[ "$missed" -eq 0 ]
