#!/usr/bin/env python3
#: cause = read/latency
#: why = each page of the mapped file that is touched comes over a store of 3 ms, one after the other
#: needs = torch numpy
#: data = records
#: around = latency:3000
#: options = --workers 2 --step-ms 10
#: relieved = latency:0
#: fix = --workers 6
#: fix_twin = decode.workers=6 prefetch.depth=12
#: owner = batch.size=16
"""NumPy over a mapped file of records, read at random."""
import mmap
import time

import numpy
import torch
from torch.utils import data

from common import Job

job = Job(workers=2, batch=16, step_ms=10.0)


class Records(data.Dataset):
    def __init__(self, path):
        with open(path, "rb") as file:
            self.mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
        self.mapped.madvise(mmap.MADV_RANDOM)
        self.rows = numpy.frombuffer(self.mapped, numpy.uint8).reshape(-1, 4096)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(self.rows[index].astype(numpy.float32))


loader = data.DataLoader(Records(job.files("records.bin")[0]), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
