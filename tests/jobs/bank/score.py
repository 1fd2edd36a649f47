#!/usr/bin/env python3
"""The bank of real jobs: whether `mlbench observe`, `fit` and the twin are right about jobs that were not written for them.

  score.py build/release/mlbench --half open            scores the jobs that anybody may look at
  score.py build/release/mlbench --jobs flock,few_workers [--observe-only] [--busy]
  score.py --truth flock few_workers                    checks truths: without its plant a job is at least 1.15 times as fast
  score.py --list [--half held --seed 37]               names the jobs

Each job states its truth in its own file (truth.py). Of each: it runs until it is steady and is observed for 10 s; a case is fitted
from that, its log and its data; the twin takes the job's turn, then the job again; then both with the fix that the job's owner
would try. matrix.py judges. --busy: others take half of the cores, and the job is only observed.

--half open without --seed: the jobs that are marked open. With a seed, half of all jobs is held out, and --half open is the rest.
Exit status: 0 all bars met, 1 one is missed (or a truth does not hold), 2 wrong input, 3 something could not be measured.
Mounts and quotas need root. Results: build/jobs-bank/ (--out)."""
import argparse
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Dict, Iterator, List

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import matrix  # noqa: E402
import truth  # noqa: E402
from running import Cannot, build_tools, first_in_line  # noqa: E402 (first: it knows where conditions.py is)
from conditions import end, sweep_leftovers  # noqa: E402
from running_job import ROOT, STORE, BankRunning, missing  # noqa: E402
from twin import FAILED, NOT_STEADY, keys_of, run, run_twin  # noqa: E402

CHECK_FAILED, WRONG_INPUT, NOT_MEASURED = 1, 2, 3
JOB_LIMIT_S, FIT_LIMIT_S, TWIN_LIMIT_S = 420, 150, 120
SETTLED_S, TURN_S = 1.0, 6.0
REACTS = 1.15
PR_SET_CHILD_SUBREAPER = 36
OTHERS_NICE = -15
NUMBER = re.compile(r"([0-9.]+(?:e[-+]?[0-9]+)?)\s*([a-zA-Z%]*)")
DISTURBED = re.compile(r"others? (on|of) the node|other (processes|programs|work|jobs|users)|by others\b|external|busy node|node is busy|outside the job", re.I)


class TooLong(Exception):
    """The job's time is over."""


def together(turns: List[Dict[str, float]]) -> float:
    """The rate of several turns of a job."""
    known = [turn for turn in turns if turn["rate"] == turn["rate"]]
    return sum(turn["rate"] * turn["seconds"] for turn in known) / sum(turn["seconds"] for turn in known) if known else FAILED


def busy_seconds() -> float:
    """CPU time of all cores so far."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _iowait, irq, softirq = [int(word) for word in file.readline().split()[1:8]]
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def changed_by(operator: str, value: str, text: str) -> str:
    """A key's value after 'key*=value' or 'key-=value'; in its own unit."""
    found = NUMBER.match(text)
    if not found:
        raise truth.Mistake("'%s' cannot be changed by '%s%s'" % (text, operator, value))
    old, unit = float(found.group(1)), found.group(2)
    if operator == "*=":
        return "%.6g%s" % (old * float(value), unit)
    scale = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
    less = NUMBER.match(value)
    assert less
    return "%.6gms" % max(0.001, old * scale[unit or "s"] - float(less.group(1)) * scale[less.group(2) or "s"])


def twin_sets(job: truth.BankJob, keys: Dict[str, str]) -> Dict[str, str]:
    """The fix as keys of the twin; a key that the twin has not got cannot be made smaller."""
    sets: Dict[str, str] = {}
    for word in job.words("fix_twin"):
        key, operator, value = truth.twin_change(word)
        if operator == "=":
            sets[key] = value
        elif keys.get(key) or keys.get("observed." + key):
            sets[key] = changed_by(operator, value, keys.get(key) or keys["observed." + key])
    return sets


