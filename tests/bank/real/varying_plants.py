"""Plants of what varies: with time (a burst credit, an ageing store, a quota that changes, a job that is stopped), from file to
file (tails, huge pictures), from core to core (starved workers, load on cores that are not the job's), and readers that
block.  What a plant is and how its truth is checked, real_plants.py says; `site.draw` draws what the seed decides."""

import math
import os
from typing import Callable, List, Optional, Tuple

from conditions import Site
from plants import EXTERNAL, HEALTHY_STEP, Pair, Settings
from real_plants import (ANY_STAGE, COMPUTED_STEP, DEPTH, EARLY_S, FAST_STEP, FEWER, IDLE_FACTOR, LONG_HALF_S, ONE_LONG, OPENS, READ_BANDWIDTH, READ_IOPS,
                         READ_LATENCY, READ_SLOTS, SMALL_BATCHES, STEP_RATE, TRAINS, Build, Limits, RealPlant, Seen, all_cores, bandwidth, iops,
                         latency, on_disk, rate_of, slots, step_at, stored, tails, us)

SEED = 43  # halves that differ by one plant, and no family by more than two; the first from 35 on, chosen by that alone
READ_TAIL: List[Pair] = [("read", "tail")]
READ_STALLS: List[Pair] = [("read", "stalls")]
DECODE_QUOTA: List[Pair] = [("decode", "quota")]
DECODES: List[Pair] = [("decode", "cpu"), ("decode", "cores")]
ALL_BUSY = "as many decoders as there are cores, all busy: more cores and cheaper decoding both help"
REPEATED: Settings = {"measure.repeats": "3", "measure.duration": "2s"}  # by the user: three repetitions of 3 s with their warm-up
CREDIT_S, CREDIT_REPEATED_S = (1.5, 2.0), (3.2, 4.5)  # in the first second that is measured; in the second repetition
AGEING_US = (300, 800)            # in each second
TAIL_SHARE = (0.012, 0.03)        # of the files
STALLED_MS = (100, 200)
STILL_BUFFERED_MS = 30            # how long the step of those plants goes on
STOPPED_S = ((0.5, 0.9), (1.3, 2.0))
STOPPED_LOSS = 2.0                # of the condition that such a job has besides
HALF_CORE, MOST_OF_CORE = 1.35, 1.8  # losses of a job of two cores whose second one is taken
WEIGHT_OF_NICE = 1.25             # of the scheduler, from one level to the next
QUOTAS = (1.5, 2.4)               # see those of foreign_plants.py
QUIET: Settings = {"batch.size": "32", "augment.size": "96"}
ONE_CORE: Settings = {**step_at(STEP_RATE / 2, 32), **QUIET}
TRAINS_SMALL: Settings = {**step_at(2 * STEP_RATE, 8), "batch.size": "8", "prefetch.depth": "1", "augment.size": "64"}


