"""The planted bottlenecks: what is planted on which healthy run, how hard, and what it must be called.

A plant's `keys(aim, healthy)` gives the settings that should make the healthy run lose a factor of `aim` of its
throughput; the bank measures what it really loses and corrects `aim` (a strength, no promise).  `truth` lists
the pairs (stage, resource) that are right.  Every healthy run is limited by one stage alone, by at least twice;
so what the plant takes away, its removal gives back."""

import math
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Tuple

Pair = Tuple[str, str]
Settings = Dict[str, str]

BATCH = 8
STEP_RATE = 2000.0  # samples/s of the emulated device in most healthy runs
HEALTHY_STEP: List[Pair] = [("step", "compute")]
# Every thread of the job waits for cores then; which stage is held up most is of no matter.
EXTERNAL: List[Pair] = [("decode", "external"), ("read", "external"), ("step", "external"), ("prefetch", "external")]


@dataclass
class Healthy:
    """What the healthy run told."""

    throughput: float
    file_bytes: float
    cores: int
    decode_s: float  # of one sample, by one worker


@dataclass
class Plant:
    name: str
    what: str
    base: Settings
    truth: List[Pair]
    keys: Callable[[float, Healthy], Settings]
    kind: str = "single"  # single, pair, control, phases, leak
    intensities: Tuple[float, ...] = (1.1, 1.5, 4.0)
    # Cores that the planted run may use; None: all.
    cores: Optional[Callable[[float, int], int]] = None
    # The factor can only be had in steps (whole processes, whole cores): the loss need only be this or more.
    least_loss: Optional[float] = None
    healthy_truth: Optional[List[Pair]] = None  # of the run without the plant, where that is known
    also: Optional[List[Pair]] = None  # pair: the other stage that binds as much
    alone: Optional[Callable[[Healthy], List[Settings]]] = None  # pair: each of the two without the other
    quick: bool = True
    needs_cores: int = 1
    hogs: bool = False  # what is planted is load from outside
    slow: bool = False  # takes a minute: full bank only


def text(value: float) -> str:
    return "%.6g" % value


def rate(value: float) -> str:
    return str(max(1, int(round(value))))


def microseconds(seconds: float) -> str:
    return "%dns" % max(1, int(round(seconds * 1e9)))


def step_time(batch: int, samples_per_s: float) -> str:
    return microseconds(batch / samples_per_s)


# --- healthy runs ------------------------------------------------------------------------------------

COMMON: Settings = {
    "dataset.recipe": "photo",
    # As in real folders: what depends on bytes can be told from what does not.
    "dataset.size_sigma": "0.3",
    "augment.size": "32",
    "batch.size": str(BATCH),
    "prefetch.depth": "4",
    "read.depth": "8",
    "decode.workers": "2",
    "step.backend": "emulated",
    "measure.repeats": "1",
    "measure.limits": "off",
    "measure.warmup": "1s", # as a user has it: long enough for reads at other depths
    "measure.duration": "1600ms",
    "measure.window": "50ms",
}
EPOCH = 512
RAW: Settings = {**COMMON, "dataset.format": "raw", "dataset.width": "64", "dataset.height": "64", "dataset.samples": str(EPOCH)}
JPEG: Settings = {**COMMON, "dataset.format": "jpeg", "dataset.width": "160", "dataset.height": "120", "dataset.samples": "256"}

# The device is the limit; everything else could do ten times as much.
STEP_BOUND: Settings = {**RAW, "step.time": step_time(BATCH, STEP_RATE)}
# The same with files whose decoding takes real work.
STEP_BOUND_JPEG: Settings = {**JPEG, "step.time": step_time(BATCH, STEP_RATE), "decode.workers": "1"}
# Workers that wait for a service elsewhere are the limit, on any number of cores; the device is hardly used.
WAIT_BOUND: Settings = {**RAW, "decode.workers": "4", "inject.decode_wait": "2ms", "step.time": step_time(BATCH, 8 * STEP_RATE)}


