#!/usr/bin/env python3
#: cause = trainer/hand-over
#: why = each sample comes over as thousands of small Python objects, which the trainer's process unpickles
#: needs = numpy
#: data = text
#: options = --workers 2 --packed 0 --step-ms 5
#: relieved = --packed 1
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=32
"""multiprocessing.Pool: annotations of graphs, a dict for each edge; or packed into two arrays."""
import itertools
import multiprocessing
import time

import numpy

from common import Job

job = Job(workers=2, batch=32, packed=0, edges=1500, step_ms=5.0)


def graphs(seed):
    """A batch: cheap to make, with as many objects as edges."""
    rng = numpy.random.default_rng(seed)
    ends = rng.integers(0, 500, (job.batch, job.edges, 2))
    weights = rng.random((job.batch, job.edges))
    if job.packed:
        return ends, weights
    return [[{"from": a, "to": b, "weight": w} for (a, b), w in zip(pair, weight)] for pair, weight in zip(ends.tolist(), weights.tolist())]


def main():
    with multiprocessing.Pool(job.workers) as pool:
        seeds = itertools.count()
        batches = (pool.apply_async(graphs, (seed,)) for seed in seeds)
        ahead = [next(batches) for _ in range(2 * job.workers)]

        def in_order():
            while True:
                ahead.append(next(batches))
                yield ahead.pop(0).get()

        for _ in job.batches(in_order(), lambda batch: job.batch):
            time.sleep(job.step_ms / 1000)


if __name__ == "__main__":
    main()
