#!/usr/bin/env bash
# How often mlbench accept is right: the quick tier of the shipped plan on this node, again and again, as it is and under conditions
# that are planted around it; each run stands for a node of a fleet.
#   tests/bench/bench_accept.sh BUILD_FOLDER     HEALTHY=16 PLANTED=1 KEEP=FOLDER
# A healthy run must not FAIL.  A planted one must FAIL (or, of others' load, not PASS), and name what was planted.  Run it on a quiet
# machine, as root: conditions that cannot be planted here are left out, and said.  KEEP: the results stay there, for mlbench fleet.
set -u
build=${1:-build/release}
healthy=${HEALTHY:-16}
planted=${PLANTED:-1}
program=$(realpath "$build/mlbench") || exit 2
plan=$(realpath configs/accept/node.ini) || exit 2
dir=$(mktemp -d /var/tmp/mlbench-accept-XXXXXX) || exit 2
keep=${KEEP:-$dir/results}
mkdir -p "$keep" "$dir/storage" || exit 2
groups=() hogs=()
end_condition() {
	[ ${#hogs[@]} -eq 0 ] || kill "${hogs[@]}" 2>/dev/null
	hogs=()
	for group in ${groups[@]+"${groups[@]}"}; do
		for _ in $(seq 50); do rmdir "$group" 2>/dev/null && break; sleep 0.1; done
	done
	groups=()
}
end() { end_condition; rm -rf "$dir"; }
trap end EXIT
trap 'exit 130' INT TERM

# group CONTROLLER FILE VALUE: a control group (v1) with that limit, in $group.
group() {
	local base
	base=$(awk -v c="$1" '$3 == "cgroup" && ("," $4 ",") ~ ("," c ",") { print $2; exit }' /proc/mounts)
	[ -n "$base" ] || return 1
	group=$base/mlbench-accept-$$
	mkdir "$group" 2>/dev/null || return 1
	groups+=("$group")
	echo "$3" >"$group/$2" 2>/dev/null
}
accept() { "$program" accept "$plan" --tier quick --path "$dir/storage" --node "$node" --out "$keep/$node" --json >"$dir/out" 2>"$dir/err"; }
accept_inside() { (echo "$BASHPID" >"$group/cgroup.procs" && accept); }

as_it_is() { accept; }
# Three loops on one core: what is pinned there gets a quarter of it.
hog() {
	for _ in 1 2 3; do
		taskset -c 1 sh -c 'while :; do :; done' &
		hogs+=($!)
	done
	accept
}
quota() { group cpu cpu.cfs_quota_us 60000 && accept_inside; }
slow_disk() {
	local device
	device=$(stat -c '%Hd:%Ld' "$dir/storage")
	group blkio blkio.throttle.read_bps_device "$device 20000000" &&
		accept_inside
}
wrong_product() { MLBENCH_ACCEPT_INJECT=gemm:core=1:nth=3 accept; }
stale_block() { MLBENCH_ACCEPT_INJECT=storage:block=7:kind=stale accept; }
# What must be among the findings that fail.
declare -A names=([hog]="core 1" [quota]="cgroup.withheld" [slow_disk]="read.direct" [wrong_product]="repeatable.gemm" [stale_block]="repeatable.storage")

declare -A right wrong none
number=0
# one CONDITION
one() {
	number=$((number + 1))
	node=$(printf 'n%02d' $number)
	"$1"
	end_condition
	[ -s "$keep/$node/accept.json" ] || { echo "  $1 could not be planted here"; return; }
	local said
	said=$(python3 - "$keep/$node/accept.json" "$1" "${names[$1]-}" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
# A core that others sit on is not judged, and named.
busy = sys.argv[2] == "hog"
fails = [f for c in d["checks"] for f in c["findings"] if (f.get("condition") == "busy" if busy else f["verdict"] == "FAIL")]
named = any(sys.argv[3] in (f["place"], f["figure"]) for f in fails)
if sys.argv[2] == "as_it_is":
    kind = "right" if d["verdict"] in ("PASS", "WARN") else "none" if d["verdict"] == "ERROR" else "wrong"
else:
    kind = "right" if d["verdict"] == ("ERROR" if busy else "FAIL") and named else "none" if d["verdict"] == "ERROR" else "wrong"
print(kind, d["sentence"][:140])
PY
	)
	case ${said%% *} in
	right) right[$1]=$((${right[$1]:-0} + 1)) ;;
	none) none[$1]=$((${none[$1]:-0} + 1)) ;;
	*) wrong[$1]=$((${wrong[$1]:-0} + 1)) ;;
	esac
	echo "  $node $1: $said"
}

order=()
for _ in $(seq "$healthy"); do order+=(as_it_is); done
for _ in $(seq "$planted"); do order+=(hog quota slow_disk wrong_product stale_block); done
while read -r condition; do one "$condition"; done < <(printf '%s\n' "${order[@]}" | shuf --random-source=<(yes "${SEED:-1}"))
status=0
printf '%-14s %6s %6s %11s\n' condition right wrong 'no verdict'
for condition in as_it_is hog quota slow_disk wrong_product stale_block; do
	printf '%-14s %6d %6d %11d\n' "$condition" "${right[$condition]:-0}" "${wrong[$condition]:-0}" "${none[$condition]:-0}"
	[ "${wrong[$condition]:-0}" -eq 0 ] || status=1
done
exit $status