class Trial:
    """One job from its start to its row."""

    def __init__(self, job: truth.BankJob, options: argparse.Namespace):
        self.job, self.options, self.program = job, options, options.program
        self.work = os.path.join(options.out, "jobs", job.name)
        os.makedirs(self.work, exist_ok=True)
        self.log = os.path.join(self.work, "log")
        self.twins = os.path.join(options.out, "twins")  # where their data is
        os.makedirs(self.twins, exist_ok=True)
        self.row: Dict[str, Any] = {"job": job.name, "observe_only": options.observe_only}

    def go(self) -> Dict[str, Any]:
        open(self.log, "w").close()
        row = self.row
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.case)
        with BankRunning(self.job, self.options.out) as running:
            running.await_steady()
            turns = {"job": [self.observe(running)], "fixed": []}
            row["job_rate"] = together(turns["job"])
            if self.options.observe_only:
                return row
            running.pause()
            row["twin_rate"] = self.run_twin(running, "twin", self.stand_ins()) if self.fit(running) else FAILED
            if "fix" in self.job.said and row["twin_rate"] == row["twin_rate"] and not row["unfaithful"]:
                running.rest()
                with BankRunning(self.job, self.options.out, ("fix",)) as fixed:
                    fixed.await_steady()
                    self.compare(running, fixed, turns)
            else:
                self.turn(running, turns["job"])
            row["job_rate"] = together(turns["job"])
        return row

    @staticmethod
    def turn(running: BankRunning, turns: List[Dict[str, float]]) -> None:
        running.wake()
        time.sleep(SETTLED_S)  # batches that it had ready are used up
        turns.append(running.measure(TURN_S))
        running.rest()

    def compare(self, job: BankRunning, fixed: BankRunning, turns: Dict[str, List[Dict[str, float]]]) -> None:
        """The job with and without its fix in turns, between them the twin with it."""
        row = self.row
        fixed.rest()
        self.turn(job, turns["job"])
        self.turn(fixed, turns["fixed"])
        fixed.signal_others(signal.SIGCONT)
        keys, reported = keys_of(self.case)
        plain = not any(name in fixed.around for name in STORE)  # its files lie on a local disk
        sets = {**({} if plain else self.stand_ins()), **twin_sets(self.job, {**reported, **keys})}
        row["fixed_twin_rate"] = self.run_twin(fixed, "fixed twin", sets)
        self.turn(fixed, turns["fixed"])
        self.turn(job, turns["job"])
        row["fixed_rate"] = together(turns["fixed"])
        row["did"] = matrix.ratio(row["fixed_rate"], together(turns["job"][1:]))
        row["predicted"] = matrix.ratio(row["fixed_twin_rate"], row["twin_rate"])

    @property
    def case(self) -> str:
        return os.path.join(self.work, "case.ini")

    def observe(self, running: BankRunning) -> Dict[str, float]:
        begun, used, busy = time.time(), running.all_cpu_seconds(), busy_seconds()
        text = run([self.program, "observe", str(running.pid), "--for", "%ds" % self.options.observed, "--json", "--out", self.work], self.log, (0, 1, 3),
                   limit_s=JOB_LIMIT_S)
        ended = time.time()
        others = busy_seconds() - busy - (running.all_cpu_seconds() - used)
        self.row["others"] = max(0.0, others / (ended - begun) / (os.cpu_count() or 1))
        document = json.loads(text) if text else {}
        verdict = document.get("verdict")
        if not verdict:
            self.row["error"] = "observe: no verdict; see %s" % os.path.relpath(self.log)
        else:
            said = [verdict["words"], *verdict["evidence"], *verdict["unknown"], *verdict["next"]]
            self.row.update(stage=verdict["stage"] or "none", resource=verdict["resource"], certainty=verdict["certainty"], words=verdict["words"],
                            evidence=verdict["evidence"], disturbance=next((line for line in said if DISTURBED.search(line)), ""))
        with open(running.log) as log, open(os.path.join(self.work, "steps.csv"), "w") as file:
            file.write(log.read().rpartition("\n")[0] + "\n")
        return {"rate": running.rate(begun, ended), "seconds": ended - begun}

    def fit(self, running: BankRunning) -> bool:
        given = [word for key in self.job.words("owner") for word in ("--set", key)]
        text = run([self.program, "fit", os.path.join(self.work, "observe.json"), os.path.join(self.work, "steps.csv"), running.data, "--out", self.case,
                    "--name", self.job.name, "--quiet", *given], self.log, (0, 1, 3), self.twins, running.enter_twin, FIT_LIMIT_S)
        self.row["unfaithful"] = ""
        if text is None or not os.path.exists(self.case):
            self.row["error"] = "fit made no case; see %s" % os.path.relpath(self.log)
            return False
        keys = keys_of(self.case)[0]
        self.row["unfaithful"], self.row["unchecked"] = keys.get("case.unfaithful", ""), keys.get("case.unchecked", "")
        return True

    def run_twin(self, running: BankRunning, label: str, sets: Dict[str, str]) -> float:
        words = [word for key, value in sets.items() for word in ("--set", "%s=%s" % (key, value))]
        rate, said = run_twin([self.program, "run", self.case, "--set", "measure.repeats=1", *words], os.path.join(self.work, label), self.log, self.twins,
                              running.enter_twin, TWIN_LIMIT_S)
        self.row[label + "_says"] = said
        if rate != rate:
            self.row["error"] = "the %s did not run; see %s" % (label, os.path.relpath(self.log))
        return rate

    def stand_ins(self) -> Dict[str, str]:
        """What emulates the job's store."""
        return {key: value for key, value in keys_of(self.case)[1].items() if key.startswith("inject.")}


