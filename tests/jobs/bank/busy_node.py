#!/usr/bin/env python3
#: cause = loader/external
#: why = eight processes of others compute on the node, so that two workers wait for cores most of the time
#: needs = torch torchvision PIL
#: data = photos
#: around = hog:8
#: options = --workers 2 --step-ms 5
#: relieved = hog:0
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16 augment.size=160
"""Photos on a node that is shared."""
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, step_ms=5.0)
transform = transforms.Compose([transforms.Resize((160, 160)), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
