#!/usr/bin/env bash
# Runs the benches of a build one after another: every figure of docs/PERFORMANCE.md.
#   tests/bench/run.sh BUILD_FOLDER [name …]       names without "bench_" and ending; all by default
# Run it on a quiet machine: the figures are ratios within one run, but noise widens them.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1
shift
names=${*:-$(for f in tests/bench/bench_*; do basename "${f%.*}" | sed s/^bench_//; done | sort -u)}
status=0
for name in $names; do
	echo "=== $name"
	if [ -f "tests/bench/bench_$name.sh" ]; then
		"tests/bench/bench_$name.sh" "$build"
	elif [ -f "tests/bench/bench_$name.py" ]; then
		"tests/bench/bench_$name.py" "$build/mlbench"
	elif [ -x "$build/bench/bench_$name" ]; then
		"$build/bench/bench_$name"
	else
		echo "run.sh: no bench '$name'" >&2
		exit 2
	fi
	code=$?
	[ $code -eq 0 ] || [ $code -eq 77 ] || status=1
done
exit $status
