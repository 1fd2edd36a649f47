#!/usr/bin/env bash
# Runs every test of a build and ends with one line: "N passed, N failed, N skipped".
#   tests/run.sh BUILD_FOLDER [unit|threads|device|layering|docs|cli|browser|fuzz|compat|score|bank …]   (by default all)
# A part prints its own closing line in that form, or is a cmocka program.
set -u
cd "$(dirname "$0")/.." || exit 2
build=$1
shift
parts=${*:-unit threads device layering docs cli browser fuzz compat score bank}
export MLBENCH="$PWD/$build/mlbench"
logs="$build/test-logs"
mkdir -p "$logs"
passed=0 failed=0 skipped=0
failures=

export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp:halt_on_error=1:second_deadlock_stack=1"
# Nothing that this user has kept may enter a test, nor the other way round.
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
export UBSAN_OPTIONS="print_stacktrace=1"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1}"

fail() { # name log
	failures="$failures $1"
	echo "----- $1 failed; the end of $2:"
	tail -n 40 "$2"
	echo "-----"
}

# Two at a time; what fails then is run again alone, and says so: a test may need more of the machine than half.
jobs=${TEST_JOBS:-2}

run_program() { # program log: its status goes beside the log
	timeout -k 10 300 "$1" >"$2" 2>&1
	echo $? >"$2.status"
}
export -f run_program

cmocka_judge() { # program name: counts what its log says
	local program=$1 name=$2 p f s status
	local log="$logs/$name.log"
	status=$(cat "$log.status" 2>/dev/null || echo 1)
	p=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	f=$(sed -nE 's/^\[  FAILED  \] ([a-z_ ]*: *)?([0-9]+) test.*/\2/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	s=$(sed -nE 's/^\[  SKIPPED \] ([a-z_ ]*: *)?([0-9]+) test.*/\2/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
	if [ "$status" -eq 0 ] && [ $((p + s)) -eq 0 ]; then f=1; fi # a test that ran nothing is a failure
	if [ "$f" -gt 0 ] && [ "$jobs" -gt 1 ] && [ ! -e "$log.alone" ]; then
		mv "$log" "$logs/$name.first.log"
		: >"$log.alone"
		echo "    $name failed beside another ($logs/$name.first.log); again, alone"
		run_program "$program" "$log"
		cmocka_judge "$program" "$name"
		return
	fi
	printf '%-34s %4d passed %3d failed %3d skipped\n' "$name" "$p" "$f" "$s"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	[ "$f" -eq 0 ] || fail "$name" "$log"
}

cmocka_programs() { # prefix program …
	local prefix=$1 program
	shift
	for program in "$@"; do
		rm -f "$logs/$prefix$(basename "$program")".log*
		printf '%s\0%s\0' "$program" "$logs/$prefix$(basename "$program").log"
	done | xargs -0 -r -n 2 -P "$jobs" bash -c 'run_program "$@"' run_program
	for program in "$@"; do
		cmocka_judge "$program" "$prefix$(basename "$program")"
	done
}

# The programs of a folder: what its build left beside them is none.
programs_in() {
	local program
	for program in "$@"; do
		case $program in *.[do] | *\* | *.so) continue ;; esac
		[ -x "$program" ] && echo "$program"
	done
}

script() { # name command …
	local name=$1 log line status
	shift
	log="$logs/$name.log"
	timeout -k 10 500 "$@" >"$log" 2>&1
	status=$?
	line=$(grep -oE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$log" | tail -n 1)
	local p=0 f=0 s=0
	if [ -n "$line" ]; then
		p=$(echo "$line" | grep -oE '^[0-9]+')
		f=$(echo "$line" | sed -E 's/.* ([0-9]+) failed.*/\1/')
		case $line in *skipped) s=$(echo "$line" | sed -E 's/.* ([0-9]+) skipped/\1/') ;; esac
	fi
	if [ "$status" -eq 77 ]; then s=$((s + 1)); status=0; fi
	if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
	if [ "$status" -eq 0 ] && [ $((p + f + s)) -eq 0 ]; then f=1; fi
	printf '%-34s %4d passed %3d failed %3d skipped\n' "$name" "$p" "$f" "$s"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	[ "$s" -eq 0 ] || grep -iE 'skip' "$log" | head -n 5 | sed 's/^/    /'
	[ "$f" -eq 0 ] || fail "$name" "$log"
}

