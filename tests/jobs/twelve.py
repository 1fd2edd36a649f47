"""The twelve jobs of tests/bench/bench_reproduce.sh: what each runs, where it runs, what limits it, and one change to it.  The
truths were decided when the jobs were written, before anything was measured, in the words of a diagnosis (docs/runbook.md):
what the job's own arguments plant is what has to be found.

data: see PICTURES.  latency_us: of each read, by a FUSE server (tests/bank/real/slowfs.c).  quota: cores that a control group
allows.  change: what is altered of the job (arguments as in `job`, or latency_us), and what that is called.
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
    "cpu_quota": Job({"workers": 2, "step_ms": 4}, ("decode", "cores"), ("quota removed", {"quota": None}), quota=0.6),
    "heavy_collate": Job({"workers": 1, "step_ms": 4, "collate_ms": 60}, ("decode", "cpu"),
                         ("collate half as slow", {"collate_ms": 30})),
    "slow_step": Job({"workers": 2, "step_ms": 120}, ("step", "compute"), ("step half as long", {"step_ms": 60})),
    "uneven_files": Job({"workers": 2, "step_ms": 4}, ("decode", "cpu"), ("one worker", {"workers": 1}), data="uneven"),
}
