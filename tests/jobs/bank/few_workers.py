#!/usr/bin/env python3
#: cause = loader/cpu
#: why = one worker decodes for a step that could take twice as much
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 1 --step-ms 5
#: relieved = --workers 2
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=16 augment.size=112
"""A folder of photos, cropped and flipped, with too few workers."""
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=1, batch=16, step_ms=60.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers,
                         persistent_workers=job.workers > 0)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