# Fast, so that a few seconds have enough slow items for a throughput that means something.
STRAGGLERS_WAIT_S = 0.5e-3
STRAGGLERS: Settings = {
    **RAW, "read.engine": "memory", "decode.workers": "16", "inject.decode_wait": microseconds(STRAGGLERS_WAIT_S),
    "batch.size": "16", "prefetch.depth": "2", "step.time": step_time(16, 8 * STEP_RATE), "measure.duration": "5s",
}


def cpu_bound(cores: int) -> Settings:
    """Decoding on all cores is the limit, and nothing else takes a core.  Queues are deep enough for threads that
    get a core late."""
    return {**JPEG, "dataset.width": "400", "dataset.height": "300", "decode.workers": str(cores), "decode.queue": "64",
            "prefetch.depth": "16", "step.backend": "null", "measure.duration": "2400ms"}


# --- the table ---------------------------------------------------------------------------------------


def lose(healthy: Healthy, aim: float) -> float:
    return healthy.throughput / aim


# Long enough a period for a disk's own time to matter little beside what is planted.
CHECKPOINT_STEPS = 25
CHECKPOINT_BYTES = 256 << 10
CHECKPOINTS: Settings = {"checkpoint.every": str(CHECKPOINT_STEPS), "checkpoint.bytes": str(CHECKPOINT_BYTES)}


def stall_period(healthy: Healthy) -> float:
    return CHECKPOINT_STEPS * BATCH / healthy.throughput


# Evaluations as often.  Workers wait for a service elsewhere: training's are enough for the device, and one alone is not.
EVALUATION_WAIT_S = 1e-3
EVALUATES: Settings = {"evaluate.every": str(CHECKPOINT_STEPS)}
WAITING_STEP_BOUND: Settings = {
    **STEP_BOUND, "decode.workers": "12", "inject.decode_wait": microseconds(EVALUATION_WAIT_S), "prefetch.depth": "8",
}


def slow_window(workers: int, batch: int, depth: int) -> float:
    """Samples that may be begun before a slow one is waited for."""
    return batch * (depth + math.ceil(workers / batch) + 1)


def depth_keys(aim: float, h: Healthy) -> Settings:
    """1 % slow items, each `f` times 0.5 ms; what the queue holds covers a part of one."""
    window_s = slow_window(16, 16, 2) / h.throughput
    between_s = 100 / h.throughput
    factor = ((aim - 1) * between_s + window_s) / STRAGGLERS_WAIT_S
    return {"inject.slow_share": "1%", "inject.slow_factor": text(max(factor, 1.5))}


