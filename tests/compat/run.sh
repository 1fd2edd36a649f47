#!/usr/bin/env bash
# mlbench's samples against those of other software: torchvision's RandomResizedCrop, flip and Normalize
# on the same crop boxes, on synthetic pictures in every format.  Skipped (77) where Debian's
# python3-torchvision is not installed.
#   tests/compat/run.sh [FILE...]      your own pictures instead
set -u
cd "$(dirname "$0")/../.." || exit 2
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import torchvision' >/dev/null 2>&1; then
	echo "compat: skipped: $python has no torchvision (apt-get install python3-torchvision)"
	exit 77
fi
make --no-print-directory build/release/compat/transform_file >/dev/null || {
	echo "0 passed, 1 failed"
	exit 1
}
program=build/release/compat/transform_file
if [ $# -gt 0 ]; then
	exec "$python" tests/compat/compare.py $program "$@"
fi
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
"$python" tests/compat/make_pictures.py "$folder" || exit 1
"$python" tests/compat/compare.py $program "$folder"/*
