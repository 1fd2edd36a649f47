# Many nodes beside each other, and a baseline of them: from results that are made up, with planted nodes.
. "$CLI/lib.sh"
make_nodes() { "$ROOT/tests/bench/make_nodes.py" "$@" || fail "make_nodes.py"; }
cat >plant.json <<'JSON'
{"node003": {"slow": 0.05, "facts": {"cpu.microcode": "0x19"}},
 "node007": {"verdict": "FAIL"},
 "node011": {"read": 0.4, "facts": {"data.options": "rw,sync"}},
 "node015": {"core": [2, 0.3]},
 "node020": {"memory": 480},
 "node022": [{"started": "2025-11-20T03:10:00Z"}, {"facts": {"kernel.release": "6.6.1"}}],
 "node025": {"name": "<i>evil\u001b[31m|`</script>"},
 "node030": {"complete": false, "verdict": "ERROR"}}
JSON
make_nodes fleet --nodes 30 --plant plant.json

# --- the terminal, 80 columns ---
export COLUMNS=80
expect 1 "$MLBENCH" fleet fleet
prints "30 nodes: 1 FAIL, 1 ERROR, 28 PASS; 3 outliers"
[ "$(wc -L <out)" -le 80 ] || fail "a line is wider than the terminal"
! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" out || fail "control characters on the terminal"
for line in "node007 +FAIL" "node011 +PASS, outlier +-39" "node015 +PASS, outlier +-29" "node003 +PASS, outlier +-[45]"; do
	grep -qE "$line" out || fail "no row '$line'"
done
reads "data.options: rw,sync (28 nodes have rw,noatime)"
reads "cpu.microcode: 0x19 (28 nodes have 0x2b)"
reads "memory: 480 GiB, not 512 GiB"
reads "kernel.release: 6.6.1, it was 6.1.0-18-amd64"
reads "this much of -26"
LC_ALL=C expect 1 "$MLBENCH" fleet fleet
! LC_ALL=C grep -q '[^ -~]' out || fail "more than ASCII in the C locale"

# --- who is missing ---
printf '# rack 1\nnode[001-030]\nnode031, node001\n' >nodes.txt
expect 1 "$MLBENCH" fleet fleet --expect nodes.txt
reads "29 of 31 reported, missing: node025, node031"
make_nodes healthy --nodes 12 --seed 5
expect 0 "$MLBENCH" fleet healthy
prints "12 nodes: 12 PASS"
expect 3 "$MLBENCH" fleet healthy --expect nodes.txt
echo 'node[1-' >bad.txt
expect 2 "$MLBENCH" fleet healthy --expect bad.txt
says "line 1"
expect 2 "$MLBENCH" fleet healthy --expect nowhere.txt

# --- other forms ---
expect 1 "$MLBENCH" fleet fleet --json
is_json mlbench.fleet/1
json 'assert d["counts"]["FAIL"] == 1 and d["node_count"] == 30 and d["result_count"] == 31'
json 'assert [n["node"] for n in d["nodes"]][0] == "node007"'
json 'assert len(d["groups"]) == 2 and d["groups"][0]["nodes"] == 29'
cp out fleet.json
expect 1 "$MLBENCH" fleet fleet --format csv --out fleet.csv
python3 - <<'PY' || fail "the CSV"
import csv
rows = list(csv.DictReader(open("fleet.csv")))
assert len(rows) == 30 and rows[0]["node"] == "node007", rows[0]
assert "<i>evil\x1b[31m|`</script>" in [r["node"] for r in rows] or any("evil" in r["node"] for r in rows)
PY
expect 1 "$MLBENCH" fleet fleet --format markdown
prints "| node007 | FAIL |"
! grep -q '<i>' out || fail "markup in Markdown"
touch fleet/node003/accept.html
mkdir -p pages
expect 1 "$MLBENCH" fleet fleet --format html --out pages/fleet.html
grep -q 'href="./../fleet/node003/accept.html"' pages/fleet.html || fail "no link to the node's page"
! grep -q '<i>evil' pages/fleet.html || fail "markup of a name in the page"
grep -q "read.capacity of .*training.*: outliers: " pages/fleet.html || fail "no strip names its outliers"
# Its charts, and those of few nodes, compile and draw without a warning.
make_nodes three --nodes 3
expect 0 "$MLBENCH" fleet three --format html --out three.html
if can_draw; then
	expect 0 draw pages/fleet.html three.html
