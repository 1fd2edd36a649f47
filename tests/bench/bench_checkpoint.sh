#!/usr/bin/env bash
# Checkpoints against fio that writes one file of the same size in sequence, with the same writes in flight, past the page
# cache, and fsyncs it: in turns, medians [min-max].  mlbench's time is that of write and fsync, as a run reports it.
#   tests/bench/bench_checkpoint.sh BUILD_FOLDER      REPEATS=7 BYTES=256M BENCH_DIR=/var/tmp
# Exits 1 when the bar is missed, 77 where fio is not installed.
set -u
build=${1:-build/release}
repeats=${REPEATS:-7}
size=${BYTES:-256M}
command -v fio >/dev/null || { echo "bench_checkpoint: skipped: fio is not installed"; exit 77; }
[ -x "$build/mlbench" ] || make --no-print-directory "$build/mlbench" >&2 || exit 2
mlbench=$(realpath "$build/mlbench")
dir=$(mktemp -d "${BENCH_DIR:-/var/tmp}/mlbench-checkpoint-XXXXXX") || exit 2
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
cd "$dir" || exit 2
cat >saves.ini <<INI
[dataset]
path = data
recipe = photo
format = raw
width = 16
height = 16
samples = 16
[augment]
size = 16
[read]
engine = memory
[codec]
name = null
[batch]
size = 8
[decode]
workers = 1
[step]
backend = emulated
device = any
time = 1ms
[checkpoint]
every = 1
bytes = $size
[measure]
epochs = 2
repeats = 1
limits = off
INI
"$mlbench" gen saves.ini >gen 2>&1 || { cat gen; exit 2; }

fio_write() {
	rm -f fio.bin
	fio --name=save --filename=fio.bin --rw=write --bs=1M --size="$size" --ioengine=io_uring --direct=1 --iodepth=8 \
		--end_fsync=1 --thread --output-format=json |
		python3 -c '
import json, sys
job = json.load(sys.stdin)["jobs"][0]
print("fio %.1f" % (job["write"]["io_bytes"] / job["job_runtime"] / 1e3))'
}

# Mean over the four checkpoints of a repetition.
mlbench_write() {
	rm -rf result
	"$mlbench" run saves.ini --out result >run 2>&1 || [ $? -eq 3 ] || { cat run >&2; exit 1; }
	python3 -c '
import json
for line in open("result/points.jsonl"):
    record = json.loads(line)
    if record.get("kind") == "repetition":
        c = record["checkpoint"][0]
        print("mlbench %.1f" % (c["bytes"] * c["count"] / (c["write_seconds"] + c["sync_seconds"]) / 1e6))'
}

for i in $(seq 0 "$repeats"); do # the first round only warms up
	{
		fio_write
		mlbench_write
	} >round
	[ "$i" -eq 0 ] || cat round
done >lines
echo "checkpoints of $size, direct, writes of 1 MiB, 8 in flight, then fsync; $repeats rounds"
python3 - lines <<'PY'
import statistics, sys
rows = {}
for line in open(sys.argv[1]):
    name, rate = line.split()
    rows.setdefault(name, []).append(float(rate))
def spread(values, digits):
    return "%.*f [%.*f-%.*f]" % (digits, statistics.median(values), digits, min(values), digits, max(values))
for name, rates in rows.items():
    print("  %-8s %s MB/s" % (name, spread(rates, 0)))
ratios = [a / b for a, b in zip(rows["mlbench"], rows["fio"])]
met = statistics.median(ratios) >= 0.90
print("  mlbench / fio: %s   bar >= 0.90: %s" % (spread(ratios, 3), "met" if met else "MISSED"))
sys.exit(0 if met else 1)
PY
