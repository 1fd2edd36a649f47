#!/usr/bin/env python3
#: cause = step/compute or step/unknown
#: why = the device takes 120 ms for a batch that two workers have ready long before
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --step-ms 120
#: relieved = --step-ms 40
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = augment.size=112
"""Photos for a step that is the limit: a device that the trainer waits for."""
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, step_ms=120.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
