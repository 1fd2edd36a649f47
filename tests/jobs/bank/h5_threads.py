#!/usr/bin/env python3
#: cause = loader/lock or loader/gil
#: why = four threads unpack a compressed chunk for each sample, but the library lets one of them in at a time
#: needs = h5py torch numpy
#: python = venv
#: data = npy
#: options = --threads 4 --packed 9 --step-ms 5
#: relieved = --packed 0
#: fix = --threads 8
#: fix_twin = decode.workers=8
#: owner = batch.size=32
"""HDF5 read by threads: the file is packed from a folder of arrays when the job begins."""
import collections
import concurrent.futures
import os
import random
import time

import h5py
import numpy

from common import Job

job = Job(threads=4, batch=32, packed=9, step_ms=5.0)
path = os.path.join(job.work, "volumes.h5")
with h5py.File(path, "w") as file:
    arrays = numpy.stack([numpy.load(name).round(1) for name in job.files(".npy")[:64]])
    file.create_dataset("volumes", data=arrays, chunks=(8, *arrays.shape[1:]), **({"compression": "gzip", "compression_opts": job.packed} if job.packed else {}))
volumes = h5py.File(path, "r", rdcc_nbytes=0)["volumes"]
draw = random.Random(1)


def batches(pool):
    waiting = collections.deque()
    while True:
        while len(waiting) < 2 * job.batch:
            waiting.append(pool.submit(volumes.__getitem__, draw.randrange(len(volumes))))
        yield numpy.stack([waiting.popleft().result() for _ in range(job.batch)])


with concurrent.futures.ThreadPoolExecutor(job.threads) as readers:
    for batch in job.batches(batches(readers)):
        time.sleep(job.step_ms / 1000)
    readers.shutdown(cancel_futures=True)
