# What a network file system's client counted is shown and exported, with reasons for what is not known.  The counts are
# put into a saved result: nothing here mounts a file system.
. "$CLI/lib.sh"
cp -r "$ROOT/tests/golden/sample" counted
/usr/bin/python3 - counted/points.jsonl <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
call = {"calls": 1000, "retransmits": 3, "queue_ns": 5e5, "round_trip_ns": 4e6, "execute_ns": 4.6e6,
        "bytes_sent": 2e5, "bytes_received": 1e8}
repetitions = [line for line in lines if line.get("kind") == "repetition"]
for i, line in enumerate(repetitions):
    line["network"] = {
        "protocol": "NFSv4.2", "client": "kernel", "server": "filer", "why": "", "seconds": 2, "connections": 2,
        "request_bytes": 1048576, "idle_round_trip_ns": 3e5, "wire_round_trip_ns": None, "link_bytes_per_s": None,
        "calls": [dict(call, name="READ"), dict(call, name="OPEN", retransmits=None, bytes_sent=None)]}
last = repetitions[-1]["point"]
for line in repetitions:
    if line["point"] == last:
        line["network"].update(why="it cannot be read", calls=[], seconds=None)
open(sys.argv[1], "w").writelines(json.dumps(line) + "\n" for line in lines)
PY
COLUMNS=200 expect 0 "$MLBENCH" show counted --verbose
grep -q "NFSv4.2 to filer (kernel, connections: 2, READ of at most 1.00 MiB)" out || fail "no protocol"
grep -q "READ 500/s, waits 500 us, round trip 4.00 ms, sent again: " out || fail "no READ"
grep -q "OPEN 500/s, waits 500 us, round trip 4.00 ms" out || fail "no OPEN"
grep -q "calls were not counted: it cannot be read" out || fail "no reason"
"$MLBENCH" show counted --json >counted.json 2>err || fail "show --json"
/usr/bin/python3 - counted.json <<'PY' || fail "summary.json has other calls"
import json, sys
points = json.load(open(sys.argv[1]))["points"]
network = points[0]["network"]
read, opened = network["calls"]
assert read["calls_per_s"] == 500 and read["received_bytes_per_s"] == 5e7, read
assert opened["retransmits"] is None and opened["missing"]["retransmits"], opened
assert network["wire_round_trip_ns"] is None and network["missing"]["wire_round_trip_ns"], network
assert network["receiving_share"] is None and "only the nfs engine sees" in network["missing"]["receiving_share"], network
uncounted = [p["network"] for p in points if "network" in p and not p["network"]["calls"]]
assert len(uncounted) == 1 and uncounted[0]["missing"]["seconds"] == "it cannot be read", uncounted
PY
/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || exit 0
/usr/bin/python3 - counted.json "$ROOT/docs/summary.schema.json" <<'PY' || fail "summary.json is not valid"
import json, sys
import jsonschema
jsonschema.Draft202012Validator(json.load(open(sys.argv[2]))).validate(json.load(open(sys.argv[1])))
PY
