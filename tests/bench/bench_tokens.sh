#!/usr/bin/env bash
# Sequences of tokens through the pipeline, from 512 MB of uint16 ids, 2 decode workers, no step, in turns; medians [min-max]:
#   in order, past the page cache, in requests of 1 MB, 64 at a time, 8 epochs and 4: against fio, which reads the same files so;
#   warm, shuffled: against a loader in Python on NumPy's memmap with 2 worker processes (memmap_epochs.py).
#   tests/bench/bench_tokens.sh BUILD_FOLDER      REPEATS=5 BENCH_DIR=/var/tmp PYTHON=/usr/bin/python3
# Four threads take turns on the cores: run it on a quiet machine, or as root under `chrt -r 10`.
# Exits 1 when a bar is missed.  What is not installed (fio, NumPy) is left out, and said.
set -u
build=${1:-build/release}
repeats=${REPEATS:-5}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
mlbench=$(readlink -f "$build/mlbench") || exit 2
[ -x "$mlbench" ] || exit 2
dir=$(mktemp -d "${BENCH_DIR:-/var/tmp}/mlbench-tokens-XXXXXX") || exit 2
huge_pages=/proc/sys/vm/nr_hugepages
had=$(cat $huge_pages)
finish() {
	rm -rf "$dir"
	[ "$(cat $huge_pages)" = "$had" ] || echo "$had" >$huge_pages
}
trap finish EXIT
trap 'exit 130' INT TERM
cat >"$dir/tokens.ini" <<INI
[dataset]
path = $dir/data
recipe = tokens
samples = 16
classes = 1
file_tokens = 16777216
[sample]
kind = tokens
[read]
engine = pread
depth = 256
[decode]
workers = 2
[batch]
size = 64
[step]
backend = null
[measure]
warmup = 0s
repeats = 1
limits = off
INI
"$mlbench" gen "$dir/tokens.ini" --quiet >/dev/null || exit 2
sync -f "$dir"

# Small pages take a device half its rate; mlbench has huge ones of its own.
[ "$had" -ge 48 ] || { echo 48 >$huge_pages; } 2>/dev/null
memory=malloc
[ "$(awk '/HugePages_Free/ { print $2 }' /proc/meminfo)" -ge 40 ] && memory=shmhuge

tokens() { # seconds or epochs, key=value …: bytes of ids per second
	local out key sets=()
	out=$(mktemp -d "$dir/run-XXXXXX")
	for key in "$@"; do sets+=(--set "$key"); done
	"$mlbench" run "$dir/tokens.ini" --quiet --out "$out/r" "${sets[@]}" >/dev/null 2>"$out/err"
	[ $? -eq 0 ] || [ $? -eq 3 ] || { cat "$out/err" >&2; exit 1; } # 3: not steady, which the spread shows
	"$python" -c '
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    if row.get("kind") == "repetition":
        print("%.0f" % row["throughput"])' "$out/r/points.jsonl"
}

fio_reads() { # kind of memory, epochs
	fio --name=tokens --filename="$(printf '%s:' "$dir"/data/*/*.bin | sed 's/:$//')" --file_service_type=sequential \
		--rw=read --bs=1M --ioengine=io_uring --direct=1 --iodepth=64 --iomem="$1" --fixedbufs=1 --loops="$2" --output-format=json |
		"$python" -c 'import json, sys; print("%.0f" % (json.load(sys.stdin)["jobs"][0]["read"]["bw_bytes"] / 2048))'
}

judge() { # name bar other: lines "mlbench N other N"
	"$python" -c '
import statistics, sys
name, bar, other = sys.argv[1], float(sys.argv[2]), sys.argv[3]
rounds = [[float(word) for word in line.split()] for line in sys.stdin]
pairs = [p for p in rounds if len(p) == 2]
if not pairs:
    sys.exit("%s: no round has both figures" % name)
def spread(values, digits):
    return "%.*f [%.*f-%.*f]" % (digits, statistics.median(values), digits, min(values), digits, max(values))
print("%s, sequences of 1024 a second" % name)
print("  %-20s %s" % ("mlbench", spread([p[0] for p in pairs], 0)))
print("  %-20s %s" % (other, spread([p[1] for p in pairs], 0)))
ratios = [a / b for a, b in pairs]
met = statistics.median(ratios) >= bar
verdict = "   bar >= %.2f: %s" % (bar, "met" if met else "MISSED") if bar else ""
print("  mlbench / %s: %s%s" % (other, spread(ratios, 2), verdict))
sys.exit(0 if met else 1)' "$@"
}

missed=0
in_order=(read.cache=cold read.order=sequential read.engine=io_uring read.direct=on read.request=1M read.depth=64)
against_fio() { # kind of memory, epochs, bar
	for _ in $(seq "$repeats"); do
		echo "$(tokens "${in_order[@]}" measure.epochs="$2") $(fio_reads "$1" "$2")"
	done | judge "in order, past the page cache, $2 epochs" "$3" "fio ($1)" || missed=1
}
if command -v fio >/dev/null; then
	against_fio $memory 8 0.95
	against_fio $memory 4 0.95
	[ $memory = malloc ] || against_fio malloc 8 0
else
	echo "in order: left out: fio is not installed"
fi
if "$python" "$here/memmap_epochs.py" "$dir/data" --seconds 0.1 >/dev/null; then
	for _ in $(seq "$repeats"); do
		echo "$(tokens measure.duration=2s read.cache=warm) $("$python" "$here/memmap_epochs.py" "$dir/data" --seconds 2)"
	done | judge "warm, shuffled" 5 "numpy.memmap" || missed=1
	for _ in $(seq "$repeats"); do
		echo "$(tokens measure.duration=2s read.cache=warm read.engine=mmap) $("$python" "$here/memmap_epochs.py" "$dir/data" --seconds 2)"
	done | judge "the same, mapped here as well (read.engine = mmap)" 5 "numpy.memmap" || missed=1
	for _ in $(seq "$repeats"); do
		echo "$(tokens measure.duration=2s read.cache=warm) $("$python" "$here/memmap_epochs.py" "$dir/data" --seconds 2 --keep)"
	done | judge "the same, its batches dropped in the workers" 0 "numpy.memmap"
else
	echo "warm, shuffled: left out: NumPy is not installed for $python"
fi
exit $missed
