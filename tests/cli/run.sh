#!/usr/bin/env bash
# Runs every NN_name.sh here, each in an empty folder of its own, and ends with "N passed, N failed, N skipped".
#   MLBENCH=path tests/cli/run.sh [NN_name ...]      UPDATE=1: write the golden outputs anew
# tests/run.sh, which has other tests run beside these, takes it in three steps, with a folder of its own:
#   --prepare FOLDER   builds the helpers and prints the tests, the longest first
#   --one FOLDER TEST  runs one, and shows what it wrote
#   --judge FOLDER     counts
# A test exits 0 (passed), 77 (skipped; its last line says why) or anything else (failed; its output is shown).
set -u
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
export ROOT
: "${MLBENCH:=$ROOT/build/release/mlbench}"
MLBENCH=$(readlink -f "$MLBENCH") || exit 2
[ -x "$MLBENCH" ] || { echo "cli: no program at '$MLBENCH'"; exit 2; }
export MLBENCH CLI="$here" LC_ALL=C.UTF-8 COLUMNS=100
unset NO_COLOR MLBENCH_DATA
step=all
case ${1:-} in
--prepare | --one | --judge)
	step=${1#--} shared=$2
	shift 2
	;;
*) shared=$(mktemp -d) ;;
esac
export TOOLS="$shared"
case $step in all | judge) trap 'chmod -R u+rwX "$shared" 2>/dev/null; rm -rf "$shared"' EXIT ;; esac

# Helpers in C; a test that needs one that could not be built is skipped.
helpers() {
	local source
	for source in "$here"/*.c; do
		"${CC:-gcc}" -std=gnu17 -O1 -Wall -o "$TOOLS/$(basename "$source" .c)" "$source" 2>/dev/null
	done
}

# Some at a time, the longest first: one that begins last is waited for alone.  A test with a line "# measuring" runs
# where that is asked for and nowhere else (tests/measuring.h).
jobs=${TEST_JOBS:-3}
long='56_dead_mount|41_ranks_faults|41_ranks_network|41_ranks_unequal|38_verify_ranks|39_slurm|43_trace_ranks|85_accept_ranks|36_dist|97_bisect|98_reproduce|91_observe|80_accept|82_accept_corruption|83_accept_ceiling|84_accept_devices|59_read_limit|05_interrupt|99_efficiency|20_diagnose|22_proof|17_announced|43_trace|21_story|35_several_devices|31_sequential|48_history|42_charts|55_check|64_recipes|72_kinds|67_nfs|68_nfs_ganesha|99_slow_mount'

run_test() { # script
	local name work begun
	name=$(basename "$1" .sh)
	work="$TOOLS/$name"
	export XDG_CACHE_HOME="$TOOLS/$name.cache" # the user's own kept ceilings and manifests stay out
	export XDG_STATE_HOME="$TOOLS/$name.state" # so do labs' keys
	chmod -R u+rwX "$work" 2>/dev/null
	rm -rf "$work"
	mkdir -p "$work" "$XDG_CACHE_HOME"
	begun=$(date +%s%N)
	(cd "$work" && timeout -k 5 2400 bash -u "$1") >"$TOOLS/$name.log" 2>&1
	echo "$? $((($(date +%s%N) - begun) / 1000000))" >"$TOOLS/$name.status"
	chmod -R u+rwX "$work" 2>/dev/null
}
export -f run_test

if [ "$step" = one ]; then
	run_test "$1"
	cat "$TOOLS/$(basename "$1" .sh).log"
	exit 0
fi
tests=()
for test in "$here"/[0-9][0-9]_*.sh; do
	name=$(basename "$test" .sh)
	if [ $# -gt 0 ]; then
		case " $* " in *" $name "*) ;; *) continue ;; esac
	fi
	[ -n "${MLBENCH_MEASURING:-}" ] || ! grep -qx '# measuring' "$test" || continue
	tests+=("$test")
done
longest_first() {
	printf '%s\n' "${tests[@]}" | grep -E "/($long)\.sh\$"
	printf '%s\n' "${tests[@]}" | grep -vE "/($long)\.sh\$"
}
case $step in
prepare)
	helpers
	[ ${#tests[@]} -eq 0 ] || longest_first
	exit 0
	;;
all)
	helpers
	[ ${#tests[@]} -eq 0 ] || longest_first | tr '\n' '\0' | xargs -0 -n 1 -P "$jobs" bash -c 'run_test "$1"' run_test
	;;
esac

passed=0 failed=0 skipped=0
failures=()
for test in "${tests[@]}"; do
	name=$(basename "$test" .sh)
	status= took=0
	[ -e "$shared/$name.status" ] && read -r status took <"$shared/$name.status"
	case $status in
	0)
		passed=$((passed + 1))
		printf 'ok    %-26s %5d ms\n' "$name" "$took"
		;;
	77)
		skipped=$((skipped + 1))
		printf 'skip  %-26s %s\n' "$name" "$(tail -n 1 "$shared/$name.log")"
		;;
	*)
		failed=$((failed + 1))
		failures+=("$name")
		;;
	esac
done
# Last, and of several less each: of a long log often only the last 30 lines are seen.
for name in ${failures[@]+"${failures[@]}"}; do
	status="not run" took=0
	[ -e "$shared/$name.status" ] && read -r status took <"$shared/$name.status"
	printf 'FAIL  %-26s exit %s after %d ms\n' "$name" "$status" "$took"
	tail -n $((20 / failed > 3 ? 20 / failed : 3)) "$shared/$name.log" | sed 's/^/      /'
done
[ "$failed" -eq 0 ] || echo "failed: ${failures[*]}"
echo "cli: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
