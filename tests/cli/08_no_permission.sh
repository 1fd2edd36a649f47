# Folders that may not be written or read: exit 2 with the reason, before anything is measured.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
mkdir closed
if [ "$(id -u)" -eq 0 ]; then
	command -v setpriv >/dev/null || skip "needs setpriv to leave root"
	cp "$MLBENCH" ./mlbench && chmod 755 ./mlbench .
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	chmod -R a+rX . && chmod 711 "$TOOLS"
	"${as[@]}" ./mlbench --version >/dev/null 2>&1 || skip "nobody cannot run the program from here"
else
	cp "$MLBENCH" ./mlbench
	as=()
fi
touch out err && chmod 666 out err
chmod 555 closed
expect 2 "${as[@]}" ./mlbench sweep tiny.ini --out closed/run
says "closed/run"
says "Permission denied"
expect 2 "${as[@]}" ./mlbench sweep tiny.ini --out closed/run --json
is_json mlbench.error/1
expect 2 "${as[@]}" ./mlbench gen tiny.ini --set dataset.path=closed/data
says "Permission denied"
chmod 000 closed
expect 2 "${as[@]}" ./mlbench run tiny.ini $ONE --set dataset.recipe=none --set dataset.samples=0 --set dataset.path=closed
says "closed"
chmod 000 tiny.ini
expect 2 "${as[@]}" ./mlbench check tiny.ini
says "tiny.ini"
# Why a result could not be read may have passed the next time.
chmod 644 tiny.ini && chmod 777 .
"${as[@]}" ./mlbench run tiny.ini $ONE --out results/a >out 2>err
chmod 000 results/a/{points.jsonl,summary.json}
expect 0 "${as[@]}" ./mlbench history
prints "1 cannot be read"
chmod 644 results/a/{points.jsonl,summary.json}
expect 0 "${as[@]}" ./mlbench history
prints "1 of 1 results"
! grep -q "cannot be read" out || fail "a result that can be read is not"
# A folder of results that cannot be read may hold a node's.
"$ROOT/tests/bench/make_nodes.py" nodes --nodes 2 >/dev/null || fail "make_nodes.py"
chmod -R a+rX nodes
chmod 000 nodes/node002
expect 3 "${as[@]}" ./mlbench fleet nodes
says "left out 'nodes/node002': cannot read the folder: Permission denied"
chmod 755 nodes/node002
