#!/usr/bin/env python3
#: cause = loader/wait
#: why = workers keep to 40 requests a second each by sleeping, as clients of an object store are told to
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --per-second 40 --step-ms 20
#: relieved = --per-second 4000
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16 augment.size=64
"""Workers with a limiter of their requests."""
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, per_second=40.0, step_ms=20.0)
transform = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])


class Limited(Pictures):
    due = 0.0

    def __getitem__(self, index):
        now = time.monotonic()
        if self.due > now:
            time.sleep(self.due - now)
        self.due = max(now, self.due) + 1 / job.per_second
        return super().__getitem__(index)


loader = data.DataLoader(Limited(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
