"""The real plants: conditions made by other programs and by the kernel, and what each must be called.

A plant's `build(site, loss, h)` makes the surroundings in which the healthy run should lose a factor of `loss`, and
gives the settings of the run; loss None: the same surroundings without the limit.  The truth is decided here, never
read by the diagnosis, and checked by turning the plant:

  turn "double"   the limit is doubled, and all else stays: throughput must follow to at least 90 %.  That shows which
                  resource it was.
  turn "remove"   the condition is taken away: at least 90 % of what was lost must come back.
  flight          where it is said whether the store is full: half (or twice) as many files in flight must leave the
                  throughput of a full store as it is, and change that of a slow one in proportion.

Of a condition that comes, goes or grows in the run, `lasts(site, loss, h)` makes what lasts of it (a burst credit that is
used up, a job that nobody stops): labels are checked on that, in short runs.

Where two resources are equally true, the truth is a set, and `why` says why.  The first one names the row of the matrix."""

import hashlib
import math
import os
import random
import sys
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Tuple, Union

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from conditions import PERIOD_US, Site
from plants import EXTERNAL, HEALTHY_STEP, Healthy, Pair, Settings, step_time

BATCH = 64  # the program's default
DEPTH = 8   # likewise: read.threads x read.depth
STEP_RATE = 640.0
LOW, HIGH = (1.4, 2.0), (2.5, 5.0)  # of the loss: one intensity is drawn from each
NICE, NICE_WEIGHT = 5, 335 / 1024   # of the scheduler, against the program's
STALL_PERIOD_S = 1.5
BUFFERED_S = 0.12   # how long the step goes on when reads stop: batches of 16, two of them finished, and those on their way
TAIL_HIDDEN_S, TAIL_MOST_S = 0.09, 0.4  # of the time of a slow file: what is buffered by then, and the most on average
IDLE_FACTOR = 4.0   # a limit that does not bind lets so many times as much pass
BIG = {"read.threads": "4"}  # 32 files in flight
FEWER: Settings = {"read.depth": str(DEPTH // 2)}
SEED = 9            # its halves are as equal as can be; chosen by that alone

READ_LATENCY: List[Pair] = [("read", "latency")]
READ_BANDWIDTH: List[Pair] = [("read", "bandwidth")]
READ_IOPS: List[Pair] = [("read", "iops")]
READ_SLOTS: List[Pair] = [("read", "concurrency")]
BYTES_OR_FILES = "all files have the same size: bytes and requests stand in a fixed proportion, and nothing can tell them apart"
OPENS = "what is slow is a call that reads no data: slow for each request, and fewer of them help as much"
ONE_REQUEST = "one slot, a fixed time each: that is a limit of requests as much as of concurrency"
STORE_OR_HOG = "the store is full, and another client has a share of it: without that client, or with twice the store, all comes back"
CACHE_OR_STORE = "what the cache does not hold comes from a slow store: a larger cache and a faster store both give it back"
ANY_STAGE = "all threads of the job wait for cores then; which stage is held up most is of no matter"


@dataclass
class Seen(Healthy):
    """What the run without the limit told, and what it used of the machine."""

    cpu_cores: float = 0.0
    resident: float = 0.0


Build = Callable[[Site, Optional[float], Optional[Seen]], Settings]
Intensity = Union[float, Tuple[float, float]]  # itself, or drawn from a range


@dataclass
class RealPlant:
    name: str
    family: str
    what: str
    truth: List[Pair]
    build: Build
    full: Optional[bool] = None  # is the store full?  None: it is no matter of a store
    turn: str = "double"
    flight: Optional[Settings] = None
    flight_factor: float = 0.5   # of the files in flight, with `flight`
    kind: str = "single"         # control: healthy; phases: the limit begins in the run; stalls, outage: it comes and goes;
                                 # lasting: it changes, and what lasts counts; ageing: it grows; stopped: the job stands still once
    changes_at: float = 0.0      # phases: seconds after the run began
    before: List[Pair] = field(default_factory=lambda: HEALTHY_STEP) # phases: what is true until then
    lasts: Optional[Build] = None
    why: str = ""                # of a truth that is a set
    intensities: Optional[Tuple[Intensity, Intensity]] = None
    origin: str = "ours"         # foreign: by an author who has not seen the rules, mostly with programs of others; varying:
                                 # what changes with time, or from file to file or core to core, and readers that block
    seed: int = SEED             # which half it is in
    drawn: Optional[int] = None  # by which seed its intensities and parameters are drawn; None: by that of its half

    def drawn_by(self) -> int:
        return self.seed if self.drawn is None else self.drawn


def half_of(name: str, seed: int) -> str:
    """Which half a plant is in: by name and seed alone, so that no other plant can move it."""
    return "train" if hashlib.sha256(("%d:%s" % (seed, name)).encode()).digest()[0] & 1 else "held-out"


def intensities_of(plant: RealPlant) -> Tuple[float, float]:
    """A weak and a strong one, even in the logarithm."""
    draws = random.Random("%s:%d" % (plant.name, plant.drawn_by()))
    ranges = [one if isinstance(one, tuple) else (one, one) for one in plant.intensities or (LOW, HIGH)]
    low, high = (math.exp(draws.uniform(math.log(a), math.log(b))) for a, b in ranges)
    return round(low, 2), round(high, 2)


# --- data sets: what lies on the storage ----------------------------------------------------------------------

LIKE: Settings = {"dataset.recipe": "like", "dataset.format": "jpeg", "dataset.samples": "400"}
SMALL, TINY = "jpeg 240x180~0.2 420 q90 22KB~0.3", "jpeg 120x90~0.2 420 q90 7KB~0.3"

DATA: Dict[str, Settings] = {
    # Files of many sizes, all below what the kernel reads at once: one request each.
    "varied": {"dataset.format": "jpeg", "dataset.width": "240", "dataset.height": "180", "dataset.size_sigma": "0.5", "dataset.samples": "512"},
    "equal": {"dataset.format": "raw", "dataset.width": "128", "dataset.height": "96", "dataset.size_sigma": "0", "dataset.samples": "512"},
    "photos": {"dataset.format": "jpeg", "dataset.width": "500", "dataset.height": "375", "dataset.samples": "256"},
    "pngs": {"dataset.format": "png", "dataset.width": "240", "dataset.height": "180", "dataset.samples": "256"},
    # As large as a cache may be small.
    "large": {"dataset.format": "raw", "dataset.width": "256", "dataset.height": "192", "dataset.size_sigma": "0.3", "dataset.samples": "1200"},
    "lines": {"dataset.format": "raw", "dataset.width": "120", "dataset.height": "90", "dataset.size_sigma": "0.25", "dataset.samples": "448"},
    "thumbs": {"dataset.format": "jpeg", "dataset.width": "128", "dataset.height": "96", "dataset.size_sigma": "0.35", "dataset.samples": "600"},
    "detailed": {"dataset.format": "jpeg", "dataset.width": "400", "dataset.height": "300", "dataset.quality": "97", "dataset.subsampling": "444",
                 "dataset.samples": "160"},
    "rgba": {"dataset.format": "png", "dataset.width": "320", "dataset.height": "200", "dataset.png_color": "rgba", "dataset.png_level": "2",
             "dataset.size_sigma": "0.4", "dataset.samples": "200"},
    "specks": {"dataset.format": "raw", "dataset.width": "24", "dataset.height": "16", "dataset.size_sigma": "0.3", "dataset.samples": "1200"},
    # Shards, of which requests of 64 KiB are read: about so many samples each.
    "packed": {"dataset.format": "raw", "dataset.width": "64", "dataset.height": "43", "dataset.size_sigma": "0.2", "dataset.samples": "4000",
               "dataset.container": "tar", "dataset.shard_samples": "400"},
    # Mixtures: a few pictures that are far larger than the others.
    "small": {**LIKE, "dataset.like": SMALL + " 100%"},
    "small-few": {**LIKE, "dataset.like": SMALL + " 98%, jpeg 3000x2000~0.1 420 q90 900KB~0.2 2%"},
    "small-many": {**LIKE, "dataset.like": SMALL + " 95%, jpeg 4500x3000~0.1 420 q90 1800KB~0.2 5%"},
    "tiny": {**LIKE, "dataset.like": TINY + " 100%"},
    "tiny-few": {**LIKE, "dataset.like": TINY + " 99%, jpeg 1600x1200~0.2 420 q90 350KB~0.2 1%"},
    "tiny-many": {**LIKE, "dataset.like": TINY + " 97%, jpeg 2400x1800~0.2 420 q90 700KB~0.2 3%"},
    "other": {"dataset.format": "raw", "dataset.width": "512", "dataset.height": "384", "dataset.size_sigma": "0.3", "dataset.samples": "400"},
}

# --- what the user runs ----------------------------------------------------------------------------------------


def step_at(rate: float, batch: int = BATCH) -> Settings:
    return {"step.backend": "emulated", "step.time": step_time(batch, rate)}


TRAINS: Settings = step_at(STEP_RATE)
PACKED_EACH = 5.6
PACKED: Settings = {**step_at(8 * STEP_RATE), "dataset.container": "tar", "read.order": "shards", "read.shuffle_buffer": "64", "read.request": "64KiB"}
SMALL_BATCHES: Settings = {**step_at(STEP_RATE, 16), "batch.size": "16"}
FAST_STEP: Settings = {"step.backend": "null"}
# How long a run takes is for the program to decide, but where a change in its midst must come to pass.
ONE_LONG: Settings = {"measure.repeats": "1", "measure.duration": "8s"}
LONG_HALF_S = 5.0  # a second of warm-up, and half of those eight
EARLY_S = 2.0      # inside any run: they take 3 s and more after a second of warm-up


def all_cores() -> Settings:
    """Decoding on every core is the limit: what takes cores away takes throughput."""
    return {**FAST_STEP, "decode.workers": str(len(os.sched_getaffinity(0)))}


COMPUTED_STEP: Settings = {"step.backend": "openblas", "step.model": "mlp", "step.threads": "1", "augment.size": "64", "decode.workers": "1"}


def rate_of(loss: float, h: Seen) -> float:
    return h.throughput / loss


def us(seconds: float) -> str:
    return "%.3f" % (1e6 * seconds)


# --- storage behind slowfs ---------------------------------------------------------------------------------------

Limits = Callable[[float, Seen], List[str]]  # of (samples/s, what was seen)


def stored(limits: Limits, data: str = "varied", settings: Settings = TRAINS, always: Tuple[str, ...] = ()) -> Build:
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        options = limits(rate_of(loss, h), h) if loss else []
        return {"dataset.path": site.store(site.data(data), *always, *options), **settings}

    return build


def latency(depth: float = DEPTH, *more: str) -> Limits:
    return lambda rate, h: ["--latency", us(depth / rate), *more]


def slots(count: int, *more: str, each: float = 1) -> Limits:
    return lambda rate, h: ["--slots", str(count), "--latency", us(count * each / rate), *more]


def bandwidth(*more: str) -> Limits:
    return lambda rate, h: ["--bytes-per-s", "%.0f" % (rate * h.file_bytes), *more]


def iops(*more: str) -> Limits:
    return lambda rate, h: ["--iops", "%.3f" % rate, *more]


def stalls(period_s: float) -> Limits:
    def limits(rate: float, h: Seen) -> List[str]:
        share = 1 - rate / h.throughput
        stalled = min(0.9 * period_s, period_s * share + BUFFERED_S)
        return ["--stall-every", "%.0f" % (1e3 * period_s), "--stall-for", "%.0f" % (1e3 * stalled)]

    return limits


def tails(share: float) -> Limits:
    """In order, one slow file after another is waited for, but for what is buffered."""
    return lambda rate, h: ["--slow-share", "%.4f" % share, "--slow", us(min(TAIL_MOST_S, 1 / rate / share + TAIL_HIDDEN_S))]


def tails_completed(share: float, depth: int, base_us: float) -> Limits:
    """As completed, slow files keep places of those in flight."""
    return lambda rate, h: ["--slow-share", "%.4f" % share, "--slow", us((depth / rate - 1e-6 * base_us) / share)]


def outage(at_s: float) -> Limits:
    """Two to five seconds: an intensity is a length here."""
    return lambda rate, h: ["--outage-at", str(at_s), "--outage-for", "%.2f" % (h.throughput / rate + 1)]


def slow_plants() -> List[RealPlant]:
    def plant(name: str, what: str, limits: Limits, data: str = "varied", settings: Settings = TRAINS, flight: Settings = FEWER, **more) -> RealPlant:
        always = more.pop("always", ())
        return RealPlant("latency-" + name, "latency", what, READ_LATENCY, stored(limits, data, settings, always), full=False, flight=flight,
                         turn="remove", **more)

    one = {**TRAINS, "read.depth": "1"}
    more = {"read.depth": "2"}
    return [
        plant("read", "a fixed time for each read", latency()),
        plant("read-photos", "the same with larger files", latency(), "photos"),
        plant("read-equal", "the same with files of one size", latency(), "equal"),
        plant("1", "one read at a time", latency(1), settings=one, flight=more, flight_factor=2),
        plant("1-exponential", "one at a time, exponential", latency(1, "--distribution", "exponential"), settings=one, flight=more,
              flight_factor=2),
        plant("exponential", "exponential times", latency(DEPTH, "--distribution", "exponential")),
        plant("lognormal", "log-normal times, some of them long", latency(DEPTH, "--distribution", "lognormal", "--sigma", "0.8")),
        plant("open", "opening takes its time, reading does not", lambda rate, h: ["--open", us(DEPTH / rate)]),
        plant("open-read", "opening and reading take as long", lambda rate, h: ["--open", us(0.5 * DEPTH / rate), "--latency", us(0.5 * DEPTH / rate)]),
        plant("direct-io", "the mount has no page cache", latency(), always=("--direct-io",)),
        plant("slots-spare", "a store of 64 slots, few of them used", latency(DEPTH, "--slots", "64")),
        plant("two-rings", "16 in flight from two threads", latency(2 * DEPTH), settings={**TRAINS, "read.threads": "2"},
              flight={"read.threads": "1"}),
        RealPlant("latency-midrun", "latency", "a store that is fast until half the run is over", READ_LATENCY,
                  midrun(lambda rate, h: ["--latency", us(DEPTH / rate)]), full=False, turn="remove", kind="phases", changes_at=LONG_HALF_S),
    ]


def packed_plants() -> List[RealPlant]:
    """Samples that are cut out of large requests: what the store serves, and what is timed, are these."""

    def plant(name: str, what: str, truth: List[Pair], limits: Limits, full: bool, settings: Settings = PACKED, **more) -> RealPlant:
        # Past the page cache, whose reading ahead makes other requests of them.
        return RealPlant("packed-" + name, truth[0][1], what, truth, stored(limits, "packed", settings, ("--direct-io",)), full=full, **more)

    one = {**PACKED, "read.depth": "1"}
    return [
        plant("latency", "a fixed time for each request of several samples", READ_LATENCY, latency(DEPTH * PACKED_EACH), False, flight=FEWER, turn="remove"),
        plant("latency-1", "one request at a time", READ_LATENCY, latency(PACKED_EACH), False, one, flight={"read.depth": "2"}, flight_factor=2,
              turn="remove"),
        plant("bytes", "bytes/s, requests of one size", READ_BANDWIDTH + READ_IOPS, bandwidth(), True, flight=FEWER, why=BYTES_OR_FILES),
        plant("slots", "four requests at a time", READ_SLOTS, slots(4, each=PACKED_EACH), True, flight=FEWER),
    ]


def midrun(limits: Limits) -> Build:
    return stored(lambda rate, h: ["--change-at", str(LONG_HALF_S), *limits(rate, h)], settings={**TRAINS, **ONE_LONG})


def slot_plants() -> List[RealPlant]:
    def plant(name: str, what: str, limits: Limits, data: str = "varied", settings: Settings = TRAINS, flight: Settings = FEWER, **more) -> RealPlant:
        truth = more.pop("truth", READ_SLOTS)
        return RealPlant("slots-" + name, "concurrency", what, truth, stored(limits, data, settings), full=True, flight=flight, **more)

    big = {**TRAINS, **BIG}
    half = {"read.threads": "2"}
    either = {"truth": READ_SLOTS + READ_IOPS, "why": ONE_REQUEST}
    return [
        plant("1", "a server that works on one request at a time", slots(1), **either),
        plant("1-photos", "the same with larger files", slots(1), "photos", **either),
        plant("1-exponential", "one at a time, exponential times", slots(1, "--distribution", "exponential")),
        plant("2", "two at a time", slots(2)),
        plant("2-exponential", "two at a time, exponential times", slots(2, "--distribution", "exponential")),
        plant("4", "four at a time", slots(4)),
        plant("4-deep", "four at a time, 32 asked for", slots(4), settings=big, flight=half),
        plant("4-equal", "four at a time, files of one size", slots(4), "equal"),
        plant("8", "eight at a time, 32 asked for", slots(8), settings=big, flight=half),
        plant("8-exponential", "eight at a time, exponential times", slots(8, "--distribution", "exponential"), settings=big, flight=half),
    ]


def rate_plants() -> List[RealPlant]:
    def plant(name: str, what: str, truth: List[Pair], limits: Limits, data: str = "varied", settings: Settings = TRAINS, **more) -> RealPlant:
        always = more.pop("always", ())
        return RealPlant(name, truth[0][1], what, truth, stored(limits, data, settings, always), full=True, flight=FEWER, **more)

    same = {"data": "equal", "why": BYTES_OR_FILES}
    return [
        plant("bytes", "bytes/s, one transfer after the other", READ_BANDWIDTH, bandwidth()),
        plant("bytes-photos", "the same with larger files", READ_BANDWIDTH, bandwidth(), "photos"),
        plant("bytes-shared", "bytes/s, transfers side by side", READ_BANDWIDTH, bandwidth("--shared")),
        plant("bytes-burst", "bytes/s with a burst of 2 MB", READ_BANDWIDTH, bandwidth("--burst-bytes", "2e6")),
        plant("bytes-latency", "bytes/s, and 2 ms for each read", READ_BANDWIDTH, bandwidth("--latency", "2000")),
        plant("bytes-shared-latency", "bytes/s side by side, and 2 ms for each", READ_BANDWIDTH, bandwidth("--shared", "--latency", "2000")),
        plant("bytes-direct-io", "the mount has no page cache", READ_BANDWIDTH, bandwidth(), always=("--direct-io",)),
        plant("bytes-equal", "bytes/s, files of one size", READ_BANDWIDTH + READ_IOPS, bandwidth(), **same),
        plant("bytes-equal-shared", "bytes/s side by side, files of one size", READ_BANDWIDTH + READ_IOPS, bandwidth("--shared"), **same),
        RealPlant("bytes-midrun", "bandwidth", "bytes/s that fall when half the run is over", READ_BANDWIDTH, midrun(bandwidth()), full=True,
                  turn="remove", kind="phases", changes_at=LONG_HALF_S),
        plant("iops", "requests/s", READ_IOPS, iops()),
        plant("iops-photos", "the same with larger files", READ_IOPS, iops(), "photos"),
        plant("iops-burst", "requests/s with a burst of 100", READ_IOPS, iops("--burst-requests", "100")),
        plant("iops-latency", "requests/s, and 2 ms for each", READ_IOPS, iops("--latency", "2000")),
        plant("iops-direct-io", "the mount has no page cache", READ_IOPS, iops(), always=("--direct-io",)),
        plant("iops-equal", "requests/s, files of one size", READ_IOPS + READ_BANDWIDTH, iops(), **same),
    ]


def gap_plants() -> List[RealPlant]:
    def stall(name: str, what: str, period_s: float, *always: str, settings: Settings = {}) -> RealPlant:
        return RealPlant("stalls" + name, "stalls", what, [("read", "stalls")],
                         stored(stalls(period_s), settings={**SMALL_BATCHES, **settings}, always=always), turn="remove", kind="stalls")

    def gap(name: str, what: str, at_s: float, settings: Settings) -> RealPlant:
        return RealPlant("outage" + name, "outage", what, [("read", "outage")], stored(outage(at_s), settings={**TRAINS, **settings}), turn="remove", kind="outage",
                         intensities=(2.0, 4.0))

    def tail(name: str, what: str, *always: str, limits: Limits = tails(0.025), settings: Settings = {}) -> RealPlant:
        return RealPlant("tail" + name, "tail", what, [("read", "tail")],
                         stored(limits, settings={**SMALL_BATCHES, **settings}, always=("--latency", "2000", *always)), turn="remove")

    return [
        tail("", "2.5 % of the files take longer, always the same"),
        tail("-random", "2.5 % of the reads take longer, any of them", "--slow-random"),
        tail("-completed", "the same files, two in flight, delivered as completed", limits=tails_completed(0.025, 2, 2000),
             settings={"batch.order": "as-completed", "read.depth": "2"}),
        stall("", "nothing passes for a part of every 1.5 s", STALL_PERIOD_S),
        stall("-rare", "the same every 2.5 s, in a repetition of 8", 2.5, settings=ONE_LONG),
        stall("-latency", "the same, with 3 ms for each read besides", STALL_PERIOD_S, "--latency", "3000"),
        gap("", "nothing passes for some seconds, once", EARLY_S, {}),
        gap("-long-run", "the same in one long repetition", 3.0, ONE_LONG),
    ]


# --- a disk, a link ------------------------------------------------------------------------------------------------


def block(kind: str, version: int, data: str = "varied") -> Build:
    """O_DIRECT on the disk that holds the data: each file is a request or a few."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        folder = site.data(data)
        if loss:
            rate = rate_of(loss, h) * (h.file_bytes if kind == "bps" else 1)
            site.block_limit(folder, kind, max(1, rate), version)
        return {"dataset.path": folder, "read.direct": "on", **TRAINS}

    return build


LINK_DEPTH = 2 # sshfs has ten threads, and each of a file's three round trips keeps one


def linked(data: str = "varied") -> Build:
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        path = site.link(site.data(data), rate_of(loss, h) * h.file_bytes if loss else None)
        return {"dataset.path": path, **step_at(STEP_RATE / 2)}

    return build


def far_away(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
    """Open and read wait for the link, close does not."""
    path = site.link(site.data("varied"), None, LINK_DEPTH / rate_of(loss, h) / 2 if loss else 0)
    return {"dataset.path": path, "read.depth": str(LINK_DEPTH), **step_at(STEP_RATE / 2)}


def device_plants() -> List[RealPlant]:
    def disk(name: str, what: str, kind: str, version: int, data: str = "varied") -> RealPlant:
        truth = READ_BANDWIDTH if kind == "bps" else READ_IOPS
        same = data == "equal"
        also = [READ_IOPS, READ_BANDWIDTH][kind == "iops"] if same else []
        return RealPlant(name, "disk", what, truth + also, block(kind, version, data), full=True, flight=FEWER, why=BYTES_OR_FILES if same else "")

    return [
        disk("blkio-bytes", "blkio throttle, bytes/s (v1)", "bps", 1),
        disk("blkio-bytes-photos", "the same with larger files", "bps", 1, "photos"),
        disk("blkio-bytes-equal", "the same with files of one size", "bps", 1, "equal"),
        disk("blkio-iops", "blkio throttle, requests/s (v1)", "iops", 1),
        disk("blkio-iops-photos", "the same with larger files", "iops", 1, "photos"),
        disk("io-max-bytes", "io.max, bytes/s (v2)", "bps", 2),
        disk("io-max-iops", "io.max, requests/s (v2)", "iops", 2),
        RealPlant("link-bytes", "link", "sshfs over a shaped link", READ_BANDWIDTH, linked(), full=True, flight=FEWER),
        RealPlant("link-bytes-photos", "link", "the same with larger files", READ_BANDWIDTH, linked("photos"), full=True, flight=FEWER),
        RealPlant("link-latency", "link", "sshfs over a long link", READ_LATENCY, far_away, full=False, flight={"read.depth": "1"}, turn="remove"),
    ]


# --- an NFS server ---------------------------------------------------------------------------------------------------

CALLS_OF_SPECK = 3 # the kernel's, of a small file: OPEN, READ, CLOSE
Far = Callable[[float, float], dict]  # of (samples/s, bytes of a file): what limits, as Site.nfs takes it


def from_nfs(limits: Far, data: str = "varied", settings: Settings = {}, mounted: bool = False, version: int = 4) -> Build:
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        limit = limits(rate_of(loss, h), h.file_bytes) if loss else {}
        address = site.nfs(site.data(data), version=version, **limit)
        return {"dataset.path": site.kernel_nfs(address) if mounted else address, **step_at(STEP_RATE / 2), **settings}

    return build


def behind_nfs(limits: Limits, data: str = "varied") -> Build:
    """The server's storage, which it keeps nothing of."""
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        options = limits(rate_of(loss, h), h) if loss else []
        return {"dataset.path": site.nfs(site.store(site.data(data), "--direct-io", *options)), **step_at(STEP_RATE / 2)}

    return build


def far_server(depth: int) -> Far:
    return lambda rate, file_bytes: {"how": "far", "seconds": depth / rate}


def in_turns(calls: int = 1) -> Far:
    return lambda rate, file_bytes: {"how": "turns", "seconds": 1 / rate / calls}


def bytes_in_turns(rate: float, file_bytes: float) -> dict:
    return {"how": "bytes", "seconds": 1 / rate / file_bytes}


def slow_lookups(rate: float, file_bytes: float) -> dict:
    """NFSv3 looks a file up before it reads it."""
    return {"how": "others", "seconds": 1 / rate}


def narrow_link(rate: float, file_bytes: float) -> dict:
    return {"bytes_per_s": rate * file_bytes}


def network_plants() -> List[RealPlant]:
    one = {"read.depth": "1"}
    server: List[Pair] = [("read", "server")]
    metadata: List[Pair] = [("read", "metadata")]
    return [
        RealPlant("nfs-link", "network", "nfs-ganesha over a shaped link", [("read", "network")], from_nfs(narrow_link), full=True, flight=FEWER),
        RealPlant("nfs-link-photos", "network", "the same with larger files", [("read", "network")], from_nfs(narrow_link, "photos"), full=True, flight=FEWER),
        RealPlant("nfs-far-1", "network", "nfs-ganesha far away, one file at a time", READ_LATENCY, from_nfs(far_server(1), settings=one), full=False,
                  flight={"read.depth": "2"}, flight_factor=2, turn="remove"),
        RealPlant("nfs-far", "network", "the same with more in flight", READ_LATENCY, from_nfs(far_server(DEPTH)), full=False, flight=FEWER, turn="remove"),
        RealPlant("nfs-turns", "network", "an NFS server that serves a call at a time", server, from_nfs(in_turns()), full=True, flight=FEWER),
        RealPlant("nfs-turns-photos", "network", "the same with larger files", server, from_nfs(in_turns(), "photos"), full=True, flight=FEWER),
        RealPlant("nfs-turns-bytes", "network", "the same, each call for as long as its bytes take", server + READ_BANDWIDTH, from_nfs(bytes_in_turns),
                  full=True, flight=FEWER, why="the server gives so many bytes/s: that is a limit of the server as much as of bandwidth"),
        RealPlant("nfs-link-1", "network", "a shaped link, one file at a time", [("read", "network")], from_nfs(narrow_link, "photos", one), full=True,
                  flight={"read.depth": "2"}, flight_factor=2),
        RealPlant("nfs-store-bytes", "network", "an NFS server whose storage gives so many bytes/s", server, behind_nfs(bandwidth("--shared")), full=True,
                  flight=FEWER),
        RealPlant("nfs-store-slots", "network", "an NFS server whose storage reads two files at a time", server, behind_nfs(slots(2), "photos"), full=True,
                  flight=FEWER),
        RealPlant("nfs-lookups", "network", "NFSv3, tiny files: names are looked up one at a time, READs are quick", metadata,
                  from_nfs(slow_lookups, "specks", version=3), full=True, flight=FEWER),
        RealPlant("nfs-lookups-photos", "network", "the same with larger files", metadata, from_nfs(slow_lookups, "photos", version=3), full=True,
                  flight=FEWER),
        RealPlant("nfs-specks", "network", "the same, mounted, with tiny files", metadata + server,
                  from_nfs(in_turns(CALLS_OF_SPECK), "specks", mounted=True), full=True, flight=FEWER,
                  why="each call has its turn, and of each file's most are no READ: fewer of them and a quicker server both give it back"),
    ]


# --- the processor -----------------------------------------------------------------------------------------------------


def on_disk(site: Site, data: str, settings: Settings) -> Settings:
    return {"dataset.path": site.data(data), **settings}


def quota(version: int, levels_above: int, settings: Settings, data: str = "photos", period_us: int = PERIOD_US) -> Build:
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        if loss:
            site.cpu_quota(h.cpu_cores / loss, version, levels_above, period_us)
        return on_disk(site, data, settings)

    return build


def hogs(settings: Settings, *words: str, nice: int = 0) -> Build:
    """As many as take the share of the cores that the loss asks for."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        result = on_disk(site, "photos", settings)
        if loss:
            site.hogs(max(1, round(h.cores * (loss - 1) / (NICE_WEIGHT if nice else 1))), *words, nice=nice)
        return result

    return build


def fewer_cores(data: str) -> Build:
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        if loss:
            site.cores(max(1, min(h.cores - 1, round(h.cores / loss))))
        return on_disk(site, data, all_cores())

    return build


def blas_threads(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
    threads = {"step.threads": str(round(4 * loss) * h.cores), "decode.workers": str(2 * h.cores)} if loss else {}
    return on_disk(site, "photos", {**COMPUTED_STEP, **threads})


def few_workers(data: str) -> Build:
    """The decoders take so many of the cores; without the plant, all."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        workers = max(1, min(h.cores - 1, round(h.cores / loss))) if loss else len(os.sched_getaffinity(0))
        return on_disk(site, data, {**FAST_STEP, "decode.workers": str(workers)})

    return build


def cpu_plants() -> List[RealPlant]:
    decode, both = [("decode", "quota")], [("step", "quota"), ("decode", "quota")]
    decoders = all_cores()
    return [
        RealPlant("quota-decode", "quota", "a quota on the job's own group (v1)", decode, quota(1, 0, decoders)),
        RealPlant("quota-parent", "quota", "a quota on the group above it (v1)", decode, quota(1, 1, decoders)),
        RealPlant("quota-decode-png", "quota", "the same with PNG files", decode, quota(1, 0, decoders, "pngs")),
        RealPlant("quota-step", "quota", "a quota, and a step that computes (v1)", both, quota(1, 0, COMPUTED_STEP), why=ANY_STAGE),
        RealPlant("quota-step-parent", "quota", "the same on the group above (v1)", both, quota(1, 1, COMPUTED_STEP), why=ANY_STAGE),
        RealPlant("quota-decode-v2", "quota", "a quota on the job's own group (v2)", decode, quota(2, 0, decoders)),
        RealPlant("quota-parent-v2", "quota", "a quota on the group above it (v2)", decode, quota(2, 1, decoders)),
        RealPlant("cpu-hog", "external", "busy processes", EXTERNAL, hogs(decoders, "cpu"), turn="remove", why=ANY_STAGE),
        RealPlant("cpu-hog-nice", "external", "more of them, at nice 5", EXTERNAL, hogs(decoders, "cpu", nice=NICE), turn="remove", why=ANY_STAGE),
        RealPlant("cpu-hog-step", "external", "busy processes beside a step that computes", EXTERNAL, hogs(COMPUTED_STEP, "cpu"), turn="remove", why=ANY_STAGE),
        RealPlant("memory-hog", "external", "processes that stream through memory", EXTERNAL, hogs(decoders, "memory"), turn="remove", why=ANY_STAGE),
        RealPlant("fewer-cores", "cores", "taskset: as many workers as the machine has cores", [("decode", "affinity")], fewer_cores("photos"), turn="remove"),
        RealPlant("fewer-cores-small", "cores", "the same with small files", [("decode", "affinity")], fewer_cores("varied"), turn="remove"),
        RealPlant("blas-threads", "cores", "more BLAS threads and workers than cores", [("step", "cores"), ("decode", "cores")], blas_threads, turn="remove",
                  why="both compete for the same cores"),
        RealPlant("workers-photos", "decode", "few workers, photographs", [("decode", "cpu")], few_workers("photos"), turn="remove"),
        RealPlant("workers-small", "decode", "few workers, small files in the page cache", [("decode", "cpu")], few_workers("varied"), turn="remove"),
        RealPlant("workers-png", "decode", "few workers, PNG files", [("decode", "cpu")], few_workers("pngs"), turn="remove"),
    ]


# --- other clients, a cache that is too small ----------------------------------------------------------------------------

SPARE = 1.2 # a store that would just do for the job alone


def sharing(h: Seen, loss: float) -> int:
    """Readers of files of the same size beside the job's: they take turns with its own."""
    return max(1, math.ceil(DEPTH * (SPARE * loss - 1)))


def shared_store(limits: Limits) -> Build:
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        options = limits(SPARE * h.throughput, h) if h else []
        path = site.store(site.data("varied"), *options)
        if loss:
            site.hogs(sharing(h, loss), "files", path, "%.0f" % h.file_bytes)
        return {"dataset.path": path, **TRAINS}

    return build


def shared_disk(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
    folder = site.data("varied")
    inside = site.block_limit(folder, "bps", SPARE * h.throughput * h.file_bytes, 1) if h else ""
    if loss:
        site.hogs(sharing(h, loss), "files", folder, "%.0f" % h.file_bytes, inside=inside)
    return {"dataset.path": folder, "read.direct": "on", **TRAINS}


UNCACHED = 6.0  # what the store alone gives, is so many times less than the step takes


def cached(limits: Limits, hog: bool = False) -> Build:
    """A data set that would stay in the page cache, in front of a slow store: the group's limit, or others in the group,
    drive it out.  The loss says how much of it may stay.  All of it was read once, before the store became slow."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        options = limits(h.throughput / UNCACHED, h) if h else []
        path = site.store(site.data("large"), "--keep-cache", "--change-at", "0", *options)
        if loss:
            share = 1.0 if hog else max(0.05, 1 - loss / UNCACHED)
            folder = site.memory_limit(int(1.1 * h.resident + share * h.file_bytes * int(DATA["large"]["dataset.samples"])))
            if hog:
                site.hogs(max(1, round(loss)), "cache", site.data("other"), inside=folder)
        site.read_all(path)
        return {"dataset.path": path, **TRAINS}

    return build


def other_plants() -> List[RealPlant]:
    cache: List[Pair] = [("read", "cache")]
    slow, narrow = latency(), bandwidth()
    return [
        # Full, but not for one client alone: where all take turns, more files in flight get a larger share.
        RealPlant("store-client", "external", "another client of a store with just enough bytes/s", [("read", "shared")] + READ_BANDWIDTH,
                  shared_store(bandwidth()), turn="remove", why=STORE_OR_HOG),
        RealPlant("store-client-iops", "external", "another client of a store with just enough requests/s", [("read", "shared")] + READ_IOPS,
                  shared_store(iops()), turn="remove", why=STORE_OR_HOG),
        RealPlant("disk-hog", "external", "others read from a disk with just enough bytes/s", [("read", "shared")] + READ_BANDWIDTH, shared_disk,
                  turn="remove", why=STORE_OR_HOG),
        RealPlant("cache-limit", "cache", "a memory limit in front of a slow store", cache + READ_LATENCY, cached(slow), turn="remove", why=CACHE_OR_STORE),
        RealPlant("cache-limit-bytes", "cache", "a memory limit in front of a narrow store", cache + READ_BANDWIDTH, cached(narrow), turn="remove",
                  why=CACHE_OR_STORE),
        RealPlant("cache-hog", "cache", "others in the group fill the page cache", cache + READ_LATENCY, cached(slow, hog=True), turn="remove",
                  why=CACHE_OR_STORE),
    ]


# --- healthy twins ---------------------------------------------------------------------------------------------------------


def healthy_plants() -> List[RealPlant]:
    """The same servers and groups with limits that do not bind: the step is the limit.  The loss makes the step slower."""

    def twin(name: str, what: str, prepare: Callable[[Site, float], Settings], fastest: float = STEP_RATE) -> RealPlant:
        def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
            rate = fastest / (loss or 1)
            return {**prepare(site, rate), **step_at(rate)}

        return RealPlant("healthy-" + name, "healthy", what, HEALTHY_STEP, build, kind="control", full=False)

    def store(*options: Callable[[float], str], data: str = "varied") -> Callable[[Site, float], Settings]:
        return lambda site, rate: {"dataset.path": site.store(site.data(data), *[option if isinstance(option, str) else option(rate) for option in options])}

    def in_quota(site: Site, rate: float) -> Settings:
        site.cpu_quota(2.0 * len(os.sched_getaffinity(0)), 1, 0)
        return {"dataset.path": site.data("varied")}

    def on_block(site: Site, rate: float) -> Settings:
        folder = site.data("varied")
        site.block_limit(folder, "iops", IDLE_FACTOR * rate, 1)
        return {"dataset.path": folder, "read.direct": "on"}

    def kept(site: Site, rate: float) -> Settings:
        path = site.store(site.data("varied"), "--keep-cache", "--change-at", "0", "--latency", us(2 * DEPTH / rate))
        site.read_all(path)
        return {"dataset.path": path}

    fast = lambda rate: us(DEPTH / rate / IDLE_FACTOR)
    return [
        twin("step", "files in the page cache", lambda site, rate: {"dataset.path": site.data("varied")}),
        twin("photos", "photographs in the page cache", lambda site, rate: {"dataset.path": site.data("photos")}, STEP_RATE / 3),
        twin("store", "slowfs without a limit", store()),
        twin("latency", "a latency that the depth covers", store("--latency", fast)),
        twin("exponential", "the same, exponential", store("--latency", fast, "--distribution", "exponential")),
        twin("slots", "four slots, fast enough", store("--slots", "4", "--latency", lambda rate: us(4 / rate / IDLE_FACTOR))),
        twin("bytes", "bytes/s that are enough", store("--bytes-per-s", lambda rate: "%.0f" % (IDLE_FACTOR * rate * 25e3))),
        twin("iops", "requests/s that are enough", store("--iops", lambda rate: "%.0f" % (IDLE_FACTOR * rate))),
        twin("stalls", "stalls that the queues cover", store("--stall-every", "1500", "--stall-for", "60")),
        twin("kept", "a slow store whose data the page cache holds", kept),
        twin("blkio", "a disk whose throttle does not bind", on_block),
        twin("quota", "a quota that does not bind", in_quota),
    ]


def real_plants() -> List[RealPlant]:
    from foreign_plants import foreign_plants  # which need what is above
    from varying_plants import varying_plants

    return slow_plants() + slot_plants() + rate_plants() + packed_plants() + gap_plants() + device_plants() + network_plants() + cpu_plants() + other_plants() + healthy_plants() + foreign_plants() + varying_plants()
