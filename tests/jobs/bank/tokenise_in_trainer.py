#!/usr/bin/env python3
#: cause = trainer/cpu or process/cpu
#: why = the trainer tokenises each batch itself, between its steps
#: half = open
#: needs = torch
#: data = text
#: options = --tokenised 0 --step-ms 4
#: relieved = --tokenised 1
#: fix = --batch 16
#: fix_twin = batch.size=16
#: owner = batch.size=8
"""Lines of text, cut into words and pieces of words in the main thread; the step sleeps, as a device's does for its trainer."""
import os
import random
import re
import time

import torch

from common import Job

job = Job(batch=8, tokenised=0, length=512, step_ms=4.0)
with open(os.path.join(job.data, "text.txt")) as file:
    lines = file.read().split("\n")[:-1]
pieces = {first + second: 27 * (ord(first) - 96) + ord(second) - 96 for first in "abcdefghijklmnopqrstuvwxyz" for second in "abcdefghijklmnopqrstuvwxyz"}
word = re.compile(r"\w+|\s+|[^\w\s]")


def tokenise(text):
    tokens = []
    for found in word.findall(text.lower()):
        for i in range(0, len(found), 2):  # byte pairs, the longest match first
            tokens.append(pieces.get(found[i:i + 2]) or sum(map(ord, found[i:i + 2])))
    return (tokens + [0] * job.length)[:job.length]


ready = [tokenise(line) for line in lines[:2000]] if job.tokenised else None


def batches():
    while True:
        yield torch.tensor([random.choice(ready) if ready else tokenise(" ".join(random.choices(lines, k=8))) for _ in range(job.batch)])


for tokens in job.batches(batches(), len):
    time.sleep(job.step_ms / 1000)
