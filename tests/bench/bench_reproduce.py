#!/usr/bin/env python3
"""From twelve real jobs to their twins: what `mlbench observe`, `fit` and `reproduce` make of jobs on PyTorch's DataLoader whose
limits were planted (tests/jobs/twelve.py).

  tests/bench/bench_reproduce.py build/release/mlbench [--jobs fuse_latency,lock] [--seconds 6] [--observe-only] [--keep DIR]

Of each job: it runs and is observed; a case is made of what was observed, its log of step times and its folder. Then the job, the
job after the change that twelve.py has, the twin and the twin after that change take turns, in the same surroundings; who has no
turn is stopped (SIGSTOP). Told are
  the twin's throughput against the job's, and the same after the change, as ratios of new to old;
  CPU time of the job's loaders + trainer for a sample, before and after the change;
  the (stage, resource) of the truth, of `observe` (in its words), of the case, and of the twin's diagnosis.
What the job's owner knows and no source tells is given to `fit`: the batch size, and the size that pictures are cropped to.
Needs root for the jobs with a mount or a quota, and Debian's PyTorch; exits 77 without."""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "jobs"))
from running import Cannot, Running, first_in_line, join, make_data, need_torch  # noqa: E402
from twelve import ALL, JOBS, twin_change  # noqa: E402
from twin import FAILED, keys_of, run, run_twin  # noqa: E402

SETTLED_S = 0.7


class Trial:
    def __init__(self, name, options, scratch):
        self.name, self.options, self.scratch = name, options, scratch
        self.work = os.path.join(scratch, "work", name)
        self.log = os.path.join(self.work, "log")
        os.makedirs(self.work, exist_ok=True)
        self.row = {"job": name, "truth": "/".join(ALL[name].truth)}

    def measure(self, job, act):
        """What is measured of it while act() is done, beginning and ending with a job that pauses."""
        job.go_on()
        time.sleep(SETTLED_S)  # batches that it had ready are used up
        begun, used = time.time(), job.cpu_seconds()
        act()
        ended, after = time.time(), job.cpu_seconds()
        job.pause()
        rate = job.rate(begun, ended)
        ms = [1000 * (y - x) / (rate * (ended - begun)) for x, y in zip(used, after)]
        return {"rate": rate, "trainer_ms": ms[0], "loaders_ms": ms[1]}  # CPU time for a sample

    def first(self, job):
        """It runs as anybody's, and is observed."""
        job.await_batches(5)
        time.sleep(self.options.settle)
        told = self.measure(job, lambda: self.observe(job))
        with open(job.log) as log, open(os.path.join(self.work, "steps.csv"), "w") as file:
            file.write(log.read().rsplit("\n", 1)[0] + "\n")
        return told

    def observe(self, job):
        text = run([self.options.program, "observe", str(job.pid), "--for", "%ds" % self.options.observed, "--json", "--out", self.work],
                   self.log)
        document = json.loads(text) if text else None
        if not document:
            return
        verdict = document["verdict"]
        self.row["observed"] = "%s/%s" % (verdict["stage"], verdict["resource"])
        self.row["files_per_s"] = document["files_per_s"]["value"]
        self.row["roles"] = [p["role"] for p in document["processes"]]

    # --- the twin ---------------------------------------------------------------------------------------------------

    def fit(self):
        """The case of what there is; sources that this build of mlbench does not read are left out, and said."""
        job = ALL[self.name].job
        case = os.path.join(self.work, "case.ini")
        sources = [os.path.join(self.work, "observe.json"), os.path.join(self.work, "steps.csv"), make_data(ALL[self.name].data, self.scratch)]
        while sources:
            words = [self.options.program, "fit", *sources, "--out", case, "--name", self.name, "--quiet",
                     "--set", "batch.size=%d" % job.get("batch", 16), "--set", "augment.size=%d" % job.get("crop", 112)]
            if run(words, self.log, cwd=self.scratch) is not None:
                return case
            sources.pop()
        return None

    def run_twin(self, case, sets, job, label):
        """Its rate, and what its diagnosis names; where the job runs, which pauses."""
        words = ["--set", "measure.repeats=1", *[word for key, value in sets.items() for word in ("--set", "%s=%s" % (key, value))]]
        return run_twin([self.options.program, "run", case, *words], os.path.join(self.work, label), self.log, self.scratch, lambda: join(job.inside))

    def row_of(self):
        name, row = self.name, self.row
        with Running(name, self.scratch) as job:
            row["observed_job"] = self.first(job)
            row["job_rate"] = row["observed_job"]["rate"]
            case = None if self.options.observe_only else self.fit()
            if case:
                with Running(name, self.scratch, True) as changed:
                    changed.await_batches(5)
                    time.sleep(self.options.settle)
                    changed.pause()
                    self.rounds(case, job, changed)
        return row

    def rounds(self, case, job, changed):
        """The job, its twin, and both after the change, one after another and then backwards, and so on: what drifts with time
        meets all of them.  A change is told by what stood next to each other."""
        row, name = self.row, self.name
        keys, reported = keys_of(case)
        stands_in = {key: value for key, value in reported.items() if key.startswith("inject.")}
        sets = {} if job.latency_us and not changed.latency_us else dict(stands_in)
        sets.update(twin_change(name, keys))
        diagnoses = {}

        def twin(kind, of, its):
            rate, diagnoses[kind] = self.run_twin(case, its, of, kind)
            return {"rate": rate}

        def pass_time():
            time.sleep(self.options.seconds)

        acts = [("job", lambda: self.measure(job, pass_time)), ("changed_job", lambda: self.measure(changed, pass_time)),
                ("twin", lambda: twin("twin", job, stands_in)), ("changed_twin", lambda: twin("changed", changed, sets))]
        told = {kind: [] for kind, _ in acts}
        for number in range(self.options.repeats):
            for kind, act in acts if number % 2 == 0 else reversed(acts):
                told[kind].append(act())
        rates = {kind: [one["rate"] for one in told[kind]] for kind in told}
        row["case"] = "%s/%s" % (keys.get("verdict.stage"), keys.get("verdict.resource"))
        row["twin"], row["twin_after"], row["change"] = diagnoses["twin"], diagnoses["changed"], ALL[name].change[0]
        row["told"] = told
        for key, kind in (("job_rate", "job"), ("changed_job", "changed_job"), ("twin_rate", "twin"), ("changed_twin", "changed_twin")):
            row[key] = statistics.median(rates[kind])
        row["twin_error"] = 100 * (row["twin_rate"] / row["job_rate"] - 1)
        for key, before, after in (("did", "job", "changed_job"), ("predicted", "twin", "changed_twin")):
            row[key] = statistics.median(y / x for x, y in zip(rates[before], rates[after]))
        row["change_error"] = 100 * (row["predicted"] / row["did"] - 1)
        for key, kind in (("cpu", "job"), ("changed_cpu", "changed_job")):
            row[key] = " + ".join("%.2f" % statistics.median(one[part] for one in told[kind]) for part in ("loaders_ms", "trainer_ms"))


