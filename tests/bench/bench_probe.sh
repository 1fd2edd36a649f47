#!/usr/bin/env bash
# The reads of `mlbench probe`, random and direct, against fio's io_uring engine on a file of the same size: registered
# buffers on huge pages, one thread.  In turns; medians [min-max] of requests per second.
#   tests/bench/bench_probe.sh BUILD_FOLDER      REPEATS=7 BENCH_DIR=/var/tmp
# Run it on a quiet machine, or as root under `chrt -r 10`.  Exits 1 when a bar is missed, 77 where fio is not installed.
set -u
build=${1:-build/release}
bench="$build/bench/bench_source"
huge_pages=/proc/sys/vm/nr_hugepages
command -v fio >/dev/null || { echo "bench_probe: skipped: fio is not installed"; exit 77; }
[ -x "$bench" ] || make --no-print-directory "$bench" >&2 || exit 2
dir=$(mktemp -d "${BENCH_DIR:-/var/tmp}/mlbench-probe-XXXXXX") || exit 2
had=$(cat $huge_pages)
finish() {
	rm -rf "$dir"
	[ "$(cat $huge_pages)" = "$had" ] || echo "$had" >$huge_pages
}
trap finish EXIT
trap 'exit 130' INT TERM
[ "$had" -ge 48 ] || { echo 48 >$huge_pages; } 2>/dev/null
memory=malloc
[ "$(awk '/HugePages_Free/ { print $2 }' /proc/meminfo)" -ge 40 ] && memory=shmhuge
head -c 256M /dev/urandom >"$dir/blocks"
sync -f "$dir"

fio_reads() { # bytes depth
	fio --name=blocks --filename="$dir/blocks" --rw=randread --bs="$1" --ioengine=io_uring --direct=1 --iodepth="$2" \
		--fixedbufs=1 --registerfiles=1 --iomem=$memory --time_based --runtime=1 --thread --norandommap \
		--output-format=json | python3 -c 'import json, sys; print("%.0f" % json.load(sys.stdin)["jobs"][0]["read"]["iops"])'
}

judge() { # name bar: lines "mlbench N fio N"
	python3 -c '
import statistics, sys
pairs = [[float(word) for word in line.split()] for line in sys.stdin]
def spread(values, digits):
    return "%.*f [%.*f-%.*f]" % (digits, statistics.median(values), digits, min(values), digits, max(values))
ratios = [a / b for a, b in pairs]
met = statistics.median(ratios) >= float(sys.argv[2])
print("%s: mlbench %s, fio %s a second, ratio %s   bar >= %s: %s" % (sys.argv[1], spread([p[0] for p in pairs], 0),
    spread([p[1] for p in pairs], 0), spread(ratios, 2), sys.argv[2], "met" if met else "MISSED"))
sys.exit(0 if met else 1)' "$@"
}

missed=0
for cell in "4096 1" "4096 32" "131072 16"; do
	read -r bytes depth <<<"$cell"
	for _ in $(seq "${REPEATS:-7}"); do
		echo "$("$bench" probe "$dir" "$depth" "$bytes" 1 | awk '{ print $2 }') $(fio_reads "$bytes" "$depth")"
	done | judge "$bytes bytes, depth $depth, fio memory $memory" 0.95 || missed=1
done
exit $missed