fi

# --- bad input ---
expect 2 "$MLBENCH" fleet
expect 2 "$MLBENCH" fleet nowhere
says "cannot read 'nowhere'"
expect 2 "$MLBENCH" fleet fleet --format htlm
says "did you mean 'html'"
expect 2 "$MLBENCH" fleet fleet --json --out x.json
expect 2 "$MLBENCH" fleet fleet --json --format csv
is_json mlbench.error/1
expect 2 "$MLBENCH" fleet fleet --since someday
expect 2 "$MLBENCH" fleet fleet --since 2099-01-01
mkdir broken
echo '{"schema": "mlbench.accept/1", ' >broken/accept.json
mkdir empty
expect 3 "$MLBENCH" fleet healthy broken empty
says "left out 'broken/accept.json': no JSON"
says "left out 'empty': there is no accept.json"
reads "broken/accept.json: no JSON"
expect 2 "$MLBENCH" fleet broken
says "none of the results can be read"
sed 's|mlbench.accept/1|mlbench.accept/9|' healthy/node001/accept.json >broken/accept.json
expect 2 "$MLBENCH" fleet broken
says "use a newer mlbench"
# A verdict that contradicts its checks is none, and of two results of one moment the worse counts, by whatever path.
changed() {
	python3 -c 'import json, sys
d = json.load(open("healthy/node001/accept.json"))
d.update(json.loads(sys.argv[1]))
json.dump(d, open(sys.argv[2], "w"))' "$1" "$2"
}
mkdir zz
changed '{"verdict": "FAIL"}' zz/accept.json
expect 1 "$MLBENCH" fleet healthy zz
expect 1 "$MLBENCH" fleet zz healthy
changed '{"checks": [{"check": "a", "verdict": "FAIL", "findings": []}]}' broken/accept.json
expect 3 "$MLBENCH" fleet healthy broken
says "contradicts check 'a'"
# What others measured and this node did not, another plan, and damaged figures are no pass; each has a word.
odd() { # CODE: python that changes the document d of a healthy node
	mkdir -p odd
	python3 -c 'import json, sys
d = json.load(open("healthy/node001/accept.json"))
d["node"]["name"] = d["environment"]["node"]["name"] = "odd"
exec(sys.argv[1])
json.dump(d, open("odd/accept.json", "w"))' "$1"
}
gap() { # CODE WORDS
	odd "$1"
	expect 3 "$MLBENCH" fleet healthy odd
	reads "$2"
	prints "1 not comparable"
	grep -qE "odd +PASS, not comparable" out || fail "no row of it"
}
odd ''
expect 0 "$MLBENCH" fleet healthy odd
gap 'd["checks"] = [c for c in d["checks"] if c["check"] != "memory errors"]' "not measured: check 'memory errors', which 12 of 13 like nodes have"
gap 'd["measured"][0]["values"] = d["measured"][0]["values"][:3]' "not measured: decode.core at core 3 of 'cores', which 12 of 13 like nodes have"
gap 'd["measured"][3]["values"] = d["measured"][3]["values"][1:]' "not measured: throughput of 'training', which 12 of 13"
gap 'd["judged_by"]["plan"]["hash"] = "1"' "judged by another plan than 12 of 13 like nodes"
expect 3 "$MLBENCH" fleet healthy odd --format html --out odd.html
grep -q "judged by another plan than 12 of 13 like nodes" odd.html || fail "no word of it on the page"
damaged() { # CODE WORDS
	odd "$1"
	expect 3 "$MLBENCH" fleet healthy odd
	says "left out 'odd/accept.json': $2"
	reads "12 nodes: 12 PASS"
}
damaged 'd["measured"][0]["values"][0]["values"][1] = "410"' "decode.core of check 'cores' is damaged"
damaged 'd["measured"][0]["values"][0]["values"][1] = 1e308' "decode.core of check 'cores' is damaged"
damaged 'd["measured"][0]["state"] = "died"' "PASS of check 'cores' contradicts how it ended (died)"
damaged 'del d["started"]' "it has no date"
# A PASS of the year 2036 does not hide today's FAIL, nor is it in a baseline.
odd 'd["started"] = "2036-01-01T00:00:00Z"'
mkdir -p today
cp odd/accept.json today/
expect 3 "$MLBENCH" fleet healthy odd
says "which is still to come"
python3 -c 'import json
d = json.load(open("today/accept.json"))
d.update(verdict="FAIL", started="2025-11-27T00:00:00Z")
json.dump(d, open("today/accept.json", "w"))'
expect 1 "$MLBENCH" fleet healthy odd today
grep -qE "odd +FAIL" out || fail "a PASS of 2036 hides a FAIL"
expect 0 "$MLBENCH" baseline healthy odd --json
json 'assert len(d["nodes"]) == 12'
# The same file twice is one result.
expect 0 "$MLBENCH" fleet healthy healthy/node001/accept.json --json
json 'assert d["result_count"] == 12'

