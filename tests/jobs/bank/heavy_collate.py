#!/usr/bin/env python3
#: cause = loader/cpu
#: why = the one worker's collate function mixes every picture with others, many times
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 1 --mixes 24 --step-ms 5
#: relieved = --mixes 0
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=16 augment.size=112
"""Photos with a mix-up of the whole batch in the collate function, which runs in the worker."""
import time

import torch
from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=1, batch=16, mixes=24, step_ms=5.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.ToTensor()])


def mix(samples):
    pictures, labels = data.default_collate(samples)
    for _ in range(job.mixes):
        share = torch.rand(len(pictures), 1, 1, 1)
        pictures = share * pictures + (1 - share) * pictures[torch.randperm(len(pictures))]
    return pictures, labels


loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, collate_fn=mix,
                         persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
