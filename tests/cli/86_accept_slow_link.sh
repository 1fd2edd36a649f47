# mlbench accept over nodes that are network namespaces: of three links that the kernel paces, the one that is slow is named
# by the two nodes that share it.  tests/accept/slow_links.sh has the other plants.
. "$CLI/lib.sh"
need_ranks
"$ROOT/tests/accept/slow_links.sh" "$(dirname "$MLBENCH")" 3 link >out 2>err
status=$?
[ "$status" -ne 77 ] || skip "$(tail -n 1 out)"
[ "$status" -eq 0 ] || fail "the slow link is not named, or another one is"
prints "failed: n1, n3; the link n1 to n3 has little bandwidth"
