# mlbench accept: what is refused, what is kept, and that nothing but what was shown passes.  With storage that hangs or fails,
# a kill in the middle, and another plan for a saved result.
. "$CLI/lib.sh"

cat >plan.ini <<'INI'
[plan]
name = tiny
[bought]
kind = expect
tier = quick
cpu.cores >= 1
cpu.model = known
[clock]
kind = ceiling
tier = quick
clock.read <= 1 s
[more]
kind = expect
memory.total >= 1 KiB
INI

# A node that has what was asked.
expect 0 "$MLBENCH" accept plan.ini --out good --node n17
prints "PASS"
prints "n17"
[ -s good/measured.jsonl ] && [ -s good/accept.json ] || fail "nothing is kept"
expect 0 "$MLBENCH" accept plan.ini --tier quick --json --out quick
is_json mlbench.accept/1
[ "$(json '[d["verdict"], d["exit_status"], d["complete"], len(d["checks"])]')" = "['PASS', 0, True, 2]" ] || fail "not two checks that pass"
[ "$(json 'len([v for m in d["measured"] for v in m["values"]][0]["values"])')" = 8 ] || fail "not eight repetitions"
expect 2 "$MLBENCH" accept plan.ini --tier quick --out quick
says "holds a result already"

# One that has not: the reason, and what to do.
sed 's/cpu.cores >= 1/cpu.cores >= 100000/' plan.ini >large.ini
expect 1 "$MLBENCH" accept large.ini --tier quick --out bad
reads "cpu.cores is"
reads "asked: at least 100,000"
reads "--check bought"
expect 1 "$MLBENCH" accept large.ini --check bought --out only
[ "$(grep -c '"check":' only/measured.jsonl)" = 1 ] || fail "more than the check that was asked for"

# The saved result again: as it is, and by another plan, without running anything.
expect 1 "$MLBENCH" accept bad
reads "asked: at least 100,000"
expect 0 "$MLBENCH" accept plan.ini --tier quick --judge bad
prints "PASS"
cp out first
expect 0 "$MLBENCH" accept plan.ini --tier quick --judge bad
cmp -s out first || fail "judged again, the same result reads otherwise"
# What a plan asks beyond what was measured was not run, and what was measured in less time shows less.
expect 3 "$MLBENCH" accept plan.ini --tier standard --judge bad
reads "it was not run"
reads "it was measured in tier quick"

# A baseline of this hardware is taken, one of another machine refused and not compared.
as_if_quiet good
expect 0 "$MLBENCH" baseline good --out base.json
expect 0 "$MLBENCH" accept plan.ini --judge good --baseline base.json
python3 - <<'PY'
import json
d = json.load(open("base.json"))
d["fingerprint"]["cpu"] = "Another 9000"
json.dump(d, open("other.json", "w"))
PY
expect 2 "$MLBENCH" accept plan.ini --judge good --baseline other.json
says "the baseline is of other hardware than this node: cpu: "
expect 2 "$MLBENCH" accept plan.ini --baseline other.json --out never
says "other hardware"

# Wrong input, before anything runs.
sed 's/cpu.cores >= 1/cpu.corse >= 1/' plan.ini >wrong.ini
expect 2 "$MLBENCH" accept wrong.ini --out never
says "wrong.ini:6: unknown key or figure 'cpu.corse' of kind = expect; did you mean 'cpu.cores'?"
expect 2 "$MLBENCH" accept plan.ini --check buoght --out never
says "did you mean 'bought'?"
expect 2 "$MLBENCH" accept plan.ini --tier quikc --out never
expect 2 "$MLBENCH" accept plan.ini --start-at 2020-01-01T00:00:00Z --out never
says "is over"
expect 2 "$MLBENCH" accept plan.ini --budget soon --out never
expect 2 "$MLBENCH" accept plan.ini --baseline nowhere.json --out never
expect 2 "$MLBENCH" accept plan.ini --format nothing --out never
expect 2 "$MLBENCH" accept nowhere.ini --json
is_json mlbench.error/1
echo '{"schema": "mlbench.accept/9", "measured": []}' >newer.json
expect 2 "$MLBENCH" accept newer.json
says "newer schema"
echo '{"schema": "mlbench.accept/1", "measured": [' >torn.json
expect 2 "$MLBENCH" accept torn.json
[ ! -e never ] || fail "a wrong plan has left something"
# Results stay in results/, and a plan of which nothing is left has no verdict.
sed 's/name = tiny/name = ..\/tiny/' plan.ini >leaves.ini
expect 2 "$MLBENCH" accept leaves.ini --out never
says "cannot be a folder's"
sed '1,2d' plan.ini >...ini
expect 2 "$MLBENCH" accept ...ini --out never
printf '[a]\nkind = expect\ntier = never\ncpu.cores >= 1\n' >nothing.ini
expect 3 "$MLBENCH" accept nothing.ini --json --out nothing
[ "$(json 'd["sentence"]')" = "ERROR: the plan has no check in this tier" ] || fail "no check, and a verdict"
# An included plan, of which a check and a criterion are taken away.
printf 'include = plan.ini\n[clock]\ntier = never\n[bought]\ncpu.model = none\n' >own.ini
expect 0 "$MLBENCH" accept own.ini --tier quick --json --out own
[ "$(json '[(c["check"], len(c["findings"])) for c in d["checks"]]')" = "[('bought', 1)]" ] || fail "the including plan does not override"

