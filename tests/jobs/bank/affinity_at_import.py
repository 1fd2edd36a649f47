#!/usr/bin/env python3
#: cause = loader/affinity
#: why = a call at import binds the process to one core, and all workers inherit that
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 4 --bound 1 --python-ms 8 --step-ms 10
#: relieved = --bound 0
#: fix = --bound 0
#: fix_twin = inject.cpus=0
#: owner = batch.size=16 augment.size=112
"""A library that binds the process that imports it, as builds of OpenMP and some launchers do."""
import os
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures, spend

job = Job(workers=4, batch=16, bound=1, python_ms=8.0, step_ms=10.0)
if job.bound:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
crop = transforms.Compose([transforms.RandomResizedCrop(112), transforms.ToTensor()])


def transform(picture):
    spend(job.python_ms / 1000)
    return crop(picture)


loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
