#!/usr/bin/env python3
#: cause = trainer/hand-over
#: why = batches of 38 MB are pickled through a pipe to the trainer, which copies them
#: needs = numpy
#: data = npy
#: options = --workers 2 --side 320 --step-ms 5
#: relieved = --side 80
#: fix = --workers 3
#: fix_twin = decode.workers=3 prefetch.depth=3
#: owner = batch.size=16
"""multiprocessing.Queue with arrays: volumes enlarged in the workers."""
import multiprocessing
import queue
import random
import time

import numpy

from common import Job

job = Job(workers=2, batch=16, side=320, step_ms=5.0)


def work(files, seed, results):
    draw = random.Random(seed)
    while True:
        samples = [numpy.load(draw.choice(files)) for _ in range(job.batch)]
        batch = numpy.empty((job.batch, 3, job.side, job.side), numpy.float64)
        for at, sample in enumerate(samples):
            batch[at] = sample[:, :1, :1]
        results.put(batch)


def main():
    results = multiprocessing.Queue(2)
    files = job.files(".npy")
    workers = [multiprocessing.Process(target=work, args=(files, seed, results), daemon=True) for seed in range(job.workers)]
    for worker in workers:
        worker.start()

    def batches():
        while not job.ended:
            try:
                yield results.get(timeout=1)
            except queue.Empty:
                pass

    for _ in job.batches(batches()):
        time.sleep(job.step_ms / 1000)
    for worker in workers:
        worker.kill()


if __name__ == "__main__":
    main()
