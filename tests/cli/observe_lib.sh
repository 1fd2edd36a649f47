# Jobs for tests of `mlbench observe`, and what holds of the document on them.  After lib.sh.
command -v python3 >/dev/null || skip "python3 is not installed"
job=$ROOT/tests/jobs/loader_job.py
pids=
inner=
trap '[ -z "$inner" ] || kill -KILL "$inner"; for p in $pids; do kill -CONT "$p" 2>/dev/null; kill "$p" 2>/dev/null; done' EXIT
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i out "$ROOT/docs/observe.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "not valid against observe.schema.json"; }
}
mkdir -p data
for i in $(seq 40); do head -c $((20000 + i * 500)) /dev/zero >"data/private_name_$i.jpg"; done
# begin ARGUMENT ...: pid is the job's; returns when its workers have begun.
begin() {
	: >started
	python3 "$job" data --seconds 600 "$@" >started 2>problems &
	pid=$!
	pids="$pids $pid"
	until_true grep -q started started
}
# end: the job was not disturbed: it still runs.
end() {
	kill -0 "$pid" 2>/dev/null || fail "the job did not survive being observed"
	kill "$pid"
	wait "$pid" 2>/dev/null || true
}
# observed [LOOKS]: the document on the job, after as many looks as shares need, however seldom a slow node has time for one; and
# the job ends.
observed() {
	local span
	for span in 2 4 8 16 32 64; do
		expect 0 "$MLBENCH" observe "$pid" --for ${span}s --json
		[ "$(json "d['observed']['state_looks'] >= ${1:-60}")" != True ] || break
	done
	end
	validate
}
# python over the document: roles(NAME) lists processes of a role, waits(p) is the share that one waits for input.
holds() {
	python3 - "$1" <<'PY' || fail "not so: $1"
import json, sys
d = json.load(open("out"))
roles = lambda name: [p for p in d["processes"] if p["role"] == name]
waits = lambda p: p["acts"]["input"] + p["acts"]["poll"]
mean = lambda values: sum(values) / len(values)
assert eval(sys.argv[1]), json.dumps([d["verdict"]["words"], d["life"], d["ranks"]] + [[p["role"], p["acts"]] for p in d["processes"]])[:2000]
PY
}
