#!/usr/bin/env python3
#: cause = step/unknown or step/compute
#: why = a step of 90 ms on a device; the loader is ready long before
#: needs = torch torchvision PIL
#: data = classes
#: options = --workers 2 --step-ms 90
#: relieved = --step-ms 30
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16 augment.size=64
"""torchvision's ImageFolder in front of a slow step: healthy."""
import time

from torch.utils import data
from torchvision import datasets, transforms

from common import Job

job = Job(workers=2, batch=16, step_ms=90.0)
pictures = datasets.ImageFolder(job.data, transforms.Compose([transforms.RandomResizedCrop(64), transforms.ToTensor()]))
loader = data.DataLoader(pictures, job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
