#!/usr/bin/env python3
"""Measures slowfs before anybody trusts it: each planted limit must be what a plain reader sees.  The reader knows
nothing of mlbench: processes that open and read whole files, one after the other.

    store_check.py TOOLS        the folder of slowfs and hog; exit status 1 if a limit is missed, 3 where FUSE is not permitted

It measures, so it is no part of `make check`; `make bank-real` begins with it."""

import functools
import math
import multiprocessing
import os
import random
import sys
import tempfile
import time
from typing import Callable, List, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from conditions import Cannot, Site

FILES, FILE_BYTES = 256, 40000
SECONDS = 3.0
WITHIN = 0.08  # of the planted rate
TRIES = 3      # the best of them counts: a busy machine makes a reader late, never early
CANNOT = 3


class Reader:
    """Reads files at a depth for some time, by a process each: threads of Python would wait for each other."""

    def __init__(self, paths: List[str], depth: int, seconds: float):
        with multiprocessing.get_context("fork").Pool(depth) as pool:
            # Each has files of its own: an open drops what the page cache holds of a file that another one reads.
            done = pool.map(functools.partial(read_for, seconds), [paths[k::depth] for k in range(depth)], chunksize=1)
        self.rate = sum(count / took for count, _, took in done)
        self.bandwidth = sum(size / took for _, size, took in done)


def read_for(seconds: float, paths: List[str]) -> Tuple[int, int, float]:
    """Files and bytes read, and how long that took until the last one was there."""
    draws, count, size, began, took = random.Random(1), 0, 0, time.monotonic(), 0.0
    while took < seconds:
        fd = os.open(draws.choice(paths), os.O_RDONLY)
        while piece := os.read(fd, 1 << 20):
            size += len(piece)
        os.close(fd)
        count, took = count + 1, time.monotonic() - began
    return count, size, took


Check = Tuple[str, List[str], int, Callable[[Reader], float], float]


def checks() -> List[Check]:
    rate = lambda reader: reader.rate
    return [
        ("latency 40 ms, depth 1", ["--latency", "40000"], 1, rate, 25),
        ("latency 40 ms, depth 16", ["--latency", "40000"], 16, rate, 400),
        ("latency 150 ms, depth 64: no hidden limit", ["--latency", "150000"], 64, rate, 64 / 0.15),
        ("open 40 ms, depth 8", ["--open", "40000"], 8, rate, 200),
        ("exponential 40 ms, depth 8", ["--latency", "40000", "--distribution", "exponential"], 8, rate, 200),
        ("lognormal 40 ms, depth 8", ["--latency", "40000", "--distribution", "lognormal", "--sigma", "0.7"], 8, rate, 200),
        ("1 slot of 4 ms, depth 8", ["--latency", "4000", "--slots", "1"], 8, rate, 250),
        ("4 slots of 10 ms, depth 16", ["--latency", "10000", "--slots", "4"], 16, rate, 400),
        ("8 slots of 20 ms, depth 32", ["--latency", "20000", "--slots", "8"], 32, rate, 400),
        ("12 MB/s in turn, depth 8", ["--bytes-per-s", "12e6"], 8, lambda r: r.bandwidth, 12e6),
        ("12 MB/s shared, depth 8", ["--bytes-per-s", "12e6", "--shared"], 8, lambda r: r.bandwidth, 12e6),
        ("12 MB/s, direct I/O", ["--bytes-per-s", "12e6", "--direct-io"], 8, lambda r: r.bandwidth, 12e6),
        ("300 requests/s, depth 8", ["--iops", "300"], 8, rate, 300),
        ("latency 40 ms that ages by 20 ms a second", ["--latency", "40000", "--ageing", "20000"], 8, rate, 8 * math.log(1 + 0.02 * SECONDS / 0.04) / 0.02 / SECONDS),
        ("a quarter of the files take 80 ms longer", ["--latency", "20000", "--slow-share", "0.25", "--slow", "80000"], 8, rate, 200),
        ("a quarter of the reads, at random", ["--latency", "20000", "--slow-share", "0.25", "--slow", "80000", "--slow-random"], 8, rate, 200),
        ("a quarter of the files take longer to open", ["--latency", "20000", "--slow-share", "0.25", "--slow", "80000", "--slow-opens"], 8, rate, 200),
        ("300 requests/s after a burst of 150", ["--iops", "300", "--burst-requests", "150"], 8, rate, 300 + 150 / SECONDS),
        ("stalls of 150 of 300 ms, 8 at 40 ms", ["--latency", "40000", "--stall-every", "300", "--stall-for", "150"], 8, rate, 100),
        ("outage of 1 s", ["--latency", "40000", "--outage-at", "0.3", "--outage-for", "1"], 8, rate, 200 * (1 - 1 / SECONDS)),
        ("latency 40 ms, after half the time 120", ["--latency", "40000", "--change-at", str(SECONDS / 2), "--latency", "120000"], 8, rate, 400 / 3),
        ("kept by the page cache", ["--latency", "20000", "--keep-cache"], 8, lambda r: min(1, r.rate / 2000), 1),
    ]


def make_files(folder: str) -> List[str]:
    """Sizes vary by a factor of 3, so that bytes and requests can be told apart."""
    names = []
    for k in range(FILES):
        name = "%04d" % k
        with open(os.path.join(folder, name), "wb") as file:
            file.write(os.urandom(int(FILE_BYTES * (0.5 + k / (FILES - 1)))))
        names.append(name)
    return names


def measured(site: Site, check: Check, folder: str, names: List[str]) -> float:
    _, limits, depth, value, _ = check
    mount = site.store(folder, "--readdir", "0", *limits)
    paths = [os.path.join(mount, name) for name in names]
    for path in paths if "--keep-cache" in limits else []:
        with open(path, "rb") as file:
            file.read()
    for path in paths:
        os.stat(path)
    site.begins()
    return value(Reader(paths, depth, SECONDS))


def error(value: float, check: Check) -> float:
    return abs(value / check[4] - 1)


def nearest(check: Check, tools: str, work: str, folder: str, names: List[str]) -> float:
    best = 0.0
    for _ in range(TRIES):
        with Site(tools, lambda name: name, work) as site:
            value = measured(site, check, folder, names)
        best = min(best, value, key=lambda one: error(one, check))
        if error(best, check) <= WITHIN:
            break
    return best


def main(arguments: List[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    missed = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(prefix="mlbench-bank-real-%d-" % os.getpid()) as work:
        names = make_files(folder)
        for check in checks():
            try:
                value = nearest(check, arguments[0], work, folder, names)
            except Cannot as reason:
                print("store: not checked: %s" % reason)
                return CANNOT
            good = error(value, check) <= WITHIN
            missed += not good
            print("%-46s planted %10.6g measured %10.6g  %s" % (check[0], check[4], value, "ok" if good else "MISSED"), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
