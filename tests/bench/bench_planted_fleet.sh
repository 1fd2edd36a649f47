#!/usr/bin/env bash
# Twenty real runs on this node that stand for twenty nodes: one loses 5 % of each core's time, one 20 % of core 1's, one has
# other storage, the others nothing.  `mlbench fleet` must name the planted ones and nobody else.  Needs root: runs and plants
# are real-time processes, so that other load does not disturb them.
#   tests/bench/bench_planted_fleet.sh BUILD_FOLDER [FOLDER_TO_KEEP]
set -eu
program=$(cd "$1" && pwd)/mlbench
chrt -f 5 true 2>/dev/null || { echo "skipped: no real-time scheduling (root)"; exit 77; }
[ "$(nproc)" -ge 2 ] || { echo "skipped: one core"; exit 77; }
work=$(mktemp -d)
plants=
trap 'for pid in $plants; do kill "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT
fleet=${2:-$work/fleet}
mkdir -p "$fleet"
cat >"$work/plan.ini" <<'INI'
[plan]
name = planted
[cores]
kind = ceiling
tier = quick
cool_down = 1ms
decode.core = within 30 % of median
gemm.core = within 30 % of median
memory.core = within 40 % of median
INI
cat >"$work/hog.py" <<'PY'
import os, sys, time
core, share, period = int(sys.argv[1]), float(sys.argv[2]), 0.02
os.sched_setaffinity(0, {core})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
while True:
    begun = time.perf_counter()
    while time.perf_counter() - begun < period * share:
        pass
    time.sleep(period * (1 - share))
PY
plant() { # CORE SHARE
	python3 "$work/hog.py" "$1" "$2" &
	plants="$plants $!"
}
cd "$work"
for i in $(seq -w 1 20); do
	path=.
	case $i in
	05) for core in $(seq 0 $(($(nproc) - 1))); do plant "$core" 0.05; done ;;
	11) plant 1 0.2 ;;
	17) path=/dev/shm ;;
	esac
	chrt -f 5 "$program" accept plan.ini --tier quick --node "node$i" --path "$path" --out "$fleet/node$i" -q >out 2>&1 || cat out
	for pid in $plants; do kill "$pid" && wait "$pid" 2>/dev/null || true; done
	plants=
done
"$program" fleet "$fleet" || true
"$program" fleet "$fleet" --format html --out "$fleet/fleet.html" || true
"$program" fleet "$fleet" --json >fleet.json || true
python3 - <<'PY'
import json
document = json.load(open("fleet.json"))
outliers = sorted(n["node"] for n in document["nodes"] if n["outlier"])
strangers = [n["node"] for n in document["nodes"] if n["stranger"]]
print("outliers:", outliers, "other hardware:", strangers)
assert outliers == ["node05", "node11"] and strangers == ["node17"]
PY
