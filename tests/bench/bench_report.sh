#!/usr/bin/env bash
# A sweep of 1,000 points: how long `mlbench show` and `mlbench report` take, with the diagnoses that the sweep saved and
# without.  Then the page of a sweep of 200 points: how large it is, how long mlbench takes to write it, and how long
# headless Chromium takes from opening it until every chart is drawn.  Bars: 2 s for each command with saved diagnoses;
# 3 MB, 2 s for the page.
# Usage: tests/bench/bench_report.sh BUILD_FOLDER      about five minutes, on a quiet machine
set -eu
mlbench=$(readlink -f "$1/mlbench")
widen=$(readlink -f "$(dirname "$0")/../cli/widen_sweep.py")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >small.ini <<'INI'
[dataset]
path = data
recipe = photo
width = 160
height = 120
samples = 256

[augment]
size = 96

[step]
backend = emulated
time = 3ms

[measure]
duration = 60ms
warmup = 20ms
window = 10ms
repeats = 1

[sweep]
decode.workers = 1,2,4,8
batch.size = 8,16,24,32,64
INI
"$mlbench" sweep small.ini --out small -q >/dev/null || [ $? -eq 3 ]
"$widen" small large prefetch.depth=1,2,3,4,6 read.depth=1,2,3,4,5,6,8,12,16,32
# It has nothing left to measure: this is the end of a sweep alone.
"$mlbench" sweep --resume large -q >/dev/null || [ $? -eq 3 ]
status=0
python3 - "$mlbench" <<'PY' || status=1
import os, statistics, subprocess, sys, time

MOST, TIMES = 2.0, 7
commands = {"show": ["show", "large"], "report": ["report", "large", "--out", "page.html"]}
taken = {name: [] for name in commands}

def seconds(name):
    began = time.monotonic()
    subprocess.run([sys.argv[1], *commands[name]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began

for _ in range(TIMES):
    for name in commands:
        taken[name].append(seconds(name))
os.rename("large/diagnoses.json", "diagnoses.json")
anew = {name: seconds(name) for name in commands}
os.rename("diagnoses.json", "large/diagnoses.json")
for name, values in taken.items():
    print(f"{name} of 1,000 points: {statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f}, {TIMES} times), "
          f"at most {MOST:.0f}; all of them diagnosed anew {anew[name]:.1f} s; load average {os.getloadavg()[0]:.1f}")
sys.exit(any(statistics.median(values) > MOST for values in taken.values()))
PY
command -v chromium >/dev/null && command -v chromedriver >/dev/null || { echo "skipped: no chromium with chromedriver"; exit $((status ? 1 : 77)); }
python=
for try in python3 /usr/bin/python3; do
	"$try" -c 'import selenium' 2>/dev/null && { python=$try; break; }
done
[ -n "$python" ] || { echo "skipped: no python3-selenium"; exit $((status ? 1 : 77)); }
cat >grid.ini <<'INI'
[dataset]
path = data
recipe = photo
width = 160
height = 120
samples = 256

[augment]
size = 96

[step]
backend = emulated
time = 3ms

[measure]
duration = 150ms
warmup = 30ms
window = 10ms
repeats = 1

[sweep]
decode.workers = 1,2,3,4,6,8,12,16
batch.size = 8,16,24,32,64
prefetch.depth = 1,2,3,4,8
INI
"$mlbench" sweep grid.ini --out grid -q >/dev/null || [ $? -eq 3 ]
"$python" - "$mlbench" <<'PY' || status=1
import os, re, statistics, subprocess, sys, time
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

SIZE_MOST, DRAWN_MOST, OPENED = 3e6, 2.0, 7
began = time.monotonic()
subprocess.run([sys.argv[1], "report", "grid"], check=True, stdout=subprocess.DEVNULL)
wrote = time.monotonic() - began
page = open("grid/report.html", encoding="utf-8").read()
size = os.path.getsize("grid/report.html")
libraries = page.find("</script>", page.find("/*! The modules of Vega")) - page.find("/*! The modules of Vega")
options = webdriver.ChromeOptions()
for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
    options.add_argument(argument)
options.binary_location = "/usr/bin/chromium"
driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
driver.set_script_timeout(60)
# The main thread's own time: what is left of the drawing when nothing else takes the cores.
driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
def busy():
    return next(m["value"] for m in driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"] if m["name"] == "TaskDuration")
drawn, text, cpu, marks = [], [], [], 0
for _ in range(OPENED):
    driver.get("about:blank")
    before = busy()
    driver.get("file://" + os.path.abspath("grid/report.html"))
    # performance.now() counts from the beginning of the navigation.
    drawn.append(driver.execute_async_script("""const done = arguments[0], root = document.documentElement;
        const look = () => root.dataset.charts ? done(+root.dataset.drawnMs / 1000) : setTimeout(look, 20); look();"""))
    cpu.append(busy() - before)
    text.append(driver.execute_script("return performance.getEntriesByType('paint').map(e => e.startTime)[0] / 1000"))
    marks = driver.execute_script("return document.querySelectorAll('.plot svg path, .plot svg line, .plot svg text').length")
    failed = driver.execute_script("return document.querySelectorAll('.plot:not(.drawn)').length")
    assert failed == 0, "a chart was not drawn"
driver.quit()
spread = lambda values: f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f}, {len(values)} times)"
print(f"page of 200 points: {size / 1e6:.2f} MB, of it {libraries / 1e6:.2f} MB libraries; at most {SIZE_MOST / 1e6:.0f}")
print(f"written in {wrote:.2f} s, diagnosis of all points included")
print(f"first text: {spread(text)}")
print(f"all charts drawn, {marks} marks: {spread(drawn)}; at most {DRAWN_MOST:.0f} s; load average {os.getloadavg()[0]:.1f}")
print(f"CPU time of the page's main thread until then: {spread(cpu)}")
sys.exit(0 if size <= SIZE_MOST and statistics.median(drawn) <= DRAWN_MOST else 1)
PY
exit $status
