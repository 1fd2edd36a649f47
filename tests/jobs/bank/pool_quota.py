#!/usr/bin/env python3
#: cause = loader/quota
#: why = the container may use 0.4 cores, and two workers that decode want a whole one
#: needs = numpy PIL
#: data = photos
#: around = quota:0.4
#: options = --workers 2 --step-ms 15
#: relieved = quota:0
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16 augment.size=128
"""multiprocessing.Pool.imap over a folder of photos, in a container with a CPU limit."""
import itertools
import multiprocessing
import time

import numpy
from PIL import Image

from common import Job

job = Job(workers=2, batch=16, step_ms=15.0)
SIZE = 128


def load(paths):
    pictures = [Image.open(path).convert("RGB").resize((SIZE, SIZE), Image.BICUBIC) for path in paths]
    return numpy.stack([numpy.asarray(picture, numpy.float32) / 255 for picture in pictures])


def main():
    files = job.files(".jpg")
    room = multiprocessing.Semaphore(4 * job.workers)

    def asked():
        for begin in itertools.cycle(range(0, len(files) - job.batch, job.batch)):
            while not room.acquire(timeout=0.2):
                if job.ended:
                    return
            yield files[begin:begin + job.batch]

    with multiprocessing.Pool(job.workers) as pool:
        for batch in job.batches(pool.imap(load, asked())):
            room.release()
            time.sleep(job.step_ms / 1000)
        pool.terminate()


if __name__ == "__main__":
    main()
