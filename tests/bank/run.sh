#!/usr/bin/env bash
# The tests of the scorers, of the gate, of the real bank and of the bank of real jobs, for tests/run.sh: all must be able to fail.
set -u
cd "$(dirname "$0")" || exit 2
export PYTHONDONTWRITEBYTECODE=1
out=$(python3 -m unittest test_score test_gate test_cases real.test_real 2>&1)
status=$?
out+=$'\n'$(cd ../jobs/bank && python3 -m unittest test_bank 2>&1) || status=1
printf '%s\n' "$out"
ran=$(printf '%s\n' "$out" | awk '/^Ran [0-9]+ test/ { n += $2; parts++ } END { print parts == 2 ? n : 0 }')
bad=$(printf '%s\n' "$out" | grep -cE '^(FAIL|ERROR): ')
[ "$ran" -gt 0 ] || { ran=1 bad=1; }
echo "$((ran - bad)) passed, $bad failed"
exit $status
