#!/usr/bin/env bash
# Runs the tests where they have little: within half a core, with a hog on each core, and stopped at random moments.
#   tests/any_machine.sh [--quota|--hogs|--stops] [COMMAND …]      by default the first two, and tests/run.sh build/release
# Ends with one line a condition; exit status 1 if the command failed under one, 3 where a condition cannot be made.
# Nothing of it is left behind: the group and the hogs go with this script, and the hogs after HOURS at the latest.
set -u
cd "$(dirname "$0")/.." || exit 2
QUOTA_MS=50 PERIOD_MS=100 HOURS=6
conditions="quota hogs"
case ${1:-} in
--quota | --hogs | --stops) conditions=${1#--}; shift ;;
-*) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || set -- tests/run.sh build/release
log=$(mktemp)
group= hogs=() command= stopper=

# A group of its own, empty again when this returns.
end_group() {
	[ -n "$group" ] && [ -d "$group" ] || return 0
	local i
	for i in 1 2 3 4 5 6 7 8 9 10; do
		xargs -r kill -KILL <"$group/cgroup.procs" 2>/dev/null
		rmdir "$group" 2>/dev/null && break
		sleep 0.2
	done
	[ ! -d "$group" ] || echo "any_machine.sh: $group could not be removed" >&2
	group=
}
end_hogs() {
	[ ${#hogs[@]} -eq 0 ] || { kill "${hogs[@]}"; wait "${hogs[@]}"; } 2>/dev/null
	hogs=()
}
# Until it is ended: a quarter of the processes below this script for 0.2 to 1.5 s, again and again.
stop_at_random() {
	local some= self=$BASHPID
	trap '[ -z "$some" ] || kill -CONT $some 2>/dev/null; exit' TERM
	while sleep 0.$((RANDOM % 9 + 1)); do
		some=$(ps -eo pid=,ppid=,comm= | awk -v root=$$ -v self="$self" -v seed=$RANDOM '
			BEGIN { srand(seed) }
			{ parent[$1] = $2; name[$1] = $3 }
			END { for (pid in parent) {
				for (at = pid; at && at != root && at != self; at = parent[at]);
				if (at == root && pid != root && name[pid] != "tee" && rand() < 0.25) print pid } }')
		[ -n "$some" ] || continue
		kill -STOP $some 2>/dev/null
		sleep $((RANDOM % 2)).$((RANDOM % 4 + 2))
		kill -CONT $some 2>/dev/null
	done
}
end_stops() {
	[ -z "$stopper" ] || { kill "$stopper"; wait "$stopper"; } 2>/dev/null
	stopper=
}
trap 'end_group; end_hogs; end_stops; [ -z "$command" ] || kill $command 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM HUP

# Sets group to a new one that has half a core, or why to the reason that there is none.
make_group() {
	local mount
	mount=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,cpu,/ { print $2; exit }' /proc/mounts)
	if [ -n "$mount" ]; then
		group=$mount/mlbench-any-machine-$$
		if mkdir "$group" 2>/dev/null && echo $((PERIOD_MS * 1000)) >"$group/cpu.cfs_period_us" &&
			echo $((QUOTA_MS * 1000)) >"$group/cpu.cfs_quota_us"; then return 0; fi
		why="no group with a quota can be made in $mount (root only; in a container, often nobody)"
		end_group
		return 1
	fi
	mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	why="no cgroup file system with the cpu controller is mounted"
	[ -n "$mount" ] && grep -qw cpu "$mount/cgroup.controllers" 2>/dev/null || return 1
	why="the cpu controller cannot be handed on in $mount, or no group be made there (root only; in a container, often nobody)"
	grep -qw cpu "$mount/cgroup.subtree_control" || echo +cpu 2>/dev/null >"$mount/cgroup.subtree_control" || return 1
	group=$mount/mlbench-any-machine-$$
	mkdir "$group" 2>/dev/null && echo "$((QUOTA_MS * 1000)) $((PERIOD_MS * 1000))" >"$group/cpu.max" && return 0
	end_group
	return 1
}

# within CONDITION COMMAND …: its output, and what it came to.
within() {
	local condition=$1 begun=$SECONDS status last
	shift
	(
		[ -z "$group" ] || echo "$BASHPID" >"$group/cgroup.procs" || exit 3
		exec "$@"
	) > >(tee "$log") 2>&1 &
	command=$!
	wait $command # a trap is heard in a wait
	status=$?
	command=
	last=$(grep -oE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$log" | tail -n 1)
	results+=("$condition: ${last:-exit status $status}, $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s")
	[ "$status" -eq 0 ] || result=1
}

results=() result=0
for condition in $conditions; do
	case $condition in
	quota)
		if make_group; then
			within "half a core" "$@"
		else
			results+=("half a core: not tried: $why")
			[ $result -ne 0 ] || result=3
		fi
		end_group
		;;
	hogs)
		for cpu in $(taskset -pc $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }'); do
			timeout $((HOURS * 3600)) taskset -c "$cpu" sh -c 'while :; do :; done' &
			hogs+=($!)
		done
		within "a hog on each of ${#hogs[@]} cores" "$@"
		end_hogs
		;;
	stops)
		stop_at_random &
		stopper=$!
		within "stopped at random" "$@"
		end_stops
		;;
	esac
done
printf '%s\n' "${results[@]}"
exit $result
