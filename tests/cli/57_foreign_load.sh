# A result that was measured beside other load is marked wherever it is read: what others took is written into copies
# of one record, so nothing here depends on what the machine does.  Last, load that is planted beside the job's only core.
. "$CLI/lib.sh"
write_config
predictable run step.time=1ms "$MLBENCH" run tiny.ini $ONE --set step.time=2ms

# copy NAME CORES STEAL: the run as it would be if others had taken so much.
copy() {
	cp -r run "$1"
	python3 - "$@" <<'PY'
import json, sys
name, cores, steal = sys.argv[1], *map(float, sys.argv[2:])
lines = [json.loads(line) for line in open(f"{name}/points.jsonl")]
lines[0]["cores"] = 2
for line in lines[1:]:
    if "measured_seconds" in line:
        line.update(cores_allowed=2, cores_busy_outside=cores, steal_share=steal, cpu_seconds=0.3 * line["measured_seconds"])
open(f"{name}/points.jsonl", "w").write("".join(json.dumps(line) + "\n" for line in lines))
PY
}
copy alone 0.05 0.01
copy beside 1.6 0
copy stolen 0 0.12

expect 0 "$MLBENCH" show alone --json
[ "$(json 'd["points"][0]["foreign_load"]["contaminated"]')" = False ] || fail "a quiet node is no other load"
expect 0 "$MLBENCH" show beside --json
[ "$(json 'd["points"][0]["foreign_load"]["reason"]')" = "other processes kept 1.6 of 2 cores busy" ] || fail "the reason"
expect 0 "$MLBENCH" show stolen
prints "load     the hypervisor took 12 % of the time"

expect 0 "$MLBENCH" what-if alone --set step.time=1ms --json
[ "$(json 'd["contaminated"]')" = None ] || fail "predictions of a quiet node are marked"
expect 0 "$MLBENCH" what-if beside --set step.time=1ms --json
[ "$(json 'd["contaminated"]["points"]')" = 1 ] || fail "predictions of a contaminated result are not marked"
expect 0 "$MLBENCH" what-if beside --set step.time=1ms
head -n 3 out | grep -q "load  *other processes kept 1.6 of 2 cores busy" || fail "it is not said in the first lines"
expect 3 "$MLBENCH" what-if beside --fleet 2
says "measure it again on an idle one, or give --force"
expect 0 "$MLBENCH" what-if beside --fleet 2 --force
prints "load "
expect 0 "$MLBENCH" what-if alone --fleet 2

"$MLBENCH" compare alone stolen >out 2>err
prints "B: the hypervisor took 12 % of the time"
! grep -q "A: .*hypervisor" out || fail "A was alone"

expect 0 "$MLBENCH" report stolen
grep -q "Other load:" stolen/report.html || fail "the page does not say it"

mkdir results
mv alone beside results
expect 0 "$MLBENCH" history --json
[ "$(json '{r["folder"]: r["contaminated"] for r in d["results"]}')" = "{'alone': False, 'beside': True}" ] ||
	fail "history: $(json '[(r["folder"], r["contaminated"]) for r in d["results"]]')"
expect 0 "$MLBENCH" history
prints "other load; "

# Only the load on the cores that the job may use is on them: a hog on another core is elsewhere.
cores=$(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }')
set -- $cores
[ $# -ge 2 ] || skip "a hog on another core cannot be planted on one core"
taskset -c "$2" sh -c 'while :; do :; done' &
hog=$!
trap 'kill $hog' EXIT
taskset -c "$1" "$MLBENCH" run tiny.ini $ONE --out one_core >out 2>err || [ $? -eq 3 ] || fail "no run on one core"
python3 - <<'PY' || fail "the load of others is not counted on the job's own core"
import json
m = [json.loads(line) for line in open("one_core/points.jsonl")][1]
assert m["cores_allowed"] == 1 and m["cores_busy_outside"] <= 1.5, m["cores_busy_outside"]
assert m["cores_busy_elsewhere"] > 0, m["cores_busy_elsewhere"]
PY

# A mask is told from too few cores by what the process could use without it: by doctor, accept and the record.
expect 0 taskset -c "$1" "$MLBENCH" doctor
prints "an affinity mask holds this process on CPU $1: 1 of the"
expect 0 env OMP_NUM_THREADS=4096 "$MLBENCH" doctor
prints "OMP_NUM_THREADS=4096 for"
printf '[plan]\nname = mask\n[mask]\nkind = expect\ncgroup.masked = 0\n' >mask.ini
expect 1 taskset -c "$1" "$MLBENCH" accept mask.ini
prints "find who sets the mask and widen it"
python3 - <<'PY' || fail "the mask is not in the record"
import json
m = [json.loads(line) for line in open("one_core/points.jsonl")][1]
assert m["cores_reachable"] >= 2 and all(s["cores"] == 1 for s in m["stages"]), m["stages"]
PY
