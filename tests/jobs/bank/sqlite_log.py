#!/usr/bin/env python3
#: cause = step/write
#: why = each step commits 25 rows of metrics to a database, each in a transaction of its own that waits for the disk
#: needs = torch torchvision PIL
#: data = thumbs
#: options = --workers 2 --commits 25 --step-ms 10
#: relieved = --commits 0
#: owner = batch.size=32 augment.size=32
"""A trainer whose metrics go into SQLite."""
import os
import sqlite3
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=32, commits=25, step_ms=10.0)
metrics = sqlite3.connect(os.path.join(job.work, "metrics.db"), isolation_level=None)
metrics.execute("pragma synchronous = full")
metrics.execute("create table metric (step integer, name text, value real)")
transform = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures, _ in job.batches(loader):
        time.sleep(job.step_ms / 1000)
        for layer in range(job.commits):
            metrics.execute("insert into metric values (?, ?, ?)", (job.steps, "layer%d" % layer, float(pictures.mean())))
