#!/usr/bin/env python3
#: cause = loader/lock
#: why = one permit of a semaphore of all workers is held while a sample is decoded
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 3 --permits 1 --step-ms 2
#: relieved = --permits 3
#: fix = --permits 3
#: fix_twin = overhead.lock=0% inject.lock_share=0%
#: owner = batch.size=16 augment.size=112
"""Photos whose workers share a decoder that was declared to take few callers at once."""
import time

import torch
from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=3, batch=16, permits=1, step_ms=2.0)
permits = torch.multiprocessing.Semaphore(job.permits)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.ToTensor()])


class Permitted(Pictures):
    def __getitem__(self, index):
        with permits:
            return super().__getitem__(index)


loader = data.DataLoader(Permitted(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
