#!/usr/bin/env python3
#: cause = loader/lock or loader/gil
#: why = every sample asks a dict of multiprocessing.Manager 20 times, whose one process answers all workers in turn
#: needs = torch torchvision PIL
#: data = thumbs
#: options = --workers 4 --asks 20 --step-ms 5
#: relieved = --asks 1
#: fix = --workers 8
#: fix_twin = decode.workers=8 prefetch.depth=16
#: owner = batch.size=32 augment.size=32
"""A cache of labels in a shared dict, asked by every worker for every sample."""
import multiprocessing
import time

from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=4, batch=32, asks=20, step_ms=5.0)
transform = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])


class Labelled(Pictures):
    def __init__(self, files, labels):
        super().__init__(files, transform)
        self.labels = labels

    def __getitem__(self, index):
        picture, _ = super().__getitem__(index)
        return picture, sum(self.labels[(index + k) % len(self)] for k in range(job.asks))


def main():
    files = job.files(".jpg")
    with multiprocessing.Manager() as manager:
        labels = manager.dict({i: i % 10 for i in range(len(files))})
        loader = data.DataLoader(Labelled(files, labels), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
        for _ in job.epochs():
            for batch in job.batches(loader):
                time.sleep(job.step_ms / 1000)


if __name__ == "__main__":
    main()
