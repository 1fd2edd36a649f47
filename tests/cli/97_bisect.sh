# `mlbench bisect`: planted differences in the emulated pipeline are found among harmless ones.  Orders and counts alone: what is
# planted costs a factor of eight, the margin is wide.  On a node that is too noisy to be sure of the rest, what is blamed must be
# right all the same.
. "$CLI/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
cat >good.ini <<'INI'
include = tiny.ini
[decode]
workers = 2
[batch]
size = 8
[read]
engine = pread
[step]
time = 6ms
[measure]
duration = 120ms
warmup = 10ms
INI
# bad NAME LINE ...: GOOD, what is harmless, and these lines.
bad() {
	local name=$1
	shift
	{
		printf 'include = good.ini\n[prefetch]\ndepth = 3\n[upload]\ndepth = 3\n[codec]\njpeg_scaled = on\n'
		printf '[read]\nhuge_pages = off\n[decode]\nqueue = 24\n'
		printf '%s\n' "$@"
	} >"$name.ini"
}
bad harmless '[augment]' 'antialias = off'
bad slow '[inject]' 'step_factor = 8'
bad both '[inject]' 'decode_wait = 1ms' 'slow_share = 50%' 'slow_factor = 30'
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i "$1" "$ROOT/docs/bisect.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "$1 is not valid against bisect.schema.json"; }
}
bisect() { "$MLBENCH" bisect "$@" --margin 50% --json; }
# finds 'NAME ...' ARGUMENT ...: these alone are blamed, and all of them where everything became clear (always, in make bench).
finds() {
	local wanted=$1 status
	shift
	bisect "$@" >out 2>err
	status=$?
	[ $status -eq 0 ] || { [ $status -eq 3 ] && ! measuring; } || fail "exit $status: bisect $*"
	validate out
	python3 - "$wanted" $status <<'PY' || fail "not what was planted: $wanted"
import json, sys
d = json.load(open("out"))
wanted = sys.argv[1].split()
blamed = sorted(n for c in d["causes"] if c["confirmed"] and not c["ambiguous"] for n in c["differences"])
assert set(blamed) <= set(wanted), blamed
assert blamed == wanted or d["status"] in ("partly explained", "unclear whether there is a loss"), (blamed, d["status"])
PY
}

# --- wrong input
expect 2 "$MLBENCH" bisect good.ini
expect 2 "$MLBENCH" bisect good.ini nowhere.ini
expect 2 "$MLBENCH" bisect good.ini good.ini
says 'do not differ'
expect 2 "$MLBENCH" bisect good.ini slow.ini --budget soon
says '--budget takes a time'
expect 2 "$MLBENCH" bisect good.ini slow.ini --margin 80%
says '--margin takes a share'
expect 2 "$MLBENCH" bisect good.ini slow.ini --set sweep.batch.size=4,8
says 'sweeps keys'
expect 2 "$MLBENCH" bisect good.ini slow.ini --resume nowhere
expect 2 "$MLBENCH" bisect good.ini slow.ini --set batch.size=100 --out impossible
says 'batch.size'

# --- a side that cannot be measured is said to be so
bad stuck '[inject]' 'decode_wait = 20s'
expect 3 "$MLBENCH" bisect good.ini stuck.ini --out stuck
reads 'no batch was finished'

# --- no loss
bisect good.ini harmless.ini --out none >out 2>err
status=$?
[ $status -eq 1 ] || { [ $status -eq 3 ] && ! measuring; } || fail "exit $status: bisect good.ini harmless.ini"
is_json mlbench.bisect/1
validate out
[ "$(json '[c for c in d["causes"] if c["confirmed"]]')" = "[]" ] || fail "something harmless is blamed"
[ $status -ne 1 ] || [ "$(json 'd["status"], d["questions"]')" = "('no loss', 1)" ] || fail "a loss among harmless differences"

