#!/usr/bin/env python3
#: cause = loader/cpu
#: why = one worker decodes photos for a step that could take more than it gives
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 1 --step-ms 5
#: relieved = --workers 2
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=16 augment.size=112
"""A folder of photos, cropped and flipped, with too few workers; the step sleeps, as a device's does for its trainer."""
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=1, batch=16, step_ms=5.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
