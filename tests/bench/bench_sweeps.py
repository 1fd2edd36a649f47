#!/usr/bin/env python3
"""Ten grids, each measured point by point three times and sequentially: whether the answers agree, and what the time is.

    tests/bench/bench_sweeps.py MLBENCH [--full] [GRID...]      12 minutes on a quiet machine; --full: half an hour

Stages wait instead of computing (emulated step, injected latencies), so that rates are those of the grid and not of the machine.
The exhaustive arm has the repetitions of the sequential one (1 s after 500 ms); with --full it is a grid as it is by default
(3 s after 1 s), and the time is against that in any case: what `mlbench check` says of it where it was not measured.

best      the same setting, or one that the exhaustive arm measured within 2 % of its own best, or within its own intervals
frontier  no smaller setting gives as much (within 2 %); points differ only where the exhaustive arm has them farther from that
          edge than 2 % or its own intervals
verdict   the same stage limits the best point
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

TIE = 0.02
BASE = """
[dataset]
path = data
recipe = photo
format = raw
width = 64
height = 64
size_sigma = 0
samples = 400
[augment]
size = 32
[step]
backend = emulated
time = 10ms@8,40ms@32
[batch]
size = 16
[decode]
workers = 4
[prefetch]
depth = 4
[measure]
limits = off
"""
READS = ["inject.read_latency=15ms"]
DECODE = ["inject.decode_wait=10ms"]
GRIDS = {
    "depth": READS + ["sweep.read.depth=1,2,4,8,16,32"],
    "workers": DECODE + ["sweep.decode.workers=1,2,3,4,6,8"],
    "prefetch": ["sweep.prefetch.depth=1,2,3,4,6,8"],  # the step is the limit: all tied
    "batch": ["step.time=35ms@8,95ms@32", "sweep.batch.size=4,8,16,24,32,64"],  # larger batches amortise
    "small": DECODE + ["sweep.decode.workers=2,4,8", "sweep.batch.size=8,32"],
    "reads": READS + ["sweep.read.depth=2,8", "sweep.read.threads=1,2", "sweep.prefetch.depth=1,4"],
    "slow": DECODE + ["inject.slow_share=5%", "inject.slow_factor=8", "sweep.decode.workers=4,8", "sweep.prefetch.depth=1,2,4,8"],
    "both": READS + DECODE + ["sweep.decode.workers=1,2,4", "sweep.read.depth=2,4,8"],
    "bandwidth": ["inject.read_bandwidth=3MiB/s", "sweep.read.depth=2,4,8", "sweep.decode.workers=1,2,4"],  # all tied
    "large": DECODE + ["sweep.decode.workers=1,2,4,8", "sweep.batch.size=8,32", "sweep.prefetch.depth=1,4"],
}
SHORT = ["measure.duration=1s", "measure.warmup=500ms"]


def mlbench(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 3) or not done.stdout:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def sets(settings):
    return [word for setting in settings for word in ("--set", setting)]


def sweep(program, settings, out):
    begun = time.monotonic()
    summary = mlbench(program, "sweep", "base.ini", "--json", "-q", "--out", out, *sets(settings))
    return summary, time.monotonic() - begun


def rate(point):
    return point["throughput"]["median"] or 0


def noise(point):
    """Half of the interval, as a share of the rate."""
    ends = point["throughput"]["ci95"] or [None, None]
    return (ends[1] - ends[0]) / 2 / rate(point) if None not in ends and rate(point) else 0


def smaller(a, b):
    return a != b and all(a["settings"][key] <= b["settings"][key] for key in a["settings"])


def edge(points, point):
    """How much of its rate the best of the smaller settings gives, and how well that is known."""
    below = [other for other in points if smaller(other, point)]
    if not below or not rate(point):
        return 0 if rate(point) else 1, TIE
    rival = max(below, key=rate)
    return rate(rival) / rate(point), max(TIE, math.hypot(noise(rival), noise(point)))


def frontier_differs(reference, points):
    differ = []
    for mine, truth in zip(points, reference):
        found, _ = edge(points, mine)
        given, unsure = edge(reference, truth)
        near = abs(given - (1 - TIE)) <= unsure
        if (found < 1 - TIE) != (given < 1 - TIE) and not near:
            differ.append(mine["id"])
    return differ


def compare(program, name, full):
    settings = GRIDS[name]
    every = ["measure.repeats=3"] + ([] if full else SHORT)
    reference, took = sweep(program, settings + every, f"{name}-grid")
    found, spent = sweep(program, settings, f"{name}-sequential")
    default = mlbench(program, "check", "base.ini", "--json", *sets(settings + ["sweep.mode=grid"]))["seconds"]
    truth, points = reference["points"], found["points"]
    best, chosen = truth[reference["best"]], found["best"]
    fastest = max(truth, key=rate)
    tie = max(TIE, math.hypot(noise(fastest), noise(truth[chosen])))
    same = chosen == reference["best"] or rate(truth[chosen]) >= (1 - tie) * rate(fastest)
    differ = frontier_differs(truth, points)
    verdicts = [point["verdict"]["stage"] for point in (best, points[chosen])]
    repetitions = sum(len(point["throughput"]["repeats"]) for point in points) / len(points)
    print(f"{name:10} {len(points):6} {'same' if same else 'OTHER':>6} {'same' if not differ else 'OTHER ' + str(differ):>9} "
          f"{verdicts[1] if verdicts[0] == verdicts[1] else '/'.join(verdicts).upper():>9} {repetitions:12.2f} "
          f"{spent:8.0f} s {took:8.0f} s {default:8.0f} s {spent / default:6.0%}", flush=True)
    if not same:
        print(f"           {best['settings']} {rate(best):.0f} but {points[chosen]['settings']} {rate(points[chosen]):.0f}")
    return spent, took if full else default, same, not differ, verdicts[0] == verdicts[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mlbench")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("grids", nargs="*", choices=[*GRIDS, []])
    of = parser.parse_args()
    program = os.path.realpath(of.mlbench)
    work = tempfile.mkdtemp()
    os.chdir(work)
    try:
        with open("base.ini", "w") as file:
            file.write(BASE)
        subprocess.run([program, "gen", "base.ini", "-q"], check=True)
        print(f"{'grid':10} {'points':>6} {'best':>6} {'frontier':>9} {'verdict':>9} {'repetitions':>12} "
              f"{'took':>10} {'the grid':>10} {'by default':>10} {'time':>6}")
        all_of = [compare(program, name, of.full) for name in of.grids or GRIDS]
    finally:
        shutil.rmtree(work)
    spent, took, *same = zip(*all_of)
    count = len(all_of)
    print(f"{count} grids: best {sum(same[0])}, frontier {sum(same[1])}, verdict {sum(same[2])} the same; "
          f"{sum(spent) / sum(took):.0%} of the time")
    return 0 if sum(same[0]) == count and sum(spent) <= 0.4 * sum(took) else 1


if __name__ == "__main__":
    sys.exit(main())
