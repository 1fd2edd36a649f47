#!/usr/bin/env bash
# A CPU quota that is set in the middle of a burn: the burn says that it was throttled, since when, and how much each load on
# the cores lost since then.  Needs root and control groups (v1, or v2 with the cpu controller), and a machine that does
# little else: it is no part of make check.
#   tests/accept/burn_quota.sh BUILD_FOLDER
set -u
cd "$(dirname "$0")/../.." || exit 2
mlbench=$PWD/${1:-build/release}/mlbench
work=$(mktemp -d)
group=
end_it() {
	[ -z "$group" ] || for _ in $(seq 50); do rmdir "$group" 2>/dev/null && break || sleep 0.1; done
	rm -rf "$work"
}
trap end_it EXIT
skip() { echo "skipped: $*"; exit 77; }

v1=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,cpu,/ { print $2; exit }' /proc/mounts)
v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -n "$v1" ]; then
	own=$(sed -n 's/^[0-9]*:\(.*,\)\?cpu\(,[^:]*\)\?://p' /proc/self/cgroup)
	group=$v1${own%/}/mlbench-burn-$$
	quota() { echo "$1" >"$group/cpu.cfs_quota_us"; }
else
	own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	group=$v2${own%/}/mlbench-burn-$$
	quota() { echo "${1/#-1/max} 100000" >"$group/cpu.max"; }
fi
mkdir "$group" 2>/dev/null || { group=; skip "no control group can be made (root only)"; }
quota -1 2>/dev/null || skip "no CPU controller"

cat >"$work/burn.ini" <<'INI'
[burn]
kind = burn
for = 30s
size = 32MiB
loads = decode, gemm, write
burn.drift = <= 10 %
burn.throttled = <= 10 %
burn.wrong = <= 0
INI
cd "$work" || exit 2
(echo "$BASHPID" >"$group/cgroup.procs" && exec "$mlbench" accept burn.ini --out result --json >out.json 2>err) &
run=$!
# Of what was handed over nothing is seen until the end: the file that is written again and again tells that it burns.
for _ in $(seq 300); do
	compgen -G ".mlbench-accept-*/burn-write" >/dev/null && break
	sleep 0.05
done
sleep 18
quota $((6000 * $(nproc)))
changed=$(date +%s.%N)
wait "$run"
status=$?
python3 - "$changed" "$status" <<'PY'
import datetime, json, sys
changed, status = float(sys.argv[1]), int(sys.argv[2])
d = json.load(open("result/accept.json"))
check = d["measured"][0]
started = datetime.datetime.strptime(d["started"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc).timestamp()
at = changed - started - check["started_s"]  # "started" is in whole seconds
print("the quota was set %.1f to %.1f s into the check" % (at - 1, at))
ok = status == 1 and d["verdict"] == "FAIL"
throttled = [e for e in check["events"] if e["figure"] == "burn.throttled"]
for event in throttled:
    print("throttled:", event["place"], "at %.1f s:" % event["at_s"], event["text"])
ok = ok and any(at - 2.5 <= e["at_s"] <= at + 2.5 for e in throttled)
for load in ("decode", "gemm"):
    lost = [f["value"] for f in check["facts"] if f["figure"] == "burn.drift" and f["place"] == load][0]
    events = [e for e in check["events"] if e["figure"] == "burn.drift" and e["place"] == load]
    print("drift of %s: %.0f %% less;" % (load, 100 * lost), [(round(e["at_s"], 1), e["text"]) for e in events])
    ok = ok and lost > 0.3 and any(at - 2.5 <= e["at_s"] <= at + 2.5 for e in events)
print(d["sentence"])
print("burn_quota:", "passed" if ok else "FAILED")
sys.exit(0 if ok else 1)
PY