# --- baselines ---
expect 0 "$MLBENCH" baseline fleet --out baseline.json
reads "24 nodes of: 2 x A CPU of 2.6 GHz"
reads "not like the other nodes"
reads "decode.core of 'cores' at all places"
expect 0 "$MLBENCH" baseline fleet --json
is_json mlbench.baseline/1
json 'assert sorted(n["name"] for n in d["left_out"]) == ["node003", "node007", "node011", "node015", "node020", "node022", "node030"], d["left_out"]'
json 'assert all(f["nodes"] == 24 and f["low"] is not None or f["figure"] == "burn.drift" for f in d["figures"])'
cp out plain.json
make_nodes later --nodes 6 --seed 9 --plant <(echo '{"node001": {"started": "2025-12-01T00:00:00Z"}}')
expect 0 "$MLBENCH" baseline baseline.json later --json
json 'assert len(d["nodes"]) == 25 and [n for n in d["nodes"] if n["name"] == "node001"][0]["started"] == "2025-12-01T00:00:00Z", len(d["nodes"])'
expect 0 "$MLBENCH" baseline baseline.json later --since 2025-12-01 --json
json 'assert len(d["nodes"]) == 1 and "One node alone" in d["notes"][0]'
make_nodes other --nodes 3 --plant <(echo '{"node001": {"memory": 64}, "node002": {"memory": 64}, "node003": {"memory": 64}}')
expect 0 "$MLBENCH" baseline other --out other.json
expect 2 "$MLBENCH" baseline baseline.json other.json
says "of different hardware: memory: 64.0 GiB, not 512 GiB"
expect 3 "$MLBENCH" baseline fleet/node007
says "none is of a healthy node"
expect 2 "$MLBENCH" baseline nowhere
for damage in -1e308 '"fast"'; do
	python3 -c 'import json, sys
d = json.load(open("baseline.json"))
d["figures"][0]["low"] = json.loads(sys.argv[1])
json.dump(d, open("damaged.json", "w"))' "$damage"
	expect 2 "$MLBENCH" baseline damaged.json
	says "a damaged baseline: 'low' of"
done
sed 's|mlbench.baseline/1|mlbench.baseline/2|' baseline.json >newer.json
expect 2 "$MLBENCH" baseline newer.json
says "use a newer mlbench"

# --- the documents are as their schemas say ---
/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
/usr/bin/python3 - "$ROOT/docs" <<'PY' || fail "a document is not as its schema says"
import json, sys
import jsonschema
for name, path in ("fleet", "fleet.json"), ("baseline", "plain.json"):
    schema = json.load(open("%s/%s.schema.json" % (sys.argv[1], name)))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    document = json.load(open(path))
    for error in validator.iter_errors(document):
        sys.exit("%s: %s: %s" % (path, error.json_path, error.message))
    for member in list(document):
        less = dict(document)
        del less[member]
        assert not validator.is_valid(less), member
    assert not validator.is_valid({**document, "extra": 1})
PY