no_toolkit() { # true, with the reason, where there can be no test double
	case ${CUDA:-auto} in 0 | no | off) echo "CUDA=$CUDA leaves the plug-in out"; return 0 ;; esac
	local headers=${CUDA_HOME:-/usr/local/cuda}/include
	[ -e "$headers/cublasLt.h" ] || { echo "no CUDA toolkit: $headers/cublasLt.h is not there"; return 0; }
	command -v g++ >/dev/null || { echo "no g++ for the test double"; return 0; }
	return 1
}

# ThreadSanitizer refuses to follow a library by name once others are opened at run time; those tests call no BLAS.
suppressions_of() {
	case $1 in
	*/test_nvml | */double/*) echo tests/tsan_dlopen.supp ;;
	*) echo tests/tsan.supp ;;
	esac
}

for part in $parts; do
	begun=$SECONDS
	case $part in
	unit)
		mapfile -t programs < <(programs_in "$build"/tests/test_*)
		cmocka_programs "" "${programs[@]}"
		;;
	threads) # queues, pools and clocks under ThreadSanitizer, unless the build itself is one
		case $build in *san-*) continue ;; esac
		for program in $(programs_in build/san-thread/tests/test_* build/san-thread/double/test_*); do
			suppressions_of "$program"
		done | sort -u >"$logs/suppressions"
		while read -r suppressions; do
			programs=()
			for program in $(programs_in build/san-thread/tests/test_* build/san-thread/double/test_*); do
				[ "$(suppressions_of "$program")" = "$suppressions" ] && programs+=("$program")
			done
			TSAN_OPTIONS="suppressions=$PWD/$suppressions:halt_on_error=1:second_deadlock_stack=1" \
				LD_LIBRARY_PATH="$PWD/build/san-thread/double${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
				cmocka_programs thread-san- "${programs[@]}"
		done <"$logs/suppressions"
		;;
	device) # the plug-in and its parts on the test double; tests/device/run.sh has them on a device
		if why=$(no_toolkit); then
			printf '%-34s %4d passed %3d failed %3d skipped\n    skipped: %s\n' device 0 0 1 "$why"
			skipped=$((skipped + 1))
			continue
		fi
		# Sanitizers call dlopen for their caller, whose own search path is lost: libnccl.so.2 would be a real one.
		mapfile -t programs < <(programs_in "$build"/double/test_*)
		LD_LIBRARY_PATH="$PWD/$build/double${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
			cmocka_programs device- "${programs[@]}"
		# A sanitized double is too slow for what has limits of time.
		case $build in *san-*) continue ;; esac
		script device-run tests/device/try_run.sh "$build" ;;
	layering) script layering tests/layering.sh ;;
	docs) script docs tests/docs.sh ;;
	cli) script cli tests/cli/run.sh ;;
	browser) # a sanitized program measures another machine, and writes the same page
		case $build in *san-*) continue ;; esac
		script browser tests/browser/run.sh "$build/screenshots" ;;
	fuzz) script fuzz tests/fuzz/short.sh ;;
	compat) script compat tests/compat/run.sh ;;
	score) script score tests/bank/run.sh ;;
	bank) # verdicts on planted bottlenecks: what a sanitizer slows down is another machine
		case $build in *san-*) continue ;; esac
		script bank tests/bank/bank.py "$MLBENCH" --quick --out "$build/bank-quick"
		;;
	*) echo "run.sh: no such part: $part" >&2; exit 2 ;;
	esac
	echo "    $part took $((SECONDS - begun)) s"
done

[ -z "$failures" ] || echo "failed:$failures"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
