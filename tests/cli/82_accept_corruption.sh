# mlbench accept finds corruption that is planted (MLBENCH_ACCEPT_INJECT): in a product, a picture, memory, a stored block, and on
# a device of the test double; it names the place, fails the node, and says that the fault was planted.
. "$CLI/lib.sh"

cat >corruption.ini <<'INI'
[bits]
kind = repeatable
tier = quick
budget = 20min
size = 8 MiB
passes = 2
repeatable.decode = <= 0
repeatable.gemm = <= 0
repeatable.memory = <= 0
repeatable.storage = <= 0
INI
last=$(($(nproc) - 1)) # one that the shell may use: of a cpuset that has gaps it may be another
grep -qx "$last" <(awk '/^Cpus_allowed_list/ { n = split($2, p, ","); for (i = 1; i <= n; i++) { split(p[i], r, "-"); for (c = r[1]; c <= (r[2] == "" ? r[1] : r[2]); c++) print c } }' /proc/self/status) || last=

expect 0 "$MLBENCH" accept corruption.ini --tier quick --budget 30min --json --out sound
[ "$(json 'd["verdict"]')" = PASS ] || fail "a sound node does not pass"
grep -q 'was planted' out && fail "something was planted without being asked for"

# Four at once: each is found where it is, and nothing else.
export MLBENCH_ACCEPT_INJECT=gemm:core=${last:-0}:nth=3:bit=5,decode:core=0:nth=2,memory:node=0:nth=2:at=80,storage:block=9:kind=stale
if [ -n "$last" ]; then
	expect 1 "$MLBENCH" accept corruption.ini --tier quick --budget 30min --json --out planted
	is_json mlbench.accept/1
	[ "$(json 'd["verdict"], d["action"]')" = "('FAIL', 'return to vendor')" ] || fail "the node is not handed back"
	failed=$(json 'sorted((f["figure"], f["place"], f["measured"]) for c in d["checks"] for f in c["findings"] if f["verdict"] == "FAIL")')
	[ "$failed" = "[('repeatable.decode', 'core 0', 1.0), ('repeatable.gemm', 'core $last', 1.0), ('repeatable.memory', 'NUMA node 0', 1.0), ('repeatable.storage', '', 1.0)]" ] ||
		fail "not these four faults: $failed"
	events=$(json '" | ".join(e["text"] for m in d["measured"] for e in m["events"])')
	for text in "jpeg picture 1 of " "(bit 5); 1 of " "pattern 'walking'" "at offset 0x50" "stale: block 9 (byte 36864)" "of generation 1, not 2"; do
		case $events in *"$text"*) ;; *) fail "no event says '$text': $events" ;; esac
	done
	prints "corruption was planted by MLBENCH_ACCEPT_INJECT=gemm"
	# The same result is judged again without the switch: it is what was measured.
	unset MLBENCH_ACCEPT_INJECT
	expect 1 "$MLBENCH" accept planted --verbose
	reads "repeatable.storage is 1"
fi
export MLBENCH_ACCEPT_INJECT=gemm:cores=1
expect 3 "$MLBENCH" accept corruption.ini --tier quick --budget 30min --json --out refused
prints "says nothing about gemm"
unset MLBENCH_ACCEPT_INJECT

# What a burn is not asked: refused with file and line, before anything runs.
printf '[hot]\nkind = burn\nloads = decode, gmm\nburn.drift = <= 5 %%\n' >wrong.ini
expect 2 "$MLBENCH" accept wrong.ini --out never
says "unknown load 'gmm'"

# Devices.
printf '[bits]\nkind = repeatable\ntier = quick\nbudget = 20min\npasses = 2\nrepeatable.device = <= 0\n' >device.ini
export MLBENCH_CUDA_PLUGIN=$(dirname "$MLBENCH")/double/libmlbench-cuda.so
if [ -e "$MLBENCH_CUDA_PLUGIN" ]; then
	export MLBENCH_DOUBLE_DEVICES=2
	expect 0 "$MLBENCH" accept device.ini --tier quick --budget 30min --json --out device
	[ "$(json '[(f["place"], f["measured"]) for c in d["checks"] for f in c["findings"]]')" = "[('device 0', 0.0), ('device 1', 0.0)]" ] ||
		fail "not two sound devices"
	prints "test double"
	export MLBENCH_ACCEPT_INJECT=device:device=1:nth=9:at=6:bit=1
	expect 1 "$MLBENCH" accept device.ini --tier quick --budget 30min --json --out device_planted
	[ "$(json '[(f["place"], f["measured"]) for c in d["checks"] for f in c["findings"]]')" = "[('device 0', 0.0), ('device 1', 1.0)]" ] ||
		fail "the device that was wrong is not told"
	prints "row 0, column 1 is 0x"
	# In a burn they multiply beside the cores, each by itself.
	printf '[burn]\nkind = burn\ntier = quick\nbudget = 20min\nfor = 2s\nsize = 1 MiB\nloads = gemm\nburn.wrong = 0\nburn.gemm = known\n' >burn.ini
	export MLBENCH_ACCEPT_INJECT=device:device=1:nth=3:at=6:bit=1
	for seconds in 2 8 32 128; do # on a slow node device 1 has no third product in a short burn
		sed -i "s/^for = .*/for = ${seconds}s/" burn.ini
		"$MLBENCH" accept burn.ini --tier quick --budget 30min --json --out "burnt$seconds" >out 2>err
		status=$?
		[ "$status" -eq 1 ] && break
	done
	[ "$status" -eq 1 ] || fail "exit $status, not 1: a burn of $seconds s"
	[ "$(json 'sorted((f["place"], f["measured"]) for c in d["checks"] for f in c["findings"] if f["figure"] == "burn.wrong" and f["place"].startswith("dev"))')" = "[('device 0', 0.0), ('device 1', 1.0)]" ] ||
		fail "the device that was wrong in a burn is not told"
	[ "$(json 'sorted(v["place"] for m in d["measured"] for v in m["values"] if v["figure"] == "burn.gemm")')" = "['', 'device 0', 'device 1']" ] ||
		fail "not all of the products have their rate"
	prints "row 0, column 3 is 0x"
	unset MLBENCH_ACCEPT_INJECT
fi
export MLBENCH_CUDA_PLUGIN=$PWD/none.so
expect 3 "$MLBENCH" accept device.ini --tier quick --budget 30min --json --out none
prints "repeatable.device"