# What would run, and at what cost.
expect 0 "$MLBENCH" accept plan.ini --dry-run
reads "bought expect"
reads "failed wrongly in at most 1 %"
[ ! -e results ] || fail "a dry run has left something"

# A part of the plan, or a node with planted faults, is no evidence that a node is fit: every form says so.
forms="terminal page certificate markdown junit nagios"
said_by_every_form() {
	for form in $forms; do
		"$MLBENCH" accept "$1" --format "$form" >out 2>err
		grep -q "$2" out || fail "$form does not say: $2"
	done
	for form in slurm nhc openmetrics; do
		"$MLBENCH" accept "$1" --format "$form" >out 2>err
		grep -q "$3" out || fail "$form does not say: $3"
	done
	! grep -q "Certificate of acceptance" "$1/certificate.html" || fail "a certificate for $1"
}
expect 0 "$MLBENCH" accept plan.ini --check bought --out part
said_by_every_form part "nly 1 of 3 checks of the plan were asked for" "in part"
expect 0 "$MLBENCH" accept part --tier quick --json
[ "$(json 'd["left_out"]')" = 2 ] || fail "judged again, the result is of the whole plan"
MLBENCH_ACCEPT_INJECT=gemm expect 0 "$MLBENCH" accept plan.ini --tier quick --out planted
said_by_every_form planted "ault is planted" "with planted faults"
# A burn that is shorter than the plan says: by --for it is a part, by its budget an ERROR.
printf '[burn]\nkind = burn\ntier = quick\nfor = 60s\nsize = 1 MiB\nloads = gemm\nburn.wrong = 0\n' >burn.ini
expect 0 "$MLBENCH" accept burn.ini --tier quick --for 1s --out shortened
said_by_every_form shortened "urns were shortened to 1s" "in part"
expect 3 "$MLBENCH" accept burn.ini --tier quick --budget 8s --out cut
prints "because its budget was over"
mkdir root
MLBENCH_ACCEPT_ROOT=$PWD/root "$MLBENCH" accept plan.ini --tier quick --out rooted >out 2>err
said_by_every_form rooted "facts of the system come from a folder" "with planted faults"
expect 3 "$MLBENCH" fleet part
expect 3 "$MLBENCH" baseline part planted
grep -q "Certificate of acceptance" good/certificate.html || fail "no certificate for a node that passed"

# A result goes on where it began, or not at all.
expect 2 "$MLBENCH" accept plan.ini --resume good --out elsewhere
says "leave --out out"
expect 2 "$MLBENCH" accept good --judge bad
mkdir empty
expect 2 "$MLBENCH" accept empty
says "there is no result in 'empty'"
expect 2 "$MLBENCH" accept plan.ini --resume good --node n18
says "is of node 'n17', and this is 'n18'"

# Checks that die, hang, say nothing or no number are named, and the rest runs.
sed '/^kind = ceiling/a budget = 1s' plan.ini >short.ini
for fault in die hang silent nan; do
	export MLBENCH_ACCEPT_INJECT=check:$fault
	expect 3 "$MLBENCH" accept short.ini --check clock --json --out "fault_$fault"
	unset MLBENCH_ACCEPT_INJECT
	[ "$(json 'd["verdict"]')" = ERROR ] || fail "a check that should $fault is no ERROR"
done

