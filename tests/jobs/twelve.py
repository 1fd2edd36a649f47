"""The twelve jobs of tests/bench/bench_reproduce.sh: what each runs, where it runs, what limits it, and one change to it.  The
truths were decided when the jobs were written, before anything was measured, in the words of a diagnosis (docs/runbook.md):
what the job's own arguments plant is what has to be found.

data: see PICTURES.  latency_us: of each read, by a FUSE server (tests/bank/real/slowfs.c).  quota: cores that a control group
allows.  change: what is altered of the job (arguments as in `job`, latency_us, or quota), and what that is called.  twin_change()
is the same of its twin, as the job's owner knows it: how many ms a sample or a batch gets cheaper.
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple


class Pictures(NamedTuple):
    """A folder of JPEG files; edges are lognormal around the given size."""
    files: int
    width: int
    height: int
    sigma: float = 0.1


class Job(NamedTuple):
    job: Dict[str, Any]  # options of torch_job.py
    truth: Tuple[str, str]  # stage, resource
    change: Tuple[str, Dict[str, Any]]
    data: str = "photos"
    latency_us: int = 0
    quota: Optional[float] = None


PICTURES = {
    "photos": Pictures(240, 400, 300),
    "thumbs": Pictures(3000, 48, 48),
    "uneven": Pictures(240, 300, 225, 0.7),
    "large": Pictures(32, 1600, 1200),
}

JOBS = {
    "zero_workers": Job({"workers": 0, "step_ms": 4}, ("decode", "cpu"), ("one worker", {"workers": 1})),
    "one_worker": Job({"workers": 1, "step_ms": 4}, ("decode", "cpu"), ("two workers", {"workers": 2})),
    "two_workers": Job({"workers": 2, "step_ms": 4}, ("decode", "cpu"), ("one worker", {"workers": 1})),
    "slow_transform": Job({"workers": 2, "step_ms": 4, "python_ms": 12}, ("decode", "cpu"),
                          ("transform half as slow", {"python_ms": 6})),
    "fuse_latency": Job({"workers": 2, "step_ms": 2}, ("read", "latency"), ("latency removed", {"latency_us": 0}),
                        data="thumbs", latency_us=4000),
    "small_files": Job({"workers": 2, "step_ms": 1, "batch": 64, "crop": 32}, ("decode", "cpu"), ("one worker", {"workers": 1}),
                       data="thumbs"),
    "leak": Job({"workers": 1, "step_ms": 4, "leak_kb": 256}, ("decode", "cpu"), ("two workers", {"workers": 2})),
    "lock": Job({"workers": 2, "step_ms": 4, "lock_ms": 8}, ("decode", "lock"), ("lock held half as long", {"lock_ms": 4})),
    "cpu_quota": Job({"workers": 2, "step_ms": 4}, ("decode", "quota"), ("quota removed", {"quota": None}), quota=0.6),
    "heavy_collate": Job({"workers": 1, "step_ms": 4, "collate_ms": 60}, ("decode", "cpu"),
                         ("collate half as slow", {"collate_ms": 30})),
    "slow_step": Job({"workers": 2, "step_ms": 120}, ("step", "compute"), ("step half as long", {"step_ms": 60})),
    "uneven_files": Job({"workers": 2, "step_ms": 4}, ("decode", "cpu"), ("one worker", {"workers": 1}), data="uneven"),
}

# None of the twelve: what was made to hold for those is checked with these (bench_reproduce.py --jobs).
OTHERS = {
    "fuse_photos": Job({"workers": 2, "step_ms": 6, "batch": 8}, ("read", "latency"), ("latency removed", {"latency_us": 0}),
                       latency_us=8000),
    "fuse_uneven": Job({"workers": 1, "step_ms": 2}, ("read", "latency"), ("latency removed", {"latency_us": 0}), data="uneven",
                       latency_us=2000),
    "uneven_one": Job({"workers": 1, "step_ms": 10, "batch": 32, "crop": 64}, ("decode", "cpu"), ("two workers", {"workers": 2}),
                      data="uneven"),
}
ALL = {**JOBS, **OTHERS}


def ms_of(text: str) -> float:
    for unit, factor in (("ns", 1e-6), ("us", 1e-3), ("ms", 1.0), ("s", 1e3)):
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor
    return float(text or 0) * 1e3


def share_of(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def twin_change(name: str, keys: Dict[str, str]) -> Dict[str, str]:
    """Keys of the twin that change, of those it has.  A latency or a quota that goes is not set in the first place."""
    job, change = ALL[name].job, ALL[name].change[1]
    less = {key: float(job[key]) - change[key] for key in change if key.endswith("_ms")}
    saved = less.get("python_ms", 0) + less.get("lock_ms", 0) + less.get("collate_ms", 0) / job.get("batch", 16)
    out: Dict[str, str] = {}
    if "workers" in change:
        out["decode.workers"] = str(change["workers"])
        out["prefetch.depth"] = str(2 * change["workers"])
    if "step_ms" in change:
        known = keys.get("step.time") or "".join(keys.get("observed.step.time", "0").split()[:2])  # recorded times are scaled to it
        out["step.time"] = "%.3fms" % max(0.001, ms_of(known) - less["step_ms"])
    if saved:
        out["overhead.sample"] = "%.3fms" % max(0, ms_of(keys.get("overhead.sample", "0")) - saved)
    if "lock_ms" in change and "overhead.lock" in keys:  # a share of what is left
        cpu = ms_of(keys.get("overhead.sample", "0"))
        out["overhead.lock"] = "%.3f" % max(0, min(1, (share_of(keys["overhead.lock"]) * cpu - saved) / (cpu - saved)))
    return out
