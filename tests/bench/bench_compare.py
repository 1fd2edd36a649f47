#!/usr/bin/env python3
"""How often `mlbench compare` is wrong: pairs of equal runs that it calls different, and pairs with a planted slow-down
that it does not find.

Real runs of the emulated device from memory, three short ones for each pair: A, A again, and A with a step that takes
5 % longer, in an order that turns from pair to pair.  Every finished pair is a line in DIR/pairs.jsonl: what is
interrupted goes on where it was.  Beside it stand what plain Student's t and a percentile bootstrap of the same
repetitions would have said, and how much runs vary beside repetitions.

    bench_compare.py MLBENCH [--pairs 200] [--out DIR] [--budget SECONDS] [--repeats 7] [--duration 150]
                     [--workload step|decode] [--check]

--check: exit status 1 above 5 % alarms or below 95 % found (at 1 % significance)."""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

CONFIG = """
[run]
name = compare
[dataset]
path = {data}
recipe = photo
format = {format}
width = {edge}
height = {edge}
size_sigma = 0
samples = 512
classes = 2
[read]
engine = memory
[augment]
size = 16
[decode]
workers = 1
[batch]
size = 16
[step]
backend = emulated
time = {step}
[measure]
duration = {duration}ms
warmup = 40ms
window = 10ms
repeats = {repeats}
limits = off
"""
# What binds, and the key that slows it down by 5 %.
WORKLOADS = {
    "step": ({"format": "raw", "edge": 18, "step": "2ms"}, "inject.step_factor=1.05"),
    "decode": ({"format": "jpeg", "edge": 96, "step": "20us"}, "inject.decode_factor=1.05"),
}
STUDENT_99 = {2: 9.925, 3: 4.604, 5: 3.355, 7: 3.055}  # two-sided 1 %, so many repetitions a side
MOST_ALARMS, LEAST_FOUND = 0.05, 0.95


