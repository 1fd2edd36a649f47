#!/usr/bin/env python3
#: cause = loader/cpu
#: why = one worker decodes every picture and makes four views of it, for a step that could take several times as many
#: needs = torch torchvision webdataset
#: python = venv
#: data = shards
#: options = --workers 1 --views 4 --step-ms 20
#: relieved = --views 1
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=32 augment.size=160
"""webdataset: tar shards, decoded and cropped by Pillow in the workers of its own loader; several views of a picture, as SimCLR wants them."""
import time

import torch
import webdataset
from torchvision import transforms

from common import Job

job = Job(workers=1, batch=32, size=160, views=4, step_ms=20.0)
transform = transforms.Compose([transforms.RandomResizedCrop(job.size), transforms.RandomHorizontalFlip(), transforms.ToTensor()])


def views(picture):
    return torch.stack([transform(picture) for _ in range(job.views)])


pictures = webdataset.WebDataset(job.files(".tar"), shardshuffle=8, seed=1, empty_check=False).shuffle(100).decode("pil")
pictures = pictures.to_tuple("jpg", "cls").map_tuple(views, int).batched(job.batch, partial=False)
loader = webdataset.WebLoader(pictures, batch_size=None, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
