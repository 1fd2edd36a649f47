#!/usr/bin/env python3
"""Runs a command while all cores stand still now and then, as under a hypervisor that has others to serve.

    tests/bank/stall.py EVERY_MS FOR_MS COMMAND …

Stalls come at random, every EVERY_MS on average, and last FOR_MS on average (both exponential).  All cores stall at
once: one busy process a core, at a real-time priority that needs root.  The command gets a lower one, so that nothing
else on the machine disturbs it.  Exit status: the command's; 3 where the priorities cannot be had."""

import os
import random
import signal
import subprocess
import sys
import time
from typing import Iterator, List, Tuple

CANNOT = 3
PRIORITY, OF_COMMAND = 60, 1


def stalls(every_s: float, for_s: float, seed: int) -> Iterator[Tuple[float, float]]:
    """Begin and end of each, seconds; every process makes the same ones."""
    draws = random.Random(seed)
    t = 0.0
    while True:
        t += draws.expovariate(1 / every_s)
        end = t + draws.expovariate(1 / for_s)
        yield t, end
        t = end


def stall(core: int, every_s: float, for_s: float, begin: float) -> None:
    os.sched_setaffinity(0, [core])
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    parent = os.getppid()
    for from_s, to_s in stalls(every_s, for_s, int(begin)):
        time.sleep(max(0.0, begin + from_s - time.monotonic()))
        while time.monotonic() < begin + to_s:
            pass
        if os.getppid() != parent:
            return


def main(arguments: List[str]) -> int:
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    every_s, for_s = (float(word) / 1e3 for word in arguments[:2])
    begin = time.monotonic() + 0.2
    children = []
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(OF_COMMAND))
        for core in sorted(os.sched_getaffinity(0)):
            child = os.fork()
            if child == 0:
                stall(core, every_s, for_s, begin)
                os._exit(0)
            children.append(child)
        return subprocess.run(arguments[2:], check=False).returncode
    except PermissionError:
        print("stall: no real-time priority here: run it as root", file=sys.stderr)
        return CANNOT
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
