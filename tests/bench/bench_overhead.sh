#!/usr/bin/env bash
# What a run and a sweep cost beyond what they measure: wall time over warm-up and duration, and CPU time, of a run of 200 ms and,
# for each point, of a sweep of 100 points of 20 ms; then of the diagnosis of the run alone (a resume that has nothing left to
# measure).  Several programs take turns, so that two builds can be compared on a machine that is not quiet.
# Usage: tests/bench/bench_overhead.sh BUILD_FOLDER [OTHER_BUILD_FOLDER...]      TIMES=9, some minutes
# No bar: what others run on the cores is in every number.
set -eu
programs=()
for folder in "${@:-build/release}"; do programs+=("$(readlink -f "$folder/mlbench")"); done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >run.ini <<'INI'
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
duration = 200ms
warmup = 50ms
window = 10ms
repeats = 1
limits = 0
INI
sed 's/^duration.*/duration = 20ms/; s/^warmup.*/warmup = 10ms/' run.ini >sweep.ini
cat >>sweep.ini <<'INI'

[sweep]
decode.workers = 1,2,4,8,12
batch.size = 8,16,24,32,64
prefetch.depth = 1,2,3,4
INI
"${programs[0]}" gen run.ini -q
# One record that every program diagnoses: long enough for a whole diagnosis.
"${programs[0]}" run run.ini --set measure.duration=2s --set measure.warmup=1s --set measure.repeats=2 --out record -q >/dev/null || [ $? -eq 3 ]
python3 - "${TIMES:-9}" "${programs[@]}" <<'PY'
import os, resource, shutil, statistics, subprocess, sys, time

times, programs = int(sys.argv[1]), sys.argv[2:]
# what, arguments, seconds that are measured, points
jobs = [("run of 200 ms", ["run", "run.ini", "--out", "out"], 0.25, 1),
        ("sweep, a point of 20 ms", ["sweep", "sweep.ini", "--out", "out"], 0.03, 100),
        ("diagnosis of a run of 2 s", ["run", "--resume", "out"], 0, 1)]
taken = {}
for turn in range(times):
    for what, arguments, measured, points in jobs:
        if what.startswith("sweep") and turn % 3:
            continue
        for i in range(len(programs)):
            which = (i + turn) % len(programs)
            shutil.rmtree("out", ignore_errors=True)
            if "--resume" in arguments:
                shutil.copytree("record", "out")
                os.remove("out/diagnoses.json")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.monotonic()
            done = subprocess.run([programs[which], *arguments, "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wall = time.monotonic() - began
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert done.returncode in (0, 3), done.returncode
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            taken.setdefault((what, which), []).append((1e3 * (wall / points - measured), 1e3 * cpu / points))
for (what, which), values in sorted(taken.items()):
    spread = lambda k: "{0:7.1f} [{1:.1f}-{2:.1f}]".format(*(f([v[k] for v in values]) for f in (statistics.median, min, max)))
    print(f"{what:26} {programs[which]}: beyond measuring {spread(0)} ms, CPU time {spread(1)} ms ({len(values)} times)")
print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
PY