def with_store(folder: str, limits: Callable[[Site, float, Seen], List[str]], settings: Settings, always: Tuple[str, ...] = ()) -> Build:
    """stored(), of limits that draw."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        options = limits(site, rate_of(loss, h), h) if loss else []
        return {"dataset.path": site.store(site.data(folder), *always, *options), **settings}

    return build


# --- stores that change, and stores with a tail ---------------------------------------------------------------------


def credit(limits: Limits, burst: str, seconds: Tuple[float, float], unit: Callable[[Seen], float]) -> Callable[[Site, float, Seen], List[str]]:
    """What is saved up lasts for so long; what lasts is the rate."""

    def options(site: Site, rate: float, h: Seen) -> List[str]:
        return [*limits(rate, h), burst, "%.0f" % ((h.throughput - rate) * unit(h) * site.draw("credit", *seconds))]

    return options


def credit_plants() -> List[RealPlant]:
    def plant(name: str, what: str, truth: List[Pair], limits: Limits, burst: str, seconds: Tuple[float, float], more: Settings = {}) -> RealPlant:
        unit = (lambda h: h.file_bytes) if burst == "--burst-bytes" else (lambda h: 1.0)
        settings = {**TRAINS, **more}
        return RealPlant("credit-" + name, "credit", what, truth, with_store("varied", credit(limits, burst, seconds, unit), settings),
                         lasts=stored(limits, settings=settings), full=True, flight=FEWER, kind="lasting")

    return [
        plant("iops", "requests/s, and a credit of them that ends early in the run", READ_IOPS, iops(), "--burst-requests", CREDIT_S),
        plant("bytes", "bytes/s, likewise", READ_BANDWIDTH, bandwidth(), "--burst-bytes", CREDIT_S),
        plant("iops-repeats", "requests/s, and a credit that ends in the second repetition", READ_IOPS, iops(), "--burst-requests",
              CREDIT_REPEATED_S, REPEATED),
        plant("bytes-repeats", "bytes/s, likewise", READ_BANDWIDTH, bandwidth(), "--burst-bytes", CREDIT_REPEATED_S, REPEATED),
    ]


def ageing_plants() -> List[RealPlant]:
    def ageing(depth: int, *more: str) -> Callable[[Site, float, Seen], List[str]]:
        return lambda site, rate, h: ["--latency", us(depth / rate), "--ageing", "%.0f" % site.draw("ageing", *AGEING_US), *more]

    def plant(name: str, what: str, depth: int, settings: Settings, flight: Settings, *more: str, factor: float = 0.5) -> RealPlant:
        build = with_store("varied", ageing(depth, *more), {**TRAINS, **settings})
        return RealPlant("ageing" + name, "ageing", what, READ_LATENCY, build, lasts=build, full=False, flight=flight, flight_factor=factor, turn="remove",
                         kind="ageing")

    return [
        plant("", "a store that takes longer and longer", DEPTH, {}, FEWER),
        plant("-4", "the same, four files in flight, exponential times", 4, {"read.depth": "4"}, {"read.depth": "2"}, "--distribution", "exponential"),
        plant("-2", "the same, two files in flight", 2, {"read.depth": "2"}, {"read.depth": "1"}),
        plant("-pread", "the same, three threads that read one file each", 3, {"read.engine": "pread", "read.threads": "3"}, {"read.threads": "6"},
              factor=2),
    ]


def tail_plants() -> List[RealPlant]:
    """More of those in real_plants.py.  Batches are delivered in order: whoever waits for a slow file waits for all of it but what is buffered."""

    def tail(*more: str) -> Callable[[Site, float, Seen], List[str]]:
        def options(site: Site, rate: float, h: Seen) -> List[str]:
            share = site.draw("share", *TAIL_SHARE)
            return [*tails(share)(rate, h), "--seed", "%.0f" % site.draw("seed", 1, 1e6), *more]

        return options

    def plant(name: str, what: str, *more: str, data: str = "varied", settings: Settings = {}) -> RealPlant:
        return RealPlant("tail-" + name, "tail", what, READ_TAIL,
                         with_store(data, tail(*more), {**SMALL_BATCHES, **settings}, ("--latency", "1500")), turn="remove")

    return [
        plant("opens", "some files take long to open", "--slow-opens"),
        plant("thumbs", "small files, 16 in flight from two threads", data="thumbs", settings={"read.threads": "2"}),
        plant("pread", "four threads that read one file each", settings={"read.engine": "pread", "read.threads": "4"}),
        plant("random-thumbs", "some reads of small files", "--slow-random", data="thumbs"),
    ]


def stall_plants() -> List[RealPlant]:
    """So short that a large buffer hides them: this job's is small."""

    def stalls(site: Site, rate: float, h: Seen) -> List[str]:
        stalled = site.draw("stalled", *STALLED_MS)
        return ["--stall-every", "%.0f" % ((stalled - STILL_BUFFERED_MS) / (1 - rate / h.throughput)), "--stall-for", "%.0f" % stalled]

    def exactly(every: int, length: int) -> Callable[[Site, float, Seen], List[str]]:
        """Of the first intensity; of the second, as often again."""
        return lambda site, rate, h: ["--stall-every", "%.0f" % (every / (1 if rate > 0.6 * h.throughput else 2)), "--stall-for", str(length)]

    def plant(name: str, what: str, limits: Callable[[Site, float, Seen], List[str]], *always: str, **more) -> RealPlant:
        return RealPlant("stalls-" + name, "stalls", what, READ_STALLS, with_store("varied", limits, TRAINS_SMALL, always), turn="remove", kind="stalls", **more)

    return [
        plant("short", "nothing passes for 100 to 200 ms, again and again", stalls, intensities=((1.35, 1.6), (1.9, 2.8))),
        plant("short-latency", "the same, with 2 ms for each read", stalls, "--latency", "2000", intensities=((1.35, 1.6), (1.9, 2.8))),
        plant("200-in-800", "200 ms of each 800, then of each 400", exactly(800, 200), intensities=(1.25, 2.0)),
        plant("100-in-600", "100 ms of each 600, then of each 300", exactly(600, 100), intensities=(1.2, 1.9)),
    ]