def wilson(k, n, z=1.96):
    """95 % interval of a share (E. Wilson, 1927)."""
    if n == 0:
        return math.nan, math.nan
    p, d = k / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / d
    half = z / d * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0, middle - half), min(1, middle + half)


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.join(options.out, f"{options.workload}-{options.repeats}x{options.duration}ms")
        os.makedirs(self.folder, exist_ok=True)
        values, self.slow = WORKLOADS[options.workload]
        self.config = os.path.join(self.folder, "compare.ini")
        data = os.path.abspath(os.path.join(self.folder, "data"))
        with open(self.config, "w") as f:
            f.write(CONFIG.format(data=data, repeats=options.repeats, duration=options.duration, **values))

    def run(self, name, *settings):
        out = os.path.join(self.folder, name)
        subprocess.run(["rm", "-rf", out], check=True)
        command = [self.options.mlbench, "run", self.config, "--quiet", "--out", out]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 3):  # 3: never steady, on a busy machine
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return out

    def compare(self, a, b):
        command = [self.options.mlbench, "compare", a, b, "--json", "--quiet"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        d = json.loads(done.stdout)["comparisons"][0]["overall"]["throughput"]
        return {key: d[key] for key in ("change", "interval", "p", "verdict", "noise_floor", "set_aside")}

    def pair(self, number):
        kinds = [("a", ()), ("again", ()), ("slow", (self.slow,))]
        kinds = kinds[number % 3:] + kinds[:number % 3]
        folders = {name: self.run(name, *settings) for name, settings in kinds}
        return {
            "pair": number,
            "same": self.compare(folders["a"], folders["again"]),
            "slower": self.compare(folders["a"], folders["slow"]),
            "repeats": {name: throughputs(folder) for name, folder in folders.items()},
        }

    def measure(self):
        path = os.path.join(self.folder, "pairs.jsonl")
        pairs = []
        if os.path.exists(path):
            with open(path) as f:
                pairs = [json.loads(line) for line in f if line.endswith("\n")]
        self.run("first")  # makes the data set
        begun = time.monotonic()
        with open(path, "a") as f:
            while len(pairs) < self.options.pairs and time.monotonic() - begun < self.options.budget:
                pairs.append(self.pair(len(pairs)))
                f.write(json.dumps(pairs[-1]) + "\n")
                f.flush()
                if len(pairs) % 20 == 0:
                    print(f"{len(pairs)} pairs, {time.monotonic() - begun:.0f} s", file=sys.stderr)
        return pairs[:self.options.pairs]


def throughputs(folder):
    with open(os.path.join(folder, "points.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    return [line["throughput"] for line in lines if line.get("kind") == "repetition" and line["throughput"]]


def plain_t(a, b):
    """Whether Student's t finds a difference at 1 %, the runs' own variance left out."""
    la, lb = [math.log(x) for x in a], [math.log(x) for x in b]
    if len(la) != len(lb) or len(la) not in STUDENT_99:
        return None
    s2 = (statistics.variance(la) + statistics.variance(lb)) / 2
    return abs(statistics.mean(lb) - statistics.mean(la)) > STUDENT_99[len(a)] * math.sqrt(max(s2, 1e-18) * 2 / len(a))


def percentile_bootstrap(a, b, seed):
    """Likewise by the percentiles 0.5 and 99.5 of resampled ratios."""
    rng = random.Random(seed)
    la, lb = [math.log(x) for x in a], [math.log(x) for x in b]
    differences = sorted(statistics.fmean(rng.choices(lb, k=len(lb))) - statistics.fmean(rng.choices(la, k=len(la)))
                         for _ in range(1000))
    return differences[4] > 0 or differences[994] < 0


def share(what, hits, n):
    low, high = wilson(hits, n)
    print(f"  {what:<52} {hits:4d} of {n:4d}  {100 * hits / n:5.1f} %  ({100 * low:.1f} to {100 * high:.1f})")


def spread(pairs):
    runs = [[math.log(x) for x in p["repeats"][k]] for p in pairs for k in ("a", "again") if len(p["repeats"][k]) > 1]
    within = statistics.fmean(statistics.variance(r) for r in runs)
    means = [statistics.fmean(r) for r in runs]
    count = statistics.fmean(len(r) for r in runs)
    between = max(0, statistics.variance(means) - within / count)
    next_ones = [abs(means[i + 1] - means[i]) for i in range(0, len(means) - 1, 2)]
    print(f"  deviation of a repetition {100 * math.sqrt(within):.3f} %, of a run beyond it {100 * math.sqrt(between):.3f} %"
          f" (variances as 1 to {between / within:.2f})")
    print(f"  two equal runs differ by {100 * statistics.median(next_ones):.3f} % in the median,"
          f" {100 * max(next_ones):.2f} % at most")


def report(options, pairs):
    n = len(pairs)
    alarms = sum(p["same"]["verdict"] in ("less", "more") for p in pairs)
    found = sum(p["slower"]["verdict"] == "less" for p in pairs)
    print(f"{options.workload} binds, {n} pairs of {options.repeats} + {options.repeats} repetitions of {options.duration} ms, 1 % significance; 95 % intervals")
    share("equal runs called different", alarms, n)
    share("  that plain Student's t would", sum(bool(plain_t(p["repeats"]["a"], p["repeats"]["again"])) for p in pairs), n)
    share("  that a percentile bootstrap would",
          sum(percentile_bootstrap(p["repeats"]["a"], p["repeats"]["again"], p["pair"]) for p in pairs), n)
    share("slow-downs by 5 % found", found, n)
    share("  of these with the worst repetitions set aside",
          sum(p["slower"]["verdict"] == "less" and p["slower"]["set_aside"] > 0 for p in pairs), n)
    missed = sum(p["slower"]["verdict"] in ("none", "noise") for p in pairs)
    share("  called no difference", missed, n)
    spread(pairs)
    return alarms <= MOST_ALARMS * n and found >= LEAST_FOUND * n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mlbench")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--out", help="default: bench/compare beside MLBENCH")
    parser.add_argument("--budget", type=float, default=1500, help="seconds; 200 pairs take 18 minutes")
    parser.add_argument("--repeats", type=int, choices=STUDENT_99, default=7, help="of a run")
    parser.add_argument("--duration", type=int, default=150, help="of a repetition, ms")
    parser.add_argument("--workload", choices=WORKLOADS, default="step")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.mlbench = os.path.abspath(options.mlbench)
    options.out = options.out or os.path.join(os.path.dirname(options.mlbench), "bench", "compare")
    pairs = Bench(options).measure()
    if len(pairs) < 2:
        sys.exit("no pairs within the budget")
    good = report(options, pairs)
    if options.check and (not good or len(pairs) < options.pairs):
        sys.exit(1)


if __name__ == "__main__":
    main()