def check_truth(job: truth.BankJob, options: argparse.Namespace) -> Dict[str, Any]:
    """With and without its plant in turns."""
    row: Dict[str, Any] = {"job": job.name, "cause": job.said["cause"], "planted": [], "relieved": []}
    for _ in range(options.rounds):
        for key, vary in (("planted", ()), ("relieved", ("relieved",))):
            if key == "relieved" and key not in job.said:
                continue
            with BankRunning(job, options.out, vary) as running:
                running.await_steady()
                row[key].append(running.measure(options.observed)["rate"])
    if row["relieved"]:
        row["ratio"] = sum(row["relieved"]) / sum(row["planted"])
        row["holds"] = row["ratio"] >= REACTS
    return row


def truth_lines(rows: List[Dict[str, Any]]) -> str:
    lines = [("job", "cause", "planted/s", "relieved/s", "factor", "truth")]
    for row in rows:
        if "error" in row:
            lines.append((row["job"], row["cause"], "-", "-", "-", "not checked: " + row["error"]))
            continue
        told = {True: "holds", False: "does not hold (bar: %.2f)" % REACTS, None: "nothing planted"}[row.get("holds")]
        lines.append((row["job"], row["cause"], *[" ".join("%.1f" % rate for rate in row[key]) or "-" for key in ("planted", "relieved")],
                      matrix.number(row.get("ratio"), "%.2f"), told))
    return matrix.text_table(lines)


