#!/usr/bin/env bash
# Tar shards in large requests against the same samples as files of 4 KB, read cold from a slow disk, in turns: samples a
# second of reading alone (codec.name = null), medians.  The disk is slow by blkio (control groups, version 1): IOPS reads and
# BPS bytes a second, for this process alone; where that cannot be had, by the injector, and the first line says which.
#   tests/bench/bench_packed.sh BUILD_FOLDER      SAMPLES=100000 REPEATS=3 IOPS=1000 BPS=100000000 BENCH_DIR=/var/tmp
# Exits 1 when shards give less than 5 times as many.
set -u
build=${1:-build/release}
samples=${SAMPLES:-100000}
repeats=${REPEATS:-3}
iops=${IOPS:-1000}
bps=${BPS:-100000000}
[ -x "$build/mlbench" ] || make --no-print-directory "$build/mlbench" >&2 || exit 2
mlbench=$(realpath "$build/mlbench")
dir=$(mktemp -d "${BENCH_DIR:-/var/tmp}/mlbench-packed-XXXXXX") || exit 2
group=/sys/fs/cgroup/blkio/mlbench-packed-$$
finish() {
	rm -rf "$dir"
	[ ! -d "$group" ] || rmdir "$group" 2>/dev/null
}
trap finish EXIT
trap 'exit 130' INT TERM
cd "$dir" || exit 2
cat >packed.ini <<INI
[dataset]
recipe = photo
format = raw
samples = $samples
width = 36
height = 37
size_sigma = 0
shard_samples = 10000
[read]
order = shards
cache = cold
depth = 8
[codec]
name = null
[augment]
size = 16
[batch]
size = 64
[step]
backend = null
[measure]
duration = 5s
warmup = 500ms
repeats = 1
limits = off
INI
for form in files tar; do
	"$mlbench" gen packed.ini --set dataset.path=$form --set dataset.container=$form >/dev/null 2>&1 || { echo "bench_packed: cannot generate"; exit 2; }
done
sync
slow=()
# The disk that the folder lies on; a partition is throttled as its disk.
device=$(lsblk -no PKNAME,KNAME "$(findmnt -no SOURCE -T "$dir")" 2>/dev/null | awk '{print $1 ? $1 : $NF; exit}')
number=$(cat "/sys/class/block/$device/dev" 2>/dev/null)
if [ -n "$number" ] && mkdir "$group" 2>/dev/null && echo "$number $iops" >"$group/blkio.throttle.read_iops_device" 2>/dev/null &&
	echo "$number $bps" >"$group/blkio.throttle.read_bps_device" 2>/dev/null; then
	echo "slow by blkio: $iops reads and $bps bytes a second of $device"
else
	slow=(--set inject.read_latency=8ms --set inject.read_bandwidth="$bps")
	echo "slow by the injector: 8 ms a read, 8 in flight, $bps bytes a second"
fi
measure() { # FORM MORE ...: samples a second
	local form=$1
	shift
	(
		[ ! -d "$group" ] || echo $BASHPID >"$group/tasks"
		"$mlbench" run packed.ini --set dataset.path="$form" --set dataset.container="$form" "${slow[@]}" "$@" --json --out "out_$form" 2>err
	) >out || { [ $? -eq 3 ] || cat err; }
	python3 -c 'import json; print(json.load(open("out"))["points"][0]["throughput"]["median"])'
	rm -rf "out_$form"
}
for ((i = 0; i < repeats; i++)); do
	measure files >>files.figures
	measure tar --set read.request=1MiB >>tar.figures
	measure tar >>parts.figures
done
python3 - <<'PY'
import statistics, sys
figures = {name: [float(x) for x in open(name + ".figures")] for name in ("files", "tar", "parts")}
middle = {name: statistics.median(values) for name, values in figures.items()}
for name, what in (("files", "files"), ("parts", "tar, each sample by itself"), ("tar", "tar, requests of 1 MiB")):
    print(f"{what:28} {middle[name]:10.0f} samples/s [{min(figures[name]):.0f}-{max(figures[name]):.0f}]")
ratio = middle["tar"] / middle["files"]
print(f"tar shards against files: {ratio:.1f} times (bar: 5)")
sys.exit(ratio < 5)
PY
