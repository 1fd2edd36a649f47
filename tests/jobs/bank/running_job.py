"""One job of the bank while it runs, in its surroundings: a slow mount, control groups, other work, few cores.

    with BankRunning(job, scratch, vary=("fix",)) as running:
        running.await_steady()
        rate = running.measure(6)   # samples/s

All that was made for it goes when it ends: processes, mounts, groups.  What the machine lacks is a Cannot with the reason.
"""
import contextlib
import functools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import data  # noqa: E402
from running import Cannot, Site, Started, build_tools  # noqa: E402 (first: it knows where conditions.py is)
from conditions import dies_with_parent  # noqa: E402
from truth import BankJob  # noqa: E402

ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
DEBIANS = "/usr/bin/python3"
ENDS_S, STEADY_S, STEADY_BATCHES = 10.0, 3.0, 3
ENVIRONMENT = {  # no network, no questions to root, no folder of the user's
    "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}
STORE = {"latency": ("--latency", 1), "bandwidth": ("--bytes-per-s", 1e6), "iops": ("--iops", 1), "slots": ("--slots", 1), "stall": ("--stall-for", 1)}
STALL_EVERY_MS = "1000"


def python_of(job: BankJob) -> str:
    if job.said.get("python") != "venv":
        return DEBIANS
    return data.jobs_python()


@functools.lru_cache(maxsize=None)
def missing_module(python: str, module: str) -> str:
    """'' or why it cannot be imported."""
    if not os.path.exists(python):
        return "no %s (make jobs-venv makes it, MLBENCH_JOBS_PYTHON names another)" % python
    done = subprocess.run([python, "-c", "import " + module], capture_output=True, text=True, env={**os.environ, **ENVIRONMENT})
    return "" if done.returncode == 0 else "%s has no module %s" % (python, module)


def missing(job: BankJob) -> str:
    """'' or what the machine lacks for it."""
    for need in job.words("needs"):
        kind, colon, name = need.partition(":")
        if not colon:
            lacking = missing_module(python_of(job), need)
        elif kind == "program":
            lacking = "" if shutil.which(name) else "no program %s" % name
        else:
            lacking = "" if subprocess.run(["pkg-config", "--exists", name]).returncode == 0 else "no library %s (pkg-config)" % name
        if lacking:
            return lacking
    return ""


def built(job: BankJob, scratch: str) -> str:
    """The program of a job in C."""
    path = os.path.join(scratch, "bin", job.name)
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(job.path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        compiler, *flags = shlex.split(job.said.get("build", "cc -lpthread"))
        done = subprocess.run([compiler, "-std=gnu17", "-O2", "-w", job.path, "-o", path, *flags, "-lm"], capture_output=True, text=True)
        if done.returncode:
            raise Cannot("%s does not build: %s" % (job.name, done.stderr.strip()[-300:]))
    return path


class BankRunning(Started):
    def __init__(self, job: BankJob, scratch: str, vary: Sequence[str] = ()):
        self.job, self.name, self.scratch = job, job.name, scratch
        self.options, self.around = job.varied(*vary)
        self.stack = contextlib.ExitStack()
        self.site: Optional[Site] = None
        self.hogs: List[int] = []
        self.twin_enters: List[Callable[[], None]] = []

    def __enter__(self) -> "BankRunning":
        lacking = missing(self.job)
        if lacking:
            raise Cannot(lacking)
        with contextlib.ExitStack() as stack:
            self.data = data.make(self.job.said["data"], os.path.join(self.scratch, "data"))
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="mlbench-bank-real-%d-" % os.getpid()))
            self.site = stack.enter_context(Site(self.scratch, lambda _: self.data, work))
            folder = self.surround(self.site)
            self.work = os.path.join(work, "job")
            os.mkdir(self.work)
            self.log = os.path.join(work, "steps.csv")
            self.begin(folder)
            stack.callback(self.end)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stack.close()

    def surround(self, site: Site) -> str:
        """Makes the surroundings; the folder in which the job finds its data."""
        around, folder = self.around, self.data
        limits: List[str] = []
        for name in STORE:
            if name in around:
                option, factor = STORE[name]
                limits += [option, "%.17g" % (float(around[name]) * factor)]
        if limits:
            build_tools(self.scratch)
            if "stall" in around:
                limits += ["--stall-every", STALL_EVERY_MS]
            folder = site.store(folder, *limits, *([] if "cached" in around else ["--direct-io"]))
        if "cpus" in around:
            site.enters.append(lambda: os.sched_setaffinity(0, {int(core) for core in around["cpus"].split(",")}))
        if "quota" in around:
            site.cpu_quota(float(around["quota"]), 1, 0)
        self.twin_enters = list(site.enters)
        if "memory" in around:  # the twin has such a group of its own: what the job has, it has still while it pauses
            for enters in (self.twin_enters, site.enters):
                site.memory_limit(int(around["memory"]) << 20)
                enters.append(site.enters.pop())
        if "disk" in around:
            site.block_limit(folder, "bps", float(around["disk"]) * 1e6, 1)
        if "hog" in around:
            build_tools(self.scratch)
            before = set(children())
            site.hogs(int(around["hog"]), "cpu")
            self.hogs = sorted(set(children()) - before)
        return folder

    def enter_twin(self) -> None:
        """What its process does before it begins: into the job's surroundings."""
        dies_with_parent()
        for enter in self.twin_enters:
            enter()

    def rest(self) -> None:
        """The job pauses, and so does what runs beside it."""
        self.pause()
        self.signal_others(signal.SIGSTOP)

    def wake(self) -> None:
        self.signal_others(signal.SIGCONT)
        self.go_on()

    def signal_others(self, number: int) -> None:
        for pid in self.hogs:
            os.kill(pid, number)

    def command(self, folder: str) -> List[str]:
        path = self.job.path
        python = python_of(self.job)
        words = [built(self.job, self.scratch)] if path.endswith(".c") else [python if path.endswith(".py") else "bash", path]
        launch = shlex.split(self.job.said.get("launch", ""))
        if launch[:1] == ["python"]:  # a launcher that is a module starts the interpreters itself
            words, launch = words[1:], [python, *launch[1:]]
        return [*launch, *words, "--data", folder, "--log", self.log, "--work", self.work, *[word for pair in self.options.items() for word in pair]]

    def begin(self, folder: str) -> None:
        assert self.site
        environment = {**os.environ, **ENVIRONMENT, "HF_HOME": os.path.join(self.scratch, "hf"), "TMPDIR": self.work}
        self.said = open(os.path.join(self.site.work, "said"), "w+")
        self.process = subprocess.Popen(self.command(folder), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said, cwd=self.work,
                                        env=environment, preexec_fn=self.site.enter, start_new_session=True)

    def pause(self) -> None:
        """Until no process is found that was begun meanwhile."""
        stopped: set = set()
        while set(self.processes()) - stopped:
            stopped |= set(self.processes())
            super().pause()

    def all_cpu_seconds(self) -> float:
        """Of all its processes, those included that have ended and were waited for."""
        ticks = 0
        for pid in self.processes():
            with contextlib.suppress(OSError), open("/proc/%d/stat" % pid) as file:
                ticks += sum(int(field) for field in file.read().rsplit(")", 1)[1].split()[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    def last_words(self) -> str:
        self.said.seek(0)
        return self.said.read().strip()[-600:]

    def await_steady(self) -> None:
        self.await_batches(STEADY_BATCHES)
        time.sleep(STEADY_S)
        self.await_batches(STEADY_BATCHES)  # it has not ended meanwhile

    def measure(self, seconds: float) -> Dict[str, float]:
        begun = time.time()
        time.sleep(seconds)
        ended = time.time()
        return {"rate": self.rate(begun, ended), "seconds": ended - begun}

    def end(self) -> None:
        """First as its owner would; who is left after a time is killed."""
        assert self.process
        with contextlib.suppress(OSError):
            self.go_on()
            family = self.processes()
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=ENDS_S)
            for pid in {*family, *self.processes()}:
                if pid != self.pid and belongs(pid, self.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
        self.said.close()
        with contextlib.suppress(ChildProcessError):  # orphans that came to us (PR_SET_CHILD_SUBREAPER)
            while os.waitid(os.P_PGID, self.pid, os.WEXITED | os.WNOHANG):
                pass


def children() -> List[int]:
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        return [int(word) for word in file.read().split()]


def belongs(pid: int, session: int) -> bool:
    """Whether a process is of the job: of its session, or no session of ours."""
    with contextlib.suppress(OSError):
        return os.getsid(pid) in (session, pid) or os.getsid(pid) != os.getsid(0)
    return False
