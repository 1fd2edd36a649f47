#!/usr/bin/env python3
#: cause = read/latency
#: why = each read takes 6 ms, and two threads read one file at a time each
#: needs = numpy PIL
#: data = npy
#: around = latency:6000
#: options = --threads 2 --step-ms 10
#: relieved = latency:0
#: fix = --threads 8
#: fix_twin = decode.workers=8
#: owner = batch.size=16
"""concurrent.futures: threads that load one array from each file of a store that is far away."""
import collections
import concurrent.futures
import random
import time

import numpy

from common import Job

job = Job(threads=2, batch=16, step_ms=10.0)
files = job.files(".npy")
draw = random.Random(1)


def batches(pool):
    waiting = collections.deque()
    while True:
        while len(waiting) < 4 * job.batch:
            waiting.append(pool.submit(numpy.load, draw.choice(files)))
        yield numpy.stack([waiting.popleft().result() for _ in range(job.batch)])


with concurrent.futures.ThreadPoolExecutor(job.threads) as readers:
    for batch in job.batches(batches(readers)):
        time.sleep(job.step_ms / 1000)
    readers.shutdown(cancel_futures=True)
