#!/usr/bin/env bash
# How many instructions a sample of the smallest kind takes with a timeline that is scheduled and not recording, against
# none: counted by valgrind, on which no other work on the machine has a bearing.  Threads take turns there, so that who
# waits for whom differs a little from run to run: hence a spread.  Runs of one length are taken from longer ones, so that
# what happens once is left out.  Bar: 1 % (of CPU time; of instructions it is what can be counted).
#   tests/bench/bench_instructions.sh BUILD_FOLDER [ROUNDS]       exit status 77: there is no valgrind
set -u
program=$1/bench/bench_timeline
rounds=${2:-5}
short=2 long=18 samples=1024 # epochs; samples of one, as the program has it
command -v valgrind >/dev/null || {
	echo "bench_instructions: skipped: valgrind is not installed (package valgrind), and nothing else here counts instructions"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count SCHEDULE EPOCHS
count() {
	if ! valgrind --tool=callgrind --callgrind-out-file="$work/out" "$program" --once "$1" "$2" >"$work/text" 2>&1; then
		cat "$work/text" >&2
		return 1
	fi
	awk '/Collected :/ { print $NF }' "$work/text"
}

for ((round = 0; round < rounds; round++)); do
	for schedule in "" 1000000000,0,0,1,1; do
		first=$(count "$schedule" $short) && all=$(count "$schedule" $long) || exit 1
		echo "${schedule:-none} $((all - first))"
	done
done | awk -v samples=$(((long - short) * samples)) -v rounds="$rounds" '
	{ each[$1 == "none" ? 0 : 1, n[$1 == "none" ? 0 : 1]++] = $2 / samples }
	function range(way,   i) {
		least = most = each[way, 0]; sum = 0
		for (i = 0; i < n[way]; i++) {
			sum += each[way, i]
			if (each[way, i] < least) least = each[way, i]
			if (each[way, i] > most) most = each[way, i]
		}
		mean = sum / n[way]
	}
	END {
		if (n[0] < 1 || n[0] != n[1]) { print "bench_instructions: nothing was counted"; exit 1 }
		range(0); none = mean; none_least = least; none_most = most
		range(1)
		cost = (mean / none - 1) * 100
		highest = (most / none_least - 1) * 100
		printf "instructions a sample, mean of %d [least, most]: none %.0f [%.0f %.0f], scheduled %.0f [%.0f %.0f]\n",
			rounds, none, none_least, none_most, mean, least, most
		printf "scheduled and not recording: %+.3f %% [%+.3f %+.3f]; bar 1 %%: %s\n", cost,
			(least / none_most - 1) * 100, highest, (highest <= 1 ? "held" : (cost > 1 ? "MISSED" : "not decided"))
		exit (cost > 1)
	}'