def plants(cores: int) -> List[Plant]:
    table = [
        Plant(
            "bandwidth", "token bucket on reads", STEP_BOUND, [("read", "device")],
            lambda aim, h: {"inject.read_bandwidth": rate(lose(h, aim) * h.file_bytes)},
            healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "latency", "a latency on every read, at depth 1", {**STEP_BOUND, "read.depth": "1"}, [("read", "latency")],
            lambda aim, h: {"inject.read_latency": microseconds(1 / lose(h, aim))},
            healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "cache", "a cache for 35 % of the data, least recently used out first", {**STEP_BOUND, "dataset.samples": "128"},
            [("read", "cache")],
            lambda aim, h: {"inject.read_bandwidth": rate(0.93 * lose(h, aim) * h.file_bytes), "inject.read_cache": "35%"},
            healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "decode", "decoding takes k times as long", STEP_BOUND_JPEG, [("decode", "cpu")],
            lambda aim, h: {"inject.decode_factor": text(max(1.0, 1 / lose(h, aim) / h.decode_s))},
            healthy_truth=HEALTHY_STEP, needs_cores=2,
        ),
        Plant(
            "lock", "a lock held for a share of the samples",
            {**STEP_BOUND, "decode.workers": "8", "inject.decode_wait": "2ms", "step.time": step_time(BATCH, STEP_RATE)},
            [("decode", "lock")],
            lambda aim, h: {"inject.lock_share": text(min(1.0, 1 / (lose(h, aim) * 2.1e-3)))},
            healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "launch", "the step's thread works before its device does", WAIT_BOUND, [("step", "launch")],
            lambda aim, h: {"inject.step_launch": microseconds(BATCH / lose(h, aim) - BATCH / (8 * STEP_RATE))},
        ),
        Plant(
            "device", "a slow device behind io_uring", WAIT_BOUND, [("step", "compute")],
            lambda aim, h: {"inject.step_factor": text(max(1.0, 8 * STEP_RATE / lose(h, aim)))},
        ),
        Plant(
            "worker", "one worker of 8 is slower, delivery in order",
            {**RAW, "decode.workers": "8", "inject.decode_wait": "4ms", "batch.size": "1", "prefetch.depth": "1",
             "step.time": microseconds(1 / (4 * STEP_RATE)),
             # Batches come in bursts, as often as the slow worker delivers: many of them in a window.
             "measure.window": "200ms", "measure.duration": "2400ms"},
            [("decode", "imbalance")],
            lambda aim, h: {"inject.slow_worker": text(max(1.05, aim / 0.8))},
        ),
        Plant(
            "stragglers", "1 % of the items are slow, at prefetch depth 2", STRAGGLERS,
            [("prefetch", "depth")], depth_keys,
        ),
        Plant(
            "cpu-hog", "busy processes outside the job", cpu_bound(cores), EXTERNAL,
            lambda aim, h: {"inject.cpu_hog": str(max(1, round(h.cores * (aim - 1))))},
            intensities=(1.5, 4.0), least_loss=1.25, hogs=True,
        ),
        Plant(
            "memory-hog", "processes outside the job stream through memory", cpu_bound(cores), EXTERNAL,
            lambda aim, h: {"inject.memory_hog": str(max(1, round(h.cores * (aim - 1))))},
            intensities=(1.5, 4.0), least_loss=1.25, hogs=True,
        ),
        Plant(
            "few-cores", "more workers than cores that may be used", cpu_bound(cores), [("decode", "affinity")],
            lambda aim, h: {}, intensities=(1.5, 4.0), least_loss=1.25, needs_cores=2,
            cores=lambda aim, have: max(1, min(have - 1, round(have / aim))),
        ),
        Plant(
            "blas-threads", "BLAS threads and workers, more than cores",
            {**JPEG, "decode.workers": "1", "augment.size": "64", "batch.size": "64", "step.backend": "openblas",
             "step.model": "mlp", "step.threads": str(max(1, cores - 1)), "prefetch.depth": "2"},
            [("step", "cores"), ("decode", "cores")],
            lambda aim, h: {"step.threads": str(round(4 * aim) * h.cores), "decode.workers": str(2 * h.cores)},
            intensities=(1.5, 4.0), least_loss=1.25, needs_cores=2,
        ),
        Plant(
            "upload", "copies from pageable memory", {**STEP_BOUND, "upload.mode": "copy"}, [("upload", "copy")],
            lambda aim, h: {"inject.upload_bandwidth": rate(lose(h, aim) * 32 * 32 * 3 * 4)},
            healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "checkpoints", "checkpoints to a slow store, for which the step stands still", STEP_BOUND, [("checkpoint", "storage")],
            lambda aim, h: {**CHECKPOINTS, "inject.checkpoint_bandwidth": rate(CHECKPOINT_BYTES / (stall_period(h) * max(aim - 1, 0.01)))},
            healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "checkpoint-writer", "checkpoints in the background, to a store that is slower than training", STEP_BOUND,
            [("checkpoint", "storage")],
            lambda aim, h: {**CHECKPOINTS, "checkpoint.mode": "async",
                            "inject.checkpoint_bandwidth": rate(CHECKPOINT_BYTES / (stall_period(h) * aim))},
            intensities=(1.5, 4.0), healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "evaluation-step", "evaluations whose steps take long", STEP_BOUND, [("evaluate", "step")],
            lambda aim, h: {**EVALUATES, "evaluate.samples": "64", "evaluate.batch_size": "64",
                            "evaluate.step_time": microseconds(stall_period(h) * max(aim - 1, 0.01))},
            intensities=(1.5, 4.0), healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "evaluation-input", "evaluations whose one worker is too slow", WAITING_STEP_BOUND, [("evaluate", "input")],
            lambda aim, h: {**EVALUATES, "evaluate.workers": "1", "evaluate.step_time": "1us", "evaluate.samples":
                            str(min(max(8, round(stall_period(h) * (aim - 1) / EVALUATION_WAIT_S)), EPOCH))},
            intensities=(1.5, 4.0), healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "restarts", "workers that start anew with each epoch", STEP_BOUND, [("decode", "startup")],
            lambda aim, h: {"decode.persistent": "off", "decode.startup": microseconds(EPOCH / h.throughput * max(aim - 1, 0.01))},
            healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "middle-third", "reads throttled in the middle third only", {**STEP_BOUND, "measure.duration": "3200ms"},
            [("read", "device")],
            lambda aim, h: {"inject.read_bandwidth": rate(lose(h, aim) * h.file_bytes), "inject.begin": "33.3%", "inject.end": "66.7%"},
            kind="phases", intensities=(1.5, 4.0), healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "pair-read-step", "storage and device within 5 %", STEP_BOUND, [("read", "device")],
            lambda aim, h: {"inject.read_bandwidth": rate(aim * h.throughput * h.file_bytes)},
            kind="pair", intensities=(0.98, 1.02), also=HEALTHY_STEP,
            alone=lambda h: [{"step.backend": "null"}, {"inject.read_bandwidth": "0"}],
        ),
        Plant(
            "pair-decode-step", "workers and device within 5 %", {**WAIT_BOUND, "step.time": step_time(BATCH, 8 * STEP_RATE)},
            [("decode", "wait")],
            lambda aim, h: {"step.time": step_time(BATCH, aim * h.throughput)},
            kind="pair", intensities=(0.98, 1.02), also=HEALTHY_STEP,
            alone=lambda h: [{"step.time": step_time(BATCH, 8 * STEP_RATE)}, {"inject.decode_wait": "0"}],
        ),
        Plant(
            "leak", "a leak in the decode stage", {**STEP_BOUND, "measure.duration": "6s"}, [("memory", "leak")],
            lambda aim, h: {"inject.leak": rate(1e6 * aim * aim)},
            kind="leak", healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "leak-0.1", "a leak of 0.1 MB/s for a minute", {**STEP_BOUND, "measure.duration": "60s", "measure.window": "200ms"},
            [("memory", "leak")], lambda aim, h: {"inject.leak": "100kB/s"},
            kind="leak", intensities=(4.0,), quick=False, slow=True,
        ),
    ]
    return [plant for plant in table if plant.needs_cores <= cores]


