#!/usr/bin/env python3
#: cause = trainer/cpu
#: why = every 20 steps the trainer evaluates, and decodes the pictures for it in its own thread
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --every 20 --step-ms 15
#: relieved = --every 1000000
#: fix = --every 80
#: fix_twin = evaluate.every*=4
#: owner = batch.size=16 augment.size=112
"""Photos for a trainer that evaluates often, with a second loader without workers."""
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, every=20, evaluated=600, step_ms=15.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
plain = transforms.Compose([transforms.Resize(128), transforms.CenterCrop(112), transforms.ToTensor()])
files = job.files(".jpg")
loader = data.DataLoader(Pictures(files, transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
held_out = data.DataLoader(Pictures((files * 3)[:job.evaluated], plain), 32)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
        if job.steps % job.every == job.every - 1:
            for _ in held_out:
                time.sleep(0.002)
