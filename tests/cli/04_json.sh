# With --json, stdout is one valid document whatever happens.
. "$CLI/lib.sh"
write_config
expect 2 "$MLBENCH" sweep nowhere.ini --json
is_json mlbench.error/1
[ "$(json 'd["exit_status"]')" = 2 ] || fail "exit_status"
expect 2 "$MLBENCH" sweep --json --nonsense
is_json mlbench.error/1
expect 2 "$MLBENCH" nonsense --json
is_json mlbench.error/1
expect 2 "$MLBENCH" help --json
is_json mlbench.error/1
expect 0 "$MLBENCH" check tiny.ini --json
is_json mlbench.check/1
[ "$(json 'd["point_count"]')" = 4 ] || fail "point_count"
expect 0 "$MLBENCH" gen tiny.ini --json
is_json mlbench.gen/1
expect 0 "$MLBENCH" gen tiny.ini --verify --json
is_json mlbench.verify/1
expect 0 "$MLBENCH" list --json
is_json mlbench.list/1
expect 0 "$MLBENCH" list keys --json
is_json mlbench.list/1
expect 0 "$MLBENCH" doctor --json
is_json mlbench.doctor/1
expect_measured "$MLBENCH" run tiny.ini $ONE --json --out one
is_json mlbench.summary/1
cp out printed
expect 0 "$MLBENCH" show one --json
cmp -s out printed || fail "show --json differs from what the run printed"
python3 -c 'import json; assert json.load(open("one/summary.json")) == json.load(open("printed"))' ||
	fail "summary.json differs from what the run printed"
expect_measured "$MLBENCH" sweep tiny.ini --json --out grid
is_json mlbench.summary/1
[ "$(json 'len(d["points"])')" = 4 ] || fail "points"
[ "$(json 'd["status"]')" = complete ] || fail "status"
[ "$(json 'd["step"]["emulated"]')" = True ] || fail "emulated"
# A name that is no UTF-8 does not spoil the document.
expect 2 "$MLBENCH" check "$(printf 'caf\351.ini')" --json
is_json mlbench.error/1