def controls() -> List[Plant]:
    """Healthy runs with looks that mislead: step / compute, and nothing to find."""

    def control(name: str, what: str, base: Settings, quick: bool = True) -> Plant:
        return Plant(name, what, base, HEALTHY_STEP, lambda aim, h: {}, kind="control", intensities=(1.0,), quick=quick)

    return [
        control("healthy", "the device computes all the time", STEP_BOUND),
        control("idle-ring", "a deep ring that waits for the pipeline, not for the disk",
                {**STEP_BOUND, "read.depth": "64", "decode.queue": "256", "read.engine": "io_uring"}),
        control("batching", "batches of 64 at the optimum: the queue is empty most of the time, and no harm done",
                {**RAW, "batch.size": "64", "prefetch.depth": "1", "decode.workers": "4", "inject.decode_wait": "1520us",
                 "step.time": step_time(64, STEP_RATE)}),
        control("saving", "checkpoints in the background, which cost less than 1 %",
                {**STEP_BOUND, **CHECKPOINTS, "checkpoint.every": "100", "checkpoint.mode": "async"}),
        control("evaluating", "evaluations that are rare and short, which cost less than 2 %",
                {**STEP_BOUND, "evaluate.every": "200", "evaluate.samples": "32"}),
        control("page-cache", "the page cache grows, the job does not",
                {**STEP_BOUND, "dataset.samples": "8192", "read.cache": "cold", "step.time": step_time(BATCH, STEP_RATE / 2),
                 "measure.duration": "3s"}),
    ]
