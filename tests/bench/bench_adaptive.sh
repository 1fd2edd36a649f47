#!/usr/bin/env bash
# An adaptive sweep of 54 points against the whole grid measured right after it: how many points it took, how far the
# predictions were off, how often their 90 % intervals held, beside how much the points that both measured differ.
# Usage: tests/bench/bench_adaptive.sh BUILD_FOLDER [error]      about five minutes, on a quiet machine
set -eu
mlbench=$(readlink -f "$1/mlbench")
error=${2:-5%}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >grid.ini <<'INI'
[dataset]
path = data
recipe = photo
samples = 200
width = 300
height = 225

[augment]
size = 128

[step]
backend = emulated

[measure]
duration = 2s
warmup = 500ms
repeats = 2
limits = off

[sweep]
decode.workers = 1,2,4
batch.size = 8,32,64
prefetch.depth = 1,2,4
step.device = h100,a100
INI
"$mlbench" sweep grid.ini --set sweep.mode=adaptive --set sweep.error="$error" --out adaptive -q >/dev/null
"$mlbench" sweep grid.ini --out grid -q >/dev/null || [ $? -eq 3 ]
python3 - "$error" <<'PY'
import json, statistics, sys
some = json.load(open("adaptive/summary.json"))["points"]
every = json.load(open("grid/summary.json"))["points"]
errors, held, again = [], 0, []
for p, q in zip(some, every):
    measured = q["throughput"]["median"]
    if measured is None:
        continue
    if p["predicted"]:
        low, high = p["prediction"]["interval90"]
        errors.append(abs(p["prediction"]["throughput"] / measured - 1))
        held += low <= measured <= high
    elif p["throughput"]["median"] is not None:
        again.append(abs(p["throughput"]["median"] / measured - 1))
at = lambda list, share: sorted(list)[min(int(share * len(list)), len(list) - 1)]
print(f"asked error {sys.argv[1]}: measured {len(some) - len(errors)} of {len(some)} points, predicted {len(errors)}")
print(f"predicted against measured: median {statistics.median(errors):.2%}, p95 {at(errors, 0.95):.2%}, worst {max(errors):.2%}")
print(f"90 % intervals that held: {held / len(errors):.0%}")
print(f"measured twice, the same points: median {statistics.median(again):.2%}, worst {max(again):.2%}")
PY
