#!/usr/bin/env python3
#: cause = loader/restarts
#: why = persistent_workers is off: at each of the short epochs both workers start anew and read the annotations again
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --persistent 0 --step-ms 4
#: relieved = --persistent 1
#: fix = --persistent 1
#: fix_twin = decode.persistent=on
#: owner = batch.size=16 augment.size=112
"""Photos with a file of annotations that each worker reads when it begins."""
import json
import os
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, persistent=0, boxes=120000, step_ms=4.0)
annotations = os.path.join(job.work, "annotations.json")
with open(annotations, "w") as file:
    json.dump([{"picture": i % 240, "box": [i % 7, i % 11, 100 + i % 13, 90], "label": "class %d" % (i % 80)} for i in range(job.boxes)], file)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])


class Annotated(Pictures):
    boxes = None


def read_annotations(_):
    with open(annotations) as file:
        data.get_worker_info().dataset.boxes = json.load(file)


loader = data.DataLoader(Annotated(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers,
                         worker_init_fn=read_annotations, persistent_workers=bool(job.persistent))
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
