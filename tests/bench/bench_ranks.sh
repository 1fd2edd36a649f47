#!/usr/bin/env bash
# What ranks cost and hide: every figure of "Ranks" in docs/PERFORMANCE.md.
#   tests/bench/bench_ranks.sh BUILD_FOLDER
# It needs mpirun (Open MPI); the shaped loopback needs root and iproute2, and is left out with the reason elsewhere.
set -u
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
MLBENCH=$build/mlbench
command -v mpirun >/dev/null || { echo "ranks: no mpirun here"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MLBENCH_MPI_PLUGIN=$build/libmlbench-mpi.so
work=$(mktemp -d)
space=mlb-bench-$$
trap 'ip netns del $space 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 2
status=0
bar() { # NAME VALUE OPERATOR BAR
	if python3 -c "import sys; sys.exit(not ($2 $3 $4))"; then echo "$1: $2 (bar $3 $4)"; else echo "$1: $2 MISSES its bar $3 $4"; status=1; fi
}
ranks() { mpirun --oversubscribe -n "$@"; }
cat >ranks.ini <<'INI'
[dataset]
path = data
recipe = photo
format = raw
width = 18
height = 18
size_sigma = 0
samples = 4096
classes = 4
[augment]
size = 16
[decode]
workers = 1
[batch]
size = 8
[step]
backend = emulated
time = 20ms
[measure]
duration = 2s
warmup = 300ms
repeats = 1
limits = off
INI
"$MLBENCH" gen ranks.ini >/dev/null 2>&1
# figure FOLDER EXPRESSION: of all ranks' repetitions, r of each.
figure() {
	python3 - "$@" <<'PY'
import glob, json, statistics, sys
rows = []
for path in [sys.argv[1] + "/points.jsonl"] + sorted(glob.glob(sys.argv[1] + "/ranks/*/points.jsonl")):
    rows += [row for row in map(json.loads, open(path)) if row.get("kind") == "repetition"]
print("%.4f" % eval(sys.argv[2]))
PY
}

echo "--- all-reduce against a bare loop over the same call"
# Where its two processes lie is worth 5 %, so that it is five of them.
for i in 1 2 3 4 5; do ranks 2 "$build/bench/bench_allreduce" 64 40; done 2>/dev/null | grep all-reduce | tee allreduce
bar "rate over the bare loop's, median of 5" "$(sed -E 's/.*loop.s ([0-9.]+) .*/\1/' allreduce | sort -n | sed -n 3p)" ">=" 0.97

echo "--- one rank under mpirun against no MPI, in turn"
for i in 1 2 3 4 5; do
	"$MLBENCH" run ranks.ini --set step.time=2ms --quiet --out "plain$i" >/dev/null 2>&1
	ranks 1 "$MLBENCH" run ranks.ini --set step.time=2ms --quiet --out "one$i" >/dev/null 2>&1
done
bar "one rank over no MPI, median of 5" "$(python3 - <<'PY'
import json, statistics
rate = lambda path: [row for row in map(json.loads, open(path + "/points.jsonl")) if row.get("kind") == "repetition"][0]["throughput"]
print("%.4f" % statistics.median(rate("one%d" % i) / rate("plain%d" % i) for i in range(1, 6)))
PY
)" ">=" 0.99

echo "--- an exchange of half the backward pass's length, over a shaped loopback"
if ip netns add $space 2>/dev/null && ip netns exec $space ip link set lo up &&
	ip netns exec $space tc qdisc add dev lo root tbf rate 200mbit burst 128kb latency 500ms; then
	# Of the backward pass of a step of 150 ms, 100 ms, it takes half: two ranks exchange 512 KiB each way, twice over one loopback.
	for overlap in off on; do
		ip netns exec $space mpirun --oversubscribe --mca btl tcp,self --mca btl_tcp_if_include lo -n 2 "$MLBENCH" run ranks.ini \
			--set step.time=150ms --set sync.gradients=512KiB --set sync.bucket=64KiB --set sync.overlap=$overlap --set measure.duration=6s --quiet --out "$overlap" >/dev/null 2>&1
	done
	without=$(figure off "sum(r['ranks'][0]['exchange_seconds'] / r['ranks'][0]['rounds'] for r in rows) / len(rows)")
	with=$(figure on "sum(r['ranks'][0]['exchange_seconds'] / r['ranks'][0]['rounds'] for r in rows) / len(rows)")
	echo "an exchange takes $without s after the step, and $with s with overlap"
	bar "share hidden by overlap" "$(python3 -c "print('%.3f' % (1 - $with / $without))")" ">=" 0.9
else
	echo "left out: no network namespaces or no tbf here"
fi

echo "--- 64 ranks, oversubscribed"
begun=$(date +%s.%N)
ranks 64 "$MLBENCH" run ranks.ini --set sync.gradients=4KiB --set step.time=250ms --set batch.size=1 --set measure.duration=4s --out many >out 2>&1
ended=$(date +%s.%N)
python3 - "$begun" "$ended" <<'PY'
import json, os, sys
begun, ended = map(float, sys.argv[1:])
row = [row for row in map(json.loads, open("many/points.jsonl")) if row.get("kind") == "repetition"][0]
open("start", "w").write("%.2f" % (row["started"] - begun))
open("gather", "w").write("%.2f" % (os.stat("many/report.html").st_mtime - row["started"] - row["wall_seconds"]))
PY
bar "64 ranks begin to measure after, s" "$(cat start)" "<" 10
bar "64 ranks are gathered and told after, s" "$(cat gather)" "<" 2

echo "--- 8 ranks with 32 workers each"
ranks 8 "$MLBENCH" run ranks.ini --set decode.workers=32 --set step.time=200ms --set sync.gradients=4KiB --set measure.duration=4s --set prefetch.depth=2 --quiet --out workers >out 2>&1
bar "the step's utilisation, least of 8 ranks" "$(figure workers "min(r['step_utilisation'] for r in rows)")" ">=" 0.99
exit $status
