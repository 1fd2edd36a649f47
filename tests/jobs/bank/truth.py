"""What a job of the bank says about itself, in comment lines of its own file, and how half of the jobs is drawn.

    #: cause = loader/lock          (in C: //: cause = loader/lock)

Keys and their meaning are in KEYS.  A job's truth is decided when the job is written; `score.py --truth` checks it.
"""
import hashlib
import os
import random
import re
from typing import Dict, List, NamedTuple, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
ENDINGS = (".py", ".sh", ".c")
NO_JOBS = ("common.py", "data.py", "formats.py", "truth.py", "running_job.py", "score.py", "matrix.py", "test_bank.py")

KEYS = {
    "cause": "stage/resource that limits it; several with ' or '; none: nothing does",
    "why": "one sentence: what is planted",
    "needs": "Python modules, programs (program:djpeg) and libraries (library:libjpeg) without which it cannot run",
    "python": "venv: the jobs' own environment (MLBENCH_JOBS_PYTHON, build/jobs-venv), not Debian's",
    "build": "of a job in C: compiler and flags after 'cc', as 'cc -ljpeg -lpthread' or 'mpicc'",
    "launch": "words in front of the job, as 'mpirun -n 2'",
    "data": "the data set (data.py)",
    "around": "surroundings, as 'latency:4000 quota:0.6'",
    "options": "how it runs",
    "relieved": "options or surroundings that take the plant away",
    "fix": "options or surroundings that its owner would try",
    "fix_twin": "the same of its twin: key=value, key*=factor or key-=time",
    "owner": "keys that its owner knows, given to fit",
    "half": "open: never held out",
}
REQUIRED = ("cause", "why", "data", "options")

CAUSES = {
    "loader": ("cpu", "gil", "lock", "wait", "imbalance", "restarts"),
    "read": ("latency", "device", "cache", "bandwidth", "iops"),
    "trainer": ("cpu", "hand-over"),
    "step": ("cpu", "compute", "unknown", "write"),
    "sync": ("imbalance", "network"),
    "process": ("cpu", "gil"),
    "none": ("healthy",),
}
CORES = ("cores", "quota", "external", "affinity", "threads")
ANYWHERE = {"loader": CORES + ("memory",), "process": CORES + ("memory",), "step": CORES + ("memory",), "loader and step": CORES + ("cpu",)}
# Of the surroundings, those that numbers follow; a 0 takes them away, cpus excepted.
AROUND = {
    "latency": "microseconds of each read, by a FUSE server",
    "bandwidth": "MB/s of that server",
    "iops": "reads a second of that server",
    "slots": "reads that it works on at once",
    "stall": "milliseconds for which it stands still every second",
    "cached": "1: the kernel caches what was read through it",
    "quota": "cores of a CPU quota",
    "memory": "MiB of a memory limit",
    "disk": "MB/s of reads of the data's disk (blkio)",
    "hog": "processes that compute beside the job",
    "cpus": "cores that it may use, as 0,1",
}
WORD = re.compile(r"^\s*(?:#|//|\*): (\w+) = (.*?)\s*$")


class Mistake(Exception):
    """A job's file is wrong."""


class BankJob(NamedTuple):
    name: str
    path: str
    said: Dict[str, str]

    @property
    def causes(self) -> List[Tuple[str, str]]:
        """Every (stage, resource) that is right."""
        return [tuple(one.strip().split("/")) for one in self.said["cause"].split(" or ")]

    def words(self, key: str) -> List[str]:
        return self.said.get(key, "").split()

    @property
    def open(self) -> bool:
        return self.said.get("half") == "open"

    def varied(self, *keys: str) -> Tuple[Dict[str, str], Dict[str, str]]:
        """Options and surroundings, with those of the keys ('relieved', 'fix') in their place."""
        options: Dict[str, str] = {}
        around: Dict[str, str] = {}
        for key in ("options", "around", *keys):
            read_varied(self, key, options, around)
        return options, {name: value for name, value in around.items() if name == "cpus" or float(value) != 0}


