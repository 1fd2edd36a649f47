"""What the jobs of the bank share: arguments, the end on SIGTERM, the log of the steps, work whose amount is CPU time.

    options = arguments(workers=2, step_ms=4.0)      # --data --log --seconds, and --workers --step-ms of these types
    train(options, iter(loader), lambda batch: rest(options.step_ms))
"""
import argparse
import os
import signal
import time

ended = []


def arguments(**own):
    """The job's own options by name and default; `_` is `-` on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--log")
    parser.add_argument("--seconds", type=float, default=0)
    for name, default in own.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    return parser.parse_args()


def files_of(folder, ending):
    return sorted(os.path.join(above, name) for above, _, names in os.walk(folder) for name in names if name.endswith(ending))


def spend(ms):
    """CPU time in the interpreter, not time that passes: other load does not shorten the work."""
    until, value = time.thread_time() + ms / 1000, 0
    while time.thread_time() < until:
        for i in range(200):
            value += i * i % 7
    return value


def rest(ms):
    """A step on a device: the host waits."""
    time.sleep(ms / 1000)


def ends_on_signal():
    for number in signal.SIGTERM, signal.SIGINT:
        signal.signal(number, lambda *_: ended.append(True))


class Log:
    """`step,wall_time,samples,data_time_ms` a batch, and `batch N` on standard output."""

    def __init__(self, options):
        self.file = open(options.log, "w", buffering=1) if options.log else None
        self.seconds, self.begun, self.steps = options.seconds, time.monotonic(), 0
        if self.file:
            print("step,wall_time,samples,data_time_ms", file=self.file)

    def running(self):
        return not ended and (not self.seconds or time.monotonic() - self.begun < self.seconds)

    def batch(self, samples, waited_s):
        self.steps += 1
        print("batch", samples, flush=True)
        if self.file:
            print("%d,%.6f,%d,%.3f" % (self.steps, time.time(), samples, 1000 * waited_s), file=self.file)


def train(options, batches, step, count=len):
    """Until the time is over, a signal comes or the batches end: wait for one, make a step of it."""
    ends_on_signal()
    log = Log(options)
    while log.running():
        asked = time.monotonic()
        batch = next(batches, None)
        waited = time.monotonic() - asked
        if batch is None:
            break
        step(batch)
        log.batch(count(batch), waited)


def again(make):
    """Epoch after epoch: the batches of make(epoch)."""
    epoch = 0
    while True:
        yield from make(epoch)
        epoch += 1
