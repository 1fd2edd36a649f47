#!/usr/bin/env python3
#: cause = loader/imbalance
#: why = files go to workers by size, so that one worker has all the large ones, and batches come in turn
#: needs = torch torchvision PIL
#: data = uneven
#: options = --workers 3 --by-size 1 --step-ms 5
#: relieved = --by-size 0
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=8 augment.size=224
"""An iterable data set that gives each worker its own part of a list of files."""
import itertools
import os
import time

from PIL import Image
from torch.utils import data
from torchvision import transforms

from common import Job

job = Job(workers=3, batch=8, by_size=1, step_ms=5.0)
transform = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
files = job.files(".jpg")
if job.by_size:
    files.sort(key=os.path.getsize)


class Parts(data.IterableDataset):
    """The last worker has the largest twentieth, the others share the rest."""

    def __iter__(self):
        me = data.get_worker_info()
        cut = len(files) * 19 // 20
        mine = files[cut:] if me.id == me.num_workers - 1 else files[me.id:cut:me.num_workers - 1]
        for path in itertools.cycle(mine):
            yield transform(Image.open(path).convert("RGB"))


for batch in job.batches(data.DataLoader(Parts(), job.batch, num_workers=job.workers), len):
    time.sleep(job.step_ms / 1000)
