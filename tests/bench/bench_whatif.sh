#!/usr/bin/env bash
# A table of 1,000 predicted settings, and a single one, from a small measured sweep, on one core: the bound is 10 s
# a table.  Usage: tests/bench/bench_whatif.sh BUILD_FOLDER [repeats]
set -eu
mlbench=$(readlink -f "$1/mlbench")
repeats=${2:-5}
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
single=(--set decode.workers=4)
table=(--set decode.workers=1-10+1 --set batch.size=8-80+8 --set prefetch.depth=1-10+1)
for _ in $(seq "$repeats"); do
	for what in single table; do
		declare -n settings=$what
		begun=$(date +%s%N)
		taskset -c 0 "$mlbench" what-if result "${settings[@]}" --json >"$what.json" 2>err || { cat err; exit 1; }
		echo "$what $((($(date +%s%N) - begun) / 1000000))" >>times
	done
done
python3 - <<'PY'
import collections, json, statistics
times = collections.defaultdict(list)
for line in open("times"):
    what, ms = line.split()
    times[what].append(int(ms))
count = {what: len(json.load(open(what + ".json"))["alternatives"]) for what in times}
print(f"{'what':8} {'settings':>8} {'median ms':>10} {'min':>7} {'max':>7} {'ms each':>8}")
for what, all_ms in times.items():
    median = statistics.median(all_ms)
    print(f"{what:8} {count[what]:8} {median:10.0f} {min(all_ms):7} {max(all_ms):7} {median / count[what]:8.2f}")
assert count["table"] == 1000, count
PY
