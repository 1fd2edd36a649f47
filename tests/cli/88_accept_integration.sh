# The examples in configs/accept/integration run: Slurm's health check and prolog with a scontrol that notes what it is told,
# NHC's check with NHC's own functions, the systemd units as systemd reads them, and the jobs of GitHub and GitLab, whose
# commands are taken out of their files.
. "$CLI/lib.sh"
from="$ROOT/configs/accept/integration"
PYTHON=/usr/bin/python3
mkdir bin etc
ln -s "$MLBENCH" bin/mlbench
cat >bin/scontrol <<'SH'
#!/bin/sh
printf '%s\n' "$*" >>"$SCONTROL_NOTES"
printf '%s\n' "$#" >>"$SCONTROL_NOTES"
exit "${SCONTROL_STATUS:-0}"
SH
cat >bin/logger <<'SH'
#!/bin/sh
shift 3
printf '%s\n' "$*" >>"$LOGGED"
SH
chmod +x bin/*
export PATH="$PWD/bin:$PATH" SCONTROL_NOTES="$PWD/notes" LOGGED="$PWD/logged" RESULTS="$PWD/results" PLAN="$PWD/etc/node.ini" TEXTFILE="$PWD/textfile"
mkdir textfile
touch notes logged
plan() { # CRITERION: what is asked of the node
	printf '[inventory]\nkind = expect\ntier = quick\n%s\n' "$1" >etc/node.ini
}
fit='cpu.cores = >= 1' unfit='cpu.cores = >= 1,000,000' unknown='gpu.serial = known'

# A node that is fit: the newest result, and its metrics.
plan "$fit"
expect 0 "$from/accept_latest.sh" --node n17
prints "PASS n17"
[ -s results/latest/accept.json ] || fail "no latest result"
grep -q 'mlbench_accept_verdict{node="n17",plan="node",verdict="PASS"} 1' textfile/mlbench_accept.prom || fail "no metrics"
[ "$(find textfile -type f | wc -l)" -eq 1 ] || fail "something else is left in the collector's folder"
expect 0 "$from/slurm_health_check.sh"
expect 0 "$from/slurm_prolog.sh"
[ ! -s notes ] || fail "scontrol was called for a node that is fit"
grep -q '^AssertPathExists=/etc/mlbench/node.ini' "$from/mlbench-accept.service" || fail "without a plan the unit is skipped"

# Old results go, and only what the script made.
mkdir results/20200101T000000Z results/mine
expect 0 env KEEP=1 "$from/accept_latest.sh"
[ ! -e results/20200101T000000Z ] && [ -d results/mine ] || fail "not what was to be kept: $(ls results)"
[ -s results/latest/accept.json ] || fail "the latest result is gone"

# One test at a time.
mkfifo go
flock results/lock cat go &
until_true sh -c '! flock -n results/lock true'
expect 75 "$from/accept_latest.sh"
expect 0 "$from/slurm_health_check.sh"
echo >go
wait

# A node that fails is drained with its reason, which is one argument, and no job begins there.
plan "$unfit"
export SLURMD_NODENAME=n18
expect 0 "$from/slurm_health_check.sh"
grep -qF "update nodename=n18 state=drain reason=mlbench FAIL inventory: cpu.cores is " notes || fail "not drained: $(cat notes)"
[ "$(tail -n 1 notes)" = 4 ] || fail "the reason is more than one argument"
reason=$(sed -n 's/.*reason=//p' notes)
[ "${#reason}" -le 100 ] || fail "the reason has ${#reason} characters"
expect 1 "$from/slurm_prolog.sh"
grep -qF "no job may begin here: mlbench FAIL inventory" logged || fail "the log does not say why"
expect 1 env SCONTROL_STATUS=1 "$from/slurm_health_check.sh" # Slurm was not told
# Without a verdict of the test that was just made nobody is drained, an older result is not quoted, and no job begins.
refused() { # WORDS: the prolog lets no job begin, and says why
	: >logged
	expect 1 "$from/slurm_prolog.sh"
	grep -F "no job may begin here: " logged | grep -qF "$1" || fail "the log does not say '$1': $(cat logged)"
}
cp notes before
RESULTS="$PWD/none" refused "none/lock"
mkdir none && RESULTS="$PWD/none" refused "none/latest/accept.json"
plan "$fit"
expect 0 "$from/slurm_health_check.sh"
expect 0 "$from/slurm_prolog.sh"
plan 'cpu.coers = >= 1'
expect 0 "$from/slurm_health_check.sh"
grep -qF "n18: mlbench: no verdict (status 2)" logged || fail "a wrong plan is not logged"
refused "latest/accept.json"
! grep -q PASS logged || fail "an older result is quoted"
grep -q 'mlbench_accept_verdict{node="n18",plan="node",verdict="ERROR"} 1' textfile/mlbench_accept.prom &&
	! grep -q 'PASS"} 1' textfile/mlbench_accept.prom || fail "the metrics are of an older test: $(cat textfile/mlbench_accept.prom)"
plan "$unknown"
expect 0 "$from/slurm_health_check.sh"
grep -qF "n18: mlbench: no verdict (status 3): ERROR inventory" logged || fail "no verdict is not logged: $(cat logged)"
refused "mlbench ERROR inventory"
expect 0 env NO_VERDICT=allow "$from/slurm_prolog.sh"
grep -qF "a job begins without a verdict on the node: mlbench ERROR" logged || fail "what was allowed is not logged"
plan "gpu.serial = known
if_missing = skip"
expect 3 "$from/accept_latest.sh"
refused "every check was skipped"
expect 0 env MLBENCH=false "$from/slurm_health_check.sh" # a status of 1 that is no verdict
expect 0 env MLBENCH=/nowhere "$from/slurm_health_check.sh"
plan "$fit"
printf '\n[second]\nkind = expect\ntier = quick\ncpu.cores = >= 1\n' >>etc/node.ini
expect 3 "$from/accept_latest.sh" --check second --format slurm
prints "mlbench PASS (in part)"
refused "mlbench PASS (in part)"
expect 3 "$MLBENCH" accept results/latest --format nagios
prints "MLBENCH UNKNOWN - "
expect 3 "$MLBENCH" accept results/latest --format nhc
expect 0 "$from/accept_latest.sh"
echo '{"schema": "mlbench.accept/1", ' >results/latest/accept.json
refused "cannot use"
expect 0 "$from/accept_latest.sh"
expect 1 env MAX_AGE_HOURS=soon "$from/slurm_prolog.sh"
# A full disk is no verdict on the node: what the health check is for is that nobody is drained for it.
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
	: >logged
	cat >full.sh <<-'SH'
		mkdir full && mount -t tmpfs -o size=4m tmpfs full || exit 77
		export RESULTS="$PWD/full"
		"$1/accept_latest.sh" --node n18 >out 2>err || exit 78
		dd if=/dev/zero of=full/ballast bs=1k 2>/dev/null
		"$1/slurm_health_check.sh" 2>err || exit 79
		[ ! -e full/latest ] || exit 80
		! "$1/slurm_prolog.sh" || exit 81
		rm full/ballast
		"$1/slurm_health_check.sh" && "$1/slurm_prolog.sh"
	SH
	TEXTFILE='' unshare --mount bash full.sh "$from"
	status=$?
	[ "$status" -eq 77 ] && echo "note: without a full disk: no tmpfs can be mounted" || [ "$status" -eq 0 ] || fail "status $status on a full disk: $(cat logged err)"
	[ "$status" -eq 77 ] || grep -qF "n18: mlbench: no verdict (status 3)" logged || fail "a full disk is not logged: $(cat logged)"
	! grep -q PASS logged || fail "an older result is quoted on a full disk"
else
	echo "note: without a full disk: no mount namespace here"
fi
cmp -s notes before || fail "drained without a failure: $(cat notes)"
plan "$unknown"
expect 0 env NO_VERDICT=drain "$from/slurm_health_check.sh"
[ "$(grep -c drain notes)" -eq $(($(grep -c drain before) + 1)) ] || fail "not drained without a verdict, which was asked for"
# A prolog may test a node whose newest test is old.
plan "$fit"
touch -d '3 days ago' results/latest/accept.json
before=$(readlink results/latest)
expect 0 env MAX_AGE_HOURS=24 "$from/slurm_prolog.sh"
[ "$(readlink results/latest)" != "$before" ] || fail "an old result was not replaced"
before=$(readlink results/latest)
expect 0 env MAX_AGE_HOURS=24 "$from/slurm_prolog.sh"
[ "$(readlink results/latest)" = "$before" ] || fail "a new result was replaced"
touch -d '3 days' results/latest/accept.json
expect 0 env MAX_AGE_HOURS=24 "$from/slurm_prolog.sh"
[ "$(readlink results/latest)" != "$before" ] || fail "a result of the future was taken for a new one"

# What is not of this node, of this plan or of a time that has come is no verdict, whatever it says; nor is what cannot be read.
expect 0 "$from/accept_latest.sh" --node n18
expect 0 env NODE=n18 JUDGE_BY="$PLAN" "$from/slurm_prolog.sh"
NODE=n19 refused "is of the node n18"
printf '[plan]\nname = other\n[other]\nkind = expect\ntier = quick\ncpu.cores = >= 1\n' >etc/other.ini
JUDGE_BY="$PWD/etc/other.ini" refused "mlbench ERROR other"
JUDGE_BY="$PWD/etc/none.ini" refused "none.ini"
cp results/latest/accept.json genuine.json
: >results/latest/accept.json
refused "cannot use"
expect 3 "$MLBENCH" accept results/latest --format nagios
sed 's/"started": *"20../"started": "2099/' genuine.json >results/latest/accept.json
refused "is still to come"
for form in slurm nhc nagios; do
	expect 3 "$MLBENCH" accept results/latest --format $form
	says "is still to come"
done
expect 0 "$MLBENCH" accept results/latest
sed 's/"started": *"[^"]*"/"started": "soon"/' genuine.json >results/latest/accept.json
refused "no time"
if [ "$(id -u)" -ne 0 ]; then
	cp genuine.json results/latest/accept.json
	chmod 000 results/latest/accept.json
	refused "accept.json"
fi
rm -f results/latest/accept.json
mkdir results/latest/accept.json
refused "accept.json"
rmdir results/latest/accept.json
cp genuine.json results/latest/accept.json
expect 0 "$from/slurm_prolog.sh"

# NHC: die is its own, and ends the line that it marks the node with.
cat >nhc.sh <<'SH'
die() {
	echo "ERROR:  nhc:  Health check failed:  $2"
	exit "$1"
}
. "$1"
shift
check_mlbench_accept "$@"
SH
expect 0 bash nhc.sh "$from/mlbench.nhc" results/latest 48
[ ! -s out ] || fail "NHC says something of a node that is fit"
expect 0 bash nhc.sh "$from/mlbench.nhc" results/latest 48 n18
expect 1 bash nhc.sh "$from/mlbench.nhc" results/latest 48 n19
prints "is of the node n18"
expect 1 bash nhc.sh "$from/mlbench.nhc" none 48
prints "check_mlbench_accept:  no test of this node"
plan "$unfit"
expect 1 "$from/accept_latest.sh"
expect 1 bash nhc.sh "$from/mlbench.nhc" results/latest 48
prints "Health check failed:  check_mlbench_accept:  mlbench accept: FAIL inventory: cpu.cores is "
[ "$(wc -l <out)" -eq 1 ] || fail "more than a line for NHC"
touch -d '3 days ago' results/latest/accept.json
expect 1 bash nhc.sh "$from/mlbench.nhc" results/latest 48
prints "more than 48 hours ago"
touch -d '3 days' results/latest/accept.json
expect 1 bash nhc.sh "$from/mlbench.nhc" results/latest 48
prints "or by a wrong clock"
for script in "$from"/*.sh; do sh -n "$script" || fail "$script"; done
bash -n "$from/mlbench.nhc" || fail "mlbench.nhc"

# systemd, whose ExecStart must be there.
if command -v systemd-analyze >/dev/null; then
	mkdir units
	cp "$from"/mlbench-accept.timer units/
	sed "s#^ExecStart=.*#ExecStart=$from/accept_latest.sh#; /^Documentation=/d" "$from/mlbench-accept.service" >units/mlbench-accept.service
	expect 0 systemd-analyze verify --man=no "$PWD/units/mlbench-accept.service" "$PWD/units/mlbench-accept.timer"
	! grep -q mlbench-accept err || fail "systemd has something to say"
	sed -i 's/^OnCalendar=.*/OnCalendar=now and then/' units/mlbench-accept.timer
	systemd-analyze verify --man=no "$PWD/units/mlbench-accept.timer" >out 2>&1
	grep -q "calendar" out || fail "the check of units cannot fail"
