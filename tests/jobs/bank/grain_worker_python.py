#!/usr/bin/env python3
#: cause = loader/cpu
#: why = one worker process augments in Python, 10 ms a sample
#: needs = grain PIL numpy
#: python = venv
#: data = thumbs
#: options = --workers 1 --python-ms 10 --step-ms 20
#: relieved = --python-ms 0
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=16
"""grain's DataLoader with a process for its workers."""
import time

import grain.python as grain
import numpy
from PIL import Image

from common import Job, spend

job = Job(workers=1, batch=16, python_ms=10.0, step_ms=20.0)
paths = job.files(".jpg")


class Augment(grain.MapTransform):
    def map(self, index):
        picture = numpy.asarray(Image.open(paths[index]).convert("RGB").resize((48, 48)), numpy.float32)
        spend(job.python_ms / 1000)
        return picture


def main():
    sampler = grain.IndexSampler(len(paths), shard_options=grain.NoSharding(), shuffle=True, seed=1)
    loader = grain.DataLoader(data_source=range(len(paths)), sampler=sampler, worker_count=job.workers,
                              operations=[Augment(), grain.Batch(job.batch, drop_remainder=True)])
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)


if __name__ == "__main__":
    main()
