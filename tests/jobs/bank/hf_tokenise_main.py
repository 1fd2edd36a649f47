#!/usr/bin/env python3
#: cause = trainer/cpu or process/cpu
#: why = the trainer's own thread cuts each text into pieces of words while the device waits
#: needs = torch datasets pyarrow
#: python = venv
#: data = arrow
#: options = --length 512 --step-ms 6
#: relieved = --length 64
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=32
"""Hugging Face datasets: an Arrow table of texts, tokenised on the fly by a transform in Python, no workers."""
import time

import datasets
import torch
from torch.utils import data

from common import Job

job = Job(workers=0, batch=32, length=512, step_ms=10.0)
vowels, consonants = "aeiou", "bdfgklmnprstvz"
vocabulary = {piece: i for i, piece in enumerate([*"abcdefghijklmnopqrstuvwxyz", *(c + v for c in consonants for v in vowels)])}


def pieces_of(word):
    """WordPiece: the longest piece of the vocabulary that the rest of the word begins with."""
    begin = 0
    while begin < len(word):
        end = len(word)
        while word[begin:end] not in vocabulary:
            end -= 1
        yield vocabulary[word[begin:end]]
        begin = end


def tokenise(rows):
    ids = torch.zeros(len(rows["text"]), job.length, dtype=torch.long)
    for i, text in enumerate(rows["text"]):
        cut = []
        for word in text.split():
            cut.extend(pieces_of(word))
            if len(cut) >= job.length:
                break
        cut = cut[:job.length]
        ids[i, :len(cut)] = torch.tensor(cut)
    return {"ids": ids}


texts = datasets.load_from_disk(job.data).with_transform(tokenise)
loader = data.DataLoader(texts, job.batch, shuffle=True, drop_last=True, num_workers=job.workers)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