else
	echo "note: without systemd-analyze"
fi
grep -q "share/mlbench/configs/accept/integration" "$ROOT/.ci/dist.mk" || fail "the unit's script is not installed"

# CI: the commands of the jobs, as they stand in their files.
if "$PYTHON" -c 'import yaml' 2>/dev/null; then
	mkdir -p repository/configs/accept
	plan "$unfit"
	cp etc/node.ini repository/configs/accept/
	"$PYTHON" - "$from" <<-'PY' || fail "the jobs of CI are not what CI reads"
		import sys, yaml
		github = yaml.safe_load(open(sys.argv[1] + "/github_actions.yml"))
		steps = github["jobs"]["accept"]["steps"]
		run = [s["run"] for s in steps if "run" in s]
		report = next(s for s in steps if "junit" in s.get("uses", ""))
		assert report["if"].startswith("always()") and report["with"]["report_paths"] == "result/junit.xml"
		assert True in github or "on" in github # YAML 1.1 takes "on" for a truth
		open("github.sh", "w").write("\n".join(run) + "\n")
		gitlab = yaml.safe_load(open(sys.argv[1] + "/gitlab_ci.yml"))["accept"]
		assert gitlab["artifacts"]["when"] == "always"
		assert gitlab["artifacts"]["reports"]["junit"] == "result/junit.xml"
		assert not gitlab.get("allow_failure") # no verdict is no pass
		open("gitlab.sh", "w").write("set -e\n" + "\n".join(gitlab["script"]) + "\n")
	PY
	(cd repository && GITHUB_STEP_SUMMARY=summary.md bash ../github.sh >/dev/null 2>&1)
	grep -q '^## FAIL n18: not fit' repository/summary.md || fail "no summary for GitHub"
	grep -q '<failure ' repository/result/junit.xml || fail "no report for GitHub"
	rm -r repository/result
	(cd repository && bash ../gitlab.sh >/dev/null 2>&1)
	[ $? -eq 1 ] || fail "the job of GitLab does not fail with the node"
	grep -q '<failure ' repository/result/junit.xml || fail "no report for GitLab"
	# A folder that an earlier job left is not published again.
	echo 'cpu.coers = >= 1' >>repository/configs/accept/node.ini
	for job in github gitlab; do
		(cd repository && GITHUB_STEP_SUMMARY=summary.md bash -e ../$job.sh >/dev/null 2>&1)
		[ $? -ne 0 ] && [ ! -e repository/result/accept.md ] || fail "$job publishes an older result"
		mkdir -p repository/result && touch repository/result/accept.md
	done
else
	echo "note: without python3-yaml"
fi

# Nagios, as the text beside the examples has it.
command=$(sed -n 's/^command\[mlbench\]=mlbench \(.*\)/\1/p' "$from/README.md")
expect 2 "$MLBENCH" ${command//\/var\/lib\/mlbench\/accept/results}
prints "MLBENCH CRITICAL - FAIL"
