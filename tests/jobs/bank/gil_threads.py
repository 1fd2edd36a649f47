#!/usr/bin/env python3
#: cause = loader/gil or process/gil
#: why = four threads augment in pure Python and take turns at the interpreter's lock
#: half = open
#: needs = numpy PIL
#: data = photos
#: options = --threads 4 --processes 0 --step-ms 5
#: relieved = --processes 1
#: fix = --threads 8
#: fix_twin = decode.workers=8 prefetch.depth=16
#: owner = batch.size=16 augment.size=112
"""A loader of concurrent.futures: threads, or processes for the same work."""
import collections
import concurrent.futures
import random
import time

import numpy
from PIL import Image

from common import Job

job = Job(threads=4, processes=0, batch=16, size=112, step_ms=5.0)
files = job.files(".jpg")


def load(path):
    picture = Image.open(path).convert("RGB").resize((job.size, job.size))
    gamma, rows = random.uniform(0.7, 1.4), list(picture.getdata())[:job.size * 32]
    changed = [tuple(int(255 * (value / 255) ** gamma) for value in pixel) for pixel in rows]
    picture.putdata(changed + list(picture.getdata())[len(changed):])
    return numpy.asarray(picture, numpy.float32).transpose(2, 0, 1) / 255


def batches(pool):
    pending = collections.deque()
    while True:
        while len(pending) < 4 * job.batch:
            pending.append(pool.submit(load, random.choice(files)))
        yield numpy.stack([pending.popleft().result() for _ in range(job.batch)])


make = concurrent.futures.ProcessPoolExecutor if job.processes else concurrent.futures.ThreadPoolExecutor
with make(job.threads) as pool:
    for pictures in job.batches(batches(pool), len):
        time.sleep(job.step_ms / 1000)
    pool.shutdown(wait=True, cancel_futures=True)
