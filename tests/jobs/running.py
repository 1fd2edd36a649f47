"""One of the twelve jobs while it runs: its data, its surroundings (a slow mount, a CPU quota), and what it did in a time.

    with Running("fuse_latency", tools, folder) as job:
        job.await_batches(3)
        ... job.pid ...
        rate = job.rate(begun, ended)  # samples/s between two times (time.time)

Surroundings are made and taken away by tests/bank/real/conditions.py; what the machine lacks is its Cannot.
"""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "bank", "real"))
from conditions import Cannot, Site, group, group_root, write  # noqa: E402, F401
from twelve import ALL  # noqa: E402

PYTHON = "/usr/bin/python3"  # whose packages are Debian's
PERIOD_US = 100000
SHARES = 65536  # who else runs on the node takes none of the quota away
STARTS_S = 120.0


def need_torch() -> None:
    done = subprocess.run([PYTHON, "-c", "import torch, torchvision, PIL"], capture_output=True)
    if done.returncode:
        raise Cannot("Debian's python3-torch, python3-torchvision and python3-pil are not installed")


def make_data(name: str, folder: str) -> str:
    path = os.path.join(folder, name)
    if not os.path.isdir(path):
        subprocess.run([PYTHON, os.path.join(HERE, "torch_job.py"), "--make", name, path + ".part"], check=True)
        os.rename(path + ".part", path)
    return path


def build_tools(folder: str) -> None:
    """The FUSE server of the bank, and what computes beside a job."""
    for name, libraries in (("hog", []), ("slowfs", ["fuse3"])):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", *libraries], capture_output=True, text=True)
            if libraries and flags.returncode:
                raise Cannot("libfuse3-dev is not installed")
            subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-w", os.path.join(HERE, "..", "bank", "real", name + ".c"), "-o", path,
                            *flags.stdout.split(), "-lpthread", "-lm"], check=True)


def join(folders: List[str]) -> None:
    """Of a process that begins: into these groups."""
    for folder in folders:
        with open(os.path.join(folder, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))


@contextlib.contextmanager
def first_in_line() -> Iterator[None]:
    """Who else runs on the node gets what the jobs and their twins leave, where groups can be made: other work comes and goes."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(Cannot):
            before = group_root("cpu", 1)
            folder = stack.enter_context(group("cpu", 1))[0]
            write(os.path.join(folder, "cpu.shares"), str(SHARES))
            join([folder])
            stack.callback(join, [before])
        yield


class Started:
    """A job that runs: its process and all below it, and the log of its batches."""

    name = ""
    log = ""
    process: Optional[subprocess.Popen] = None

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def processes(self) -> List[int]:
        """The first one (the trainer, or a launcher), then all below it."""
        found = [self.pid]
        for pid in found:  # grows meanwhile
            with contextlib.suppress(OSError):
                for task in os.listdir("/proc/%d/task" % pid):
                    with open("/proc/%d/task/%s/children" % (pid, task)) as file:
                        found += [int(word) for word in file.read().split()]
        return found

    def signal(self, number: int) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.signal(signal.SIGCONT)

    def cpu_seconds(self) -> Tuple[float, float]:
        """Of the trainer, and of all processes below it, so far."""
        seconds = []
        for pid in self.processes():
            with contextlib.suppress(OSError), open("/proc/%d/stat" % pid) as file:
                fields = file.read().rsplit(")", 1)[1].split()
                seconds.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
        return seconds[0], sum(seconds[1:])

    def end(self) -> None:
        assert self.process
        self.go_on()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def last_words(self) -> str:
        assert self.process
        return self.process.communicate()[1][-300:]

    def rows(self) -> List[Tuple[float, int]]:
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            cells = [line.split(",") for line in file.read().split("\n")[1:-1]]
        return [(float(c[1]), int(c[2])) for c in cells]

    def await_batches(self, count: int) -> None:
        until = time.monotonic() + STARTS_S
        while len(self.rows()) < count:
            if self.process and self.process.poll() is not None:
                raise RuntimeError("%s ended: %s" % (self.name, self.last_words()))
            if time.monotonic() > until:
                raise RuntimeError("%s: no %d batches within %.0f s" % (self.name, count, STARTS_S))
            time.sleep(0.1)

    def rate(self, begun: float, ended: float) -> float:
        """Of whole batches between two times."""
        rows = [row for row in self.rows() if begun <= row[0] <= ended]
        return sum(row[1] for row in rows[1:]) / (rows[-1][0] - rows[0][0]) if len(rows) > 2 else float("nan")


class Running(Started):
    def __init__(self, name: str, scratch: str, changed: bool = False):
        self.name, self.scratch, self.job = name, scratch, ALL[name]
        self.arguments: Dict[str, Any] = dict(self.job.job)
        self.latency_us, self.quota = self.job.latency_us, self.job.quota
        for key, value in self.job.change[1].items() if changed else ():
            if key in ("latency_us", "quota"):
                setattr(self, key, value)
            else:
                self.arguments[key] = value
        self.stack = contextlib.ExitStack()
        self.inside: List[str] = []  # its control groups, for as long as it runs

    @contextlib.contextmanager
    def quota_group(self) -> Iterator[List[str]]:
        """Control groups that the job, or its twin, joins."""
        if not self.quota:
            yield []
            return
        with group("cpu", 1) as folders:
            write(os.path.join(folders[0], "cpu.shares"), str(SHARES))
            write(os.path.join(folders[0], "cpu.cfs_period_us"), str(PERIOD_US))
            write(os.path.join(folders[0], "cpu.cfs_quota_us"), str(round(self.quota * PERIOD_US)))
            yield folders

    def __enter__(self) -> "Running":
        need_torch()
        with contextlib.ExitStack() as stack:
            self.data = self.folder = make_data(self.job.data, self.scratch)
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="mlbench-bank-real-%d-" % os.getpid()))
            if self.latency_us:
                build_tools(self.scratch)
                site = stack.enter_context(Site(self.scratch, lambda _: self.data, work))
                self.folder = site.store(self.data, "--latency", str(self.latency_us), "--direct-io")
            self.inside = stack.enter_context(self.quota_group())
            self.log = os.path.join(work, "steps.csv")
            self.begin(self.inside)
            stack.callback(self.end)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stack.close()

    def begin(self, inside: List[str]) -> None:
        words = [PYTHON, os.path.join(HERE, "torch_job.py"), self.folder, "--log", self.log]
        for key, value in self.arguments.items():
            words += ["--" + key.replace("_", "-"), str(value)]

        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=lambda: join(inside),
                                        text=True)
