#!/usr/bin/env python3
#: cause = loader/restarts
#: why = a worker ends after 12 batches (maxtasksperchild); its successor first builds tables for 0.5 s of CPU time
#: needs = numpy PIL
#: data = thumbs
#: options = --workers 2 --tasks 12 --setup-ms 500 --step-ms 10
#: relieved = --tasks 100000
#: fix = --tasks 24
#: fix_twin = decode.startup*=0.5
#: owner = batch.size=32 augment.size=32
"""multiprocessing.Pool whose workers are replaced now and then, as a remedy for a leak."""
import multiprocessing
import random
import time

import numpy
from PIL import Image

from common import Job, spend

job = Job(workers=2, batch=32, tasks=12, setup_ms=500.0, step_ms=10.0)
files = job.files(".jpg")


def load(seed):
    draw = random.Random(seed)
    pictures = [Image.open(draw.choice(files)).convert("RGB").resize((32, 32)) for _ in range(job.batch)]
    return numpy.stack([numpy.asarray(picture, numpy.float32) / 255 for picture in pictures])


def main():
    with multiprocessing.Pool(job.workers, spend, (job.setup_ms / 1000,), job.tasks) as pool:
        ahead, seed = [], 0

        def batches():
            nonlocal seed
            while True:
                while len(ahead) < 2 * job.workers:
                    ahead.append(pool.apply_async(load, (seed,)))
                    seed += 1
                yield ahead.pop(0).get()

        for _ in job.batches(batches()):
            time.sleep(job.step_ms / 1000)
        pool.terminate()


if __name__ == "__main__":
    main()
