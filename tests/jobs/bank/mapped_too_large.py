#!/usr/bin/env python3
#: cause = process/memory or read/cache or loader/memory
#: why = a mapped file of 64 MiB in a container that holds half of it: pages are taken away and fault again, from a slow disk
#: needs = numpy
#: data = tokens
#: around = memory:66 disk:60
#: options = --step-ms 2
#: relieved = memory:0
#: owner = batch.size=16
"""numpy.memmap as in small GPT trainers, windows at random, no workers, little memory."""
import os
import time

import numpy

from common import Job

job = Job(batch=16, step_ms=2.0)
path = job.files("tokens.bin")[0]
with open(path, "rb") as file:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # what others left in the cache
tokens = numpy.memmap(path, numpy.uint16, "r")
draw = numpy.random.default_rng(1)


def batches():
    while True:
        begins = draw.integers(0, len(tokens) - 1025, job.batch)
        yield numpy.stack([tokens[begin:begin + 1025].astype(numpy.int64) for begin in begins])


for batch in job.batches(batches()):
    time.sleep(job.step_ms / 1000)
