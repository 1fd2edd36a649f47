# Engines, backends and stages are judged by the facts of their tables, which the record holds: called otherwise, it is
# diagnosed the same.
. "$CLI/lib.sh"
write_config
quick=(--set measure.duration=500ms --set measure.warmup=100ms --set batch.size=8 --set decode.workers=1)

# altered FROM TO WHAT ...: the record anew, with other names, without its facts or its roles.
altered() {
	rm -rf "$2"
	cp -r "$1" "$2"
	python3 - "$2" "${@:3}" <<'PY'
import glob, json, os, sys
folder, what = sys.argv[1], sys.argv[2:]

def alter(value):
    if isinstance(value, list):
        return [alter(one) for one in value]
    if not isinstance(value, dict):
        return value
    value = {key: alter(one) for key, one in value.items()}
    if "engine" in what and isinstance(value.get("engine"), str):
        value["engine"] = "other-reads"
    if "backend" in what and isinstance(value.get("backend"), str) and "model" in value:
        value["backend"] = "other-steps"
    if "stages" in what and "role" in value:
        value.update({key: "other " + value[key] for key in ("name", "stage") if key in value})
    for key, missing in (("facts", "no-facts"), ("role", "no-roles")):
        if missing in what:
            value.pop(key, None)
    return value

for path in [folder + "/points.jsonl", *glob.glob(folder + "/traces/*.json")]:
    with open(path) as file:
        text = file.read()
    documents = [json.loads(text)] if path.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    with open(path, "w") as file:
        for document in documents:
            file.write(json.dumps(alter(document)) + "\n")
for path in ("summary.json", "points.csv"):
    if os.path.exists(folder + "/" + path):
        os.remove(folder + "/" + path)
PY
}

# diagnosed FOLDER: its document, but for the folder.
diagnosed() {
	"$MLBENCH" diagnose "$1" --json >out 2>err
	echo $? >status
	python3 - <<'PY'
import json
document = json.load(open("out"))
document["folder"] = ""
print(open("status").read() + json.dumps(document, sort_keys=True, indent=1))
PY
}

same() {
	diagnosed "$2" >second
	cmp -s "$1" second || { diff "$1" second | head -n 12; fail "another diagnosis: $3"; }
}

# One file at a time, 4 ms each: with several in flight it would be another pipeline.
"$MLBENCH" run tiny.ini "${quick[@]}" --set read.engine=pread --set inject.read_latency=4ms --set step.time=2ms --out reads >out 2>err
altered reads plain
diagnosed plain >first
altered reads renamed engine backend stages
same first renamed "under other names"
altered reads older no-facts no-roles
same first older "as an older result, which has names alone"

# The same of a record that is kept, since one made on a busy machine may have no verdict; and it is told apart there whether
# reads block.
altered "$ROOT/tests/golden/blocking" plain
diagnosed plain >first
altered plain renamed engine backend stages
same first renamed "of the kept record under other names"
altered plain older no-facts no-roles
same first older "of the kept record as an older result"
altered plain unknown engine no-facts
diagnosed unknown >second
! cmp -s first second || fail "what blocks makes no difference: this test cannot fail"

# One rule for which repetitions count: of one that is good and two that are not, all three.  What is replayed is of the same
# ones as what was measured.
"$MLBENCH" run tiny.ini "${quick[@]}" --set measure.repeats=3 --set measure.epochs=20 --set step.time=2ms --out three >out 2>err
python3 - <<'PY'
import json
with open("three/points.jsonl") as file:
    lines = [json.loads(line) for line in file]
repetitions = [line for line in lines if line.get("kind") == "repetition"]
# Closer than what states that come and go differ by, of which what-if takes the one that lasts.
rate = repetitions[0]["throughput"]
for repetition, status, times in zip(repetitions, ("ok", "unsteady", "unsteady"), (1.02, 1, 1.01)):
    repetition.update(status=status, throughput=rate * times)
with open("three/points.jsonl", "w") as file:
    file.writelines(json.dumps(line) + "\n" for line in lines)
middle = sorted(one["throughput"] for one in repetitions)[1]
with open("middle", "w") as file:
    file.write(str(middle))
PY
rm -f three/summary.json
"$MLBENCH" what-if three --set decode.workers=2 --json >out 2>err
status=$?
[ $status -eq 3 ] || [ "$(json 'abs(d["base"]["measured"] / float(open("middle").read()) - 1) < 1e-6')" = True ] || fail "exit $status: what-if begins with other repetitions than the summary"
"$MLBENCH" show three --json >out 2>err
[ "$(json 'abs(d["points"][0]["throughput"]["median"] / float(open("middle").read()) - 1) < 1e-6')" = True ] || fail "the summary counts other repetitions"

# A step on this node's cores.
"$MLBENCH" run tiny.ini "${quick[@]}" --set step.backend=openblas --set step.model=mlp --set step.threads=1 --out steps >out 2>err
grep -q '"step_on_cores":true' steps/points.jsonl || skip "no step is computed here: $(tail -n 1 err)"
altered steps plain
diagnosed plain >first
altered steps renamed engine backend stages
same first renamed "under other names, a computed step"
altered steps older no-facts no-roles
same first older "as an older result, a computed step"