def read_varied(job: BankJob, key: str, options: Dict[str, str], around: Dict[str, str]) -> None:
    words = job.words(key)
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith("--"):
            if at == len(words) or words[at].startswith("--"):
                raise Mistake("%s: %s = ... %s has no value" % (job.name, key, word))
            options[word] = words[at]
            at += 1
            continue
        name, colon, value = word.partition(":")
        if not colon or name not in AROUND:
            raise Mistake("%s: %s has '%s': neither an option nor one of %s" % (job.name, key, word, " ".join(AROUND)))
        if not re.fullmatch(r"[0-9,]+" if name == "cpus" else r"[0-9]+(\.[0-9]+)?", value):
            raise Mistake("%s: %s has '%s': no number" % (job.name, key, word))
        around[name] = value


def twin_change(text: str) -> Tuple[str, str, str]:
    """(key, operator, value) of 'decode.workers=4', 'step.time*=0.5' or 'overhead.sample-=4ms'."""
    found = re.fullmatch(r"([a-z]+\.[a-z_]+)(=|\*=|-=)(\S+)", text)
    if not found:
        raise Mistake("'%s' is no key=value, key*=factor or key-=time" % text)
    return found.group(1), found.group(2), found.group(3)


def read_job(path: str) -> BankJob:
    name = os.path.splitext(os.path.basename(path))[0]
    said: Dict[str, str] = {}
    with open(path) as file:
        for line in file:
            found = WORD.match(line)
            if not found:
                continue
            key, value = found.groups()
            if key not in KEYS:
                raise Mistake("%s: unknown key '%s'; known are %s" % (name, key, " ".join(KEYS)))
            if key in said:
                raise Mistake("%s: '%s' stands twice" % (name, key))
            said[key] = value
    job = BankJob(name, path, said)
    check(job)
    return job


def check(job: BankJob) -> None:
    for key in REQUIRED:
        if key not in job.said:
            raise Mistake("%s: no '%s'" % (job.name, key))
    for cause in job.causes:
        if len(cause) != 2 or cause[1] not in CAUSES.get(cause[0], ()) + ANYWHERE.get(cause[0], ()):
            raise Mistake("%s: '%s' is no stage/resource of the bank" % (job.name, "/".join(cause)))
    if job.name in job.words("needs"):
        raise Mistake("%s: its name hides the module that it needs" % job.name)
    if job.causes[0] != ("none", "healthy") and "relieved" not in job.said:
        raise Mistake("%s: nothing takes its plant away ('relieved')" % job.name)
    if ("fix" in job.said) != ("fix_twin" in job.said):
        raise Mistake("%s: 'fix' and 'fix_twin' belong together" % job.name)
    for key in ("relieved", "fix"):
        job.varied(key)
    for word in job.words("fix_twin"):
        twin_change(word)
    for word in job.words("owner"):
        if "=" not in word:
            raise Mistake("%s: owner has '%s', no key=value" % (job.name, word))


def read_all(folder: str = HERE) -> Dict[str, BankJob]:
    names = sorted(name for name in os.listdir(folder) if name.endswith(ENDINGS) and name not in NO_JOBS)
    jobs = [read_job(os.path.join(folder, name)) for name in names]
    found = {job.name: job for job in jobs}
    if len(found) != len(jobs):
        raise Mistake("two jobs have one name")
    return found


def held_out(jobs: Dict[str, BankJob], seed: str) -> List[str]:
    """Half of all jobs, none of those marked open, so that each cause is in both halves where it has two jobs: the next is
    always of the cause that has most left over in the open half."""
    order = random.Random(int(hashlib.sha256(str(seed).encode()).hexdigest(), 16))
    names = sorted(jobs)
    order.shuffle(names)
    surplus: Dict[Tuple[str, str], int] = {}
    for name in names:
        surplus[jobs[name].causes[0]] = surplus.get(jobs[name].causes[0], 0) + 1
    free = [name for name in names if not jobs[name].open]
    held: List[str] = []
    while free and len(held) < len(jobs) // 2:
        most = max(surplus[jobs[name].causes[0]] for name in free)
        name = next(name for name in free if surplus[jobs[name].causes[0]] == most)
        free.remove(name)
        held.append(name)
        surplus[jobs[name].causes[0]] -= 2
    return sorted(held)
