#!/usr/bin/env python3
#: cause = loader/restarts
#: why = workers begin anew every epoch of 20 batches, and each first builds its index of the words for most of a second
#: needs = torch datasets pyarrow
#: python = venv
#: data = arrow
#: options = --persistent 0 --epoch 20
#: relieved = --persistent 1
#: fix = --persistent 1
#: fix_twin = decode.persistent=on
#: owner = batch.size=32
"""Hugging Face datasets with workers that set themselves up at the start of every short epoch."""
import time

import datasets
import torch
from torch.utils import data

from common import Job

job = Job(workers=2, batch=32, epoch=20, persistent=0, step_ms=20.0)
texts = datasets.load_from_disk(job.data)
index = {}


def set_up(_):
    for row in texts.select(range(8000)):
        for word in row["text"].split():
            index[word] = index.get(word, 0) + 1


def collate(rows):
    ids = torch.zeros(len(rows), 128, dtype=torch.long)
    for i, row in enumerate(rows):
        found = [index.get(word, 0) for word in row["text"].split()[:128]]
        ids[i, :len(found)] = torch.tensor(found)
    return ids


chosen = data.RandomSampler(texts, num_samples=job.epoch * job.batch)
loader = data.DataLoader(texts, job.batch, sampler=chosen, num_workers=job.workers, collate_fn=collate,
                         worker_init_fn=set_up, persistent_workers=bool(job.persistent))
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
