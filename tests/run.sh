#!/usr/bin/env bash
# Runs every test of a build and ends with one line: "N passed, N failed, N skipped".
#   tests/run.sh BUILD_FOLDER [unit|threads|device|layering|docs|cli|browser|fuzz|compat|score …]   (by default all)
#   tests/run.sh BUILD_FOLDER measured     what depends on how fast and quiet the machine is, one after another (make bench)
# A part consists of cmocka programs and of scripts whose last line has that form.  They come from one queue, a few at a
# time, whatever their part: most of a test's time is waiting.  Parts are judged afterwards, in order.
set -u
cd "$(dirname "$0")/.." || exit 2
build=$1
shift
parts=${*:-unit threads device layering docs cli browser fuzz compat score}
export MLBENCH="$PWD/$build/mlbench"
logs="$build/test-logs"
mkdir -p "$logs"
passed=0 failed=0 skipped=0
failures=()

export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp:halt_on_error=1:second_deadlock_stack=1"
# Nothing that this user has kept may enter a test, nor the other way round.
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME
cli_work=$(mktemp -d)
trap 'chmod -R u+rwX "$cli_work" 2>/dev/null; rm -rf "$XDG_CACHE_HOME" "$cli_work"' EXIT
export UBSAN_OPTIONS="print_stacktrace=1"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1}"
# Threads of OpenMP that wait for each other sleep: beside others, a core is worth more than a microsecond.
export OMP_WAIT_POLICY=passive
# The interpreter itself in front of a wrapper that looks for it anew each of two thousand times.
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) && PATH=$(dirname "$python"):$PATH