# --- jobs that are stopped ---------------------------------------------------------------------------------------------


def stopped(build: Build, how: str) -> Build:
    """An intensity is how many seconds it stands still; what else it has, it has always."""

    def with_stop(site: Site, seconds: Optional[float], h: Optional[Seen]) -> Settings:
        if seconds:
            site.job_stops(EARLY_S, seconds, how)
        return build(site, STOPPED_LOSS if seconds else None, h)

    return with_stop


def unstopped(build: Build) -> Build:
    """What lasts of a stopped job."""

    def without_stop(site: Site, seconds: Optional[float], h: Optional[Seen]) -> Settings:
        return build(site, STOPPED_LOSS if seconds else None, h)

    return without_stop


def stopped_plants() -> List[RealPlant]:
    def plant(name: str, what: str, truth: List[Pair], build: Build, how: str, **more) -> RealPlant:
        return RealPlant("stop-" + name, "stopped", what, truth, stopped(build, how), lasts=unstopped(build), kind="stopped", turn="remove",
                         intensities=STOPPED_S, **more)

    return [
        plant("latency", "SIGSTOP for a moment, before a slow store", READ_LATENCY, stored(latency()), "signal", full=False, flight=FEWER),
        plant("latency-frozen", "a job that is frozen for a moment, likewise", READ_LATENCY, stored(latency(4), settings={**TRAINS, "read.depth": "4"}),
              "freezer", full=False, flight={"read.depth": "2"}),
        plant("bytes", "SIGSTOP for a moment, before a full store", READ_BANDWIDTH, stored(bandwidth()), "signal", full=True, flight=FEWER),
        plant("iops-frozen", "frozen for a moment, before a full store", READ_IOPS, stored(iops()), "freezer", full=True, flight=FEWER),
        plant("decode", "SIGSTOP for a moment, and one decoder", [("decode", "cpu")], one_decoder("photos"), "signal"),
    ]


def one_decoder(data: str) -> Build:
    """Without the plant, as many as there are cores."""
    return lambda site, loss, h: on_disk(site, data, {**FAST_STEP, "decode.workers": "1" if loss else all_cores()["decode.workers"]})


# --- readers that block --------------------------------------------------------------------------------------------------


