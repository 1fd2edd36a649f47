#!/usr/bin/env python3
#: cause = loader/threads
#: why = each of three workers computes with 12 threads of OpenMP, that spin while they wait, on a machine of few cores
#: needs = torch numpy
#: data = npy
#: options = --workers 3 --threads 12 --step-ms 10
#: relieved = --threads 1
#: fix = --threads 1
#: fix_twin = decode.threads=1
#: owner = batch.size=8
"""Workers that set the threads of PyTorch back to what one process alone would take, under a cluster's OMP_WAIT_POLICY."""
import os
import time

from common import Job

job = Job(workers=3, batch=8, threads=12, step_ms=10.0)
os.environ["OMP_WAIT_POLICY"] = "active"
import numpy  # noqa: E402 (loads OpenMP, which reads that variable)
import torch  # noqa: E402
from torch.utils import data  # noqa: E402


class Volumes(data.Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        volume = torch.from_numpy(numpy.load(self.files[index]))[None]
        volume = torch.nn.functional.interpolate(volume, scale_factor=4, mode="bilinear", align_corners=False)
        for _ in range(6):
            volume = torch.nn.functional.avg_pool2d(volume, 3, 1, 1) + 0.1 * torch.sin(volume)
        return volume[0, :, ::4, ::4]


loader = data.DataLoader(Volumes(job.files(".npy")), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True,
                         worker_init_fn=lambda _: torch.set_num_threads(job.threads))
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
