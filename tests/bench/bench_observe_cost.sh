#!/usr/bin/env bash
# What observing a job costs it: one job on PyTorch's DataLoader (tests/jobs/torch_job.py, two workers) that runs all the time, in pairs
# of spans with and without `mlbench observe`, in an order that is drawn. Told: samples/s of both, and the loss, the median of the
# pairs with a 95 % interval; the bar is 1 %.  On a machine that is busy otherwise the interval is wide, and says so.
#   tests/bench/bench_observe_cost.sh BUILD_FOLDER      PAIRS=20 SPAN=10 JOB=two_workers
# Exits 1 when the loss is more than the bar for sure, 77 without Debian's PyTorch.
set -u
here=$(cd "$(dirname "$0")" && pwd)
exec python3 - "$(readlink -f "${1:-build/release}")/mlbench" "$here/../jobs" "${PAIRS:-20}" "${SPAN:-10}" "${JOB:-two_workers}" <<'PY'
import os, random, statistics, subprocess, sys, tempfile, time

program, jobs, pairs, span, name = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
sys.path.insert(0, jobs)
from running import Cannot, Running, need_torch

BAR, RESAMPLES = 0.01, 4000


def a_span(job, observed, scratch):
    begun = time.time()
    if observed:
        subprocess.run([program, "observe", str(job.pid), "--for", "%gs" % span, "--out", scratch, "--quiet"], stdout=subprocess.DEVNULL,
                       check=True)
    else:
        time.sleep(span)
    return job.rate(begun, begun + span)


def main():
    chance = random.Random(1)
    try:
        need_torch()
    except (Cannot, FileNotFoundError) as missing:
        print("bench_observe_cost: skipped: %s" % missing)
        return 77
    with tempfile.TemporaryDirectory(prefix="mlbench-cost-") as scratch, Running(name, scratch) as job:
        job.await_batches(20)
        time.sleep(5)
        with_it, without = [], []
        for _ in range(pairs):
            order = [True, False]
            chance.shuffle(order)
            for observed in order:
                (with_it if observed else without).append(a_span(job, observed, scratch))
    losses = [1 - a / b for a, b in zip(with_it, without)]
    medians = sorted(statistics.median(chance.choices(losses, k=pairs)) for _ in range(RESAMPLES))
    low, high = medians[RESAMPLES // 40], medians[-RESAMPLES // 40]
    print("%s, %d pairs of %g s: %.0f samples/s observed, %.0f not" % (name, pairs, span, statistics.median(with_it), statistics.median(without)))
    print("lost by observing: %.2f %% (95 %% CI %.2f to %.2f); bar %.0f %%: %s" % (
        100 * statistics.median(losses), 100 * low, 100 * high, 100 * BAR,
        "met" if high < BAR else "missed" if low > BAR else "open: more pairs, or a quiet machine"))
    return 1 if low > BAR else 0


sys.exit(main())
PY
