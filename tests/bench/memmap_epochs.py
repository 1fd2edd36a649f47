#!/usr/bin/env python3
"""A loader of tokens as they are written in Python: NumPy's memmap, a sample at a time, batches put together by worker
processes and handed to the parent through a queue, as PyTorch's DataLoader does it.  Prints samples per second.

  memmap_epochs.py FOLDER --length 1024 --batch 64 --workers 2 --seconds 3 [--keep]

--keep: batches are built and dropped in the workers, which is what nanoGPT's get_batch costs in so many processes.
"""
import argparse
import glob
import multiprocessing
import os
import sys
import time

try:
    import numpy
except ImportError:
    print("numpy is not installed")
    sys.exit(77)


class Tokens:
    """A map-style dataset: sample i of a file is its tokens [i T, i T + T], and labels are one token on."""

    def __init__(self, folder, length):
        self.length = length
        self.files = [numpy.memmap(path, dtype=numpy.uint16, mode="r")
                      for path in sorted(glob.glob(os.path.join(folder, "*", "*.bin")))]
        self.each = [(len(file) - 1) // length for file in self.files]

    def __len__(self):
        return sum(self.each)

    def __getitem__(self, index):
        file = 0
        while index >= self.each[file]:
            index -= self.each[file]
            file += 1
        at = index * self.length
        data = self.files[file]
        return (data[at:at + self.length].astype(numpy.int32), data[at + 1:at + 1 + self.length].astype(numpy.int32))


def work(options, seed, queue, counted):
    tokens = Tokens(options.folder, options.length)
    order = numpy.random.default_rng(seed).permutation(len(tokens))
    end = time.monotonic() + options.seconds
    at = 0
    while time.monotonic() < end:
        samples = [tokens[order[(at + i) % len(order)]] for i in range(options.batch)]
        at += options.batch
        batch = (numpy.stack([x for x, _ in samples]), numpy.stack([y for _, y in samples]))
        if options.keep:
            with counted.get_lock():
                counted.value += options.batch
        else:
            queue.put(batch)
    queue.put(None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    queue = multiprocessing.Queue(2 * options.workers)
    counted = multiprocessing.Value("q", 0)
    begun = time.monotonic()
    workers = [multiprocessing.Process(target=work, args=(options, seed, queue, counted)) for seed in range(options.workers)]
    for worker in workers:
        worker.start()
    got = 0
    left = options.workers
    while left:
        batch = queue.get()
        if batch is None:
            left -= 1
        else:
            got += len(batch[0])
    seconds = time.monotonic() - begun
    for worker in workers:
        worker.join()
    print("%.0f" % ((counted.value if options.keep else got) / seconds))


main()
