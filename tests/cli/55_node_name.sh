# A node's name: --node, SLURMD_NODENAME, NODE_NAME, the host's name, in this order; in every place that shows results;
# and results of eight nodes are eight series.
. "$CLI/lib.sh"
write_config
base=(--set decode.workers=1 --set batch.size=8 --set measure.repeats=1 --set measure.epochs=4)
unset SLURMD_NODENAME NODE_NAME
name_of() { /usr/bin/python3 -c 'import json, sys
node = json.load(open(sys.argv[1] + "/summary.json"))["environment"]["node"]
print(node["name"], node["name_from"])' "$1"; }
expect_measured "$MLBENCH" run tiny.ini "${base[@]}" --out host
[ "$(name_of host)" = "$(uname -n) host name" ] || fail "the host's name: $(name_of host)"
NODE_NAME=pod-node expect_measured "$MLBENCH" run tiny.ini "${base[@]}" --out pod
[ "$(name_of pod)" = "pod-node NODE_NAME" ] || fail "NODE_NAME: $(name_of pod)"
NODE_NAME=pod-node SLURMD_NODENAME=slurm-7 expect_measured "$MLBENCH" run tiny.ini "${base[@]}" --out slurm
[ "$(name_of slurm)" = "slurm-7 SLURMD_NODENAME" ] || fail "SLURMD_NODENAME: $(name_of slurm)"
SLURMD_NODENAME=slurm-7 expect_measured "$MLBENCH" run tiny.ini "${base[@]}" --node mine --verbose --out mine
[ "$(name_of mine)" = "mine --node" ] || fail "--node: $(name_of mine)"
prints "node     mine: "
expect 2 "$MLBENCH" run tiny.ini --node "$(printf '%070d' 1)"
says "longer than 64 bytes"

# Shown wherever a result is.
expect 0 "$MLBENCH" show mine
says "on mine"
"$MLBENCH" compare slurm mine --json >out 2>err
[ "$(json '(d["baseline"]["node"], d["comparisons"][0]["result"]["node"])')" = "('slurm-7', 'mine')" ] || fail "compare"
[ "$(json '[f["weight"] for f in d["comparisons"][0]["differs"] if f["name"] == "node.name"]')" = "['strong']" ] || fail "another node is no detail"
expect 0 "$MLBENCH" export mine --format openmetrics --out m.prom
grep -q '^mlbench_result_info{.*node="mine"' m.prom || fail "no label"
grep -q '^mlbench_result_throughput_samples_per_second{.*node="mine"' m.prom || fail "not every metric says its node"
grep -q '>mine<' mine/report.html || grep -q '"mine"' mine/report.html || fail "the page does not say"

# Eight nodes with the same hardware, in a container, are eight series; names that its engine made up are one.
/usr/bin/python3 - <<'PY'
import json
start, items = 1790000000, []
for i in range(16):
    items.append({"name": "fleet", "folder": "fleet", "started": start + 86400 * i,
                  "facts": {"node.name": f"gpu-{i % 8:02}", "node.name_from": "SLURMD_NODENAME", "cgroup.container": "docker"}})
    items.append({"name": "made", "folder": "made", "started": start + 86400 * i,
                  "facts": {"node.name": f"{i:02x}cafe00beef", "node.name_from": "host name", "cgroup.container": "docker"}})
json.dump(items, open("series.json", "w"))
PY
/usr/bin/python3 "$CLI/make_history.py" host results series.json
expect 0 "$MLBENCH" history --json --metric throughput
[ "$(json 'len([s for s in d["plot"]["series"] if s["name"] == "fleet"])')" = 8 ] || fail "eight nodes are no eight series"
[ "$(json 'len([s for s in d["plot"]["series"] if s["name"] == "made"])')" = 1 ] || fail "names that were made up split a series"
[ "$(json 'sorted({r["host"] for r in d["results"] if r["name"] == "fleet"})')" = "$(/usr/bin/python3 -c 'print([f"gpu-{i:02}" for i in range(8)])')" ] || fail "hosts in JSON"
COLUMNS=80 expect 0 "$MLBENCH" history --where name=fleet
prints "gpu-03"
expect 0 "$MLBENCH" history --where host=gpu-03
prints "2 of 32 results"
# A result of before these facts is still of its host.
/usr/bin/python3 - <<'PY'
import json
lines = open("host/points.jsonl").read().splitlines()
header = json.loads(lines[0])
header["environment"].pop("node")
header["environment"]["kernel"]["nodename"] = "older"
header["environment"]["cgroup"]["container"] = "none that shows"
import os
os.makedirs("results/old/20260101T000000Z")
open("results/old/20260101T000000Z/points.jsonl", "w").write("\n".join([json.dumps(header)] + lines[1:]) + "\n")
PY
expect 0 "$MLBENCH" history --where host=older
prints "1 of 33 results"
expect 0 "$MLBENCH" show old
prints "node     older: "