# --- one culprit: suspected by the replay, found, measured from both sides
finds inject.step_factor good.ini slow.ini --out one
validate one/bisect.json
[ "$(json 'd["path"][1]["mix"] if d["no_prediction"] is None and len(d["path"]) > 1 else ["inject.step_factor"]')" = "['inject.step_factor']" ] ||
	fail "the replay did not suspect the step"
[ "$(json 'd["status"] != "explained" or d["causes"][0]["added"]["change"] < -0.5 and d["causes"][0]["removed"]["change"] < -0.5')" = True ] ||
	fail "it costs too little"
[ "$(json 'len(d["differences"])')" = 6 ] || fail "differences"
[ -s one/good/points.jsonl ] && [ -s one/bad/points.jsonl ] || fail "no results beside it"
cp out first
expect 0 "$MLBENCH" show one/good

# What is there already is not measured again, and leads to the same.
finds inject.step_factor good.ini slow.ini --resume one
python3 - <<'PY' || fail "a session that goes on says something else"
import json
a, b = json.load(open("first")), json.load(open("out"))
assert a["status"] != "explained" or a["runs"] == b["runs"] and a["path"] == b["path"], (a["runs"], b["runs"])
PY
expect 2 bisect good.ini slow.ini --out one
says '--resume'

# --- in words
"$MLBENCH" bisect good.ini slow.ini --margin 50% --resume one --verbose >out 2>err
[ "$(python3 -c 'import json; print(json.load(open("first"))["status"])')" != explained ] || reads 'explained: one cause'
if ! grep -q '"status": "unclear whether' first; then
	reads 'inject.step_factor: 1 in GOOD, 8 in BAD'
	prints 'as slow'
fi

# --- two that cost only together
printf 'include = good.ini\n[inject]\ndecode_wait = 1ms\nslow_factor = 1\n' >waits.ini
finds 'inject.slow_factor inject.slow_share' waits.ini both.ini --out two

# --- the time is over: what remains is said, and goes on
expect 3 "$MLBENCH" bisect good.ini slow.ini --margin 50% --budget 1s --out short --json
validate out
[ "$(json 'd["status"], "inject.step_factor" in d["remaining"]')" = "('not finished', True)" ] || fail "no partial answer"
says '--resume short'
# With another budget, too; its runs stay as long as they were.  A session that has time for nothing says what is open.
"$MLBENCH" bisect good.ini slow.ini --margin 50% --budget 60s --resume short >out 2>err
[ $? -ne 2 ] && grep -q . out || fail "a session does not go on with another budget"
! grep -q 'another configuration' err || fail "another budget is another configuration"
"$MLBENCH" bisect good.ini slow.ini --margin 50% --budget 10ms --out shorter >out 2>err
[ $? -eq 3 ] || fail "exit status without time for anything"
reads ' open 6 differences may still cost something: '

# --- killed, and gone on with
"$MLBENCH" bisect good.ini slow.ini --margin 50% --out killed >out 2>err &
pid=$!
until_true repetitions killed/bad 2
kill -9 $pid
wait $pid 2>/dev/null
before=$(cat killed/*/points.jsonl | grep -c '"kind":"repetition"')
finds inject.step_factor good.ini slow.ini --resume killed
[ "$(json 'd["runs"]')" -ge "$before" ] || fail "repetitions were lost"
# Another configuration is not taken for it.
expect 2 bisect good.ini harmless.ini --resume killed

# --- a saved result, and its node
if [ "$(nproc)" -gt 1 ]; then
	expect_measured taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')" "$MLBENCH" run good.ini --out narrow
	expect 3 "$MLBENCH" bisect good.ini narrow --env --budget 1ms --out env --json
	[ "$(json '[(x["name"], x["bad"]) for x in d["differences"]]')" = "[('node.cores', '1')]" ] || fail "the cores of the result"
	expect 2 "$MLBENCH" bisect good.ini narrow --out same
	says '--env'
fi
