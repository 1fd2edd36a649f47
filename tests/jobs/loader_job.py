#!/usr/bin/env python3
"""A training job as frameworks build them, of Python alone: worker processes with a queue of indices each, one queue for
their results, and a trainer that takes batches in turn.  Its limit is planted by the arguments.

    loader_job.py FOLDER --workers 2 --decode 0.01 --step 0.001 [--lock] [--hang N] [--seconds 60]

--decode: seconds of CPU time a file; --step: seconds that the trainer sleeps a batch; --lock: workers decode under one
lock; --hang N: after N batches a worker never answers again; --leak: bytes that the trainer keeps of each batch.
--flock: workers decode under a lock on a file; --threads: workers are threads of the trainer; --message: bytes of each result;
--fsync: bytes that the trainer writes and synchronises each batch.
--trainer-cpu: the step computes instead of sleeping.  --epoch: after so many batches all workers end, and others begin, each of
which sleeps for --start seconds first.
"""
import argparse
import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import queue as thread_queue
import signal
import tempfile
import threading
import time

PR_SET_PDEATHSIG = 1


def spend(seconds):
    """CPU time, not time that passes: other load does not shorten the work."""
    until = time.thread_time() + seconds
    value = 0
    while time.thread_time() < until:
        value += sum(range(200))
    return value


@contextlib.contextmanager
def file_lock(path):
    with open(path, "r") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def work(files, options, indices, results, lock):
    # Whatever ends the trainer ends its workers: each holds the others' pipes open, so that none sees an end.
    if not options.threads:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    time.sleep(options.start)
    while True:
        index = indices.get()
        if index is None:
            return
        if index < 0:
            time.sleep(3600)
        with open(files[index % len(files)], "rb") as file:
            data = file.read()
        if options.lock or options.flock:
            with file_lock(files[0]) if options.flock else lock:
                time.sleep(options.decode)
        else:
            spend(options.decode)
        results.put((index, len(data), bytes(options.message)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--decode", type=float, default=0.01)
    parser.add_argument("--step", type=float, default=0.001)
    parser.add_argument("--trainer-cpu", action="store_true")
    parser.add_argument("--lock", action="store_true")
    parser.add_argument("--flock", action="store_true")
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--message", type=int, default=1024)
    parser.add_argument("--fsync", type=int, default=0)
    parser.add_argument("--hang", type=int, default=0)
    parser.add_argument("--leak", type=int, default=0)
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--start", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    files = sorted(os.path.join(options.folder, name) for name in os.listdir(options.folder))
    make_queue = thread_queue.Queue if options.threads else multiprocessing.Queue
    make_worker = threading.Thread if options.threads else multiprocessing.Process
    log = tempfile.TemporaryFile(dir=".") if options.fsync else None
    results = make_queue()
    lock = multiprocessing.Lock()
    issued = 0

    def begin_workers():
        nonlocal issued
        queues = [make_queue() for _ in range(options.workers)]
        workers = [make_worker(target=work, args=(files, options, queue, results, lock), daemon=True)
                   for queue in queues]
        for worker in workers:
            worker.start()
        for _ in range(options.prefetch):
            for queue in queues:
                queue.put(issued)
                issued += 1
        return queues, workers

    queues, workers = begin_workers()
    done, kept = 0, []
    print("started", flush=True)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        index = results.get()[0]
        done += 1
        queues[index % options.workers].put(-1 if options.hang and done >= options.hang else issued // options.workers * options.workers + index % options.workers)
        issued += 1
        if options.leak:
            kept.append(bytearray(options.leak))
        if log:
            log.write(bytes(options.fsync))
            os.fsync(log.fileno())
        if options.trainer_cpu:
            spend(options.step)
        else:
            time.sleep(options.step)
        if options.epoch and done % options.epoch == 0:
            for worker in workers:
                worker.terminate()
                worker.join()
            results = multiprocessing.Queue()  # what was under way is lost with them
            queues, workers = begin_workers()
    print(done, "files", flush=True)
    for worker in workers:
        worker.terminate()


if __name__ == "__main__":
    main()
