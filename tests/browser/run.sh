#!/usr/bin/env bash
# report.html in headless Chromium, without a network: a sweep is measured, its page opened, drawn, moved, read, and
# kept as pictures in BUILD/screenshots.  The same for a result whose every text is hostile.
#   MLBENCH=build/release/mlbench tests/browser/run.sh [FOLDER_FOR_SCREENSHOTS]
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=${MLBENCH:-$PWD/build/release/mlbench}
pictures=$(mkdir -p "${1:-$(dirname "$program")/screenshots}" && cd "${1:-$(dirname "$program")/screenshots}" && pwd)

skip() {
	echo "skipped: $*"
	exit 77
}
command -v chromium >/dev/null || skip "no chromium"
command -v chromedriver >/dev/null || skip "no chromedriver (chromium-driver)"
command -v pdftotext >/dev/null || skip "no pdftotext (poppler-utils)"
python=
for try in python3 /usr/bin/python3; do
	"$try" -c 'import selenium' 2>/dev/null && { python=$try; break; }
done
[ -n "$python" ] || skip "no python3-selenium"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cat >sweep.ini <<'INI'
[dataset]
path = data
recipe = photo
format = jpeg
width = 96
height = 72
samples = 96
classes = 3
[augment]
size = 64
[step]
backend = emulated
time = 2ms
[measure]
duration = 200ms
warmup = 40ms
window = 20ms
repeats = 2
limits = on
[sweep]
decode.workers = 1,2
batch.size = 8,16,32
prefetch.depth = 1,2
INI
# Nothing may be steady on a busy machine (3): a complete run all the same.
"$program" sweep sweep.ini --out plain >said 2>log
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || { cat log; echo "browser: 0 passed, 1 failed, 0 skipped"; exit 1; }
tail -n 1 said | grep -q 'plain/report.html' || { cat said log; echo "FAILED: a sweep does not end by naming its page"; echo "browser: 0 passed, 1 failed, 0 skipped"; exit 1; }
"$program" report plain --json | grep -q '"no_charts": null' || skip "this build has no charts ('mlbench doctor' says why)"
"$python" "$here/hostile.py" plain 'host"ile' || { echo "browser: 0 passed, 1 failed, 0 skipped"; exit 1; }
"$program" report 'host"ile' >/dev/null || { echo "browser: 0 passed, 1 failed, 0 skipped"; exit 1; }

# Pages of an acceptance result: one that is kept, and the same with names that try to become a part of the page.
mkdir accept accept_hostile
"$program" accept "$here/../golden/accept/fail.json" --format page >accept/report.html
sed "s#gpu-0421\\|slow core\\|core 3#</script><script>window.owned=1</script><img src=x onerror='window.owned=2'>#g" \
	"$here/../golden/accept/fail.json" >hostile.json
"$program" accept hostile.json --format page >accept_hostile/report.html

# The page of a class, in which one student's name does the same; and the crib sheet, which must fit on a sheet.
export XDG_STATE_HOME=$PWD/state_home # for the students' key
mkdir class && "$python" "$here/class.py" states && "$program" lab scores states --format html --out class/report.html >/dev/null
cp "$here/../../docs/workshop/crib.html" .

limit=1500 # seconds: a guard against what hangs
# Where namespaces may be had, there is no network at all but the driver's own loopback.  A browser that hangs is ended.
if unshare -rn sh -c 'ip link set lo up' 2>/dev/null; then
	timeout -k 5 $limit unshare -rn sh -c 'ip link set lo up; exec "$@"' sh "$python" "$here/test_report.py" "$work" "$pictures"
else
	timeout -k 5 $limit "$python" "$here/test_report.py" "$work" "$pictures"
fi
