"""Plants by an author who had not seen the rules of the diagnosis: most are made by programs that others wrote, or by
what the kernel has and the other table does not use.  What a plant is and how its truth is checked, real_plants.py says.

A server that works on one request at a time, in the same time for each, is a limit of requests as much as of
concurrency: such truths are sets."""

import os
from typing import Callable, List, Optional, Tuple

from conditions import IDLE_REQUESTS, Site
from plants import EXTERNAL, HEALTHY_STEP, Pair, Settings
from real_plants import (ANY_STAGE, BYTES_OR_FILES, COMPUTED_STEP, DEPTH, FEWER, IDLE_FACTOR, LONG_HALF_S, ONE_LONG, ONE_REQUEST, READ_BANDWIDTH,
                         READ_IOPS, READ_LATENCY, READ_SLOTS, SPARE, STORE_OR_HOG, Build, RealPlant, Seen, all_cores, few_workers, on_disk, quota,
                         rate_of, sharing, step_at, us)

ONE_SERVER: List[Pair] = READ_SLOTS + READ_IOPS
READ_STALLS: List[Pair] = [("read", "stalls")]
READ_OUTAGE: List[Pair] = [("read", "outage")]
SEED = 29      # halves of as many plants, and no family that differs by more than two; the first from 21 on, chosen by that alone
RATE = 320.0  # of the step: programs of others take cores, and the job shall not want for them
BATCH = 32
LIGHT: Settings = {"batch.size": str(BATCH), "augment.size": "96"}
TRAINS: Settings = {**step_at(RATE, BATCH), **LIGHT}
DEEP: Settings = {**TRAINS, "read.threads": "3", "read.depth": "6"}
TWO_RINGS: Settings = {**TRAINS, "read.threads": "2", "read.depth": str(DEPTH // 2)}
BLOCKING: Settings = {**TRAINS, "read.engine": "pread", "read.threads": "6"}
LESS_DEEP: Settings = {"read.threads": "1", "read.depth": "9"}
FEWER_BLOCKING: Settings = {"read.threads": "3"}
PATIENT: Settings = {**LIGHT, **step_at(RATE / 3, BATCH // 2), "batch.size": str(BATCH // 2)}  # what a round trip costs besides is little then
STILL_BUFFERED_S = 0.2  # how long that step goes on when reads stop
QUOTAS = (1.4, 2.4)  # they cost up to twice as much: what one core does not use of its slice, is lost
SHORT_PERIOD_US, LONG_PERIOD_US = 10000, 250000
RT_PRIORITY = "5"
UNEVEN = ("--latency", "3000", "--distribution", "lognormal", "--sigma", "0.6")
ROUND_TRIPS = 2  # that sshfs waits for with each file: it opens and it reads
MEAN_BYTES = 25e3  # and a little more, of the files of the healthy twins
WEBP_EACH = 8  # of each class
ON_DEMAND = "open and read wait for one server, one after the other; every file costs it the same"

Path = Callable[[Site, str, Optional[float], Optional[Seen]], str]  # of (site, folder, samples/s or None, what was seen)


def behind(path: Path, data: str = "varied", settings: Settings = TRAINS) -> Build:
    """A run on what lies behind a program: it is told how many samples/s shall pass, None for any number."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        return {"dataset.path": path(site, site.data(data), rate_of(loss, h) if loss else None, h), **settings}

    return build


# --- programs over a store ---------------------------------------------------------------------------------------


def slow(in_flight: float, *more: str, option: str = "--latency", always: Tuple[str, ...] = ()) -> Path:
    """A store where each request takes so long that in_flight of them give the rate."""
    return lambda site, folder, rate, h: site.store(folder, *always, *((option, us(in_flight / rate), *more) if rate else ()))


def slow_later(site: Site, folder: str, rate: Optional[float], h: Optional[Seen]) -> str:
    return site.store(folder, *(("--change-at", str(LONG_HALF_S), "--latency", us(DEPTH / rate)) if rate else ()))


def overlaid(below: Path) -> Path:
    return lambda site, folder, rate, h: site.overlay(below(site, folder, rate, h))


def union(below: Path) -> Path:
    return lambda site, folder, rate, h: site.served("unionfs", "-f", "-o", "ro", below(site, folder, rate, h))


def merged(threads: int, below: Path) -> Path:
    return lambda site, folder, rate, h: site.served("mergerfs", "-f", "-o", "ro,threads=%d" % threads, below(site, folder, rate, h))


def bound(below: Path) -> Path:
    return lambda site, folder, rate, h: site.served("bindfs", "-f", "--multithreaded", below(site, folder, rate, h))


def from_nginx(site: Site, address: str, *options: str) -> str:
    return site.rclone(":http:", "--http-url", address, *options)


def web(below: Path, threads: int) -> Path:
    return lambda site, folder, rate, h: from_nginx(site, site.nginx(below(site, folder, rate, h), threads=threads))


def image_in(below: Path) -> Path:
    return lambda site, folder, rate, h: site.loop_on(folder, lambda holder: below(site, holder, rate, h))


def squashed(below: Path) -> Path:
    return lambda site, folder, rate, h: site.served("squashfuse", "-f", os.path.join(below(site, site.squashed(folder), rate, h), "image"))


def latency_plants() -> List[RealPlant]:
    def plant(name: str, what: str, path: Path, data: str = "varied", settings: Settings = TRAINS, flight: Settings = FEWER, **more) -> RealPlant:
        return RealPlant(name, "latency", what, READ_LATENCY, behind(path, data, settings), full=False, flight=flight, turn="remove", **more)

    return [
        plant("overlay-lognormal", "the kernel's overlay over a store of log-normal times",
              overlaid(slow(DEPTH, "--distribution", "lognormal", "--sigma", "0.5"))),
        plant("unionfs-latency", "unionfs-fuse over a slow store, from two threads", union(slow(DEPTH)), "thumbs", TWO_RINGS, {"read.threads": "1"}),
        plant("mergerfs-latency", "mergerfs with more threads than are asked for", merged(32, slow(DEPTH, "--distribution", "exponential")),
              "thumbs"),
        plant("bindfs-open", "bindfs over a store where opening takes its time", bound(slow(DEPTH, option="--open")), "lines"),
        plant("pread-latency", "six threads that read one file each, exponential times", slow(6, "--distribution", "exponential"), "lines",
              BLOCKING, FEWER_BLOCKING),
        RealPlant("overlay-midrun", "latency", "an overlay whose lower store slows down when half the run is over", READ_LATENCY,
                  behind(overlaid(slow_later), settings={**TRAINS, **ONE_LONG}), full=False, turn="remove", kind="phases", changes_at=LONG_HALF_S),
    ]


def server_plants() -> List[RealPlant]:
    def plant(name: str, what: str, path: Path, data: str = "varied", settings: Settings = TRAINS, flight: Settings = FEWER,
              truth: List[Pair] = READ_SLOTS, **more) -> RealPlant:
        return RealPlant(name, "concurrency", what, truth, behind(path, data, settings), full=True, flight=flight, **more)

    direct = {**TRAINS, "read.direct": "on"}
    uncached = ("--direct-io",)
    return [
        plant("mergerfs-2", "mergerfs with two threads over a slow store", merged(2, slow(2))),
        plant("nginx-pool", "nginx with three threads that read from a slow store", web(slow(3), 3)),
        plant("loop-on-store", "a loop device, whose image lies in a slow store", image_in(slow(1, always=uncached)), settings=direct,
              truth=ONE_SERVER, why=ONE_REQUEST),
        plant("squashfuse", "squashfuse with one thread, whose image lies in a slow store", squashed(slow(1, always=uncached)), settings=direct,
              truth=ONE_SERVER, why=ONE_REQUEST),
    ]


# --- limits that those programs have themselves -------------------------------------------------------------------


def bindfs_rate(site: Site, folder: str, rate: Optional[float], h: Optional[Seen]) -> str:
    limit = ["--read-rate=%.0f" % (rate * h.file_bytes)] if rate else []
    return site.served("bindfs", "-f", "--multithreaded", *limit, folder)


def rclone_rate(rate: Optional[float], h: Optional[Seen]) -> Tuple[str, ...]:
    return ("--bwlimit", "%.0fB" % (rate * h.file_bytes)) if rate else ()


def nginx_requests(site: Site, folder: str, rate: Optional[float], h: Optional[Seen]) -> str:
    return from_nginx(site, site.nginx(folder, requests_per_s=rate or IDLE_REQUESTS))


def shared_pipe(site: Site, folder: str, rate: Optional[float], h: Optional[Seen]) -> str:
    limit = ("--bytes-per-s", "%.0f" % (rate * h.file_bytes), "--shared") if rate else ()
    return site.store(folder, *limit, *(UNEVEN if rate else ()))


def counted(*more: str) -> Path:
    return lambda site, folder, rate, h: site.store(folder, *(("--iops", "%.3f" % rate, *more) if rate else ()))


def rate_plants() -> List[RealPlant]:
    def plant(name: str, what: str, truth: List[Pair], path: Path, data: str = "varied", settings: Settings = TRAINS, flight: Settings = FEWER,
              **more) -> RealPlant:
        return RealPlant(name, truth[0][1], what, truth, behind(path, data, settings), full=True, flight=flight, **more)

    local: Path = lambda site, folder, rate, h: site.rclone(folder, *rclone_rate(rate, h))
    fetched: Path = lambda site, folder, rate, h: from_nginx(site, site.nginx(folder), *rclone_rate(rate, h))
    return [
        plant("rclone-bwlimit", "rclone's limit of bytes/s on a folder", READ_BANDWIDTH, local),
        plant("rclone-bwlimit-http", "the same on what nginx serves", READ_BANDWIDTH, fetched, "lines"),
        plant("bindfs-rate", "bindfs with a rate of reading", READ_BANDWIDTH, bindfs_rate),
        plant("bindfs-rate-equal", "the same with files of one size", READ_BANDWIDTH + READ_IOPS, bindfs_rate, "equal", why=BYTES_OR_FILES),
        plant("pread-bytes", "six threads at bytes/s side by side, each after a log-normal time", READ_BANDWIDTH, shared_pipe, "thumbs", BLOCKING,
              FEWER_BLOCKING),
        plant("nginx-requests", "nginx with a limit of requests/s", READ_IOPS, nginx_requests),
        plant("nginx-requests-png", "the same with PNG files, 18 asked for", READ_IOPS, nginx_requests, "pngs", DEEP, LESS_DEEP),
        plant("overlay-iops", "an overlay over a store of requests/s, with a burst", READ_IOPS, overlaid(counted("--burst-requests", "40")),
              "thumbs"),
    ]


# --- servers that stand still ---------------------------------------------------------------------------------------


def gap_plants() -> List[RealPlant]:
    small: Settings = {**step_at(RATE, 16), "batch.size": "16", "augment.size": "96"}

    def stalls(serve: Callable[[Site, str], str], period_s: float, settings: Settings = {}) -> Build:
        def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
            path = serve(site, site.data("varied"))
            if loss:
                site.freezes(0, min(0.9 * period_s, period_s * (1 - 1 / loss) + STILL_BUFFERED_S), period_s)
            return {"dataset.path": path, **small, **settings}

        return build

    def outage(serve: Callable[[Site, str], str], begin: Callable[[Site, float], None]) -> Build:
        def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
            path = serve(site, site.data("varied"))
            if loss:
                begin(site, loss + 1)
            return {"dataset.path": path, **TRAINS, **ONE_LONG}

        return build

    def plant(name: str, kind: str, what: str, build: Build) -> RealPlant:
        lengths = {"intensities": (2.0, 4.0)} if kind == "outage" else {}
        return RealPlant(name, kind, what, READ_OUTAGE if kind == "outage" else READ_STALLS, build, turn="remove", kind=kind, **lengths)

    mirror = lambda site, folder: site.served("bindfs", "-f", "--multithreaded", folder)
    return [
        plant("freezer-bindfs", "stalls", "bindfs in a group that is frozen for a part of each 1.2 s", stalls(mirror, 1.2)),
        plant("freezer-nginx", "stalls", "nginx, frozen for a part of each 2.5 s", stalls(frozen_web, 2.5, ONE_LONG)),
        plant("freezer-outage", "outage", "rclone in a group that is frozen once, for some seconds",
              outage(lambda site, folder: site.rclone(folder), lambda site, s: site.freezes(3.0, s))),
        plant("link-down", "outage", "a link that is down once, under sshfs",
              outage(lambda site, folder: site.link(folder, None), lambda site, s: site.link_fails(3.0, s))),
    ]


def frozen_web(site: Site, folder: str) -> str:
    """Mounted; the server that can be frozen is nginx."""
    address = site.nginx(folder)
    server = site.server
    path = from_nginx(site, address)
    site.server = server
    return path


# --- disks and links --------------------------------------------------------------------------------------------------


def throttled(kind: str, limit: str, data: str, settings: Settings) -> Build:
    """A loop device that the kernel throttles for the job's group, whatever its image lies on."""

    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        path = site.loop_disk(kind, site.data(data))
        if loss:
            site.block_limit(path, limit, max(1, rate_of(loss, h) * (h.file_bytes if limit == "bps" else 1)), 1)
        return {"dataset.path": path, "read.direct": "on", **settings}

    return build


def narrow_web(site: Site, folder: str, rate: Optional[float], h: Optional[Seen]) -> str:
    return from_nginx(site, site.nginx(folder, bytes_per_s=rate * h.file_bytes if rate else None))


def one_by_one(site: Site, folder: str, rate: Optional[float], h: Optional[Seen]) -> str:
    return site.link(folder, None, 1 / rate / ROUND_TRIPS if rate else 0, options=("-s",))


def device_plants() -> List[RealPlant]:
    def plant(name: str, family: str, what: str, truth: List[Pair], build: Build, flight: Settings = FEWER, why: str = "") -> RealPlant:
        return RealPlant(name, family, what, truth, build, full=True, flight=flight, why=why)

    return [
        plant("loop-ext4-bytes", "disk", "ext4 on a throttled loop device, bytes/s", READ_BANDWIDTH, throttled("ext4", "bps", "thumbs", DEEP),
              LESS_DEEP),
        plant("loop-xfs-iops", "disk", "XFS on a throttled loop device, requests/s", READ_IOPS, throttled("xfs", "iops", "varied", TRAINS)),
        plant("loop-btrfs-bytes", "disk", "btrfs on a throttled loop device, six threads that read", READ_BANDWIDTH,
              throttled("btrfs", "bps", "varied", BLOCKING), FEWER_BLOCKING),
        plant("link-web", "link", "nginx behind a link that HTB shapes", READ_BANDWIDTH, behind(narrow_web, "thumbs")),
        plant("link-single", "link", "sshfs with one thread over a long link", ONE_SERVER, behind(one_by_one, settings=PATIENT), why=ON_DEMAND),
    ]


# --- the processor ------------------------------------------------------------------------------------------------------


def beside(settings: Settings, data: str, begin: Callable[[Site, float, int], None]) -> Build:
    def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
        result = on_disk(site, data, settings)
        if loss:
            begin(site, loss, h.cores)
        return result

    return build


def in_siblings(site: Site, loss: float, cores: int) -> None:
    """The group of the others gets loss - 1 times what the job's gets."""
    site.hogs(4 * cores, "cpu", inside=site.cpu_shares(loss - 1))


def real_time(site: Site, loss: float, cores: int) -> None:
    """So much of each core goes to who may always run first."""
    site.runs("stress-ng", "--cpu", str(cores), "--cpu-load", "%.0f" % (100 * (1 - 1 / loss)), "--sched", "rr", "--sched-prio", RT_PRIORITY,
              "--timeout", "600")


def stressed(*words: str) -> Callable[[Site, float, int], None]:
    return lambda site, loss, cores: site.runs("stress-ng", words[0], str(max(1, round(cores * (loss - 1)))), *words[1:], "--timeout", "600")


def in_core_set(data: str, settings: Settings) -> Build:
    return beside(settings, data, lambda site, loss, cores: site.core_set(max(1, min(cores - 1, round(cores / loss)))))


def as_webp(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
    """Some of the photographs, as WebP."""
    return {**few_workers("photos")(site, loss, h), "dataset.path": site.webp(site.data("photos"), WEBP_EACH)}


def cpu_plants() -> List[RealPlant]:
    decode, both = [("decode", "quota")], [("step", "quota"), ("decode", "quota")]
    decoders = {**all_cores(), "augment.size": "160"}

    def external(name: str, what: str, begin: Callable[[Site, float, int], None], settings: Settings = decoders, data: str = "photos",
                 **more) -> RealPlant:
        return RealPlant(name, "external", what, EXTERNAL, beside(settings, data, begin), turn="remove", why=ANY_STAGE, **more)

    def limited(name: str, what: str, truth: List[Pair], build: Build, why: str = "") -> RealPlant:
        return RealPlant(name, "quota", what, truth, build, why=why, intensities=QUOTAS)

    return [
        limited("quota-short", "a quota of a short period", decode, quota(1, 0, decoders, "detailed", SHORT_PERIOD_US)),
        limited("quota-long", "a quota of a long period, two groups above", decode, quota(1, 2, decoders, "rgba", LONG_PERIOD_US)),
        limited("quota-step-short", "a short period, a step that computes", both, quota(1, 2, COMPUTED_STEP, "photos", SHORT_PERIOD_US), ANY_STAGE),
        external("shares-siblings", "busy processes in a group of more shares", in_siblings, intensities=(2.2, 4.0)),  # shares are kept roughly
        external("real-time", "processes of real-time priority on each core", real_time, data="rgba"),
        external("stress-matrix", "stress-ng, products of matrices", stressed("--matrix")),
        external("stress-step", "stress-ng, a mix, beside a step that computes", stressed("--cpu", "--cpu-method", "all"), COMPUTED_STEP),
        RealPlant("cpuset-decode", "cores", "a cpuset: as many workers as the machine has cores", [("decode", "cores")], in_core_set("rgba",
                                                                                                                                     decoders),
                                                                                                                                     turn="remove"),
        RealPlant("cpuset-more", "cores", "the same with twice as many workers", [("decode", "cores")],
                  in_core_set("detailed", {**decoders, "decode.workers": str(2 * len(os.sched_getaffinity(0)))}), turn="remove"),
        RealPlant("workers-detailed", "decode", "few workers, JPEG files without subsampling", [("decode", "cpu")], few_workers("detailed"),
                  turn="remove"),
        RealPlant("workers-webp", "decode", "few workers, WebP files", [("decode", "cpu")], as_webp, turn="remove"),
    ]


# --- other clients ------------------------------------------------------------------------------------------------------


def with_fio(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
    path = site.loop_disk("ext4", site.data("varied"))
    group = site.block_limit(path, "bps", SPARE * h.throughput * h.file_bytes, 1) if h else ""
    if loss:
        site.runs("fio", "--name=other", "--filename=" + os.path.join(path, ".fio"), "--size=32m", "--rw=randread", "--direct=1", "--bs=4k",
                  "--bsrange=4k-%dk" % (h.file_bytes / 512), "--numjobs=%d" % sharing(h, loss), "--thread", "--time_based", "--runtime=600",
                  inside=group)
    return {"dataset.path": path, "read.direct": "on", **TRAINS}


def on_bindfs(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
    path = bindfs_rate(site, site.data("varied"), SPARE * h.throughput if h else None, h)
    if loss:
        site.hogs(sharing(h, loss), "files", path, "%.0f" % h.file_bytes)
    return {"dataset.path": path, **TRAINS}


def client_plants() -> List[RealPlant]:
    def plant(name: str, what: str, build: Build) -> RealPlant:
        return RealPlant(name, "external", what, [("read", "shared")] + READ_BANDWIDTH, build, turn="remove", why=STORE_OR_HOG)

    return [
        plant("fio-on-loop", "fio on a disk with just enough bytes/s", with_fio),
        plant("bindfs-client", "others behind a bindfs with just enough bytes/s", on_bindfs),
    ]


# --- healthy twins ---------------------------------------------------------------------------------------------------------


def healthy_plants() -> List[RealPlant]:
    def twin(name: str, what: str, prepare: Callable[[Site, float], Settings], settings: Callable[[float], Settings]) -> RealPlant:
        def build(site: Site, loss: Optional[float], h: Optional[Seen]) -> Settings:
            return {**settings(loss or 1), **prepare(site, RATE / (loss or 1))}

        return RealPlant("healthy-" + name, "healthy", what, HEALTHY_STEP, build, kind="control", full=False)

    emulated = lambda loss: {**LIGHT, **step_at(RATE / loss, BATCH)}
    uneven = lambda loss: {**emulated(loss), "step.jitter": "0.4"}
    computed = lambda loss: {**COMPUTED_STEP, "augment.size": "%.0f" % (96 * loss ** 0.5)}

    def stored(path: Callable[[Site, str, float], str]) -> Callable[[Site, float], Settings]:
        return lambda site, rate: {"dataset.path": path(site, site.data("varied"), rate)}

    def on_loop(site: Site, rate: float) -> Settings:
        path = site.loop_disk("xfs", site.data("varied"))
        site.block_limit(path, "bps", IDLE_FACTOR * rate * MEAN_BYTES, 1)
        return {"dataset.path": path, "read.direct": "on"}

    def among_siblings(site: Site, rate: float) -> Settings:
        site.cpu_shares(4.0)
        return {"dataset.path": site.data("varied")}

    in_cache = stored(lambda site, folder, rate: folder)
    bytes_of = lambda rate: IDLE_FACTOR * rate * MEAN_BYTES
    return [
        twin("rclone", "rclone with bytes/s that are enough", stored(lambda site, folder,
                                                                     rate: site.rclone(folder, "--bwlimit", "%.0fB" % bytes_of(rate))), emulated),
        twin("nginx", "nginx with requests/s that are enough",
             stored(lambda site, folder, rate: from_nginx(site, site.nginx(folder, requests_per_s=IDLE_FACTOR * rate))), emulated),
        twin("bindfs", "bindfs with a rate that is enough",
             stored(lambda site, folder, rate: site.served("bindfs", "-f", "--multithreaded", "--read-rate=%.0f" % bytes_of(rate), folder)),
             emulated),
        twin("mergerfs", "two threads of mergerfs, fast enough",
             stored(lambda site, folder, rate: merged(2, slow(2))(site, folder, IDLE_FACTOR * rate, None)), emulated),
        twin("loop", "a loop device whose throttle does not bind", on_loop, emulated),
        twin("shares", "a group beside it that has more shares and no processes", among_siblings, emulated),
        twin("jitter", "a step of uneven length", in_cache, uneven),
        twin("computed", "a step that computes, files in the page cache", in_cache, computed),
    ]


def foreign_plants() -> List[RealPlant]:
    plants = latency_plants() + server_plants() + rate_plants() + gap_plants() + device_plants() + cpu_plants() + client_plants() + healthy_plants()
    for plant in plants:
        plant.origin, plant.seed = "foreign", SEED
    return plants
