# diagnose --verify and --follow in a job of ranks: the experiments run on all of them together, one of them on all but the straggler;
# what is recommended is set for all; what cannot be tried is said.
. "$CLI/lib.sh"
need_ranks
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
printf '[sync]\ngradients = 64KiB\n[batch]\nsize = 8\n[decode]\nworkers = 1\n[read]\nengine = memory\n' >>tiny.ini

# tried JOB: each of its experiments, but for the slow-downs, has the blocks that it needs; or it has ended.
tried() {
	sleep 0.5 # python takes cores from the ranks
	! kill -0 $launcher 2>/dev/null || python3 - "$1/verification.json" 2>/dev/null <<'PY'
import json, sys
all_of = json.load(open(sys.argv[1]))["experiments"]
sys.exit(0 if all(e["kind"] == "slow" or e["broken"] or len(e["log_ratios"]) >= 2 for e in all_of) else 1)
PY
}

# proves JOB COUNT SETTING ... -- CHECK: that many ranks are diagnosed and verified, and interrupted when that tells it; again and for
# longer where a busy machine leaves no verdict, and {N} of a setting grows with it, so that it and not the cores are the limit.
# by(kind, stage) is an experiment, v the verdict.  1: it was tried on all ranks, but cores that others take remain the limit.
proves() {
	local job=$1 count=$2 settings=(measure.duration={300}ms) setting sets times status
	shift 2
	while [ "$1" != -- ]; do
		settings+=("$1")
		shift
	done
	for times in 1 3 9 27; do
		rm -rf "$job"
		sets=()
		for setting in "${settings[@]}"; do
			[[ $setting =~ \{([0-9]+)\} ]] && setting=${setting/"${BASH_REMATCH[0]}"/$((times * BASH_REMATCH[1]))}
			sets+=(--set "$setting")
		done
		start_ranks "$count" "$MLBENCH" diagnose tiny.ini "${sets[@]}" --verify --budget 10m --out "$job"
		until_true tried "$job"
		kill -INT $launcher 2>/dev/null
		wait $launcher
		"$MLBENCH" diagnose "$job" --json >out 2>err
		is_json mlbench.diagnosis/1
		status=0
		python3 - "$2" <<'PY' || status=$?
import json, sys
d = json.load(open("out"))
v, all_of = d["verdict"], d["verification"] or []
def by(kind, stage):
    return next((e for e in all_of if e["kind"] == kind and e["stage"] == stage), {"measured": None, "outcome": "", "what": ""})
def holds(e, least):
    return e["measured"] is not None and e["measured"] > least and e["outcome"] == "confirmed"
if d["cannot_tell"]:
    sys.exit(4)
assert all(by("substitute", stage)["measured"] for stage in ("sync", "step")), all_of
sys.exit(0 if eval("(" + sys.argv[1] + ")") else 3)
PY
		case $status in 0) return ;; 3 | 4) ;; *) fail "$job was not verified" ;; esac
		[ $times -eq 1 ] || [ $status -eq 4 ] || measuring || break
	done
	[ $status -eq 3 ] || fail "too little was measured of $job"
	measuring && fail "not so of $job: $2"
	echo "$job: not proved here: $(json 'd["sentence"]')"
	return 1
}

# A device that takes four times as long: without it the others are more than twice as fast, and what they exchange is not it.
straggler=unproved
proves straggler 3 codec.name=null step.time={4}ms inject.slow_device=4 -- \
	'v["resource"] == "imbalance" and by("without", "sync")["what"].startswith("without rank 2 on ") and holds(by("without", "sync"), 2)
	and by("without", "sync")["measured"] > 1.5 * (by("substitute", "sync")["measured"] or 9) and holds(by("substitute", "step"), 4)' && straggler=proved
# The leader's experiments are shown again by one process.  By itself it cannot run them: the job has three ranks.
"$MLBENCH" diagnose straggler >out 2>err
[ $straggler = unproved ] || prints "without rank 2 on "
prints "sync: no exchange"
expect 2 "$MLBENCH" diagnose straggler --verify
says "run.ranks = 3 needs a launcher"
expect 2 ranks 2 "$MLBENCH" diagnose straggler --verify
says "run.ranks = 3, but Open MPI started 2: start as many"
[ "$(grep -c '^mlbench: error: ' err)" -eq 1 ] || fail "not one line says it"
# As saved, it is verified as well, by some of more ranks that were started.  Its pages say how: also that of one rank.
rm straggler/verification.json
expect 0 "$MLBENCH" report straggler
grep -qF 'mpirun -n 3 mlbench diagnose straggler --verify' straggler/report.html || fail "the page does not say how to verify it"
grep -qF 'mpirun -n 3 mlbench run /dev/null' straggler/report.html || fail "the page does not say how to measure it again"
expect 0 "$MLBENCH" report straggler/ranks/0001 --out one.html
! grep -qF 'mlbench diagnose straggler/ranks' one.html || fail "the page of one rank says to verify that alone"
start_ranks 4 "$MLBENCH" diagnose straggler --verify --budget 5m
until_true [ -e straggler/verification.json ]
kill -INT $launcher
wait $launcher
grep -q '"interrupted": true' straggler/verification.json || fail "an interrupted verification is not kept"
[ $straggler = unproved ] || grep -q '"kind": "without"' straggler/verification.json || fail "a saved job is not tried without its straggler"

# Gradients that take far longer than the step: without them it is more than twice as fast, without decoding it is not.
proves exchange 2 step.time=1ms sync.gradients=8MiB -- \
	'v["stage"] == "sync" and v["resource"] == "exchange" and holds(by("substitute", "sync"), 2)
	and by("substitute", "sync")["measured"] > 1.5 * (by("substitute", "decode")["measured"] or 9)
	and by("substitute", "step")["measured"] and not by("without", "sync")["what"]'

# Samples wait 4 ms each in their worker, on each rank: more workers are recommended, and --follow sets them for all.
ranks 2 "$MLBENCH" diagnose tiny.ini --set inject.decode_wait=4ms --set step.time=4ms --set measure.duration=400ms --follow=2 --json --out way >out 2>err
status=$?
[ "$status" -le 1 ] || [ "$status" -eq 3 ] || fail "exit $status of --follow"
is_json mlbench.diagnosis/1
if [ "$(json 'len(d["follow"]["steps"]) > 1')" = True ]; then
	for folder in way/follow-1 way/follow-1/ranks/0001; do
		python3 - "$folder/points.jsonl" <<'PY' || fail "a rank that was not set: $folder"
import json, sys
header, *lines = [json.loads(line) for line in open(sys.argv[1])]
decode = header["resolved"].split("[decode]")[1].split("[")[0]
assert "\nworkers = 1\n" not in decode and any(line.get("kind") == "repetition" for line in lines), decode
PY
	done
fi
