#!/usr/bin/env bash
# Whole files (open, read, close) through the io_uring source against fio's io_uring engine, which reads the
# same files and leaves them open: both direct, depth 16, registered buffers on huge pages, random order,
# one thread.  And the CPU a file costs, against 16 threads with pread.  The same again through the whole
# pipeline (uncompressed pictures of as many bytes that nobody decodes, null step), by io_uring and by 16
# threads with pread.  Interleaved; medians [min-max].
#   tests/bench/bench_source.sh BUILD_FOLDER      REPEATS=7 SECONDS_EACH=1 BENCH_DIR=/var/tmp SIZES="97 428" ALL=1
# ALL adds the source without links, registered buffers or huge pages, and on kernel threads.
# One reader against sixteen threads is a matter of the scheduler where others want the cores: run it on
# a quiet machine, or as root under `chrt -r 10`.
# Exits 1 when a bar is missed, 77 where fio is not installed.
set -u
build=${1:-build/release}
bench="$build/bench/bench_source"
repeats=${REPEATS:-7}
seconds=${SECONDS_EACH:-1}
huge_pages=/proc/sys/vm/nr_hugepages
command -v fio >/dev/null || { echo "bench_source: skipped: fio is not installed"; exit 77; }
[ -x "$bench" ] || make --no-print-directory "$bench" >&2 || exit 2

dir=$(mktemp -d "${BENCH_DIR:-/var/tmp}/mlbench-source-XXXXXX") || exit 2
had=$(cat $huge_pages)
ulimit -n "$(ulimit -Hn)"
finish() {
	rm -rf "$dir"
	[ "$(cat $huge_pages)" = "$had" ] || echo "$had" >$huge_pages
}
trap finish EXIT
trap 'exit 130' INT TERM
if [ "$had" -lt 64 ] && ! { echo 64 >$huge_pages; } 2>/dev/null; then
	echo "no huge pages can be reserved (not root?): both sides use small pages"
fi
memory=malloc
[ "$(awk '/HugePages_Free/ { print $2 }' /proc/meminfo)" -ge 32 ] && memory=shmhuge

fio_read() { # bytes
	fio --name=files --opendir="$dir/files" --rw=randread --bs="$1" --file_service_type=random:1 --openfiles=100000 \
		--ioengine=io_uring --direct=1 --iodepth=16 --fixedbufs=1 --registerfiles=1 \
		--iomem=$memory --time_based --runtime="$seconds" --thread --norandommap \
		--output-format=json 2>/dev/null |
		python3 -c '
import json, sys
text = sys.stdin.read()
read = json.loads(text[text.index("{") :])["jobs"][0]
cpu = (read["usr_cpu"] + read["sys_cpu"]) / 100 * read["job_runtime"] * 1000 / read["read"]["total_ios"]
print("MB/s %.1f cpu_us/file %.2f" % (read["read"]["bw_bytes"] / 1e6, cpu))'
}

source_read() { # files bytes key=value …
	local files=$1 bytes=$2
	shift 2
	"$bench" read "$dir/files" "$files" "$bytes" "$seconds" "$@" measure.profiler=on read.direct=on || exit 1
}

# The same through readers, queues and workers: mlbench as its user runs it.
pipeline_read() { # samples edge key=value …
	local samples=$1 edge=$2 key sets=()
	shift 2
	for key in "$@"; do sets+=(--set "$key"); done
	: >"$dir/empty.ini"
	"$build/mlbench" run "$dir/empty.ini" --json --out "$dir/out" --set "dataset.path=$dir/pictures" --set dataset.recipe=photo \
		--set dataset.format=raw --set "dataset.samples=$samples" --set "dataset.width=$edge" --set "dataset.height=$edge" \
		--set dataset.size_sigma=0 --set codec.name=null --set step.backend=null --set decode.workers=1 \
		--set read.direct=on --set measure.repeats=1 "${sets[@]}" \
		--set measure.limits=off --set "measure.duration=${seconds}s" --set measure.warmup=300ms 2>"$dir/log" |
		python3 -c '
import json, sys
point = json.load(sys.stdin)["points"][0]
print("MB/s %.1f cpu_us/file nan" % (point["bytes_read_per_s"] / 1e6))' || { tail -3 "$dir/log" >&2; exit 1; }
	rm -rf "$dir/out"
}

