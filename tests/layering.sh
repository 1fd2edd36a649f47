#!/usr/bin/env bash
# Includes point one way.  For each layer, what its files may include; anything else fails.
set -u
cd "$(dirname "$0")/.." || exit 2

declare -A may=(
	[harness/base]="harness/base"
	[harness/flow]="harness/base harness/flow"
	[harness/config]="harness/base harness/config"
	[harness/record]="harness/base harness/config harness/record"
	[harness/measure]="harness/base harness/record harness/measure"
	[workloads/dataset]="harness/base harness/config harness/record harness/measure workloads"
	[workloads/image]="harness/base harness/config harness/record harness/measure workloads"
	[workloads/sample]="harness/base harness/config harness/record harness/measure workloads"
	[workloads/source]="harness/base harness/config harness/record harness/measure workloads"
	[workloads/checkpoint]="harness/base harness/config harness/record harness/measure workloads"
	[workloads/model]="harness/base harness/config harness/record harness/measure workloads"
	[workloads/ranks]="harness/base workloads/ranks"
	[workloads/ranks/mpi]="harness/base workloads/ranks"
	[workloads/backend]="harness/base harness/config harness/record harness/measure workloads"
	[workloads/backend/cuda]="harness/base harness/config harness/record harness/measure workloads tests/device/double/launch_double.h"
	[pipelines]="harness/base harness/config harness/record harness/flow harness/measure workloads pipelines"
	[harness/analyze]="harness/base harness/config harness/record harness/flow harness/measure harness/analyze"
	[harness/report]="harness/base harness/config harness/record harness/measure harness/analyze harness/accept harness/report"
	[harness/report/html]="harness/base harness/config harness/record harness/measure harness/analyze harness/accept harness/report"
	[harness/live]="harness/base harness/config harness/record harness/measure harness/analyze harness/report harness/live"
	[harness/accept]="harness/base harness/config harness/record harness/measure harness/analyze harness/accept"
	[harness/fit]="harness/base harness/config harness/record harness/measure harness/analyze harness/report harness/fit workloads/dataset workloads/image"
	[harness/checks]="harness/base harness/config harness/record harness/flow harness/measure harness/analyze harness/accept harness/checks workloads pipelines"
	[harness/lab]="harness/base harness/config harness/record harness/measure harness/analyze harness/lab"
	[harness/command]="harness workloads pipelines"
)

passed=0 failed=0
for layer in "${!may[@]}"; do
	bad=
	for file in "$layer"/*.[ch] "$layer"/*.cu; do
		[ -e "$file" ] || continue
		while IFS= read -r include; do
			ok=
			for prefix in ${may[$layer]}; do
				case "$include" in "$prefix" | "$prefix"/*) ok=1 ;; esac
			done
			[ -n "$ok" ] || bad="$bad
  $file includes $include"
		done < <(sed -n 's/^#include "\(.*\)".*/\1/p' "$file")
	done
	if [ -n "$bad" ]; then
		printf 'layering: %s may include only: %s%s\n' "$layer" "${may[$layer]}" "$bad"
		failed=$((failed + 1))
	else
		passed=$((passed + 1))
	fi
done

# Only the program's entry may end the process; a child after fork uses _exit.
exits=$(grep -nE '(^|[^_a-zA-Z.>])(exit|abort|quick_exit)\(' harness/*/*.c harness/report/html/*.c workloads/*/*.c workloads/backend/cuda/*.c pipelines/*.c 2>/dev/null |
	grep -vE '^\S+\s*(/\*|\*|//)' || true)
if [ -n "$exits" ]; then
	printf 'layering: only main may exit:\n%s\n' "$exits"
	failed=$((failed + 1))
else
	passed=$((passed + 1))
fi
# What an engine, a codec or a backend is like is a fact of its table, never told by its name: neither here, nor of what was recorded (the
# type of a mount is another matter).
names=$(sed -nE 's/^\t\.name = "([a-z0-9_]+)",$/\1/p' workloads/source/*.c workloads/image/*.c workloads/backend/*.c | sort -u | paste -sd'|')'|png'
judged=$(grep -nE "strn?(case)?cmp\([^;]*\"($names)\"" harness/*/*.c harness/report/html/*.c workloads/*/*.c pipelines/*.c | grep -vE '^harness/record/older_facts\.c:|[.>]type, "nfs"')
if [ -z "$names" ] || [ -n "$judged" ]; then
	printf 'layering: names are compared (facts are in workload_facts.h): %s\n%s\n' "$names" "$judged"
	failed=$((failed + 1))
else
	passed=$((passed + 1))
fi
# So are stages: record/measurement.h is the one table of their names.
stages='read|decode|upload|step|sync|prefetch'
judged=$(grep -nE "strn?cmp\\([^;]*\"($stages)\"|\\{\"($stages)\", [\"{]" harness/*/*.[ch] harness/report/html/*.c pipelines/*.[ch] | grep -v PAGE_TEXT)
if [ -n "$judged" ]; then
	printf 'layering: names of stages are not from record/measurement.h:\n%s\n' "$judged"
	failed=$((failed + 1))
else
	passed=$((passed + 1))
fi
# What a sample is, its kind knows (workloads/sample/sample.h), and the pipeline does not.
judged=$(grep -nE '"workloads/image/|KEY_(AUGMENT|CODEC)_|sample_image' pipelines/*.[ch]
	grep -niwE '(images?|pictures?|pixels?)' pipelines/*.[ch]
	grep -nE '"workloads/image/|[^"]sample_image' workloads/sample/sample.[ch])
if [ -n "$judged" ]; then
	printf 'layering: the pipeline knows of images (workloads/sample/sample.h):\n%s\n' "$judged"
	failed=$((failed + 1))
else
	passed=$((passed + 1))
fi
# A person is never told "1.1e+02 times" (units_format_plain); these three write what a program reads again.
exponents=$(grep -nE '%[-+]?\.[1-4]g' harness/*/*.c harness/report/html/*.c workloads/*/*.c pipelines/*.c |
	grep -vE '^harness/(config/like|fit/step_series|lab/lab_draw)\.c:' || true)
if [ -n "$exponents" ]; then
	printf 'layering: figures for people may come out as 1e+02 (use UNITS_PLAIN):\n%s\n' "$exponents"
	failed=$((failed + 1))
else
	passed=$((passed + 1))
fi
echo "layering: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
