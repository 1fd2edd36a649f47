#!/usr/bin/env python3
#: cause = loader/cpu
#: why = DALI has one thread on the CPU to decode and blur large pictures for a step of 10 ms
#: needs = nvidia.dali
#: python = venv
#: data = photos
#: options = --threads 1 --step-ms 10
#: relieved = --size 64
#: fix = --threads 2
#: fix_twin = decode.workers=2
#: owner = batch.size=32
"""NVIDIA DALI, all operators on the CPU."""
import time

from nvidia.dali import fn, pipeline_def

from common import Job

job = Job(threads=1, batch=32, size=384, step_ms=10.0)


@pipeline_def(batch_size=job.batch, num_threads=job.threads, device_id=None)
def pictures():
    files, labels = fn.readers.file(files=job.files(".jpg"), random_shuffle=True, name="reader")
    decoded = fn.decoders.image_random_crop(files)
    return fn.gaussian_blur(fn.resize(decoded, size=(job.size, job.size)), sigma=2.0), labels


pipeline = pictures()
pipeline.build()


def batches():
    while True:
        yield pipeline.run()[0]


for batch in job.batches(batches()):
    time.sleep(job.step_ms / 1000)
