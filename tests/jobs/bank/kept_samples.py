#!/usr/bin/env python3
#: cause = read/cache or read/device or loader/memory
#: why = the process keeps every window that it decoded up to 64 MiB; in its container no room is left to cache the file
#: needs = numpy
#: data = tokens
#: around = memory:110 disk:30
#: options = --keep-mib 64 --step-ms 2
#: relieved = --keep-mib 0
#: owner = batch.size=64
"""A cache of samples that grows with time and takes the page cache's place; threads read the file."""
import concurrent.futures
import itertools
import os
import time

import numpy

from common import Job

job = Job(batch=64, keep_mib=64, step_ms=2.0)
WINDOW = 16384
file = os.open(job.files("tokens.bin")[0], os.O_RDONLY)
windows = os.fstat(file).st_size // WINDOW
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
kept = []


def window(at):
    tokens = numpy.frombuffer(os.pread(file, WINDOW, at * WINDOW), numpy.uint16).astype(numpy.int32)
    if len(kept) * 2 * WINDOW < job.keep_mib << 20:
        kept.append(tokens)
    return tokens


def batches(pool):
    order = itertools.cycle(range(windows))
    while True:
        yield numpy.stack(list(pool.map(window, itertools.islice(order, job.batch))))


with concurrent.futures.ThreadPoolExecutor(2) as readers:
    for batch in job.batches(batches(readers)):
        time.sleep(job.step_ms / 1000)
