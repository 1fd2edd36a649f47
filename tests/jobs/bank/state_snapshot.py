#!/usr/bin/env python3
#: cause = trainer/cpu or step/cpu
#: why = the trainer copies the state of its sampler, a list of 200,000 numbers, before every step, so that it can resume
#: needs = torch numpy
#: data = tokens
#: options = --samples 200000 --step-ms 10
#: relieved = --samples 1000
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16
"""A loader whose state is saved with every step."""
import copy
import pickle
import random
import time

import numpy
import torch
from torch.utils import data

from common import Job

job = Job(workers=2, batch=16, samples=200000, step_ms=10.0)
tokens = numpy.memmap(job.files("tokens.bin")[0], numpy.uint16, "r")


class Windows(data.Dataset):
    def __getitem__(self, index):
        begin = index * 97 % (len(tokens) - 512)
        return torch.from_numpy(tokens[begin:begin + 512].astype(numpy.int64))


class Resumable:
    """The batches of an endless shuffled order, and what is left of it."""

    def __init__(self):
        self.left = []

    def __iter__(self):
        while True:
            if len(self.left) < job.batch:
                self.left = random.sample(range(job.samples), job.samples)
            batch, self.left = self.left[-job.batch:], self.left[:-job.batch]
            yield batch


sampler, saved = Resumable(), b""
for batch in job.batches(data.DataLoader(Windows(), batch_sampler=sampler, num_workers=job.workers)):
    saved = pickle.dumps({"step": job.steps, "left": copy.deepcopy(sampler.left)})
    time.sleep(job.step_ms / 1000)