# --- the whole --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def bounded(seconds: int) -> Iterator[None]:
    def over(*_: Any) -> None:
        raise TooLong("took more than %d s" % seconds)

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def busy_node(tools: str) -> Iterator[None]:
    """Others take half of the cores, whatever the job would like."""
    cores = sorted(os.sched_getaffinity(0))
    build_tools(tools)

    def prepare(core: int) -> None:
        os.sched_setaffinity(0, {core})
        os.nice(OTHERS_NICE)

    hogs = [subprocess.Popen([os.path.join(tools, "hog"), "cpu"], preexec_fn=lambda core=core: prepare(core)) for core in cores[:max(1, len(cores) // 2)]]
    try:
        yield
    finally:
        for hog in hogs:
            end(hog, signal.SIGKILL)


def chosen(options: argparse.Namespace) -> List[truth.BankJob]:
    jobs = truth.read_all()
    names = sorted(jobs)
    if options.half:
        held = truth.held_out(jobs, options.seed) if options.seed else [name for name in names if not jobs[name].open]
        if options.half == "held" and not options.seed:
            raise truth.Mistake("--half held: give the --seed that it is drawn by")
        names = [name for name in names if (name in held) == (options.half == "held")]
    wanted = [name for name in (options.jobs or "").split(",") if name] or options.truth or []
    unknown = [name for name in wanted if name not in jobs]
    if unknown:
        raise truth.Mistake("no job '%s' in the bank; --list names all" % unknown[0])
    return [jobs[name] for name in wanted or names]


def attempt(job: truth.BankJob, options: argparse.Namespace) -> Dict[str, Any]:
    trial = None
    try:
        with bounded(JOB_LIMIT_S):
            if options.truth is not None:
                return check_truth(job, options)
            trial = Trial(job, options)
            row = trial.go()
    except Cannot as cannot:
        return {"job": job.name, "cause": job.said["cause"], "error": str(cannot), "skipped": True}
    except (RuntimeError, TooLong, OSError, ValueError) as failed:
        row = {**(trial.row if trial else {"job": job.name}), "cause": job.said["cause"], "error": " ".join(str(failed).split())[-300:]}
    return row if options.truth is not None else matrix.scored(job, row, options.busy)


def go(options: argparse.Namespace) -> int:
    jobs = chosen(options)
    if options.list:
        print(matrix.text_table([(job.name, job.said["cause"], missing(job) or job.said["why"]) for job in jobs]))
        return 0
    os.makedirs(options.out, exist_ok=True)
    sweep_leftovers()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    rows: List[Dict[str, Any]] = []
    skipped: List[Dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(first_in_line())
        if options.busy:
            stack.enter_context(busy_node(options.out))
        for number, job in enumerate(jobs, 1):
            row = attempt(job, options)
            (skipped if row.get("skipped") else rows).append(row)
            said = row.get("error") or truth_lines([row]).split("\n")[1] if options.truth is not None else " ".join(matrix.cells(row)[1:]) if "score" in row else row["error"]
            print("%d/%d %s: %s" % (number, len(jobs), job.name, said), flush=True)
            with open(os.path.join(options.out, "truth.json" if options.truth is not None else "score.json"), "w") as file:
                json.dump({"half": options.half, "seed": options.seed, "busy": options.busy, "rows": rows, "skipped": skipped}, file, indent=1)
    failed = any("error" in row or row.get("score") == matrix.DISTURBED for row in rows)
    if options.truth is not None:
        print("\n" + truth_lines(rows + skipped))
        return CHECK_FAILED if any(row.get("holds") is False for row in rows) else NOT_MEASURED if failed or skipped else 0
    with open(os.path.join(options.out, "matrix.md"), "w") as file:
        file.write(matrix.tables(rows, options.busy, matrix.markdown_table) + "\n")
    print("\n" + matrix.tables(rows, options.busy))
    for row in skipped:
        print("not run: %s: %s" % (row["job"], row["error"]))
    if any(matrix.met(bar) is False for bar in matrix.bars(rows, options.busy)):
        return CHECK_FAILED
    return NOT_MEASURED if failed or skipped or not rows else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="mlbench")
    parser.add_argument("--jobs", help="names, with commas")
    parser.add_argument("--half", choices=("open", "held"))
    parser.add_argument("--seed", help="by which half of the jobs is held out")
    parser.add_argument("--truth", nargs="*", metavar="NAME", help="check these truths (none: all that are chosen)")
    parser.add_argument("--rounds", type=int, default=2, help="of --truth")
    parser.add_argument("--observe-only", action="store_true")
    parser.add_argument("--busy", action="store_true", help="others take half of the cores")
    parser.add_argument("--observed", type=int, default=10, help="seconds")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "jobs-bank"))
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    options.observe_only = options.observe_only or options.busy
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.truth is not None and options.program and not os.access(options.program, os.X_OK):
        options.truth.insert(0, options.program)
    elif options.truth is None and not options.list and not os.access(options.program or "", os.X_OK):
        parser.error("give the program: build/release/mlbench")
    options.program = os.path.abspath(options.program or "mlbench")
    try:
        return go(options)
    except truth.Mistake as mistake:
        print("score.py: error: %s" % mistake, file=sys.stderr)
        return WRONG_INPUT
    except Cannot as cannot:
        print("score.py: %s" % cannot, file=sys.stderr)
        return NOT_MEASURED
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
