#!/usr/bin/env python3
#: cause = loader/cpu
#: why = each random row is cut out of a row group of 256, which is decompressed and parsed anew
#: needs = torch pyarrow numpy
#: python = venv
#: data = parquet
#: options = --workers 2 --whole 1 --step-ms 5
#: relieved = --whole 0
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16
"""Rows of a Parquet file at random, or in the order of their row groups."""
import time

import numpy
import pyarrow.parquet
import torch
from torch.utils import data

from common import Job

job = Job(workers=2, batch=16, whole=1, step_ms=5.0)
GROUP = 256


class Signals(data.Dataset):
    """Opened by each worker; without `whole` the last row group is kept."""

    def __init__(self, path):
        self.path, self.file, self.kept = path, None, (-1, None)
        self.rows = pyarrow.parquet.read_metadata(path).num_rows

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        if self.file is None:
            self.file = pyarrow.parquet.ParquetFile(self.path)
        if job.whole or self.kept[0] != index // GROUP:
            self.kept = index // GROUP, self.file.read_row_group(index // GROUP, use_threads=False)
        return torch.tensor(numpy.asarray(self.kept[1]["signal"][index % GROUP].values))


loader = data.DataLoader(Signals(job.files(".parquet")[0]), job.batch, shuffle=bool(job.whole), drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
