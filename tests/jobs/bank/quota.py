#!/usr/bin/env python3
#: cause = loader/quota
#: why = a control group allows the job 0.6 cores
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: around = quota:0.6
#: options = --workers 2 --step-ms 5
#: relieved = quota:0
#: fix = quota:1.2
#: fix_twin = batch.size=16
#: owner = batch.size=16 augment.size=112
"""Photos and two workers that share less than a core, as in a container with a CPU limit."""
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, step_ms=5.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
