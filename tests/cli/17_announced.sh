# Whoever reads any one output learns what was planted and who computed the step: terminal, plan, summary.json,
# points.csv, the printed copy of a result that was moved elsewhere.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
# What a condition needs beside itself is in the same word list: unquoted below.
for setting in read_bandwidth=50MiB/s read_latency=1ms decode_factor=2 lock_share=50% slow_worker=3 slow_share=10% \
	leak=1MiB/s cpu_hog=1 memory_hog=1 read_factor=2 decode_wait=1ms step_factor=2 step_launch=1ms begin=20% end=80% \
	"read_cache=50% --set inject.read_latency=1ms" \
	"read_slow_share=10% --set inject.read_slow_latency=2ms" "upload_factor=2 --set upload.mode=copy" \
	"upload_bandwidth=100MB/s --set upload.mode=copy"; do
	key=${setting%%=*}
	expect_measured "$MLBENCH" run tiny.ini $ONE --set inject.$setting --set measure.repeats=1 --verbose --out "run_$key"
	head -n 8 out | grep -q "^  injected .*$key" || fail "the head does not announce $key"
	tr -s ' \n' ' ' <out | grep -q "injected: .*inject.$key" || fail "the notes do not announce $key"
	grep -q "$key" err || fail "the plan does not announce $key"
	cp out printed
	mkdir -p elsewhere && mv "run_$key" elsewhere/ # as one copies results from a node
	[ "$(head -n 2 "elsewhere/run_$key/points.csv" | tail -n 1 | grep -c "$key")" = 1 ] || fail "points.csv does not announce $key"
	python3 - "elsewhere/run_$key/summary.json" "$key" <<'PY' || fail "summary.json does not announce $key"
import json, sys
summary = json.load(open(sys.argv[1]))
notes = [n for p in summary["points"] for n in p["notes"]]
assert any(n.startswith("injected: ") and "inject." + sys.argv[2] in n for n in notes), notes
assert summary["step"]["emulated"] is True
PY
	expect 0 "$MLBENCH" show "elsewhere/run_$key"
	grep -q "^  injected .*$key" out || fail "show does not announce $key"
	head -n 1 out | grep -q emulated || fail "show does not say that the step is emulated"
	expect 0 "$MLBENCH" check tiny.ini --set inject.$setting
	prints "$key"
done
# Without any, nothing is announced.
expect_measured "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --out plain
! grep -q injected out || fail "something is announced though nothing is planted"
python3 - <<'PY' || fail "points.csv does not say who computed the step, or announces what is not planted"
import csv
row = next(csv.DictReader(open("plain/points.csv")))
assert row["step_backend"] == "emulated" and row["injected"] == "", row
PY
