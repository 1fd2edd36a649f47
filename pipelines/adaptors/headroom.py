"""What would a perfect loader gain in your own training loop?  Wrap your loader, train for some minutes, and ask mlbench:

    from headroom import headroom
    loader = headroom(loader)            # any iterable of batches; PyTorch's DataLoader says itself how far it loads ahead
    mlbench efficiency headroom.csv      # at any time: what the log says so far

The loop gets its batches in blocks of three kinds, in an order that is drawn for each round:

    loader   from the real loader
    cached   the first batches again, while the real loader is paused: its workers fill their queue and stop
    busy     the same, while a thread takes one batch a step from the real loader and drops it: its workers go on

This is a measuring run: the model sees few batches often and never sees others.  Keep nothing that it learns.
"""
import queue
import random
import sys
import threading
import time

KINDS = ("loader", "cached", "busy")


def parts(batch):
    """The tensors, arrays and other leaves of a batch."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return [leaf for part in batch for leaf in parts(part)]
    return [batch]


def size(batch):
    return sum(int(leaf.element_size() * leaf.nelement()) if hasattr(leaf, "element_size") else
               int(getattr(leaf, "nbytes", 0)) or sys.getsizeof(leaf) for leaf in parts(batch))


def count(batch):
    """Samples of a batch of the usual forms: tensors of that length, alone or in a dict or a tuple; a list of samples."""
    if isinstance(batch, dict):
        return count(next(iter(batch.values()), ()))
    if isinstance(batch, (list, tuple)) and batch and (isinstance(batch[0], (dict, list, tuple)) or hasattr(batch[0], "shape")):
        return count(batch[0])
    countable = hasattr(batch, "__len__") and not isinstance(batch, (str, bytes)) and getattr(batch, "shape", True)
    return len(batch) if countable else 1


def fresh(batch):
    """New dicts and lists around the same tensors: a loop may take entries out."""
    if isinstance(batch, dict):
        return {key: fresh(value) for key, value in batch.items()}
    return [fresh(part) for part in batch] if isinstance(batch, list) else batch


def versions(batch):
    return [getattr(leaf, "_version", 0) for leaf in parts(batch)]  # of PyTorch: counts changes in place


class Taker(threading.Thread):
    """Takes a batch from the real loader for each step of the loop, as far as the loader has any, and drops it."""

    def __init__(self, owner):
        super().__init__(daemon=True)
        self.owner, self.steps, self.error = owner, queue.Queue(1), None
        self.start()

    def run(self):
        try:
            while self.steps.get():
                self.owner.take()
        except BaseException as error:  # is raised in the loop
            self.error = error

    def step(self):
        if self.error:
            raise self.error
        try:
            self.steps.put_nowait(True)
        except queue.Full:
            pass

    def end(self):
        while self.is_alive():
            try:
                self.steps.put(False, timeout=0.05)
                self.join()
            except queue.Full:
                pass
        if self.error:
            raise self.error


class headroom:
    """loader: any iterable of batches, an epoch each time.
    prefetch: batches that it loads ahead of the loop; 0: it loads in the loop's own thread.  Of a DataLoader it is known.
    batches, most_bytes: what is kept of the first batches.  copy: a function (copy.deepcopy), for a loop that changes its
    batches in place; its time counts as the loader's.  samples: a function, how many samples a batch has.
    block_s, block_steps: each block takes so long and has so many steps, at least.  Several ranks: block_s=0 in all of them.
    rounds: of all kinds; then the real loader goes on alone."""

    def __init__(self, loader, log="headroom.csv", prefetch=None, batches=8, most_bytes=1 << 30, copy=None, samples=count,
                 block_s=10.0, block_steps=20, rounds=12, seed=1, clock=time.time):
        if prefetch is None:
            if getattr(loader, "num_workers", None) is None:
                raise ValueError("headroom(loader, prefetch=N): how many batches does the loader load ahead? 0: none, it loads "
                                 "in the loop's own thread")
            prefetch = loader.num_workers * (getattr(loader, "prefetch_factor", None) or 0)
        self.loader, self.prefetch, self.most_bytes, self.copy, self.samples = loader, prefetch, most_bytes, copy, samples
        self.block_s, self.block_steps, self.clock, self.wanted = block_s, block_steps, clock, batches
        kinds = KINDS if prefetch > 0 else KINDS[:2]  # without workers none can go on
        order = random.Random(seed)
        self.blocks = [kind for _ in range(rounds) for kind in order.sample(kinds, len(kinds))]
        self.cache, self.versions, self.bytes, self.next = [], [], 0, 0
        self.side, self.source, self.taker = None, None, None  # side None: batches are still kept
        self.steps = self.settled = 0
        self.settle_until, self.block_until, self.waited, self.spent, self.period = 0.0, 0.0, 0.0, 0.0, 0.0
        self.file = open(log, "w", buffering=1)
        self.file.write("step,wall_time,samples,data_time_ms,side\n")

    def __getattr__(self, name):  # len(loader.dataset), loader.sampler.set_epoch(3)
        return getattr(self.__dict__["loader"], name)

    def __len__(self):
        return len(self.loader)

    def take(self):
        """The next batch of the real loader, of its next epoch where one is over."""
        for _ in range(2):
            if self.source is None:
                self.source = iter(self.loader)
            try:
                return next(self.source)
            except StopIteration:
                self.source = None
        raise RuntimeError("the loader has no batch")

    def mark(self):
        """What was before this moment is not of the loop: an evaluation, batches that were dropped."""
        now = self.clock()
        if not self.file.closed:
            self.file.write("%d,%.6f,,,-\n" % (self.steps, now))
        return now

    def keep(self, batch):
        self.bytes += size(batch)
        if self.bytes <= self.most_bytes:
            self.cache.append(self.copy(batch) if self.copy else fresh(batch))
            self.versions.append(versions(batch))
        elif not self.cache:
            raise ValueError("a batch has %d bytes: headroom(loader, most_bytes=...)" % self.bytes)

    def cached(self):
        i = self.next = (self.next + 1) % len(self.cache)
        if self.copy:
            return self.copy(self.cache[i])
        if versions(self.cache[i]) != self.versions[i]:
            raise RuntimeError("the loop changes its batches in place: headroom(loader, copy=copy.deepcopy)")
        return fresh(self.cache[i])

    def switch(self):
        """To the next block.  A loader that kept the loop waiting had an empty queue, which its workers have filled meanwhile: it
        gets it empty again.  One that kept up had a full one."""
        before, self.side = self.side, self.blocks.pop(0) if self.blocks else "done"
        if self.taker:
            self.taker.end()
            self.taker = None
        if self.side == "busy":
            self.taker = Taker(self)
        elif self.side == "loader" and before in ("cached", "busy") and self.waited > 0.02 * self.spent:
            for _ in range(self.prefetch):
                self.take()
        if self.side == "loader":
            self.waited = self.spent = 0.0
        elif self.side == "done":
            self.file.close()
            print("headroom: all rounds are done: mlbench efficiency %s" % self.file.name, file=sys.stderr)
        now = self.mark()
        self.settled = -max(2, self.prefetch)  # steps that do not count, in which queues and workers come to their new state
        self.settle_until = now + (self.prefetch * self.period if self.block_s else 0)

    def over(self):
        full = len(self.cache) >= self.wanted or self.bytes > self.most_bytes
        return full if self.side is None else (
            self.settled >= self.block_steps and self.clock() >= self.block_until and self.side != "done")

    def write(self, now, asked, waited, samples):
        """A step is over, which began with asking for its batch."""
        self.steps += 1
        counts = self.side in KINDS and (self.settled > 0 or (self.settled == 0 and now >= self.settle_until))
        if self.side in KINDS and (counts or self.settled < 0):
            self.settled += 1
        if not counts:
            self.block_until = now + self.block_s
        if self.side in (None, "loader") and self.steps > 1:  # the first one waits for the loader's start
            self.waited, self.spent = self.waited + waited, self.spent + now - asked
            self.period = now - asked if not self.period else self.period + (now - asked - self.period) / 16
        if not self.file.closed:
            self.file.write("%d,%.6f,%d,%.3f,%s\n" % (self.steps, now, samples, 1e3 * waited, self.side if counts else "-"))

    def __iter__(self):
        asked = self.mark()
        self.source = self.source if self.side in ("cached", "busy") else None
        try:
            while True:
                if self.over():
                    self.switch()
                    asked = self.clock()
                if self.side in ("cached", "busy"):
                    batch = self.cached()
                    if self.taker:
                        self.taker.step()
                else:
                    if self.source is None:
                        self.source = iter(self.loader)
                    try:
                        batch = next(self.source)
                    except StopIteration:
                        self.source = None
                        return
                waited = self.clock() - asked
                if self.side is None:
                    self.keep(batch)
                samples = self.samples(batch)
                yield batch
                now = self.clock()
                self.write(now, asked, waited, samples)
                asked = now
        finally:
            if self.taker and self.side != "busy":
                self.taker.end()
