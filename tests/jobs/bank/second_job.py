#!/usr/bin/env python3
#: cause = loader/external
#: why = another training job of three workers runs on the same node, in a session of its own
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --beside 2 --step-ms 5
#: relieved = --beside 0
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16 augment.size=160
"""Several jobs on one node: this one starts the others, which are not its children and end with it."""
import os
import sys
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, step_ms=5.0, beside=2, follows=0)


def start_another():
    """As a scheduler would: nobody's child, in its own session."""
    first = os.getpid()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.execv(sys.executable, [sys.executable, __file__, "--data", job.data, "--workers", "3", "--beside", "0", "--follows", str(first)])


def alone():
    return job.follows and not os.path.exists("/proc/%d" % job.follows)


for _ in range(job.beside):
    start_another()
transform = transforms.Compose([transforms.Resize((160, 160)), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for batch in job.batches(loader):
        time.sleep(job.step_ms / 1000)
        if alone():
            sys.exit(0)