# A kill in the middle: what was done is kept, and only the rest runs.
MLBENCH_ACCEPT_INJECT=check:hang "$MLBENCH" accept plan.ini --budget 60s --out killed >out 2>err &
pid=$!
until_true grep -qs schema killed/measured.jsonl
kill -KILL "$pid"
wait "$pid"
head -c 40 good/measured.jsonl | tail -c 10 >>killed/measured.jsonl # of a torn last line
expect 3 "$MLBENCH" accept killed --json
[ "$(json 'd["verdict"], d["complete"]')" = "('ERROR', False)" ] || fail "a killed run has a verdict"
expect 2 "$MLBENCH" accept large.ini --resume killed
says "of another plan"
expect 0 "$MLBENCH" accept plan.ini --resume killed --json
[ "$(json 'd["verdict"], d["complete"], len(d["checks"])')" = "('PASS', True, 3)" ] || fail "it did not go on"
before=$(grep -c . killed/measured.jsonl)
expect 0 "$MLBENCH" accept plan.ini --resume killed --json
[ "$(grep -c '"check":' killed/measured.jsonl)" = "$(grep -c '"check":' good/measured.jsonl)" ] || fail "done checks ran again ($before lines before)"

# The newest one of the plan.
expect 2 "$MLBENCH" accept plan.ini --resume latest
says "no result in 'results/tiny'"
mkdir -p results/tiny && mv killed results/tiny/20260101T000000Z
expect 0 "$MLBENCH" accept plan.ini --resume latest --json
[ "$(json 'd["verdict"], len(d["checks"])')" = "('PASS', 3)" ] || fail "the newest result does not go on"

# Ctrl-C: a valid result that says so.
MLBENCH_ACCEPT_INJECT=check:hang "$MLBENCH" accept plan.ini --budget 600s --json --out stopped >out 2>err &
pid=$!
until_true grep -qs schema stopped/measured.jsonl
until_true heeds_interrupts "$pid"
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] || fail "not 130 after an interruption"
is_json mlbench.accept/1
[ "$(json 'd["verdict"], d["complete"]')" = "('ERROR', False)" ] || fail "an interrupted run has a verdict"
json '[c["sentence"] for c in d["checks"]]' | grep -q interrupted || fail "it does not say that it was interrupted"

# A memory file system is no storage: it is not judged, and the reason is its own.
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && memory=$(mktemp -d -p /dev/shm 2>/dev/null); then
	trap 'rm -rf "$memory"' EXIT
	printf '[disk]\nkind = ceiling\ntier = quick\nread.cold >= 1 B/s\nread.direct >= 1 B/s\n' >memory.ini
	expect 3 "$MLBENCH" accept memory.ini --tier quick --path "$memory" --json --out memory
	[ "$(json '{f["verdict"] for c in d["checks"] for f in c["findings"]}')" = "{'ERROR'}" ] || fail "memory is judged as storage"
	json '[f["sentence"] for c in d["checks"] for f in c["findings"]]' | grep -q "a memory file system cannot be evicted" || fail "not the reason: $(json 'd["sentence"]')"
fi

# A kill before the first line leaves a file that holds nothing: its folder can be resumed, and used.
printf '[node]\nkind = expect\ncpu.cores >= 1\n' >cores.ini
for how in --resume --out; do
	for kept in '' '{"schema":"mlbench.mea'; do
		rm -rf headless && mkdir headless
		printf '%s' "$kept" >headless/measured.jsonl
		expect 0 "$MLBENCH" accept cores.ini $how headless
		expect 0 "$MLBENCH" accept cores.ini --resume headless
		expect 2 "$MLBENCH" accept cores.ini --out headless
		says "holds a result already"
	done
done

# Storage that does not answer takes along only the checks that need it; storage that fails is named.
cat >storage.ini <<'INI'
[plan]
name = storage
[bought]
kind = expect
tier = quick
cpu.cores >= 1
[disk]
kind = ceiling
tier = quick
budget = 2s
read.direct >= 1 B/s
[after]
kind = expect
tier = quick
cpu.threads >= 1
INI
for kind in mute stopped eio; do
	mkdir -p "mount_$kind"
	"$TOOLS/with_bad_mount" "$kind" "mount_$kind" "$MLBENCH" accept storage.ini --tier quick --path "mount_$kind" --json --out "storage_$kind" >out 2>err
	status=$?
	[ "$status" -ne 77 ] || skip "no FUSE mount can be made here; all else passed"
	[ "$status" -eq 3 ] || fail "exit $status, not 3, on storage that is $kind"
	[ "$(json '[c["verdict"] for c in d["checks"]]')" = "['PASS', 'ERROR', 'PASS']" ] || fail "not only the check of the storage, $kind"
	json 'd["checks"][1]["sentence"]' | grep -q "mount_$kind" || fail "the storage is not named, $kind"
done
