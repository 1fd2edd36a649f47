# Exit status 1 is a verdict.  Output that cannot be written is 3, of every command: to /dev/full, to a full file system, and to a
# read-only one.
. "$CLI/lib.sh"
[ -c /dev/full ] || skip "there is no /dev/full"
write_config
cat >plan.ini <<'INI'
[inventory]
kind = expect
tier = quick
cpu.cores = >= 1
INI
cat >case.ini <<'INI'
include = tiny.ini
[case]
version = 1
created = 2026-11-24
complaint = slow
[observed]
job.throughput = 100000 samples/s, measured by trace
[verdict]
stage = step
[sweep]
decode.workers = none
batch.size = none
INI
cp tiny.ini one.ini
printf '[decode]\nworkers = 1\n[batch]\nsize = 8\n' >settings
sed -i '/^\[sweep\]/,$d' one.ini
cat settings >>one.ini
{ sed '/^\[sweep\]/,$d' tiny.ini && cat settings && sed -n '/^\[case\]/,/^stage/p' case.ini; } >case && mv case case.ini
printf 'include = one.ini\n[inject]\nstep_factor = 3\n' >slow.ini
printf '#!/bin/sh\nwhile :; do cat data/*/* >/dev/null; echo "batch $MLBENCH_BATCH"; done\n' >loader
chmod +x loader
mkdir -p configs/labs
cat one.ini >configs/labs/90_tiny.ini
cat >>configs/labs/90_tiny.ini <<'INI'
[lab]
number = 90
title = Tiny
minutes = 1
page = docs/workshop/labs/90.md
goal = Feed the step.
plant = inject.read_latency = 7ms..9ms
knob = read.depth = 1..64
best = read.depth = 32
ask = stage, stage: Which stage?
cause = read/latency | read/depth
evidence = depth: One read is in flight, all the time.
right = depth
check = 8s
hint1 = 5: Who waits?
hint2 = 10: How many reads?
hint3 = 20: read.depth.
explain = Each file takes {inject.read_latency}.
INI
expect 0 "$MLBENCH" gen tiny.ini
expect_measured "$MLBENCH" sweep tiny.ini --out swept
expect 0 "$MLBENCH" accept plan.ini --tier quick --out accepted
"$ROOT/tests/bench/make_nodes.py" nodes --nodes 4 || fail "make_nodes.py"
sleep 600 &
sleeper=$!
trap 'kill $sleeper' EXIT

# --- /dev/full: every command of the help ---
commands() {
	cat <<-'LIST'
		run one.ini --out printed/run
		sweep tiny.ini --out printed/sweep
		diagnose swept
		what-if swept --set decode.workers=2
		show swept
		report swept --out page.html
		top swept
		compare swept swept
		history .
		export swept --format csv
		status
		gen tiny.ini
		check tiny.ini
		list
		doctor
		probe --quick
		accept plan.ini --tier quick --out printed/accept
		baseline nodes
		fleet nodes
		observe SLEEPER --for 1s --out printed/observe
		efficiency one.ini --set measure.repeats=1 --out printed/efficiency -- ./loader
		fit printed/run
		reproduce case.ini --budget 1s --out printed/reproduce
		bisect one.ini slow.ini --budget 1s --out printed/bisect
		lab list
		explain
		help
	LIST
}
mkdir printed
"$MLBENCH" help | sed -n '/^commands/,/^$/s/^  \([a-z-]*\) .*/\1/p' >known
commands | cut -d' ' -f1 >tried
diff known tried || fail "not every command is tried"
while read -r line; do
	read -ra words <<<"${line/SLEEPER/$sleeper}"
	"$MLBENCH" "${words[@]}" </dev/null >/dev/full 2>err
	status=$?
	[ "$status" -eq 3 ] || fail "exit $status, not 3, with standard output full: mlbench $line"
	# On a busy machine a model may not hold, and nothing is printed.
	case $line in what-if*) grep -q "inconclusive" err && continue ;; esac
	says "No space left"
done < <(commands)

# --- a full file system ---
[ "$(id -u)" -eq 0 ] && inside=(unshare --mount) || inside=(unshare --map-root-user --mount)
"${inside[@]}" true 2>/dev/null || skip "no mount namespace here, so no full file system was tried"
export -f fail says skip
export SLEEPER=$sleeper
cat >writers <<'LIST'
run one.ini --out full/run
sweep tiny.ini --out full/sweep
diagnose one.ini --out full/diagnose
report swept --out full/page.html
compare swept swept --out full/compare.txt
history . --format csv --out full/history.csv
export swept --format csv --out full/export.csv
export swept --format tensorboard --out full/events
gen tiny.ini --set dataset.path=full/data --set dataset.samples=2000
accept plan.ini --tier quick --out full/accept
accept accepted --format junit --out full/junit.xml
baseline nodes --out full/baseline.json
fleet nodes --format html --out full/fleet.html
observe SLEEPER --for 1s --out full/observe
efficiency one.ini --set measure.repeats=1 --out full/efficiency -- ./loader
fit printed/run --out full/fitted.ini
reproduce case.ini --budget 1s --out full/reproduce
bisect one.ini slow.ini --budget 1s --out full/bisect
lab start 90 student=nobody --dir full/labs
lab key full/key
LIST
cat >inside.sh <<'SH'
mkdir full
mount -t tmpfs -o size=64k tmpfs full || { echo "a tmpfs cannot be mounted here" >why; exit 77; }
export XDG_CACHE_HOME="$PWD/full/cache"
each() { # REASON: of every command that writes
	while read -r line; do
		read -ra words <<<"${line/SLEEPER/$SLEEPER}"
		"$MLBENCH" "${words[@]}" </dev/null >out 2>err
		status=$?
		echo "$line" >>written
		[ "$status" -eq 3 ] || fail "exit $status, not 3, with '$1': mlbench $line"
		grep -qE "$1" err || fail "the reason is not '$1': mlbench $line"
	done <writers
}
dd if=/dev/zero of=full/ballast bs=1k 2>/dev/null
each 'No space left|free'
# Read-only: the reason is not that a file is missing.
rm -rf full/*
mount -o remount,ro full
each 'Read-only file system'
printf '[storage]\nkind = ceiling\ntier = quick\nread.direct = known\n' >storage.ini
"$MLBENCH" accept storage.ini --tier quick --path full --out judged </dev/null >out 2>err
[ $? -eq 3 ] || fail "a storage check on a read-only file system"
tr -s ' \n' ' ' <out | grep -q 'Read-only file system' || fail "the check does not say that the file system is read-only"
SH
"${inside[@]}" bash -u inside.sh
status=$?
[ "$status" -ne 77 ] || skip "$(cat why)"
[ "$status" -eq 0 ] && [ "$(wc -l <written)" -eq 40 ] || fail "not every command that writes was tried: $(cat written)"