table() { # reads "name MB/s N cpu_us/file N …" lines
	python3 -c '
import statistics, sys
bar, rows = float(sys.argv[1]), {}
for line in sys.stdin:
    word = line.split()
    rows.setdefault(word[0], []).append((float(word[2]), float(word[4])))
def spread(values, digits):
    if any(v != v for v in values):
        return "-"
    return "%.*f [%.*f-%.*f]" % (digits, statistics.median(values), digits, min(values), digits, max(values))
print("  %-26s %26s %22s" % ("", "MB/s", "CPU us a file"))
for name, pairs in rows.items():
    print("  %-26s %26s %22s" % (name, spread([p[0] for p in pairs], 0), spread([p[1] for p in pairs], 1)))
ratios = [a[0] / b[0] for a, b in zip(rows["io_uring"], rows["fio"])]
cpu = [a[1] / b[1] for a, b in zip(rows["io_uring"], rows["pread-16-threads"])]
fast, lean = statistics.median(ratios) >= bar, statistics.median(cpu) <= 1
print("  io_uring / fio, rate: %s   bar >= %.2f: %s" % (spread(ratios, 3), bar, "met" if fast else "MISSED"))
whole = [a[0] / b[0] for a, b in zip(rows["pipeline"], rows["fio"])]
through = statistics.median(whole) >= bar
print("  pipeline / fio, rate: %s   bar >= %.2f: %s" % (spread(whole, 3), bar, "met" if through else "MISSED"))
threads = [a[0] / b[0] for a, b in zip(rows["pipeline"], rows["pipeline-pread"])]
level = statistics.median(threads) >= bar
print("  pipeline / the same with 16 threads, rate: %s   bar >= %.2f: %s" % (spread(threads, 3), bar, "met" if level else "MISSED"))
print("  io_uring / 16 threads, CPU a file: %s   bar <= 1: %s" % (spread(cpu, 3), "met" if lean else "MISSED"))
sys.exit(0 if fast and lean and through and level else 1)' "$1"
}

more_of() { # files bytes
	echo "io_uring-staged $(source_read "$1" "$2" read.engine=io_uring read.depth=16 \
		read.linked=off)"
	echo "io_uring-kernel-threads $(source_read "$1" "$2" workers=on \
		read.engine=io_uring read.depth=16)"
	echo "io_uring-unregistered $(source_read "$1" "$2" read.engine=io_uring \
		read.depth=16 read.registered=off)"
	echo "io_uring-small-pages $(source_read "$1" "$2" read.engine=io_uring \
		read.depth=16 read.registered=off read.huge_pages=off)"
}

compare() { # name files bytes bar edge-of-a-picture-of-as-many-bytes
	local name=$1 files=$2 bytes=$3 bar=$4 edge=$5 i
	mkdir -p "$dir/files"
	"$bench" make "$dir/files" "$files" "$bytes" || exit 1
	sync -f "$dir"
	for i in $(seq 0 "$repeats"); do # the first round only warms up
		{
			echo "fio $(fio_read "$bytes")"
			echo "io_uring $(source_read "$files" "$bytes" read.engine=io_uring read.depth=16)"
			echo "pread-16-threads $(source_read "$files" "$bytes" read.engine=pread read.threads=16)"
			echo "pipeline $(pipeline_read "$files" "$edge" read.engine=io_uring read.depth=16)"
			echo "pipeline-pread $(pipeline_read "$files" "$edge" read.engine=pread read.threads=16)"
			[ -z "${ALL:-}" ] || more_of "$files" "$bytes"
		} >"$dir/round"
		[ "$i" -eq 0 ] || cat "$dir/round"
	done >"$dir/lines"
	echo "$name: $files files of $bytes bytes, direct, depth 16, $repeats rounds of $seconds s, fio memory: $memory"
	table "$bar" <"$dir/lines" || missed=1
	sed -n 's/^io_uring .* notes /  notes: /p' "$dir/lines" | sort -u
	rm -rf "$dir/files" "$dir/pictures"
}

missed=0
# Sizes are whole sectors, so that fio may read exactly as many bytes.
sizes=${SIZES:-97 428}
[[ $sizes != *97* ]] || compare "JPEG-like" 4000 97280 0.97 180
[[ $sizes != *428* ]] || compare "PNG-like" 1000 428032 0.97 378

mkdir -p "$dir/files"
"$bench" make "$dir/files" 4096 1024 || exit 1
for i in $(seq "$repeats"); do "$bench" memory "$dir/files" 4096 1024 0.3 || exit 1; done |
	sort -k2 -n | awk '{ v[NR] = $2 } END {
		printf "memory source, batches of 32, timed: %.1f ns a sample [%.1f-%.1f]   bar < 30: %s\n", \
			v[int((NR + 1) / 2)], v[1], v[NR], v[int((NR + 1) / 2)] < 30 ? "met" : "MISSED"
		exit v[int((NR + 1) / 2)] < 30 ? 0 : 1 }' || missed=1
exit $missed
