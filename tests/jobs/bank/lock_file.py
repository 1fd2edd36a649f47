#!/usr/bin/env python3
#: cause = loader/lock
#: why = every worker holds one lock file (flock) while it prepares a sample
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 3 --lock 1 --step-ms 2
#: relieved = --lock 0
#: fix = --workers 6
#: fix_twin = decode.workers=6 prefetch.depth=12
#: owner = batch.size=16 augment.size=112
"""Photos whose decoding is guarded by a lock file, as caches and licences of libraries do it."""
import contextlib
import fcntl
import os
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=3, batch=16, lock=1, step_ms=2.0)
path = os.path.join(job.work, "cache.lock")
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.ToTensor()])


@contextlib.contextmanager
def guard():
    with open(path, "w") as file:
        if job.lock:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Guarded(Pictures):
    def __getitem__(self, index):
        with guard():
            return super().__getitem__(index)


loader = data.DataLoader(Guarded(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