# The tests that a log says failed: cmocka's, or those of a script's lines "FAIL  name".
failed_in() {
	sed -nE 's/^\[  FAILED  \] ([a-z]\w*)$/\1/p; s/^FAIL:? +([^ ]+).*/\1/p' "$1" | awk '!seen[$0]++' | paste -sd ' '
}
# What a log says of its failures, LINES of it: without the tests of cmocka and the lines of scripts that went well.
why() { # log lines
	local status=
	[ ! -e "$1.status" ] || read -r status _ <"$1.status"
	[ "$status" != 124 ] || echo "it was stopped after $limit s"
	awk '/^\[=+\] .* run\.$/ { summary = 1 }
		/^\[ RUN / { n = 0 }
		!/^(ok|skip) / && !(summary && /^(\[|$| .* FAILED TEST)/) { line[++n] = $0 }
		/^\[       OK / { n = 0 }
		/^\[  FAILED  \] [a-z][A-Za-z0-9_]*$/ { for (i = 1; i <= n; i++) print line[i]; n = 0 }
		END { for (i = 1; i <= n; i++) print line[i] }' "$1" 2>/dev/null | cut -c 1-300 | tail -n "$2"
}
# Last of all, and of several less each: of a long log often only the last 30 lines are seen.
tell_failures() {
	local name names words=
	for name in "${failures[@]}"; do
		echo "----- $name failed (exit $(cut -d ' ' -f 1 "$logs/$name.log.status" 2>/dev/null)); its log is $logs/$name.log:"
		why "$logs/$name.log" $((26 / ${#failures[@]} > 3 ? 26 / ${#failures[@]} - 1 : 2))
		names=$(failed_in "$logs/$name.log")
		words+=" $name${names:+ ($names)}"
	done
	echo "failed:$words"
}

# Some at a time, the longest first: what begins last is waited for alone.  Most of a test's time is sleep: eight of them keep two
# cores busy for 88 % of the time; twelve take 12 s less, and what counts on time fails more often beside so many.
jobs=${TEST_JOBS:-8}
long='(test_(source|probe|planted|uring|pipeline|openblas|generate|replay_queues|flame|limiter|device_pipeline|train|session|double_train|double_probe|models))|device-run|browser|fuzz|compat'
declare -A command_of
queue=()

# Guards against what hangs, and nothing else: half a core beside others is enough.
limit=3000
events="$logs/events" # "begin NAME SECONDS" and "end NAME SECONDS STATUS", for the line that says how far it is
declare -A took_before # NAME: milliseconds of the run before, where there was one
# add NAME COMMAND …: a test of the queue; its output goes to NAME.log, its status and milliseconds beside it, of the
# clock and of cores.
add() {
	local name=$1 log="$logs/$1.log"
	shift
	command_of[$name]="$name $(printf ' %q' "$@")"
	[ ! -e "$log.status" ] || read -r _ took_before[$name] _ <"$log.status"
	rm -f "$log" "$log.status"
	queue+=("$name")
}

run_test() { # "NAME COMMAND …", quoted
	local name command begun status
	read -r name command <<<"$1"
	begun=$(date +%s%N)
	echo "begin $name $((begun / 1000000000))" >>"$events"
	eval "timeout -k 10 $limit $command" >"$logs/$name.log" 2>&1
	status=$?
	times >"$logs/$name.log.cores" # not in a subshell, which has done nothing
	echo "$status $((($(date +%s%N) - begun) / 1000000)) $(awk -F'[ms ]+' 'NR == 2 { print int(1000 * (60 * ($1 + $3) + $2 + $4)) }' \
		"$logs/$name.log.cores")" >"$logs/$name.log.status"
	echo "end $name $(date +%s) $status" >>"$events"
}
export -f run_test
export logs limit events

# How far the queue is: on a terminal one line that is written over, elsewhere a line every half minute.  Ends when the
# file of events is removed.  The time left is told where the run before left the times of all that is still to come.
show_progress() {
	local begun now told=0 line name
	begun=$(date +%s)
	while sleep 1 && [ -e "$events" ]; do
		now=$(date +%s)
		line=$({
			for name in "${queue[@]}"; do echo "queued $name ${took_before[$name]:-0}"; done
			cat "$events" 2>/dev/null
		} | awk -v now="$now" -v begun="$begun" -v jobs="$jobs" '
			function minutes(s) { return s < 60 ? int(s) " s" : int(s / 60) " min " int(s % 60) " s" }
			$1 == "queued" { before[$2] = $3 / 1000; all++ }
			$1 == "begin" { since[$2] = $3 }
			$1 == "end" { done++; delete since[$2]; delete before[$2] }
			$1 == "end" && $4 != 0 && $4 != 77 { failed++; names = names " " $2 }
			END {
				for (name in before) { unknown += before[name] == 0; left += before[name] }
				for (name in since) { left -= now - since[name]; if (!first || since[name] < first) { first = since[name]; longest = name } }
				printf "tests: %d of %d done, %d failed, %s", done, all, failed, minutes(now - begun)
				if (!unknown && left > 0) printf ", about %s left", minutes(left / jobs)
				if (longest) printf "; longest now: %s (%s)", longest, minutes(now - first)
				if (names) printf "; failed:%s", names
			}')
		if [ -t 1 ]; then
			printf '\r\033[K%s' "${line:0:$((${COLUMNS:-80} - 1))}"
		elif [ $((now - told)) -ge 30 ]; then
			echo "$line"
			told=$now
		fi
	done
	[ ! -t 1 ] || printf '\r\033[K'
}

run_queue() {
	local begun=$SECONDS name first=() then=() last=() progress
	[ ${#queue[@]} -gt 0 ] || return 0
	for name in "${queue[@]}"; do
		if [[ $name =~ (^|-)($long)$ ]]; then
			first+=("${command_of[$name]}")
		elif [[ $name == cli-* ]]; then # in an order of their own
			then+=("${command_of[$name]}")
		else
			last+=("${command_of[$name]}")
		fi
	done
	: >"$events"
	show_progress &
	progress=$!
	printf '%s\0' "${first[@]}" "${then[@]}" "${last[@]}" | xargs -0 -r -n 1 -P "$jobs" bash -c 'run_test "$1"' run_test
	rm -f "$events"
	wait "$progress"
	echo "    ${#queue[@]} programs and scripts took $((SECONDS - begun)) s, $jobs at a time; $(cpu_time)"
}

# What the queue took of the cores, and who most of it.
cpu_time() {
	local name
	for name in "${queue[@]}"; do
		echo "$(awk '{ print $3 + 0 }' "$logs/$name.log.status") $name"
	done | sort -rn | awk '{ sum += $1; if (NR <= 8) most = most sprintf("%s%s %.0f", NR > 1 ? ", " : "", $2, $1 / 1000) }
		END { printf "%.0f s of cores, most in %s\n", sum / 1000, most }'
}

count() { # name passed failed skipped
	printf '%-34s %4d passed %3d failed %3d skipped\n' "$@"
	passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
	[ "$3" -eq 0 ] || failures+=("$1")
}

# Both set p, f, s and status from a log.
read_cmocka() {
	p=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$1" | awk '{ n += $1 } END { print n + 0 }')
	f=$(sed -nE 's/^\[  FAILED  \] ([a-z_ ]*: *)?([0-9]+) test.*/\2/p' "$1" | awk '{ n += $1 } END { print n + 0 }')
	s=$(sed -nE 's/^\[  SKIPPED \] ([a-z_ ]*: *)?([0-9]+) test.*/\2/p' "$1" | awk '{ n += $1 } END { print n + 0 }')
}
read_script() {
	local line
	line=$(grep -oE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$1" | tail -n 1)
	p=0 f=0 s=0
	if [ -n "$line" ]; then
		p=$(echo "$line" | grep -oE '^[0-9]+')
		f=$(echo "$line" | sed -E 's/.* ([0-9]+) failed.*/\1/')
		case $line in *skipped) s=$(echo "$line" | sed -E 's/.* ([0-9]+) skipped/\1/') ;; esac
	fi
	if [ "$status" -eq 77 ]; then s=$((s + 1)) status=0; fi
}

judge() { # cmocka|script NAME: counts what its log says
	local kind=$1 name=$2 p f s status=1
	[ ! -e "$logs/$name.log.status" ] || read -r status _ <"$logs/$name.log.status"
	"read_$kind" "$logs/$name.log"
	if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
	if [ "$status" -eq 0 ] && [ $((p + f + s)) -eq 0 ]; then f=1; fi # a test that ran nothing is a failure
	count "$name" "$p" "$f" "$s"
	[ "$kind" = cmocka ] || [ "$s" -eq 0 ] || grep -iE 'skip' "$logs/$name.log" | head -n 5 | sed 's/^/    /'
}

# The programs of a folder: what its build left beside them is none.
programs_in() {
	local program
	for program in "$@"; do
		case $program in *.[do] | *\* | *.so) continue ;; esac
		[ -x "$program" ] && echo "$program"
	done
}

no_toolkit() { # true, with the reason, where there can be no test double
	case ${CUDA:-auto} in 0 | no | off) echo "CUDA=$CUDA leaves the plug-in out"; return 0 ;; esac
	local home
	for home in "${CUDA_HOME:-/usr/local/cuda}" "$PWD/build/cuda-toolkit"; do
		[ ! -e "$home/include/cublasLt.h" ] || break
	done
	[ -e "$home/include/cublasLt.h" ] || { echo "no CUDA toolkit: $home/include/cublasLt.h is not there ('make cuda-toolkit' fetches one)"; return 0; }
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

declare -A parts_of # part: lines of "cmocka NAME" or "script NAME", for the judge
test_of() { # PART KIND NAME COMMAND …
	parts_of[$1]+="$2 $3"$'\n'
	shift 2
	add "$@"
}

prepare_unit() {
	local program
	for program in $(programs_in "$build"/tests/test_*); do
		test_of unit cmocka "$(basename "$program")" "$program"
	done
}
prepare_threads() { # queues, pools and clocks under ThreadSanitizer, unless the build itself is one
	local program name
	case $build in *san-*) return ;; esac
	for program in $(programs_in build/san-thread/tests/test_* build/san-thread/double/test_*); do
		name=thread-san-$(basename "$program")
		case $program in */double/*) name=thread-san-double-$(basename "$program") ;; esac
		test_of threads cmocka "$name" \
			env TSAN_OPTIONS="suppressions=$PWD/$(suppressions_of "$program"):halt_on_error=1:second_deadlock_stack=1" \
			LD_LIBRARY_PATH="$PWD/build/san-thread/double${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$program"
	done
}
prepare_device() { # the plug-in and its parts on the test double; tests/device/run.sh has them on a device
	local program
	if no_toolkit >/dev/null; then return; fi
	# Sanitizers call dlopen for their caller, whose own search path is lost: libnccl.so.2 would be a real one.
	for program in $(programs_in "$build"/double/test_*); do
		test_of device cmocka "device-$(basename "$program")" \
			env LD_LIBRARY_PATH="$PWD/$build/double${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$program"
	done
	# A sanitized double is too slow for what has limits of time.
	case $build in *san-*) return ;; esac
	test_of device script device-run tests/device/try_run.sh "$build"
}
prepare_cli() {
	local test
	for test in $(tests/cli/run.sh --prepare "$cli_work"); do
		add "cli-$(basename "$test" .sh)" tests/cli/run.sh --one "$cli_work" "$test"
	done
}
prepare_browser() { # a sanitized program measures another machine, and writes the same page
	case $build in *san-*) return ;; esac
	test_of browser script browser tests/browser/run.sh "$build/screenshots"
}
# Programs and scripts that ask for more where MLBENCH_MEASURING is set, and the verdicts on planted bottlenecks.
prepare_measured() {
	local source name
	export MLBENCH_MEASURING=1
	unset OMP_WAIT_POLICY
	jobs=1
	for source in $(grep -l 'tests/measuring.h' tests/unit/test_*.c); do
		name=$(basename "$source" .c)
		test_of measured cmocka "measured-$name" "$build/tests/$name"
	done
	no_toolkit >/dev/null || for source in $(grep -l 'tests/measuring.h' tests/device/test_*.c); do
		name=$(basename "$source" .c)
		test_of measured cmocka "measured-device-$name" \
			env LD_LIBRARY_PATH="$PWD/$build/double${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$build/double/$name"
	done
	# shellcheck disable=SC2046
	test_of measured script measured-cli env TEST_JOBS=1 tests/cli/run.sh \
		$(grep -lE '^# measuring$|\<measuring (\|\||&&)|(!|if) measuring\>|MLBENCH_MEASURING' tests/cli/[0-9]*.sh | xargs -n 1 basename -s .sh)
	test_of measured script bank tests/bank/bank.py "$MLBENCH" --quick --out "$build/bank-quick"
}
prepare() { # part
	case $1 in
	unit | threads | device | cli | browser) "prepare_$1" ;;
	layering)
		test_of layering script layering tests/layering.sh
		test_of layering script walls tests/walls.py "$build"
		;;
	docs) test_of docs script docs tests/docs.sh ;;
	compat) test_of compat script compat tests/compat/run.sh ;;
	score) test_of score script score tests/bank/run.sh ;;
	fuzz) test_of fuzz script fuzz tests/fuzz/short.sh ;;
	measured) prepare_measured ;;
	*) echo "run.sh: no such part: $1" >&2; exit 2 ;;
	esac
}

finish() { # part
	local kind name why
	while read -r kind name; do
		[ -z "$kind" ] || judge "$kind" "$name"
	done <<<"${parts_of[$1]:-}"
	case $1 in
	device)
		if why=$(no_toolkit); then
			count device 0 0 "$(cat tests/device/test_*.c | grep -cE '^\s*cmocka_unit_test')"
			echo "    skipped: $why"
		fi
		;;
	cli)
		add cli tests/cli/run.sh --judge "$cli_work"
		run_test "${command_of[cli]}"
		judge script cli
		;;
	esac
}

for part in $parts; do
	prepare "$part"
done
run_queue
for part in $parts; do
	begun=$SECONDS
	finish "$part"
	[ $((SECONDS - begun)) -le 1 ] || echo "    $part took $((SECONDS - begun)) s more"
done

[ ${#failures[@]} -eq 0 ] || tell_failures
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
