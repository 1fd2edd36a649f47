#!/usr/bin/env bash
# A table of 1,000 predicted settings, and a single one, from a small measured sweep, on one core: the bound is 10 s of
# computing a table.  And a single one from 500 points of large batches, whose bound is 2 s; and a fleet of 1,024 nodes of 8
# devices, whose bound is 1 s of CPU time.  Usage: tests/bench/bench_whatif.sh BUILD_FOLDER [repeats]
set -eu
mlbench=$(readlink -f "$1/mlbench")
repeats=${2:-5}
widen=$(readlink -f "$(dirname "$0")/../cli/widen_sweep.py")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >small.ini <<'INI'
[dataset]
path = data
recipe = photo
format = raw
width = 64
height = 64
samples = 512

[augment]
size = 32

[step]
backend = emulated
time = 2ms

[measure]
duration = 3s
warmup = 200ms
repeats = 2
limits = off

[sweep]
decode.workers = 1,2
batch.size = 16,32
INI
"$mlbench" sweep small.ini --out result -q >sweep.txt || { cat sweep.txt; exit 1; }
"$mlbench" sweep small.ini --set dataset.samples=1024 --set dataset.path=large --set step.time=100ms --set sweep.batch.size=1024 \
	--set sweep.decode.workers=1 --out large_result -q >large.txt || { cat large.txt; exit 1; }
python3 "$widen" large_result many prefetch.depth="$(seq -s, 1 10)" read.depth="$(seq -s, 1 50)"
single=(result --set decode.workers=4)
many=(many --set decode.workers=4)
fleet=(result --point 0 --set step.devices=8 --fleet 1024:3% --network-bandwidth 25GB/s --gradient-bytes 100M --force)
table=(result --set decode.workers=1-10+1 --set batch.size=8-80+8 --set prefetch.depth=1-10+1)
for _ in $(seq "$repeats"); do
	for what in single many fleet table; do
		declare -n settings=$what
		TIMEFORMAT="$what %R %U"
		{ time taskset -c 0 "$mlbench" what-if "${settings[@]}" --json >"$what.json" 2>err; } 2>>times || { cat err; exit 1; }
	done
done
python3 - <<'PY'
import collections, json, statistics
wall, cpu = collections.defaultdict(list), collections.defaultdict(list)
for line in open("times"):
    what, real, user = line.split()
    wall[what].append(float(real))
    cpu[what].append(float(user))
print(f"{'':8} {'settings':>8} {'wall s':>8} {'min':>7} {'max':>7} {'cpu s':>8} {'min':>7} {'max':>7} {'ms each':>8}")
for what in wall:
    count = len(json.load(open(what + ".json"))["alternatives"])
    row = "".join(f" {statistics.median(x):8.2f} {min(x):7.2f} {max(x):7.2f}" for x in (wall[what], cpu[what]))
    print(f"{what:8} {count:8}{row} {1e3 * statistics.median(cpu[what]) / count:8.2f}")
    assert count == (1000 if what == "table" else 1), count
assert statistics.median(cpu["fleet"]) < 1, cpu["fleet"]
PY
