#!/usr/bin/env python3
#: cause = loader/lock
#: why = all workers enter each sample into one index file under a lock of its whole length (fcntl)
#: needs = torch torchvision PIL
#: data = thumbs
#: options = --workers 4 --held-ms 5 --step-ms 5
#: relieved = --held-ms 0
#: fix = --workers 8
#: fix_twin = decode.workers=8 prefetch.depth=16
#: owner = batch.size=16 augment.size=48
"""Workers that keep statistics of the samples in one file, as a shared cache on disk does."""
import fcntl
import os
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures, spend

job = Job(workers=4, batch=16, held_ms=5.0, step_ms=5.0)
transform = transforms.Compose([transforms.Resize((48, 48)), transforms.ToTensor()])
index = os.path.join(job.work, "index")


class Counted(Pictures):
    def __getitem__(self, at):
        picture, label = super().__getitem__(at)
        with open(index, "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            table = bytearray(file.read())
            table[at % len(table)] = (table[at % len(table)] + 1) % 256
            spend(job.held_ms / 1000)  # sorts and checks it
            file.seek(0)
            file.write(table)
            file.flush()
            fcntl.lockf(file, fcntl.LOCK_UN)
        return picture, label


with open(index, "wb") as file:
    file.write(bytes(3000))
loader = data.DataLoader(Counted(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
