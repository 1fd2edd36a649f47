#!/usr/bin/env python3
"""What `mlbench observe` costs the job that it observes, on a machine whose noise is larger than the cost.

  tests/bench/bench_observe_cost.py build/release/mlbench [--jobs saturated,storage,many] [--minutes 7] [--window 6] [--dose 16]

One job runs all the time and stamps each batch with the monotonic clock. It is looked at in short windows, in blocks of four whose
order is drawn: beside one observer, beside DOSE observers at once, and twice beside a process that sleeps. A window lasts from the
start of its processes to the end of the last one, so that starting and finishing an observation is paid for in each.
  one        one observer against the two sleepers: what is asked, with all the noise
  each of N  the loss beside N observers, over N: the same cost, resolved N times better. It holds as far as N observers cost at least
             N times as much as one; "one" and the job's CPU time beside one are there to contradict it
  control    one sleeper against the other: an effect of nothing. Its interval is what this run can resolve
Each is the trimmed mean over blocks (middle three fifths) of log ratios, with a 95 % bootstrap interval over blocks. Told are
throughput, the job's CPU time for a sample (perf's interrupts, reads of /proc that take its locks) and the observer's own CPU time.
Where the job keeps all cores busy the last two sum to what it loses.

Jobs (tests/jobs): `saturated` has a loader worker for each core and a step of no time; `storage` waits 4 ms for each read (FUSE;
root). `many` has 200 loader workers that were forked with each other's pipes; of it the observer's CPU time alone is told, which is
to stay under 1 % of a core (2 minutes). Exit status: 0 shown or not shown, 1 the cost is more than the bar for sure, 77 nothing could be run."""
import argparse
import bisect
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "jobs"))
from running import Cannot, Running, need_torch  # noqa: E402

BAR = 1.0  # per cent
RESAMPLES = 4000
SETTLE_S, GAP_S = 5, 0.2
USUAL_S = 30  # how long an observation is by default
CORES = os.cpu_count() or 1
JOBS = {  # of twelve.py, with arguments; whether it keeps every core busy; in words
    "saturated": ("two_workers", {"workers": CORES, "step_ms": 0}, True, "a loader worker for each core and no step"),
    "storage": ("fuse_latency", {}, False, "2 loader workers, 4 ms a read"),
}
MANY = 200  # workers
QUIET = 0.9  # of the cores: what a job that could use them all gets, at least


def processes_below(pid):
    found = [pid]
    for parent in found:
        for tid in os.listdir("/proc/%d/task" % parent):
            with open("/proc/%d/task/%s/children" % (parent, tid)) as children:
                found += map(int, children.read().split())
    return found


def cpu_seconds(pids):
    """Of all threads that they have now, by the scheduler's own account."""
    total = 0
    for pid in pids:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as account:
                total += int(account.read().split()[0])
    return total / 1e9


