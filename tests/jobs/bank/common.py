"""What every Python job of the bank shares: its options, the end at SIGTERM, and the log of its batches.

    job = Job(workers=2, lock_ms=8.0)       # options and their defaults: --workers, --lock-ms
    for _ in job.epochs():
        for batch in job.batches(loader):   # times the wait for each batch; logs it when the body is done
            step(batch)

Every job has --data FOLDER, --log FILE, --seconds N (0: until SIGTERM) and --work FOLDER (for files of its own) as well.  A batch
is logged as `step,wall_time,samples,data_time_ms`: seconds since 1970, and how long the trainer waited for it.
"""
import argparse
import os
import signal
import tempfile
import time


def spend(seconds):
    """Takes CPU time in the interpreter, regardless of how much time passes."""
    until, value = time.thread_time() + seconds, 0
    while time.thread_time() < until:
        for i in range(200):
            value += i * i % 7
    return value


def size_of(batch):
    """Samples of a batch as PyTorch collates it: a tensor, or a list or dict of tensors."""
    if isinstance(batch, dict):
        return size_of(next(iter(batch.values())))
    return len(batch[0]) if isinstance(batch, (list, tuple)) else len(batch)


class Pictures:
    """A data set for PyTorch's DataLoader: the picture of each file, transformed, and a label."""

    def __init__(self, files, transform):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        from PIL import Image
        with open(self.files[index], "rb") as file:
            return self.transform(Image.open(file).convert("RGB")), index % 10


class Timed:
    """A loader for a framework that has the loop to itself; `waited`: seconds that it waited for its last batch."""

    def __init__(self, loader):
        self.loader, self.waited = loader, 0.0

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        batches = iter(self.loader)
        while True:
            asked = time.monotonic()
            batch = next(batches, None)
            self.waited = time.monotonic() - asked
            if batch is None:
                return
            yield batch


class Job:
    def __init__(self, **options):
        parser = argparse.ArgumentParser()
        parser.add_argument("--data", required=True)
        parser.add_argument("--log")
        parser.add_argument("--seconds", type=float, default=0)
        parser.add_argument("--work", default=None)
        for name, value in options.items():
            parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
        self.__dict__.update(vars(parser.parse_args()))
        self.work = self.work or tempfile.mkdtemp(prefix="mlbench-job-")
        self.begun, self.steps, self.file = time.monotonic(), 0, None
        self.told, self.pid = False, os.getpid()
        for number in signal.SIGTERM, signal.SIGINT:
            signal.signal(number, self.tell)

    def tell(self, *_):
        self.told = True
        if os.getpid() != self.pid:  # a worker that was forked
            os._exit(0)

    @property
    def ended(self):
        return self.told or bool(self.seconds) and time.monotonic() - self.begun > self.seconds

    def files(self, *endings):
        """All files below the data folder, or those with one of these endings, in order."""
        found = [os.path.join(root, name) for root, _, names in os.walk(self.data) for name in names]
        return sorted(path for path in found if not endings or path.endswith(endings))

    def epochs(self):
        epoch = 0
        while not self.ended:
            yield epoch
            epoch += 1

    def batches(self, loader, size=size_of):
        asked = time.monotonic()
        batches = iter(loader)
        while not self.ended:
            try:
                batch = next(batches)
            except StopIteration:
                return
            waited = time.monotonic() - asked
            yield batch
            self.done(size(batch), waited)
            asked = time.monotonic()

    def done(self, samples, waited):
        """A batch was trained on."""
        if self.log and not self.file:
            self.file = open(self.log, "w", buffering=1)
            print("step,wall_time,samples,data_time_ms", file=self.file)
        self.steps += 1
        print("batch", samples, flush=True)
        if self.file:
            print("%d,%.6f,%d,%.3f" % (self.steps, time.time(), samples, 1000 * waited), file=self.file)
