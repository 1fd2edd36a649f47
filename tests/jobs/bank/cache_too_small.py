#!/usr/bin/env python3
#: cause = read/cache or read/device
#: why = the file has 64 MiB, the memory limit leaves room for half of it, and each epoch reads it from a slow disk again
#: needs = numpy
#: data = tokens
#: around = memory:72 disk:30
#: options = --threads 2 --step-ms 2
#: relieved = memory:0
#: fix = --threads 4
#: fix_twin = decode.workers=4
#: owner = batch.size=64
"""Windows of a file of tokens in their order, read by threads, in a container with little memory."""
import collections
import concurrent.futures
import itertools
import os
import time

import numpy

from common import Job

job = Job(threads=2, batch=64, step_ms=2.0)
WINDOW = 16384
file = os.open(job.files("tokens.bin")[0], os.O_RDONLY)
windows = os.fstat(file).st_size // WINDOW
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # the first epoch finds nothing


def window(at):
    return numpy.frombuffer(os.pread(file, WINDOW, at * WINDOW), numpy.uint16)


def batches(pool):
    order = itertools.cycle(range(windows))
    waiting = collections.deque()
    while True:
        while len(waiting) < 4 * job.batch:
            waiting.append(pool.submit(window, next(order)))
        yield numpy.stack([waiting.popleft().result() for _ in range(job.batch)])


with concurrent.futures.ThreadPoolExecutor(job.threads) as readers:
    for batch in job.batches(batches(readers)):
        time.sleep(job.step_ms / 1000)
    readers.shutdown(cancel_futures=True)
