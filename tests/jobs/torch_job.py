#!/usr/bin/env python3
"""A training job on PyTorch's DataLoader, with Debian's packages: pictures from a folder, cropped, flipped and normalised, for a
step that sleeps, so that its pace is its own.  What is slow is planted by the arguments, or by twelve.py under a name.

    torch_job.py --make photos FOLDER              writes that data set (no torch needed)
    torch_job.py FOLDER --workers 2 --step-ms 4    runs until it is ended, or for --seconds
    torch_job.py FOLDER --job slow_transform       the same with that job's arguments

Prints `batch N` for each batch of N samples (mlbench efficiency reads it), and at the end its throughput on standard error.
--log FILE: a line `step,wall_time,samples,data_time_ms` for each batch, the last one how long the trainer waited for it.
"""
import argparse
import math
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from twelve import ALL, PICTURES  # noqa: E402

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def make_pictures(name, folder, files):
    """Clouds of several scales and some noise: files of the usual bytes a pixel.  A function of the name alone."""
    import numpy
    from PIL import Image
    want = PICTURES[name]
    os.makedirs(folder, exist_ok=True)
    for i in range(files or want.files):
        path = os.path.join(folder, "%05d.jpg" % i)
        rng = numpy.random.default_rng([len(name), i])
        factor = math.exp(want.sigma * float(rng.standard_normal()))
        size = max(24, round(want.width * factor)), max(24, round(want.height * factor))
        picture = numpy.zeros((size[1], size[0], 3), numpy.float32)
        for cells in (3, 12, 48):
            coarse = (rng.random((cells, cells, 3)) * 255).astype(numpy.uint8)
            picture += numpy.asarray(Image.fromarray(coarse).resize(size, Image.BICUBIC), numpy.float32) / cells ** 0.5
        picture *= 1.0 / sum(cells ** -0.5 for cells in (3, 12, 48))
        picture += rng.standard_normal(picture.shape, numpy.float32) * 6
        Image.fromarray(picture.clip(0, 255).astype(numpy.uint8)).save(path, quality=88)


def spend(seconds):
    """CPU time in the interpreter, not time that passes: other load does not shorten the work."""
    until = time.thread_time() + seconds
    value = 0
    while time.thread_time() < until:
        for i in range(200):
            value += i * i % 7
    return value


class Batches:
    """Endless indices, each epoch in another order, so that workers live as long as the job."""

    def __init__(self, count, batch):
        self.count, self.batch = count, batch

    def __iter__(self):
        import torch
        generator = torch.Generator()
        generator.manual_seed(1)
        while True:
            order = torch.randperm(self.count, generator=generator).tolist()
            for begin in range(0, self.count - self.batch + 1, self.batch):
                yield order[begin:begin + self.batch]


def make_loader(options):
    import torch
    import torchvision
    from PIL import Image
    from torch.utils import data

    torch.manual_seed(1)
    transform = torchvision.transforms.Compose([
        torchvision.transforms.RandomResizedCrop(options.crop), torchvision.transforms.RandomHorizontalFlip(),
        torchvision.transforms.ToTensor(), torchvision.transforms.Normalize(MEAN, DEVIATION)])
    files = sorted(os.path.join(options.folder, name) for name in os.listdir(options.folder))
    lock = torch.multiprocessing.Lock()

    class Pictures(data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, index):
            with open(files[index], "rb") as file:
                sample = transform(Image.open(file).convert("RGB"))
            if options.python_ms:
                spend(options.python_ms / 1000)
            if options.lock_ms:
                with lock:
                    spend(options.lock_ms / 1000)
            return sample, index % 10

    def collate(samples):
        spend(options.collate_ms / 1000)
        return data.default_collate(samples)

    return data.DataLoader(Pictures(), batch_sampler=Batches(len(files), options.batch), num_workers=options.workers,
                           collate_fn=collate if options.collate_ms else None,
                           **({"prefetch_factor": options.prefetch} if options.workers else {}))


def train(options):
    loader = iter(make_loader(options))
    log = open(options.log, "w", buffering=1) if options.log else None
    if log:
        print("step,wall_time,samples,data_time_ms", file=log)
    now = time.monotonic if options.clock == "monotonic" else time.time
    kept, times, samples = [], [], 0
    ended = []
    for number in signal.SIGTERM, signal.SIGINT:
        signal.signal(number, lambda *_: ended.append(True))
    begun = time.monotonic()
    while not ended and (not options.seconds or time.monotonic() - begun < options.seconds):
        asked = time.monotonic()
        pictures, _ = next(loader)
        waited = time.monotonic() - asked
        count = len(pictures)
        if options.leak_kb:
            kept.append(bytearray(os.urandom(1024)) * options.leak_kb)
        if options.step_ms:
            time.sleep(options.step_ms / 1000)
        times.append(time.monotonic())
        samples += count
        print("batch", count, flush=True)
        if log:
            print("%d,%.6f,%d,%.3f" % (len(times), now(), count, 1000 * waited), file=log)
    if len(times) > 2:
        rate = samples * (len(times) - 1) / len(times) / (times[-1] - times[0])
        print("throughput %.1f samples/s, %d batches" % (rate, len(times)), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--make", choices=sorted(PICTURES))
    parser.add_argument("--files", type=int, default=0, help="so many of them, not all")
    parser.add_argument("--job", choices=sorted(ALL), help="its arguments, before those given")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--crop", type=int, default=112)
    parser.add_argument("--step-ms", type=float, default=0)
    parser.add_argument("--python-ms", type=float, default=0, help="CPU time of a slow transform, each sample")
    parser.add_argument("--lock-ms", type=float, default=0, help="CPU time under one lock of all workers, each sample")
    parser.add_argument("--collate-ms", type=float, default=0, help="CPU time of a slow collate, each batch")
    parser.add_argument("--leak-kb", type=int, default=0, help="that the trainer keeps of each batch")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--log")
    parser.add_argument("--clock", choices=("wall", "monotonic"), default="wall", help="of the log's times")
    named, _ = parser.parse_known_args()
    if named.job:
        parser.set_defaults(**ALL[named.job].job)
    options = parser.parse_args()
    if options.make:
        make_pictures(options.make, options.folder, options.files)
    else:
        train(options)


if __name__ == "__main__":
    main()
