#!/usr/bin/env python3
#: cause = step/write
#: why = every 15 steps the trainer saves 200 MB and waits until they are on the disk
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --every 15 --step-ms 8
#: relieved = --every 1000000
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16 augment.size=112
"""Photos for a trainer that saves its state often."""
import os
import time

import torch
from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, every=15, megabytes=200, step_ms=8.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
state = {"layer%d" % i: torch.rand(job.megabytes * 1000000 // 40) for i in range(10)}
path = os.path.join(job.work, "checkpoint.pt")
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
        if job.steps % job.every == job.every - 1:
            with open(path + ".part", "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(path + ".part", path)
