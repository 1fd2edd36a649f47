#!/usr/bin/env python3
#: cause = step/cpu or step/compute or process/cpu
#: why = a small transformer trains on the CPU; reading tokens from a memory map costs it nothing
#: half = open
#: needs = torch numpy
#: data = tokens
#: options = --width 192 --layers 3
#: relieved = --width 96 --layers 2
#: fix = --layers 2
#: fix_twin = step.time*=0.74
"""Random windows of a file of tokens for a language model, as nanoGPT draws them: no DataLoader, one process."""
import os

import numpy
import torch
from torch import nn

from common import Job

WORDS = 4096
job = Job(width=192, layers=3, batch=8, length=64)
tokens = numpy.memmap(os.path.join(job.data, "tokens.bin"), numpy.uint16, "r")
torch.manual_seed(1)
torch.set_num_threads(1)
layer = nn.TransformerEncoderLayer(job.width, 4, 4 * job.width, 0, batch_first=True)
model = nn.Sequential(nn.Embedding(WORDS, job.width), nn.TransformerEncoder(layer, job.layers, enable_nested_tensor=False), nn.Linear(job.width, WORDS))
optimizer = torch.optim.AdamW(model.parameters())


def windows():
    while True:
        starts = numpy.random.randint(0, len(tokens) - job.length - 1, job.batch)
        drawn = numpy.stack([tokens[i:i + job.length + 1].astype(numpy.int64) % WORDS for i in starts])
        yield torch.from_numpy(drawn[:, :-1].copy()), torch.from_numpy(drawn[:, 1:].copy())


for given, wanted in job.batches(windows()):
    loss = nn.functional.cross_entropy(model(given).flatten(0, 1), wanted.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
