#!/usr/bin/python3
"""What the live view costs: the fastest emulated pipeline on a pseudo-terminal that is read, with --watch and without, in
blocks of ABBA or BAAB by a seeded coin; then what its thread took of a core, which a noisy machine blurs less.

usage: bench_watch.py MLBENCH [--blocks N] [--seconds S]      Bar: 0.5 % of throughput, and of a core.
"""
import argparse
import fcntl
import json
import math
import os
import pty
import random
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios

BAR = 0.005

parser = argparse.ArgumentParser()
parser.add_argument("mlbench")
parser.add_argument("--blocks", type=int, default=7)
parser.add_argument("--seconds", type=float, default=3)
options = parser.parse_args()
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
work = tempfile.TemporaryDirectory(prefix="bench-watch-")
number = 0


def cpu_seconds(pid, name):
    """Of the threads of that name: on a core, by the kernel's scheduler."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            if open(f"/proc/{pid}/task/{tid}/comm").read().strip() == name:
                total += int(open(f"/proc/{pid}/task/{tid}/schedstat").read().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total


def measure(workers, watch):
    """Throughput, and the view's share of a core while it was there."""
    global number
    number += 1
    folder = f"{work.name}/{number}"
    command = [os.path.abspath(options.mlbench), "run", f"{root}/configs/null.ini", "--out", folder,
               "--set", f"dataset.path={work.name}/data", "--set", "step.backend=emulated", "--set", "step.time=50us",
               "--set", f"decode.workers={workers}", "--set", "measure.repeats=1", "--set", "measure.warmup=500ms",
               "--set", f"measure.duration={options.seconds}s"] + (["--watch"] if watch else [])
    main, sub = pty.openpty()
    fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    child = subprocess.Popen(command, stdin=sub, stdout=sub, stderr=sub, env={**os.environ, "TERM": "xterm-256color"},
                             preexec_fn=lambda: (os.setsid(), fcntl.ioctl(sub, termios.TIOCSCTTY, 0)))
    os.close(sub)
    share, first, last = math.nan, None, None
    while child.poll() is None:
        if select.select([main], [], [], 0.1)[0]:
            try:
                os.read(main, 65536)
            except OSError:
                break
        if watch:
            try:
                taken = cpu_seconds(child.pid, "mlbench-view")
                now = os.times().elapsed
            except (FileNotFoundError, ProcessLookupError):
                continue
            if taken > 0:
                first = first or (now, taken)
                last = (now, taken)
    child.wait()
    os.close(main)
    if last and last[0] > first[0]:
        share = (last[1] - first[1]) / (last[0] - first[0])
    with open(f"{folder}/points.jsonl") as lines:
        rates = [r["throughput"] for r in map(json.loads, lines) if r.get("kind") == "repetition" and r["throughput"]]
    if not rates:
        sys.exit(f"bench_watch: nothing was measured: {' '.join(command)}")
    return rates[0], share


def spread(values):
    values = sorted(values)
    return f"[{values[0] * 100:+.2f} {values[-1] * 100:+.2f}]"


coin = random.Random(1)
measure(1, False)  # the data set
status = 0
print(f"{'workers':>8} {'samples/s':>12} {'cost of the view':>26} {'without / without':>26} {'of a core':>10}")
for workers in (1, os.cpu_count() or 1):
    costs, noise, shares, rates = [], [], [], []
    for _ in range(options.blocks):
        order = coin.choice(("ABBA", "BAAB"))
        got = {"A": [], "B": []}
        for arm in order:
            rate, share = measure(workers, arm == "B")
            got[arm].append(rate)
            if arm == "B":
                shares.append(share)
        costs.append(math.log(statistics.mean(got["A"]) / statistics.mean(got["B"])))
        noise.append(math.log(got["A"][0] / got["A"][1]))
        rates += got["A"]
    cost, share = statistics.median(costs), statistics.median(shares)
    print(f"{workers:>8} {statistics.median(rates):>12.0f} {cost * 100:>+8.2f} % {spread(costs):>15} "
          f"{statistics.median(noise) * 100:>+8.2f} % {spread(noise):>15} {share * 100:>8.2f} %")
    # Where runs without the view differ by more than the bar, throughput cannot tell; the view's time on a core can.
    resolves = statistics.median(abs(n) for n in noise) < BAR
    if share > BAR or (resolves and cost > BAR):
        status = 1
print(f"bar: {BAR * 100} %: {'missed' if status else 'held'}")
sys.exit(status)
