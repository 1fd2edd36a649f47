# A CPU quota on a group above the job's own: it is found, named and counted, whatever the machine does meanwhile; so is one that
# is set while the job runs.
. "$CLI/lib.sh"
write_config
above=
end_groups() {
	[ -n "$above" ] || return 0
	until_true eval "rmdir $above/job $above 2>/dev/null; [ ! -d $above ]"
}
trap end_groups EXIT

v1=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,cpu,/ { print $2; exit }' /proc/mounts)
v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
name=mlbench-quota-$$
# quota US: of periods of 100 ms; -1: none.
if [ -n "$v1" ]; then
	own=$(sed -n 's/^[0-9]*:\(.*,\)\?cpu\(,[^:]*\)\?://p' /proc/self/cgroup)
	quota() { echo "$1" >"$above/cpu.cfs_quota_us"; }
	base=$v1${own%/}
else
	own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	quota() { echo "${1/#-1/max} 100000" >"$above/cpu.max"; }
	base=$v2${own%/}
fi
[ -d "$base" ] || skip "the CPU control group of this shell is not mounted"
mkdir "$base/$name" 2>/dev/null || skip "no control group can be made in $base (root only; in a container, often nobody)"
above=$base/$name
mkdir "$above/job" && quota 20000 2>/dev/null || skip "$base hands no CPU controller on"

within() { (echo "$BASHPID" >"$above/job/cgroup.procs" && exec "$@") >out 2>err; }
within "$MLBENCH" doctor || true
grep -q "$name allows 0.20 of" out || fail "the doctor does not name the group"
# Longer than some periods: in the 60 ms of tiny.ini none of 100 ms need end.
within "$MLBENCH" run tiny.ini $ONE --set decode.workers=4 --set inject.decode_factor=20 --set measure.duration=400ms --out limited ||
	[ $? -eq 3 ] || fail "no run under a quota"
# What a quota holds back is no fault of the cores: nobody is sent to the vendor.
cat >plan.ini <<'INI'
[cores]
kind = ceiling
tier = quick
decode.all >= 1e9 samples/s
INI
within "$MLBENCH" accept plan.ini --tier quick --budget 10min --json --out accepted
# Beside others that have the cores, the quota may hold back nothing.
[ "$(json '{c["is"] for m in d["measured"] for c in m["conditions"]} & {"limited", "busy"} != set()')" = True ] || fail "the quota is no condition of the check"
[ "$(json '{f["action"] for c in d["checks"] for f in c["findings"]} <= {"configure", "none"}')" = True ] &&
	! json '[f["remedy"] for c in d["checks"] for f in c["findings"]]' | grep -q vendor ||
	fail "a quota sends somebody to the vendor"
python3 - "$name" "$own" <<'PY' || fail "the result of a run under a quota"
import json, sys
lines = [json.loads(line) for line in open("limited/points.jsonl")]
facts = json.dumps(lines[0]["environment"])
assert sys.argv[1] in facts and "cpu_limit_period" in facts, facts
m = [line for line in lines if line.get("kind") == "repetition"][0]
# Of this group and of one above this shell, which others share, the one that throttled more.
if m["quota_group"].endswith("/" + sys.argv[1]):
    assert m["quota_cores"] == 0.2, m["quota_cores"]
else:
    assert m["quota_group"] in sys.argv[2] and m["throttled_share"] > 0, m["quota_group"]
assert 0 <= m["throttled_share"] <= 1 and m["throttled_seconds"] >= 0
last = dict(zip(m["window_columns"], m["windows"][-1]))
assert last["quota_periods"] > 0 and 0 <= last["quota_throttled"] <= last["quota_periods"], last
assert 0 < last["own_cpu"] and last["decode.run_queue"] >= 0, last
PY

# Without one nothing is throttled, and that is known.
quota -1
within "$MLBENCH" run tiny.ini $ONE --out free || [ $? -eq 3 ] || fail "no run without a quota"
python3 - <<'PY' || fail "the result of a run without a quota"
import json
m = [json.loads(line) for line in open("free/points.jsonl")][1]
if m["quota_group"] == "":  # else a group above this shell has one
    assert m["throttled_share"] == 0 and m["quota_cores"] is None, m
PY

# Set, or raised, while it runs: tried again where this script was so late that the run was over.  What is told is the quota that
# throttled, not the one that it had before or has now.
# changes BEFORE AFTER
changes() {
	for seconds in 3 10 40; do
		quota "$1"
		rm -rf changed
		within "$MLBENCH" run tiny.ini $ONE --set decode.workers=4 --set inject.decode_factor=20 --set measure.duration=${seconds}s \
			--out changed &
		until_true grep -q . "$above/job/cgroup.procs"
		sleep 1
		quota "$2"
		wait $! || [ $? -eq 3 ] || fail "no run whose quota changes"
		grep -q "\"quota_group\":\"[^\"]" free/points.jsonl && skip "a group above this shell may throttle more than one that changes while it runs"
		python3 - "$name" "$1" "$2" <<'PY' && return
import json, sys
m = [json.loads(line) for line in open("changed/points.jsonl")][1]
before, after = (max(0, int(us)) / 1e5 for us in sys.argv[2:])
if not m["quota_group"].endswith("/" + sys.argv[1]):
    sys.exit(1)
column = {name: i for i, name in enumerate(m["window_columns"])}
cores = [row[column["quota_cores"]] for row in m["windows"]]
throttled = [0] + [row[column["quota_throttled"]] for row in m["windows"]]
if sorted(set(cores), key=cores.index) != [before, after]:
    sys.exit(1)  # it changed before the first window or after the last
tight = min(q for q in (before, after) if q > 0)
held = any(b > a for a, b, q, t in zip(throttled, throttled[1:], cores, m["windows"])
           if q == tight and t[column["t"]] > m["cut_seconds"] + 0.2)
sys.exit(held and m["quota_cores"] != tight)
PY
	done
	fail "a quota that changed from $1 to $2 us while it ran is not in the result"
}
changes -1 20000
changes 20000 400000
