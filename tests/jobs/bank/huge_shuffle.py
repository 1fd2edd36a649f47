#!/usr/bin/env python3
#: cause = trainer/cpu
#: why = each epoch begins with shuffling a list of millions of names in the trainer, while the workers have nothing to do
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --workers 2 --names 2000000 --step-ms 4
#: relieved = --names 5000
#: fix = --workers 4
#: fix_twin = decode.workers=4 prefetch.depth=8
#: owner = batch.size=16 augment.size=112
"""An epoch is cut after 50 batches (limit_train_batches), but the whole list of names is shuffled for it."""
import random
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=2, batch=16, names=2000000, batches_an_epoch=50, step_ms=4.0)
transform = transforms.Compose([transforms.RandomResizedCrop(112), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
files = job.files(".jpg")
names = ["%s#%d" % (files[i % len(files)], i) for i in range(job.names)]


class Shuffled(data.Sampler):
    def __init__(self):
        pass

    def __iter__(self):
        random.shuffle(names)
        for begin in range(job.batches_an_epoch):
            yield [hash(name) % len(files) for name in names[begin * job.batch:(begin + 1) * job.batch]]


loader = data.DataLoader(Pictures(files, transform), batch_sampler=Shuffled(), num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures in job.batches(loader):
        time.sleep(job.step_ms / 1000)
