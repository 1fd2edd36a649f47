#!/usr/bin/env bash
# The tests of the scorer, of the gate and of the real bank, for tests/run.sh: all must be able to fail.
set -u
cd "$(dirname "$0")" || exit 2
out=$(PYTHONDONTWRITEBYTECODE=1 python3 -m unittest test_score test_gate real.test_real 2>&1)
status=$?
printf '%s\n' "$out"
ran=$(printf '%s\n' "$out" | sed -n 's/^Ran \([0-9]*\) test.*/\1/p')
bad=$(printf '%s\n' "$out" | grep -cE '^(FAIL|ERROR): ')
[ -n "$ran" ] || { ran=1 bad=1; }
echo "$((ran - bad)) passed, $bad failed"
exit $status
