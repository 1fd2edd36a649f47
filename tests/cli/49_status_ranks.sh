# `mlbench status` of a job of ranks: one run is shown, rank 0's, with how many there are and what they do together; the others
# show nothing and listen on no port.
. "$CLI/lib.sh"
need_ranks
write_config
mkdir runtime && chmod 700 runtime
export XDG_RUNTIME_DIR=$PWD/runtime
pid=
trap 'kill -KILL $pid 2>/dev/null; wait' EXIT
boards() {
	find runtime -name '*.live' | wc -l
}

# A port that two of them would quarrel about.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
expect 0 "$MLBENCH" gen tiny.ini
ranks 3 "$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --set measure.duration=1h --out r3 --listen="$port" >r3.out 2>r3.err </dev/null &
# Other runs may go on here, and are listed, too.
measures() {
	pid=$(find runtime -name '*.live' -printf '%f' -quit)
	pid=${pid%.live}
	[ -n "$pid" ] && "$MLBENCH" status "$pid" --json >status.json 2>/dev/null &&
		python3 -c 'import json, sys
picture = json.load(open("status.json"))["runs"][0]["picture"]
sys.exit(not (picture and picture["throughput"]))' || ! sleep 0.3
}
until_true measures
[ "$(boards)" -eq 1 ] || fail "$(boards) ranks show themselves"
tr '\0' '\n' <"/proc/$pid/environ" | grep -qx 'OMPI_COMM_WORLD_RANK=0' || fail "it is not rank 0 that shows itself"
"$MLBENCH" status "$pid" --json >out 2>err || fail "it has ended: $(tail -n 3 r3.err)"
[ "$(json 'd["runs"][0]["picture"]["ranks"]')" = 3 ] || fail "not three ranks"
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
	/usr/bin/python3 -m jsonschema -i out "$ROOT/docs/status.schema.json" || fail "not valid against status.schema.json"
fi
COLUMNS=190 expect 0 "$MLBENCH" status "$pid"
grep -qE '^ *ranks +3 train together: [0-9,.]+ [kM]?.*samples/s, .* since the warm-up; all else here is of rank 0$' out || fail "no line of ranks"
expect 0 "$MLBENCH" status
grep -qE "^ *$pid +run +tiny, rank 0 of 3 +measuring" out || fail "the list does not say whose figures it has"
python3 -c 'import sys, urllib.request
text = urllib.request.urlopen("http://127.0.0.1:%s/metrics" % sys.argv[1], timeout=60).read().decode()
sys.exit(0 if "mlbench_run_ranks 3\n" in text else 1)' "$port" || fail "no metrics of 3 ranks on port $port"

# mpirun, asked to end, may kill a rank that takes its time: what that one showed stays until the next run.
kill -INT "$pid"
wait
[ "$(boards)" -eq 0 ] || fail "what was shown is still there"
