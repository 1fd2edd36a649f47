#!/usr/bin/env python3
#: cause = loader/cpu
#: why = gamma and noise are done pixel by pixel in Python, in every worker
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --rows 48 --step-ms 5
#: relieved = --rows 4
#: fix = --rows 24
#: fix_twin = overhead.sample*=0.53
#: owner = batch.size=16 augment.size=112
"""Photos, of which the first rows are changed by loops in Python, as home-grown augmentations are."""
import random
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, rows=48, step_ms=5.0)
crop, tensor = transforms.RandomResizedCrop(112), transforms.ToTensor()


def augment(picture):
    picture = crop(picture)
    gamma, pixels = random.uniform(0.7, 1.4), picture.load()
    for y in range(job.rows):
        for x in range(112):
            noise = random.gauss(0, 4)
            pixels[x, y] = tuple(max(0, min(255, int(255 * (value / 255) ** gamma + noise))) for value in pixels[x, y])
    return tensor(picture)


loader = data.DataLoader(Pictures(job.files(".jpg"), augment), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
