#!/usr/bin/python3
"""What the live view costs, on the fastest emulated pipeline and a pseudo-terminal that is read.  Runs differ by more than the
view costs, so it is all within one run: the terminal is stopped and started again (as Ctrl-S and Ctrl-Q do), and while it is
stopped the view's thread sleeps in a write.  Phases of 0.7 s each, with the view and without in turn by a seeded coin:

  its thread      what it takes of a core, by the kernel's scheduler: what it can take from the pipeline at most, where one
                  core's thread binds and the view always runs there
  others' CPU     what the pipeline's threads take of CPU time a sample more: caches, switches
  both            their sum: the bound on throughput that the bar is held to
  throughput      itself, which a noisy machine resolves last

usage: bench_watch.py MLBENCH [--seconds S]       of each run, there are two; 42.  Exit status 1: the bar is missed
"""
import argparse
import fcntl
import json
import math
import os
import pty
import random
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

BAR = 0.5  # per cent
PHASE_S = 0.7
SETTLE_S = 0.15  # after a switch, to what the view had begun
WARMUP_S = 1.0

parser = argparse.ArgumentParser()
parser.add_argument("mlbench")
parser.add_argument("--seconds", type=float, default=42)
options = parser.parse_args()
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
work = tempfile.TemporaryDirectory(prefix="bench-watch-")
coin = random.Random(1)


def command_for(workers, seconds, folder, *more):
    return [os.path.abspath(options.mlbench), "run", f"{root}/configs/null.ini", "--out", folder,
            "--set", f"dataset.path={work.name}/data", "--set", "step.backend=emulated", "--set", "step.time=50us",
            "--set", f"decode.workers={workers}", "--set", "measure.repeats=1", "--set", f"measure.warmup={WARMUP_S}s",
            "--set", f"measure.duration={seconds}s", *more]


def view_seconds(pid):
    """Of the view's thread on a core; None: it is not there."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm") as name:
            if name.read().strip() == "mlbench-view":
                with open(f"/proc/{pid}/task/{tid}/schedstat") as account:
                    return int(account.read().split()[0]) / 1e9
    return None


def order_of_phases(count):
    """Pairs, each in an order of its own."""
    for _ in range(count // 2):
        yield from coin.choice(((True, False), (False, True)))


def watch_phases(child, main, sub):
    """Until the run ends: (begin, end, with the view, what its thread took), times as the run's own clock has them."""
    phases = []
    order = order_of_phases(int(options.seconds / PHASE_S) * 2)
    begun, on, before = None, True, None
    while child.poll() is None:
        if select.select([main], [], [], 0.02)[0]:
            try:
                os.read(main, 65536)
            except OSError:
                break
        now = time.time()
        try:
            if begun is None or now - begun >= PHASE_S:
                taken = view_seconds(child.pid)
                if taken is None:
                    continue
                if begun is not None:
                    phases.append((begun, now, on, taken - before))
                on = next(order, True)
                termios.tcflow(sub, termios.TCOON if on else termios.TCOOFF)
                begun, before = now, taken
        except (FileNotFoundError, ProcessLookupError):
            break
    return phases


def finish(child, main, sub):
    termios.tcflow(sub, termios.TCOON)
    while child.poll() is None:
        if select.select([main], [], [], 0.1)[0]:
            try:
                os.read(main, 65536)
            except OSError:
                break
    child.wait()
    os.close(main)
    os.close(sub)


def run_watched(workers):
    """The phases, and the repetition as it was recorded."""
    folder = f"{work.name}/watched-{workers}"
    command = command_for(workers, options.seconds, folder, "--watch")
    main, sub = pty.openpty()
    fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    child = subprocess.Popen(command, stdin=sub, stdout=sub, stderr=sub, env={**os.environ, "TERM": "xterm-256color"},
                             preexec_fn=lambda: (os.setsid(), fcntl.ioctl(sub, termios.TIOCSCTTY, 0)))
    phases = watch_phases(child, main, sub)
    finish(child, main, sub)
    with open(f"{folder}/points.jsonl") as lines:
        for record in map(json.loads, lines):
            if record.get("kind") == "repetition" and record["throughput"]:
                return phases, record
    sys.exit(f"bench_watch: nothing was measured: {' '.join(command)}")


def in_phase(record, begin, end):
    """Samples a second and CPU us a sample of the stages, from the run's own windows within; None: there are too few."""
    names = record["window_columns"]
    cpu = [i for i, name in enumerate(names) if name.endswith(".cpu")]
    rows = [row for row in record["windows"]
            if begin + SETTLE_S <= record["started"] + row[0] <= end and row[0] > WARMUP_S]
    if len(rows) < 4:
        return None
    first, last = rows[0], rows[-1]
    samples = last[names.index("samples")] - first[names.index("samples")]
    taken = sum(last[i] - first[i] for i in cpu)
    return samples / (last[0] - first[0]), taken * 1e6 / samples


def trimmed(values):
    values = sorted(values)
    cut = len(values) // 5
    return statistics.mean(values[cut:len(values) - cut])


def interval(values, mean=trimmed):
    """Of the middle three fifths unless said; and 95 % by bootstrap."""
    again = random.Random(2)
    means = sorted(mean(again.choices(values, k=len(values))) for _ in range(2000))
    return mean(values), means[49], means[1949]


def show(what, found, note=""):
    print(f"  {what:<34} {found[0]:+7.3f} % [{found[1]:+.3f} {found[2]:+.3f}]  {note}")


def compare(workers):
    phases, record = run_watched(workers)
    on = [100 * taken / (end - begin) for begin, end, shown, taken in phases if shown]
    off = [100 * taken / (end - begin) for begin, end, shown, taken in phases if not shown]
    rates, costs = [], []
    for first, second in zip(phases[::2], phases[1::2]):
        got = {phase[2]: in_phase(record, phase[0], phase[1]) for phase in (first, second)}
        if got.get(True) and got.get(False):
            rates.append(100 * math.log(got[False][0] / got[True][0]))
            costs.append(100 * math.log(got[True][1] / got[False][1]))
    if len(costs) < 5:
        sys.exit("bench_watch: too few phases were measured: more seconds?")
    print(f"{workers} worker{'s' if workers > 1 else ''}, {record['throughput']:.0f} samples/s, {len(costs)} pairs of phases")
    thread = interval(on, statistics.mean)
    others = interval(costs)
    half = math.hypot((thread[2] - thread[1]) / 2, (others[2] - others[1]) / 2)
    both = (thread[0] + others[0], thread[0] + others[0] - half, thread[0] + others[0] + half)
    # An interval that is wider than the bar resolves nothing, wherever it lies.
    verdict = "not decided"
    if half <= BAR:
        verdict = "held" if both[2] <= BAR else "MISSED" if both[1] > BAR else verdict
    show("its thread, of a core", thread, f"(stopped: {statistics.mean(off):.3f} %)")
    show("others' CPU time a sample", others)
    show("both", both, verdict)
    show("throughput lost", interval(rates))
    return verdict == "MISSED"


subprocess.run(command_for(1, 0.1, f"{work.name}/first"), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(f"the live view; bar {BAR} % of throughput.  Means with 95 % intervals")
missed = [compare(workers) for workers in sorted({1, os.cpu_count() or 1})]
print(f"bar: {'missed' if any(missed) else 'not missed'}")
sys.exit(any(missed))
