# Results that were measured in turns lie side by side in one folder: of a case's the twin is meant, whatever its variants are called;
# of others the user has to say which.  What people take for results is named for what it is, with what makes a result of it.
. "$CLI/lib.sh"
write_config
session() {
	mkdir -p "$1"
	echo '{"schema":"mlbench.paired/1","seed":1}' >"$1/paired.jsonl"
	cp -r one "$1/$2"
	cp -r one "$1/$3"
	rm -f "$1"/*/summary.json "$1"/*/report.html # nobody ended them
}
expect_measured "$MLBENCH" run tiny.ini $ONE --set measure.epochs=4 --out one --set run.name=tiny --set dataset.path=data
session results/reproduce-tiny/20261126T100000Z-1 twin without-step
session results/reproduce-tiny/20261126T110000Z-2 twin without-step
session results/bisect/20261126T100000Z good bad
NEW=results/reproduce-tiny/20261126T110000Z-2

for what in "$NEW" results/reproduce-tiny reproduce-tiny; do
	expect 0 "$MLBENCH" show "$what"
	says "result: $NEW/twin: run"
done
expect 0 "$MLBENCH" report "$NEW"
[ -s "$NEW/twin/report.html" ] || fail "the page is not the twin's"
expect 0 "$MLBENCH" export "$NEW" --format csv
says "$NEW/twin"
expect 0 "$MLBENCH" compare results/reproduce-tiny/20261126T100000Z-1 "$NEW" --json
is_json mlbench.compare/1
expect 0 "$MLBENCH" history
prints "6 of 6 results"

# A case of one of them, which has no summary.json, with what was measured.
expect 0 "$MLBENCH" fit "$NEW" --out twin.ini
grep -q '^job.throughput = .* samples/s.*, measured by result' twin.ini || fail "the twin's throughput is not in its case"

for what in results/bisect/20261126T100000Z bisect; do
	expect 2 "$MLBENCH" report "$what"
	says "holds 2 results side by side: name one of them"
	says "(bad, good)"
done
expect 2 "$MLBENCH" fit results/bisect/20261126T100000Z
says "name one of them"
expect 0 "$MLBENCH" report results/bisect/20261126T100000Z/good

# A case, a configuration and an observation are no results.
for command in show report export; do
	set -- "$command" twin.ini
	[ "$command" = export ] && set -- export twin.ini --format csv
	expect 2 "$MLBENCH" "$@"
	says "'twin.ini' is a case, and no result: 'mlbench run twin.ini' makes one of its twin"
done
expect 2 "$MLBENCH" compare twin.ini one
says "'mlbench run twin.ini' makes one"
mkdir seen
echo '{"schema": "mlbench.observe/1"}' >seen/observe.json
for what in seen seen/observe.json; do
	expect 2 "$MLBENCH" report "$what"
	says "'mlbench fit' makes a case of it"
done
