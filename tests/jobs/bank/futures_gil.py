#!/usr/bin/env python3
#: cause = loader/gil or process/gil
#: why = four threads parse texts in Python, so that they take turns with one interpreter
#: needs = numpy
#: data = text
#: options = --threads 4 --words 200 --step-ms 5
#: relieved = --words 20
#: fix = --threads 8
#: fix_twin = decode.workers=8
#: owner = batch.size=512
"""concurrent.futures: a loader of threads, written by hand, for lines of text."""
import collections
import concurrent.futures
import itertools
import time

import numpy

from common import Job

job = Job(threads=4, batch=512, words=200, step_ms=5.0)
with open(job.files("text.txt")[0]) as file:
    lines = file.read().splitlines()


def features(line):
    """Hashed pairs and triples of letters."""
    row = [0.0] * 512
    for word in line.split()[:job.words]:
        for left, right in zip(word, word[1:]):
            row[(31 * ord(left) + ord(right)) % 512] += 1.0
        for at in range(len(word) - 2):
            row[sum(31 ** k * ord(letter) for k, letter in enumerate(word[at:at + 3])) % 512] += 1.0
    return row


def load(indices):
    return numpy.array([features(lines[i]) for i in indices], numpy.float32)


def batches(pool):
    order = itertools.cycle(range(len(lines)))
    waiting = collections.deque()
    while True:
        while len(waiting) < 2 * job.threads:
            waiting.append(pool.submit(load, list(itertools.islice(order, job.batch))))
        yield waiting.popleft().result()


with concurrent.futures.ThreadPoolExecutor(job.threads) as workers:
    for batch in job.batches(batches(workers)):
        time.sleep(job.step_ms / 1000)
    workers.shutdown(cancel_futures=True)
