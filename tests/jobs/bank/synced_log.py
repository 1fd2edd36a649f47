#!/usr/bin/env python3
#: cause = step/write
#: why = the trainer writes sixty lines of metrics a step and syncs each of them to the disk
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --syncs 60 --step-ms 8
#: relieved = --syncs 0
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=8 augment.size=112
"""Photos for a trainer whose log must survive a crash."""
import os
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=8, syncs=60, step_ms=8.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
with open(os.path.join(job.work, "metrics.jsonl"), "w") as metrics:
    for _ in job.epochs():
        for pictures in job.batches(loader):
            time.sleep(job.step_ms / 1000)
            for number in range(job.syncs):
                print('{"step": %d, "metric": "m%d", "value": %.6f}' % (job.steps, number, time.time()), file=metrics, flush=True)
                os.fsync(metrics.fileno())
