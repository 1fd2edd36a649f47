# A control group's limit on reads: ceilings are held to it, say it, and do not stand in the place of those without it; and the group is
# charged for what the rings read, so that a job that reads so is held to it as well.
. "$CLI/lib.sh"
group=
end_group() {
	[ -n "$group" ] || return 0
	until_true eval "rmdir $group 2>/dev/null; [ ! -d $group ]"
}
trap end_group EXIT

case $(stat -f -c %T .) in ext2/ext3 | xfs) ;; *) skip "on $(stat -f -c %T .) others than the reader may be charged for reads" ;; esac
disk=$(readlink -f "/sys/dev/block/$(stat -c '%Hd:%Ld' .)") || skip "no block device is shown under this folder"
[ ! -e "$disk/partition" ] || disk=${disk%/*} # a partition is limited as its disk
number=$(cat "$disk/dev") || skip "no block device is shown under this folder"
limit=20000000
v1=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,blkio,/ { print $2; exit }' /proc/mounts)
if [ -n "$v1" ]; then
	base=$v1$(sed -n 's/^[0-9]*:\(.*,\)\?blkio\(,[^:]*\)\?://p' /proc/self/cgroup)
	limit_reads() { echo "$number $limit" >"$group/blkio.throttle.read_bps_device"; }
	charged() { awk -v n="$number" '$1 == n && $2 == "Read" { print $3 }' "$group/blkio.throttle.io_service_bytes"; }
else
	v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$v2" ] || skip "no control groups of block devices are mounted here"
	base=$v2$(sed -n 's/^0:://p' /proc/self/cgroup)
	limit_reads() { echo "$number rbps=$limit" >"$group/io.max"; }
	charged() { sed -n "s/^$number rbytes=\([0-9]*\).*/\1/p" "$group/io.stat"; }
fi
mkdir "${base%/}/mlbench-reads-$$" 2>/dev/null || skip "no control group can be made in $base (root only; in a container, often nobody)"
group=${base%/}/mlbench-reads-$$
limit_reads 2>/dev/null || skip "$base limits no reads of $number"

# within COMMAND ...: in the group; ./bytes: what the command and its children read from disks.
within() {
	(echo "$BASHPID" >"$group/cgroup.procs" && exec python3 -c 'import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
open("bytes", "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock * 512))
sys.exit(status)' "$@") >out 2>err
}
before=0
# All of it is the group's; the least that makes this worth looking at.
is_charged() {
	local now
	now=$(charged)
	[ "$(cat bytes)" -ge "$1" ] || fail "only $(cat bytes) bytes came from the disk"
	[ $((${now:-0} - before)) -ge $(($(cat bytes) / 10 * 9)) ] || fail "$(cat bytes) bytes were read, and the group was charged for $((${now:-0} - before))"
	before=$now
}

cat >plan.ini <<'INI'
[disk]
kind = ceiling
tier = quick
budget = 10min
read.direct >= 10 GB/s
INI
within "$MLBENCH" accept plan.ini --tier quick --budget 30min --json --out accepted
is_charged 10000000
grep -q "a control group of this process limits reads to 19.1 MiB/s" out || fail "the finding does not name the limit"
[ "$(json '{f["action"] for c in d["checks"] for f in c["findings"]} <= {"configure", "none"}')" = True ] && ! grep -q SMART out ||
	fail "a control group's limit sends somebody to the drive"
python3 - $limit <<'PY' || fail "a ceiling that no job in the group would get"
import json, statistics, sys
values = [e["values"] for m in json.load(open("out"))["measured"] for e in m["values"] if e["figure"] == "read.direct"]
assert values and len(values[0]) >= 4, values
assert statistics.median(values[0]) < 1.4 * float(sys.argv[1]), values[0]
PY

# The data sheet's, at every depth and size; it is kept for this limit only.
within "$MLBENCH" probe --quick --json || fail "no probe under a limit"
is_charged 10000000
cp out limited.json
python3 - $limit <<'PY' || fail "a data sheet that no job in the group would get"
import json, sys
d = json.load(open("out"))
assert "limits reads to 19.1 MiB/s" in d["storage"], d["storage"]
reads = [r["bytes_per_s"] for r in d["reads"] if r["cold"]]
assert (len(reads) >= 4 or any("out of time" in m for m in d["missing"])) and max(reads, default=0) < 1.5 * float(sys.argv[1]), reads
PY
write_config
sed -i "s/= 18/= 128/" tiny.ini
expect 0 "$MLBENCH" gen tiny.ini
expect_measured "$MLBENCH" run tiny.ini $ONE --verbose --out free
prints "ceilings: none"

# Reads of a run, whole files in chains and in stages.
for linked in on off; do
	within "$MLBENCH" run tiny.ini $ONE --set read.engine=io_uring --set read.direct=on --set read.linked=$linked --out "linked-$linked" || [ $? -eq 3 ] ||
		fail "no run under a limit"
	is_charged 1000000
done