def allowed(case, twin):
    """Whether the twin's "stage/resource" is one that the case leaves open ("read/latency or full")."""
    stage, resources = (case or "/").split("/", 1)
    full = {"bandwidth", "iops", "concurrency", "server", "network", "metadata"}
    words = set(resources.split(" or "))
    return twin in ["%s/%s" % (stage, word) for word in words | (full if "full" in words else set())]


def summary(rows):
    for key, what, bars in (("twin_error", "twin's throughput against the job's", "median 10 %, worst 20 %"),
                            ("change_error", "what the change did, predicted by the twin", "15 %")):
        errors = sorted(abs(row[key]) for row in rows if row.get(key) == row.get(key) and row.get(key) is not None)
        if errors:
            print("%s: %d jobs, error %.1f %% in the median, %.1f %% at worst (bar: %s)" % (what, len(errors), statistics.median(errors),
                                                                                           errors[-1], bars))
    told = [row for row in rows if row.get("twin")]
    if told:
        print("same (stage, resource): truth and the twin's diagnosis in %d of %d, the case and the twin in %d (bar: 10 of 12)" % (
            sum(row["twin"] == row["truth"] for row in told), len(told), sum(allowed(row.get("case"), row["twin"]) for row in told)))


def show(rows):
    def text(row, key, form="%.0f"):
        value = row.get(key)
        return "-" if value is None or value != value else form % value if isinstance(value, float) else str(value)

    heads = ("job", "job/s", "files/s", "twin/s", "error", "truth", "observed", "case", "twin says", "change", "did", "predicted", "error",
             "CPU ms", "after")
    table = [heads]
    for row in rows:
        table.append((row["job"], text(row, "job_rate"), text(row, "files_per_s"), text(row, "twin_rate"), text(row, "twin_error", "%+.1f %%"),
                      row["truth"], text(row, "observed"), text(row, "case"), text(row, "twin"), text(row, "change"), text(row, "did", "%.2f"),
                      text(row, "predicted", "%.2f"), text(row, "change_error", "%+.1f %%"), text(row, "cpu"), text(row, "changed_cpu")))
    widths = [max(len(line[i]) for line in table) for i in range(len(heads))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--observed", type=int, default=12, help="seconds that a job is observed for; a person has 30 by default")
    parser.add_argument("--seconds", type=int, default=6, help="of each turn of a job")
    parser.add_argument("--settle", type=float, default=3, help="seconds before that")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of the job and its twin, with and without the change")
    parser.add_argument("--observe-only", action="store_true")
    parser.add_argument("--keep", help="a folder for data and what comes out; not taken away")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    try:
        need_torch()
    except (Cannot, FileNotFoundError) as missing:
        print("bench_reproduce: skipped: %s" % missing)
        sys.exit(77)
    rows = []
    with tempfile.TemporaryDirectory(prefix="mlbench-reproduce-") as temporary, first_in_line():
        scratch = os.path.abspath(options.keep) if options.keep else temporary
        os.makedirs(scratch, exist_ok=True)
        for name in options.jobs.split(","):
            try:
                rows.append(Trial(name, options, scratch).row_of())
            except Cannot as cannot:
                print("%s: not run: %s" % (name, cannot))
                continue
            print(json.dumps(rows[-1]), flush=True)
    show(rows)
    summary(rows)


if __name__ == "__main__":
    main()
