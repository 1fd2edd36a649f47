# SIGINT, SIGTERM and SIGHUP in the middle: exit 130, what was measured is kept, the document is valid, and --resume
# finishes with each repetition exactly once.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
long=(--set measure.duration=400ms --set measure.repeats=3)

for signal in INT TERM HUP; do
	"$MLBENCH" sweep tiny.ini "${long[@]}" --json --out "run_$signal" >out 2>err &
	pid=$!
	until_true repetitions "run_$signal" 2
	kill -s "$signal" "$pid"
	[ "$signal" != HUP ] || kill -s HUP "$pid" # the kernel's and the shell's
	begun=$(date +%s%N)
	wait "$pid"
	status=$?
	took=$((($(date +%s%N) - begun) / 1000000))
	[ "$status" -eq 130 ] || fail "exit $status after SIG$signal, not 130"
	! measuring || [ "$took" -lt 3000 ] || fail "it took $took ms to stop"
	is_json mlbench.summary/1
	[ "$(json 'd["status"]')" = interrupted ] || fail "status"
	done_now=$(grep -c '"kind":"repetition"' "run_$signal/points.jsonl")
	[ "$done_now" -ge 1 ] && [ "$done_now" -lt 12 ] || fail "$done_now repetitions are kept"
	expect 0 "$MLBENCH" show "run_$signal"
	prints "interrupted"
	expect_measured "$MLBENCH" sweep tiny.ini "${long[@]}" --resume "run_$signal"
	python3 - "run_$signal" <<'PY' || fail "not each repetition once"
import collections, json, sys
count = collections.Counter()
for line in open(sys.argv[1] + "/points.jsonl"):
    row = json.loads(line)
    if row.get("kind") == "repetition":
        count[row["point"], row["repeat"]] += 1
assert sorted(count) == [(p, r) for p in range(4) for r in range(3)], count
assert set(count.values()) == {1}, count
PY
	[ "$(python3 -c "import json; print(json.load(open('run_$signal/summary.json'))['status'])")" = complete ] ||
		fail "not complete after --resume"
done

# Stopped by Ctrl-Z for longer than any look is late, and continued: what was measured says so.  It is stopped while it
# measures, and tried again where it was through before.
is_measuring() {
	"$MLBENCH" status "$stopped" --json 2>/dev/null | grep -q '"phase": "measuring"'
}
is_measuring_or_over() { is_measuring || ! kill -0 "$stopped" 2>/dev/null; }
stop_while_measuring() { # DURATION FOLDER; sets try, and stopped to the process
	for try in 1 2 3 4 5; do
		"$MLBENCH" run tiny.ini $ONE --set measure.duration="$1" --set measure.repeats=1 --out "$2$try" >stopped.out 2>stopped.err &
		stopped=$!
		until_true is_measuring_or_over
		kill -0 "$stopped" 2>/dev/null && sleep 1
		kill -STOP "$stopped" 2>/dev/null
		! is_measuring || break
		kill -CONT "$stopped" 2>/dev/null
		wait "$stopped"
	done
}
# Shortly: that time is cut out, and the rest counts.
stop_while_measuring 5s briefly
sleep 1
kill -CONT "$stopped"
wait "$stopped"
"$MLBENCH" diagnose "briefly$try" --json >out 2>err # whatever a busy node makes of the verdict
json 'd["verdict"]["evidence"][0]' | grep -q '^Everything stood still at once for .* of repetition 0: mlbench was stopped' || fail "a stop of 1 s is not told"
python3 - "briefly$try" <<'PY' || fail "the time that it was stopped was measured"
import json, sys
m = [json.loads(line) for line in open(sys.argv[1] + "/points.jsonl")][1]
assert m["stood_still_seconds"] > 0.8, m["stood_still_seconds"]
begin, end = m["cut_seconds"], m["cut_seconds"] + m["measured_seconds"]
assert end <= m["stood_still_at"] + 0.2 or begin >= m["stood_still_at"] + 0.8, (begin, end, m["stood_still_at"])
PY
stop_while_measuring 9s stopped
stopped_at=$SECONDS

# Told to stay when its terminal goes away, it stays.
nohup "$MLBENCH" run tiny.ini $ONE --set measure.duration=400ms --set measure.repeats=1 --out stays >out 2>err &
pid=$!
until_true heeds_interrupts "$pid"
kill -HUP "$pid"
wait "$pid"
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "exit $status after SIGHUP under nohup"

sleep $((stopped_at + 7 - SECONDS > 0 ? stopped_at + 7 - SECONDS : 0))
kill -CONT "$stopped"
wait "$stopped"
status=$?
[ "$status" -eq 3 ] || fail "exit $status, not 3, of a run that was stopped and continued"
grep -q 'unsteady: everything stood still for' "stopped$try/points.jsonl" || fail "a run that was stopped for 6 s does not say so"

# Two signals: at once.
"$MLBENCH" sweep tiny.ini --set measure.duration=10m --json --out twice >out 2>err &
pid=$!
until_true [ -e twice/points.jsonl ]
kill -INT "$pid"
kill -INT "$pid"
wait "$pid"
status=$?
[ "$status" -eq 130 ] || fail "exit $status after two signals"
python3 -c 'import json; json.load(open("out"))' || fail "no valid document after two signals"

# While the data set is being generated: 130, and the next try goes on.
sed -i 's/^samples = .*/samples = 400/; s/^width = .*/width = 900/; s/^height = .*/height = 900/; s/^path = .*/path = big/' tiny.ini
"$MLBENCH" sweep tiny.ini --json --out generating >out 2>err &
pid=$!
until_true [ -d big ]
kill -INT "$pid"
wait "$pid"
status=$?
[ "$status" -eq 130 ] || fail "exit $status while generating, not 130"
is_json mlbench.error/1
[ ! -e generating ] || fail "results without a run"