def reader_plants() -> List[RealPlant]:
    """What is in flight is a thread's, or a worker's: that many of them are the knob."""

    def threads(engine: str, count: int) -> Settings:
        return {**TRAINS, "read.engine": engine, "read.threads": str(count)}

    def workers(count: int) -> Settings:
        return {**TRAINS, "read.by": "workers", "decode.workers": str(count), "augment.size": "96"}

    def plant(name: str, what: str, truth: List[Pair], limits: Limits, settings: Settings, flight: Settings, full: bool, factor: float = 0.5,
              data: str = "varied", **more) -> RealPlant:
        return RealPlant(name, "readers", what, truth, stored(limits, data, settings), full=full, flight=flight, flight_factor=factor,
                         turn="double" if full else "remove", **more)

    by_threads = lambda count: {"read.threads": str(count)}
    by_workers = lambda count: {"decode.workers": str(count)}
    return [
        plant("pread-slow-1", "one thread that reads a file at a time, from a slow store", READ_LATENCY, latency(1), threads("pread", 1), by_threads(2), False, 2),
        plant("pread-slow-4", "four of them, exponential times", READ_LATENCY, latency(4, "--distribution", "exponential"), threads("pread", 4), by_threads(2),
              False),
        plant("pread-full", "four of them, bytes/s", READ_BANDWIDTH, bandwidth(), threads("pread", 4), by_threads(2), True),
        plant("pread-slots", "eight of them, a store that works on two files", READ_SLOTS, slots(2), threads("pread", 8), by_threads(4), True),
        plant("mmap-slow-1", "one thread that maps files, from a slow store", READ_LATENCY, latency(1), threads("mmap", 1), by_threads(2), False, 2),
        plant("mmap-slow-6", "six of them", READ_LATENCY, latency(6), threads("mmap", 6), by_threads(3), False),
        plant("mmap-full", "four of them, requests/s", READ_IOPS, iops(), threads("mmap", 4), by_threads(2), True),
        plant("workers-slow", "two workers that read their own files, from a slow store", READ_LATENCY, latency(2), workers(2), by_workers(4), False, 2),
        plant("workers-slow-6", "six of them, log-normal times", READ_LATENCY, latency(6, "--distribution", "lognormal", "--sigma", "0.5"), workers(6),
              by_workers(3), False),
        plant("workers-full", "six of them, bytes/s", READ_BANDWIDTH, bandwidth(), workers(6), by_workers(3), True),
        plant("workers-full-iops", "eight of them, requests/s", READ_IOPS, iops(), workers(8), by_workers(4), True),
        plant("open-pread", "four threads, opening takes its time", READ_LATENCY + [("read", "metadata")], lambda rate, h: ["--open", us(4 / rate)],
              threads("pread", 4), by_threads(2), False, why=OPENS),
        plant("open-few", "two files in flight, opening takes its time", READ_LATENCY + [("read", "metadata")], lambda rate, h: ["--open", us(2 / rate)],
              {**TRAINS, "read.depth": "2"}, {"read.depth": "4"}, False, 2, why=OPENS),
    ]


# --- the processor ---------------------------------------------------------------------------------------------------------


def quota_changes(settings: Settings, data: str, at_s: float, of_before: float = 0) -> Build:
    """Half-way, to a quota that costs the loss; before, none, or one that costs so many times as much."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        if loss:
            cores = h.cpu_cores / loss
            site.cpu_quota_changes(cores, at_s, cores / of_before if of_before else 0)
        return on_disk(site, data, settings)

    return build


def same_quota(settings: Settings, data: str) -> Build:
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        if loss:
            site.cpu_quota(h.cpu_cores / loss, 1, 0)
        return on_disk(site, data, settings)

    return build


def nice_of(share: float) -> int:
    """That takes such a share of a core from one process of the usual weight."""
    return -max(0, round(math.log(share / (1 - share)) / math.log(WEIGHT_OF_NICE)))


def starved(settings: Settings, data: str) -> Build:
    """A hog on the last core takes so much of it that one of two cores and a part are left."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        if loss:
            site.hogs(1, "cpu", nice=nice_of(min(0.9, h.cores * (1 - 1 / loss))), core=-1)
        return on_disk(site, data, settings)

    return build


