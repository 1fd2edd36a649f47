#!/usr/bin/env bash
# Each fuzz target over its committed corpus and for FUZZ_SECONDS more (5 by default): short enough for
# every check.  `FUZZ_SECONDS=600 tests/fuzz/short.sh` is the long run; findings land in build/fuzz/.
set -u
cd "$(dirname "$0")/../.." || exit 2
seconds=${FUZZ_SECONDS:-5}
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
	mkdir -p "$work"
	dictionary=
	[ -f "tests/fuzz/$target.dict" ] && dictionary="-dict=tests/fuzz/$target.dict"
	rm -f "build/fuzz/$name.status"
	{
		"build/fuzz/$name" $dictionary -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
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
		echo "$name: no finding in ${runs:-?} runs, $seconds s"
	else
		failed=$((failed + 1))
		echo "$name: finding:"
		tail -n 40 "build/fuzz/$name.log"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
