#!/usr/bin/env python3
#: cause = read/bandwidth or read/device
#: why = the store gives 3 MB/s, about 100 pictures a second; two workers decode twice as many
#: needs = torch torchvision webdataset
#: python = venv
#: data = shards
#: around = bandwidth:3
#: options = --workers 2 --step-ms 10
#: relieved = bandwidth:0
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16 augment.size=96
"""webdataset over a store with little bandwidth."""
import time

import webdataset
from torchvision import transforms

from common import Job

job = Job(workers=2, batch=16, step_ms=10.0)
transform = transforms.Compose([transforms.Resize((96, 96)), transforms.ToTensor()])
pictures = webdataset.WebDataset(job.files(".tar"), shardshuffle=8, seed=1, empty_check=False).decode("pil")
pictures = pictures.to_tuple("jpg", "cls").map_tuple(transform, int).batched(job.batch, partial=False)
loader = webdataset.WebLoader(pictures, batch_size=None, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
