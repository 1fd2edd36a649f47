#!/usr/bin/env python3
"""Is the gain that headroom.py and `mlbench efficiency LOG` tell the gain that a loop has when its loader is made perfect?

    bench_headroom.py MLBENCH [NAME ...] [--rounds 4] [--block 4] [--seconds 8] [--turns 6] [--out FILE]

Real PyTorch jobs (tests/jobs/torch_job.py's loader, Debian's packages) with a planted headroom.  Each runs once in the adaptor,
and then --turns times for --seconds each as it is and with its whole data set in memory as batches and no loader, in turns.  A row
of a job: the gain that was told with its 95 % interval, and the gain that was had: its median, and the least and most of the turns.
--seconds begin when the loop is warm; it takes 5 minutes a job with the usual arguments.
"""
import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "jobs"), os.path.join(ROOT, "pipelines", "adaptors")]

# Arguments of the loader, of which each sample may wait for `store` ms; the step: ms that it sleeps (a device) or computes in
# `threads` threads (which compete with the workers).  The first two wait nearly all the time: a busy node hardly changes them.
JOBS = {
    "store": dict(workers=2, crop=16, store=50, sleep=330),  # 16 samples in 800 ms, of two workers a batch in 400
    "stored": dict(workers=2, crop=16, store=30, sleep=330),  # it keeps up
    "decode": dict(workers=1, sleep=4),  # one worker gives less than the step takes
    "balanced": dict(workers=2, sleep=40),
    "step": dict(workers=2, sleep=90),  # the loader keeps up
    "compute": dict(workers=2, compute=30, threads=2),  # the step wants the cores that the workers are on
    "alone": dict(workers=0, sleep=10),  # it loads in the loop's own thread
}
WARM_S = 4


def loader_of(job, folder, batches=False):
    import torch_job
    options = argparse.Namespace(folder=folder, batch=16, crop=job.get("crop", 112), workers=job["workers"], prefetch=2, python_ms=0, lock_ms=0,
                                 collate_ms=0)
    loader = torch_job.make_loader(options)
    if job.get("store"):
        kind, load = type(loader.dataset), type(loader.dataset).__getitem__
        kind.__getitem__ = lambda self, i: (time.sleep(job["store"] / 1e3), load(self, i))[1]
    if not batches:
        return loader
    files = len(os.listdir(folder))
    return itertools.cycle(list(itertools.islice(iter(loader), files // 16)))


def step_of(job):
    import torch
    torch.set_num_threads(job.get("threads", 1))
    a = torch.rand(512, 512)
    torch.mm(a, a)
    begun = time.monotonic()
    for _ in range(20):
        torch.mm(a, a)
    each = (time.monotonic() - begun) / 20
    times = max(1, round(job.get("compute", 0) / 1e3 / each)) if job.get("compute") else 0

    def step(batch):
        for _ in range(times):
            torch.mm(a, a)
        if job.get("sleep"):
            time.sleep(job["sleep"] / 1e3)
    return step


def run_adaptor(job, folder, log, rounds, block):
    from headroom import headroom
    loader = headroom(loader_of(job, folder), log=log, rounds=rounds, block_s=block, block_steps=10)
    step = step_of(job)
    for batch in loader:
        step(batch)
        if loader.side == "done":
            break


def run_loop(job, folder, seconds, perfect):
    """Batches a second of the loop alone."""
    step, count, begun = step_of(job), 0, None
    start = time.monotonic()
    for batch in loader_of(job, folder, perfect):
        step(batch)
        now = time.monotonic()
        if begun is None:
            start = start if count else now
            count += 1
            if now - start >= WARM_S and count > 2:
                begun, count = now, 0
            continue
        count += 1
        if now - begun >= seconds:
            return count / (now - begun)


def child(*arguments):
    return subprocess.run([sys.executable, os.path.abspath(__file__), "--child", json.dumps(arguments)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mlbench")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + ", ".join(JOBS))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--block", type=float, default=6)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--data", choices=("photos", "thumbs"), default="photos")
    parser.add_argument("--files", type=int, default=320)
    parser.add_argument("--out", help="a line of JSON a job is added there")
    if "--child" in sys.argv:
        what, *rest = json.loads(sys.argv[sys.argv.index("--child") + 1])
        print({"adaptor": run_adaptor, "loop": run_loop}[what](*rest))
        return
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, options.data)
        subprocess.run([sys.executable, os.path.join(ROOT, "tests", "jobs", "torch_job.py"), "--make", options.data, "--files",
                        str(options.files), folder], check=True)
        for name in options.names or JOBS:
            job, log = JOBS[name], os.path.join(work, name + ".csv")
            child("adaptor", job, folder, log, options.rounds, options.block)
            told = subprocess.run([options.mlbench, "efficiency", log, "--json"], stdout=subprocess.PIPE, text=True)
            said = json.loads(told.stdout)
            had = []
            for turn in range(options.turns):
                rates = {}
                for perfect in ((False, True), (True, False))[turn % 2]:
                    rates[perfect] = float(child("loop", job, folder, options.seconds, perfect))
                had.append(rates[True] / rates[False] - 1)
            gain, inside = said["gain"], None
            if gain["high"] is not None:
                inside = gain["low"] <= statistics.median(had) <= gain["high"]
            percent = lambda value: "-" if value is None or math.isnan(value) else "%.1f %%" % (100 * value)
            print("%-10s %-8s told %s (%s to %s), not waiting %s, free cores %s; had %s (%s to %s)%s" % (
                name, said["headroom"], percent(gain["value"]), percent(gain["low"]), percent(gain["high"]),
                percent(said["not_waiting"]["value"]), percent(said["free_cores"]["value"]), percent(statistics.median(had)),
                percent(min(had)), percent(max(had)), "" if inside else "  OUTSIDE"), flush=True)
            if options.out:
                with open(options.out, "a") as out:
                    print(json.dumps({"job": name, "told": said, "had": had}), file=out)


if __name__ == "__main__":
    main()
