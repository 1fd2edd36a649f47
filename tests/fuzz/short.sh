#!/usr/bin/env bash
# Each fuzz target over its committed corpus and some inputs more, the same each time and on any machine: short enough for
# every check.  `FUZZ_SECONDS=600 tests/fuzz/short.sh` is the long run, which goes on from what others have found; findings
# land in build/fuzz/.
set -u
cd "$(dirname "$0")/../.." || exit 2
most=(-runs=4000 -seed=1 -timeout=300)
[ -z "${FUZZ_SECONDS:-}" ] || most=(-max_total_time="$FUZZ_SECONDS" -timeout=10)
if ! command -v "${FUZZ_CC:-clang-14}" >/dev/null 2>&1; then
	echo "fuzz: skipped: ${FUZZ_CC:-clang-14} is not installed"
	exit 77
fi
make --no-print-directory -j2 SAN= DEV= fuzzers >build/fuzz-build.log 2>&1 || {
	tail -n 30 build/fuzz-build.log
	echo "0 passed, 1 failed"
	exit 1
}
# All targets at once: each is a single thread.
for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	target=${name#fuzz_}
	work=build/fuzz/corpus/$target
	if [ -z "${FUZZ_SECONDS:-}" ]; then
		work=build/fuzz/short/$target
		rm -rf "$work"
	fi
	mkdir -p "$work"
	dictionary=
	[ -f "tests/fuzz/$target.dict" ] && dictionary="-dict=tests/fuzz/$target.dict"
	rm -f "build/fuzz/$name.status"
	{
		"build/fuzz/$name" $dictionary "${most[@]}" -rss_limit_mb=2048 -print_final_stats=1 \
			-artifact_prefix="build/fuzz/$target-" "$work" "tests/fuzz/corpus/$target" >"build/fuzz/$name.log" 2>&1
		echo $? >"build/fuzz/$name.status"
	} &
done
wait
passed=0 failed=0
for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	if [ "$(cat "build/fuzz/$name.status")" = 0 ]; then
		passed=$((passed + 1))
		runs=$(sed -n 's/^stat::number_of_executed_units: //p' "build/fuzz/$name.log")
		echo "$name: no finding in ${runs:-?} runs"
	else
		failed=$((failed + 1))
		echo "$name: finding:"
		tail -n 40 "build/fuzz/$name.log"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
