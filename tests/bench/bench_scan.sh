#!/usr/bin/env bash
# Scanning a user's folder: 20,000 pictures in the page cache against the plain scan, 2,400 where each call takes 20 ms, and, where
# SLOW_FOLDER names a folder of pictures on storage that takes its time (a FUSE server that sleeps, a share far away), that one.
#   tests/bench/bench_scan.sh BUILD_FOLDER      BENCH_DIR=/var/tmp SLOW_FOLDER=
# Then a manifest of a million samples.
# What it is read with is warm after the first scan: mount SLOW_FOLDER without caches, or anew.
# Exits 1 when a bar is missed.
set -u
build=${1:-build/release}
bench="$build/bench/bench_scan"
[ -x "$bench" ] || make --no-print-directory "$bench" >&2 || exit 2
dir=$(mktemp -d "${BENCH_DIR:-/var/tmp}/mlbench-scan-XXXXXX") || exit 2
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
status=0
"$bench" make "$dir/many" 20000 && "$bench" memory "$dir/many" || status=1
"$bench" make "$dir/some" 2400 && "$bench" calls "$dir/some" 20 || status=1
mkdir "$dir/manifest" && "$bench" manifest "$dir/manifest" || status=1
if [ -n "${SLOW_FOLDER:-}" ]; then
	"$bench" slow "$SLOW_FOLDER" || status=1
else
	echo "  slow storage: SLOW_FOLDER names none"
fi
exit $status
