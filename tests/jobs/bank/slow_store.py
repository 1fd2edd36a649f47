#!/usr/bin/env python3
#: cause = read/latency or read/device
#: why = every read of a small file takes 4 ms
#: half = open
#: needs = torch torchvision PIL
#: data = thumbs
#: around = latency:4000
#: options = --workers 2 --step-ms 2
#: relieved = latency:0
#: fix = --workers 6
#: fix_twin = decode.workers=6 prefetch.depth=12
#: owner = batch.size=16 augment.size=32
"""Thumbnails from a store that answers late."""
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, step_ms=2.0)
transform = transforms.Compose([transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
