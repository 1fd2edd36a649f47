#!/usr/bin/env python3
#: cause = sync/imbalance
#: why = of two ranks that average their gradients by gloo, rank 1 has five times the work for a picture
#: half = open
#: needs = torch torchvision PIL
#: data = photos
#: options = --slow 5
#: relieved = --slow 1
#: owner = batch.size=16 augment.size=64
"""Two ranks on the CPU, as the tutorial of DistributedDataParallel starts them; rank 1 stands for a node with a slow disk or core."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils import data
from torchvision import transforms

from common import Job, Pictures


class Repeated(Pictures):
    repeats = 1

    def __getitem__(self, index):
        for _ in range(self.repeats - 1):
            super().__getitem__(index)
        return super().__getitem__(index)


def train(rank):
    job = Job(batch=16, slow=5)
    job.log = None if rank else job.log
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + os.path.join(job.work, "ranks"), rank=rank, world_size=2)
    photos = Repeated(job.files(".jpg")[rank::2], transforms.Compose([transforms.RandomResizedCrop(64), transforms.ToTensor()]))
    photos.repeats = job.slow if rank == 1 else 1
    loader = data.DataLoader(photos, job.batch, shuffle=True, drop_last=True)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 32), nn.ReLU(), nn.Linear(32, 10)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in job.epochs():
        for pictures, labels in job.batches(loader):
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    job = Job(batch=16, slow=5)
    ranks = torch.multiprocessing.spawn(train, nprocs=2, join=False)
    while not job.ended and not ranks.join(timeout=0.5):
        pass
    for rank in ranks.processes:
        rank.kill()
