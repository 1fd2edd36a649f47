#!/usr/bin/env python3
#: cause = loader/cpu
#: why = each sample takes 12 ms of Python in a worker of litdata's loader
#: needs = torch torchvision litdata
#: python = venv
#: data = litdata
#: options = --workers 2 --python-ms 12 --step-ms 15
#: relieved = --python-ms 0
#: fix = --python-ms 6
#: fix_twin = overhead.sample-=6ms
#: owner = batch.size=16
"""litdata: chunks of pictures streamed from a local folder, and a slow augmentation in Python."""
import time

import litdata

from common import Job, spend

job = Job(workers=2, batch=16, python_ms=12.0, step_ms=15.0)


class Pictures(litdata.StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        spend(job.python_ms / 1000)
        return sample["image"].float() / 255, sample["label"]


loader = litdata.StreamingDataLoader(Pictures(job.data, shuffle=True, drop_last=True), batch_size=job.batch, num_workers=job.workers)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
