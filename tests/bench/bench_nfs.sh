#!/usr/bin/env bash
# Whole files from a server on this machine (nfs-ganesha, in memory): the nfs engine with one thread, 16 in flight, against
# libnfs's own synchronous calls on 16 threads, a context each; and the CPU a file costs.  Interleaved; medians [min-max].
# Also one file at a time: of a large one several READs are on the way.  Far from a server that shows:
#   tests/bench/bench_nfs.sh BUILD_FOLDER      REPEATS=7 SECONDS_EACH=1
#   tests/nfs/with_server.sh --latency 5 tests/bench/bench_nfs.sh BUILD_FOLDER
# Exits 1 when the bar is missed, 77 where there is no server.  fio's nfs engine is measured where fio has it.
set -u
build=$(readlink -f "${1:-build/release}")
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${NFS_URL:-}" ]; then
	for bench in bench_source bench_nfs; do
		[ -x "$build/bench/$bench" ] || make --no-print-directory "${1:-build/release}/bench/$bench" >&2 || exit 2
	done
	exec "$here/../nfs/with_server.sh" --port $((23000 + $$ % 5000)) "$here/bench_nfs.sh" "$build"
fi
seconds=${SECONDS_EACH:-1}
missed=0
compare() { # FILES BYTES BAR (0: none)
	local files=$1 bytes=$2 bar=$3 set=set$2 i
	"$build/bench/bench_source" make "$NFS_FOLDER/$set" "$files" "$bytes" || exit 1
	engine() {
		"$build/bench/bench_source" read "$NFS_URL/$set" "$files" "$bytes" "$seconds" read.engine=nfs read.direct=off "$@"
	}
	for i in $(seq 0 "${REPEATS:-7}"); do # the first round only warms up
		{
			echo "libnfs-16-threads $("$build/bench/bench_nfs" 127.0.0.1 "$NFS_PORT" "/export/$set" "$files" "$bytes" "$seconds" 16)"
			echo "nfs-16-in-flight $(engine read.depth=16)"
			echo "libnfs-1-thread $("$build/bench/bench_nfs" 127.0.0.1 "$NFS_PORT" "/export/$set" "$files" "$bytes" "$seconds" 1)"
			echo "nfs-1-in-flight $(engine read.depth=1)"
			echo "nfs-4-connections $(engine read.depth=16 read.connections=4)"
			echo "pread-16-threads $(engine read.engine=pread read.threads=16)"
			if fio --enghelp 2>/dev/null | grep -qx '[[:space:]]*nfs'; then
				echo "fio-nfs $(fio --name=nfs --ioengine=nfs --nfs_url="nfs://127.0.0.1/export/$set/?version=4&nfsport=$NFS_PORT" \
					--rw=randread --bs="$bytes" --nrfiles="$files" --filesize="$bytes" --iodepth=16 --time_based --runtime="$seconds" \
					--thread --output-format=json | python3 -c '
import json, sys
read = json.load(sys.stdin)["jobs"][0]
cpu = (read["usr_cpu"] + read["sys_cpu"]) / 100 * read["job_runtime"] * 1000 / read["read"]["total_ios"]
print("MB/s %.1f cpu_us/file %.2f" % (read["read"]["bw_bytes"] / 1e6, cpu))')"
			fi
		} >"$NFS_FOLDER/round"
		[ "$i" -eq 0 ] || cat "$NFS_FOLDER/round"
	done >"$NFS_FOLDER/lines"
	echo "$files files of $bytes bytes, ${REPEATS:-7} rounds of $seconds s"
	python3 - "$bar" "$NFS_FOLDER/lines" <<'PY' || missed=1
import statistics, sys
bar, rows = float(sys.argv[1]), {}
for line in open(sys.argv[2]):
    word = line.split()
    rows.setdefault(word[0], []).append((float(word[2]), float(word[4])))
def spread(values, digits):
    return "%.*f [%.*f-%.*f]" % (digits, statistics.median(values), digits, min(values), digits, max(values))
print("  %-20s %24s %24s" % ("", "MB/s", "CPU us a file"))
for name, pairs in rows.items():
    print("  %-20s %24s %24s" % (name, spread([p[0] for p in pairs], 0), spread([p[1] for p in pairs], 1)))
missed = False
for mine, other in ("nfs-16-in-flight", "libnfs-16-threads"), ("nfs-1-in-flight", "libnfs-1-thread"), ("nfs-16-in-flight", "fio-nfs"):
    if other not in rows:
        print("  %s: not measured, it is not packaged here" % other)
        continue
    ratios = [a[0] / max(b[0], 0.1) for a, b in zip(rows[mine], rows[other])]
    bound = bar > 0 and other == "libnfs-16-threads"
    met = not bound or statistics.median(ratios) >= bar
    missed = missed or not met
    print("  %s / %s: %s   %s" % (mine, other, spread(ratios, 2), "bar >= %.1f: %s" % (bar, "met" if met else "MISSED")
          if bound else "no bar"))
sys.exit(missed)
PY
}
compare 2000 10000 1.2
compare 1000 100000 1.2
# Of large files one connection is the limit, which sixteen contexts are not held to.
compare 20 8000000 0
exit $missed
