#!/usr/bin/env python3
#: cause = none/healthy or loader/cpu or step/unknown or step/compute
#: why = loader and step take about the same time, so that neither alone can be made faster to much effect
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 1 --views 2 --step-ms 22
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=16 augment.size=96
"""A job in balance: nothing to be found."""
import time

import torch
from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=1, batch=16, views=2, step_ms=22.0)
crop = transforms.Compose([transforms.RandomResizedCrop(96), transforms.ToTensor()])


def transform(picture):
    return torch.stack([crop(picture) for _ in range(job.views)])


loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
