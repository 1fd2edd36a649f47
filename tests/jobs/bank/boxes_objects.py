#!/usr/bin/env python3
#: cause = trainer/hand-over
#: why = a batch is a list of dicts of tensors: thousands of tensors, each of which comes over by a descriptor of its own
#: needs = torch
#: data = npy
#: options = --workers 2 --objects 8 --step-ms 5
#: relieved = --objects 1
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16
"""Detection: boxes, labels and masks of each object, in tensors of their own."""
import time

import torch
from torch.utils import data

from common import Job

job = Job(workers=2, batch=16, objects=8, step_ms=5.0)
torch.multiprocessing.set_sharing_strategy("file_descriptor")


class Scenes(data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        corners = torch.full((4,), float(index))
        return [{"box": corners + k, "label": torch.tensor([k]), "mask": torch.zeros(8, 8)} for k in range(job.objects)]


loader = data.DataLoader(Scenes(), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True, collate_fn=list)
for _ in job.epochs():
    for batch in job.batches(loader, len):
        time.sleep(job.step_ms / 1000)