class Window:
    """A stretch of time beside `observers` of them; 0: beside one that sleeps."""

    def __init__(self, options, job, pids, observers, scratch):
        words = [[options.mlbench, "observe", str(job.pid), "--for", "%gs" % options.window, "--quiet", "--out",
                  os.path.join(scratch, "observed-%d" % i)] for i in range(observers)] or [["sleep", str(options.window)]]
        self.observers, self.own_s = observers, 0.0
        cpu = cpu_seconds(pids)
        self.begun = time.monotonic()
        beside = [subprocess.Popen(one, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for one in words]
        for one in beside:
            _, status, used = os.wait4(one.pid, 0)
            one.returncode = os.waitstatus_to_exitcode(status)
            self.own_s += used.ru_utime + used.ru_stime
            if one.returncode:
                raise RuntimeError("exit status %d: %s" % (one.returncode, one.stderr.read().decode()[-300:]))
            one.stderr.close()
        self.ended = time.monotonic()
        self.cpu = cpu_seconds(pids) - cpu

    @property
    def seconds(self):
        return self.ended - self.begun


class Stamps:
    """Samples that were done by a time, between batches in proportion."""

    def __init__(self, rows):
        self.times = [row[0] for row in rows]
        self.sums = [0]
        for row in rows[1:]:
            self.sums.append(self.sums[-1] + row[1])

    def done_by(self, when):
        i = min(max(bisect.bisect_right(self.times, when), 1), len(self.times) - 1)
        share = (when - self.times[i - 1]) / (self.times[i] - self.times[i - 1])
        return self.sums[i - 1] + share * (self.sums[i] - self.sums[i - 1])

    def within(self, window):
        return self.done_by(window.ended) - self.done_by(window.begun)


def trimmed(values):
    values = sorted(values)
    cut = len(values) // 5
    return statistics.fmean(values[cut:len(values) - cut])


def interval(values, share=0.95):
    """Trimmed mean and its bootstrap interval."""
    again = random.Random(2)
    means = sorted(trimmed(again.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = int(RESAMPLES * (1 - share) / 2)
    return trimmed(values), means[tail], means[-1 - tail]


def losses(blocks, figure, dose):
    """Of each block, per cent by which `figure` (of a window) is lower beside one observer, beside each of `dose`, and beside one
    sleeper than beside the other."""
    out = {"one": [], "each": [], "control": []}
    for block in blocks:
        logs = {}
        for name, window in block.items():
            logs[name] = 100 * math.log(figure(window))
        base = (logs["sleeper"] + logs["other"]) / 2
        out["one"].append(base - logs["one"])
        out["each"].append((base - logs["dose"]) / dose)
        out["control"].append(logs["other"] - logs["sleeper"])
    return out


def tell(what, found, note=""):
    print("  %-38s %+6.2f %%  (95 %% CI %+.2f to %+.2f)%s" % (what, *found, "  " + note if note else ""), flush=True)


def tell_losses(what, found, dose):
    """The interval of each of the dose."""
    for key, words in ("one", "one observer"), ("each", "each of %d observers" % dose), ("control", "control, no observer"):
        tell("%s, %s" % (what, words), interval(found[key]))
    return interval(found["each"])


def sum_of(first, second):
    """Of two figures that were measured apart: their half-widths add as variances do."""
    low = math.hypot(first[0] - first[1], second[0] - second[1])
    high = math.hypot(first[2] - first[0], second[2] - second[0])
    middle = first[0] + second[0]
    return middle, middle - low, middle + high


def verdict(bounds, one, control):
    """Words, and whether the bar is missed for sure."""
    top = max(bounds, key=lambda bound: bound[2])
    told = "interval %+.2f to %+.2f %%" % top[1:]
    if any(bound[1] > BAR for bound in bounds + [one]):
        return "MISSED (%s; one observer alone %+.2f to %+.2f %%)" % (told, one[1], one[2]), True
    if not control[1] <= 0 <= control[2]:
        return "not shown: the control, beside no observer, differs from 0 (99 %% CI %+.2f to %+.2f)" % control[1:], False
    if top[2] >= BAR:
        return "not shown (%s)" % told, False
    return "shown (%s)" % told, False


def run_blocks(options, job, pids, scratch):
    """Blocks of four windows, until the time is used up."""
    order = random.Random(options.seed)
    counts = {"one": 1, "dose": options.dose, "sleeper": 0, "other": 0}
    begun, blocks = time.monotonic(), []
    while time.monotonic() - begun + len(counts) * (options.window + GAP_S) <= 60 * options.minutes:
        block = {}
        for name in order.sample(sorted(counts), len(counts)):
            time.sleep(GAP_S)
            block[name] = Window(options, job, pids, counts[name], scratch)
        blocks.append(block)
        if len(blocks) % 4 == 0:
            print("  ... %d blocks after %.0f s of %.0f" % (len(blocks), time.monotonic() - begun, 60 * options.minutes), flush=True)
    return blocks


def tell_job(options, saturates, blocks, stamps, usual):
    rates = losses(blocks, lambda window: stamps.within(window) / window.seconds, options.dose)
    # What the job needs for a sample more is a loss of samples for CPU time.
    cpu = losses(blocks, lambda window: stamps.within(window) / window.cpu, options.dose)
    sleepers = [block[name] for block in blocks for name in ("sleeper", "other")]
    used = statistics.median(window.cpu / window.seconds for window in sleepers)
    rate = statistics.median(stamps.within(window) / window.seconds for window in sleepers)
    print("  %d blocks; not observed: %.0f samples/s, %.2f of %d cores used" % (len(blocks), rate, used, CORES))
    bounds = [tell_losses("throughput lost", rates, options.dose)]
    extra = tell_losses("CPU time a sample", cpu, options.dose)
    own = interval([100 * block["one"].own_s / block["one"].seconds for block in blocks])
    tell("the observer's own CPU, of one core", own, "in a window; %.2f %% when it observes for %d s" % (usual, USUAL_S))
    if saturates:
        bounds.append(sum_of([value / CORES for value in own], extra))
        tell("own CPU, of %d cores, and the job's" % CORES, bounds[-1])
    if saturates and used < QUIET * CORES:
        words, missed = "not judged: the machine is not quiet, the job gets %.2f of %d cores" % (used, CORES), False
    else:
        words, missed = verdict(bounds, interval(rates["one"]), interval(rates["control"], 0.99))
    print("  under %g %%: %s" % (BAR, words), flush=True)
    return missed


def measure(options, name, scratch):
    planned, arguments, saturates, words = JOBS[name]
    job = Running(planned, scratch)
    job.arguments.update(arguments, clock="monotonic")
    with job:
        job.await_batches(20)
        print("%s: %s; %g min, windows of %g s" % (name, words, options.minutes, options.window), flush=True)
        time.sleep(SETTLE_S)
        pids = processes_below(job.pid)
        blocks = run_blocks(options, job, pids, scratch)
        long = argparse.Namespace(mlbench=options.mlbench, window=USUAL_S)
        usual = Window(long, job, pids, 1, scratch)
        time.sleep(SETTLE_S)
        stamps = Stamps(job.rows())
    if len(blocks) < 5:
        sys.exit("bench_observe_cost: %d blocks are too few: more --minutes" % len(blocks))
    return tell_job(options, saturates, blocks, stamps, 100 * usual.own_s / usual.seconds)


def measure_many(options, scratch):
    """The observer's CPU time beside 200 workers, in observations of the usual length."""
    folder = os.path.join(scratch, "small")
    os.mkdir(folder)
    for i in range(MANY):
        with open(os.path.join(folder, "%d.bin" % i), "wb") as file:
            file.write(bytes(4096))
    words = [sys.executable, os.path.join(HERE, "..", "jobs", "loader_job.py"), folder, "--workers", str(MANY), "--decode", "0.001",
             "--step", "0.002", "--seconds", "3600"]
    long = argparse.Namespace(mlbench=options.mlbench, window=USUAL_S)
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as job:
        try:
            job.stdout.readline()
            time.sleep(SETTLE_S)
            print("many: %d processes; 3 observations of %g s" % (len(processes_below(job.pid)), USUAL_S), flush=True)
            windows = [Window(long, job, [], 1, scratch) for _ in range(3)]
        finally:
            os.killpg(job.pid, signal.SIGKILL)
    shares = [100 * window.own_s / window.seconds for window in windows]
    print("  the observer's own CPU, of one core: %s %%; under %g %%: %s" % (
        ", ".join("%.2f" % share for share in shares), BAR, "shown" if max(shares) < BAR else "MISSED"), flush=True)
    return max(shares) >= BAR


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mlbench")
    parser.add_argument("--jobs", default=",".join([*JOBS, "many"]))
    parser.add_argument("--minutes", type=float, default=7, help="of each job")
    parser.add_argument("--window", type=float, default=6, help="s")
    parser.add_argument("--dose", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.mlbench = os.path.abspath(options.mlbench)
    missed, ran = False, False
    with tempfile.TemporaryDirectory(prefix="mlbench-cost-") as scratch:
        for name in options.jobs.split(","):
            try:
                if name != "many":
                    need_torch()
                missed = (measure_many(options, scratch) if name == "many" else measure(options, name, scratch)) or missed
                ran = True
            except (Cannot, FileNotFoundError) as missing:
                print("%s: skipped: %s" % (name, missing))
    return 1 if missed else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