def on_first_core(build: Build, core: int = -1) -> Build:
    """The job may use the first core only, and others keep another one busy: they take nothing from it."""

    def alone(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        site.cores(1)
        if loss:
            site.hogs(2, "cpu", core=core)
        return build(site, loss, h)

    return alone


def own_core(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
    """Others on the job's only core."""
    site.cores(1)
    if loss:
        site.hogs(1, "cpu", nice=-round(math.log(loss - 1) / math.log(WEIGHT_OF_NICE)), core=0)
    return on_disk(site, "photos", {**FAST_STEP, "decode.workers": "1"})


def one_of_the_cores(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
    """Restricted to the first core, beside others on the last one."""
    if loss:
        site.cores(1)
        site.hogs(2, "cpu", core=-1)
    return on_disk(site, "photos", all_cores())


def huge(mixed: str, settings: Settings) -> Build:
    return lambda site, loss, h: on_disk(site, (mixed + ("-few" if loss < 2.2 else "-many")) if loss else mixed, settings)


def cpu_plants() -> List[RealPlant]:
    decoders = all_cores()
    pinned = {**decoders, "run.affinity": "compact"}
    by_batch = {**decoders, "read.by": "workers", "decode.share": "batches"}

    def phases(name: str, what: str, truth: List[Pair], build: Build, before: List[Pair], **more) -> RealPlant:
        return RealPlant(name, "quota", what, truth, build, turn="remove", kind="phases", changes_at=LONG_HALF_S, before=before, intensities=QUOTAS, **more)

    def lasting(name: str, what: str, settings: Settings, data: str, of_before: float) -> RealPlant:
        return RealPlant(name, "quota", what, DECODE_QUOTA, quota_changes({**settings, **ONE_LONG}, data, LONG_HALF_S, of_before),
                         lasts=same_quota(settings, data), turn="remove", kind="lasting", intensities=QUOTAS)

    def external(name: str, family: str, what: str, build: Build, **more) -> RealPlant:
        return RealPlant(name, family, what, EXTERNAL, build, turn="remove", why=ANY_STAGE, **more)

    takes = (HALF_CORE, MOST_OF_CORE)
    return [
        phases("quota-begins", "a quota from half-way on", DECODE_QUOTA, quota_changes({**decoders, **ONE_LONG}, "photos", LONG_HALF_S), DECODES),
        phases("quota-begins-png", "the same with PNG files", DECODE_QUOTA, quota_changes({**decoders, **ONE_LONG}, "rgba", LONG_HALF_S), DECODES),
        phases("quota-step-begins", "the same, a step that computes", [("step", "quota"), ("decode", "quota")],
               quota_changes({**COMPUTED_STEP, **ONE_LONG}, "photos", LONG_HALF_S), HEALTHY_STEP, why=ANY_STAGE),
        lasting("quota-tightens", "a quota that becomes half as much", decoders, "photos", 0.5),
        lasting("quota-eases", "a quota that becomes twice as much, and still costs", decoders, "detailed", 2),
        external("starved-pinned", "starved", "pinned threads; a hog takes most of the last core", starved(pinned, "photos"), intensities=takes),
        external("starved-free", "starved", "the same, and threads that may move", starved(decoders, "rgba"), intensities=takes),
        external("starved-batches", "starved", "workers that make whole batches; a hog takes most of the last core", starved(by_batch, "photos"),
                 intensities=takes),
        external("own-core", "elsewhere", "a job of one core, and a hog on it", own_core, intensities=((1.5, 2.0), (2.5, 4.0))),
        RealPlant("elsewhere-decode", "elsewhere", "a job of one core, hogs on another: the machine has more cores", DECODES, one_of_the_cores, turn="remove",
                  why=ALL_BUSY, intensities=(1.6, 2.0)),
        RealPlant("elsewhere-latency", "elsewhere", "a job of one core before a slow store, hogs on another core", READ_LATENCY,
                  on_first_core(stored(latency(), settings=ONE_CORE)), full=False, flight=FEWER, turn="remove"),
        RealPlant("elsewhere-bytes", "elsewhere", "the same before a full store", READ_BANDWIDTH, on_first_core(stored(bandwidth(), settings=ONE_CORE)),
                  full=True, flight=FEWER),
        RealPlant("huge-jpeg", "decode", "one decoder, and a few huge pictures", [("decode", "cpu")],
                  huge("small", {**FAST_STEP, "decode.workers": "1"}), turn="remove", intensities=(1.6, 4.0)),
        RealPlant("huge-among-thumbs", "decode", "the same among very small ones", [("decode", "cpu")],
                  huge("tiny", {**FAST_STEP, "decode.workers": "1", "augment.size": "96"}), turn="remove", intensities=(1.6, 4.0)),
    ]


# --- healthy twins ---------------------------------------------------------------------------------------------------------


def healthy_plants() -> List[RealPlant]:
    """The same machinery, and nothing that binds: the step is the limit.  The loss makes the step slower."""

    Settle = Callable[[Site, float], Settings]  # of the step's rate

    def twin(name: str, what: str, settle: Settle, fastest: float = STEP_RATE / 2, lasts: Optional[Settle] = None) -> RealPlant:
        def of(one: Settle) -> Build:
            return lambda site, loss, h: {**QUIET, **step_at(fastest / (loss or 1), 32), **one(site, fastest / (loss or 1))}

        return RealPlant("healthy-" + name, "healthy", what, HEALTHY_STEP, of(settle), lasts=of(lasts) if lasts else None, kind="control", full=False)

    def store(*options: Callable[[Site, float], str], **more: str) -> Settle:
        settings = {key.replace("_", "."): value for key, value in more.items()}
        return lambda site, rate: {"dataset.path": site.store(site.data("varied"), *[one if isinstance(one, str) else one(site, rate) for one in options]),
                                   **settings}

    def files(site: Site, rate: float) -> Settings:
        return {"dataset.path": site.data("varied")}

    def stopped_at(how: str) -> Settle:
        def settle(site: Site, rate: float) -> Settings:
            site.job_stops(EARLY_S, site.draw("stopped", 0.5, 1.5), how)
            return files(site, rate)

        return settle

    def quota(site: Site, rate: float) -> Settings:
        cores = len(os.sched_getaffinity(0))
        site.cpu_quota_changes(1.5 * cores, EARLY_S, 3.0 * cores)
        return files(site, rate)

    def elsewhere(site: Site, rate: float) -> Settings:
        site.cores(1)
        site.hogs(2, "cpu", core=-1)
        return files(site, rate)

    def kept_running(site: Site, rate: float) -> Settings:
        """One that gives way at once."""
        site.hogs(1, "cpu", nice=19, core=-1)
        return files(site, rate)

    fast = lambda in_flight: lambda site, rate: us(in_flight / rate / IDLE_FACTOR)
    draws = lambda what, low, high, form="%.0f": lambda site, rate: form % site.draw(what, low, high)
    return [
        twin("credit", "requests/s that are enough, with a credit", store("--iops", lambda site, rate: "%.0f" % (2 * rate), "--burst-requests",
                                                                         draws("credit", 200, 800))),
        twin("ageing", "a store that ages, and is fast enough", store("--latency", fast(DEPTH), "--ageing", draws("ageing", 100, 300))),
        twin("tail", "a tail that the queues cover", store("--latency", "1000", "--slow-share", draws("share", 0.01, 0.04, "%.4f"), "--slow",
                                                           draws("slow", 10e3, 25e3))),
        twin("tail-random", "the same, at random", store("--latency", "1000", "--slow-share", draws("share", 0.01, 0.04, "%.4f"), "--slow",
                                                         draws("slow", 10e3, 25e3), "--slow-random")),
        twin("short-stalls", "short stalls that the queues cover", store("--stall-every", draws("every", 500, 900), "--stall-for", draws("for", 30, 60))),
        twin("stopped", "a job that is sent SIGSTOP once", stopped_at("signal"), lasts=files),
        twin("frozen", "a job that is frozen once", stopped_at("freezer"), lasts=files),
        twin("pread", "six threads that read one file each, from a store that is fast enough", store("--latency", fast(6), read_engine="pread",
                                                                                                  read_threads="6")),
        twin("mmap", "six threads that map files, likewise", store("--latency", fast(6), read_engine="mmap", read_threads="6")),
        twin("workers", "four workers that read their own files, likewise", store("--latency", fast(4), read_by="workers", decode_workers="4")),
        twin("open", "opening takes its time, and not too much of it", store("--open", fast(DEPTH))),
        twin("quota-changes", "a quota that changes and never binds", quota),
        twin("elsewhere", "a job of one core, hogs on another", elsewhere, STEP_RATE / 4),
        twin("idle-hog", "a hog that gives way (nice 19)", kept_running, STEP_RATE / 4),
        twin("huge", "a few huge pictures that the queues cover", lambda site, rate: {"dataset.path": site.data("small-few")}, STEP_RATE / 4),
    ]


def varying_plants() -> List[RealPlant]:
    plants = credit_plants() + ageing_plants() + tail_plants() + stall_plants() + stopped_plants() + reader_plants() + cpu_plants() + healthy_plants()
    for plant in plants:
        plant.origin, plant.seed = "varying", SEED
    return plants
