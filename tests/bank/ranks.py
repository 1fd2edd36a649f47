#!/usr/bin/env python3
"""Planted jobs of several ranks: each case says its truth before anything runs, and is diagnosed by mpirun on this machine.

    tests/bank/ranks.py PROGRAM TOOLS [--only NAME ...] [--draw SEED] [--keep FOLDER]

PROGRAM: mlbench.  TOOLS: the folder of slowfs and hog (make real-tools).  Right is: the stage and one of the resources; with a
straggler its rank, too, and its own stage and resource; without one no rank is named.  --draw varies the parameters within what
leaves the truth as it is.  Exit status: 0 all bars, 1 a bar is missed, 3 cases could not be run.

Devices are emulated, so that two cores carry the ranks; what slows a rank is real: a group with a CPU quota, programs on its
cores, a FUSE server in its mount namespace or for all of them, a loopback that is shaped, gradients that are summed."""

import argparse
import contextlib
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "real"))
import conditions  # noqa: E402

RIGHT_LEAST, SURE = 15 / 16, 0.9
CALL_S = 120

BASE = {"dataset.recipe": "photo", "dataset.format": "raw", "dataset.width": "64", "dataset.height": "64", "dataset.size_sigma": "0",
        "dataset.samples": "2400", "dataset.classes": "4", "augment.size": "32", "batch.size": "8", "decode.workers": "2",
        "step.backend": "emulated", "step.time": "40ms", "sync.gradients": "256KiB", "measure.limits": "off"}
FULL = {"concurrency", "full", "shared", "server"}


class Case:
    def __init__(self, name, truth, ranks=4, settings=None, straggler=None, cause=None, plant=None, launcher=()):
        self.name, self.truth, self.ranks, self.settings = name, truth, ranks, settings or {}
        self.straggler, self.cause = straggler, cause   # ranks, one of which is named; (stage, resources)
        self.plant = plant                              # plant(job, stack): prefixes of ranks, and more
        self.launcher = list(launcher)


class Job:
    """What one call of mpirun is made of: a prefix of words for each rank."""

    def __init__(self, tools, data, ranks):
        self.tools, self.data, self.prefix = tools, data, [[] for _ in range(ranks)]
        self.before, self.launcher = [], []

    def quota(self, stack, rank, cores):
        folder = stack.enter_context(conditions.group("cpu", 1))[0]
        conditions.write(os.path.join(folder, "cpu.cfs_period_us"), "100000")
        conditions.write(os.path.join(folder, "cpu.cfs_quota_us"), str(int(cores * 100000)))
        self.prefix[rank] += ["sh", "-c", "echo $$ >%s/tasks && exec \"$@\"" % folder, "sh"]

    def pin(self, rank, core):
        self.prefix[rank] += ["taskset", "-c", str(core)]

    def hogs(self, stack, core, count):
        for _ in range(count):
            hog = subprocess.Popen(["taskset", "-c", str(core), os.path.join(self.tools, "hog"), "cpu"], preexec_fn=conditions.dies_with_parent)
            stack.callback(conditions.end, hog)

    def slow_store(self, stack, options):
        """A FUSE server over the data; its mount."""
        mount = tempfile.mkdtemp(prefix=conditions.PREFIX)
        stack.callback(os.rmdir, mount)
        server = subprocess.Popen([os.path.join(self.tools, "slowfs"), self.data, mount, *options], preexec_fn=conditions.dies_with_parent,
                                  stderr=subprocess.DEVNULL)
        stack.callback(conditions.end, server)
        stack.callback(conditions.unmount, mount)
        conditions.until(lambda: os.path.ismount(mount), "the slow mount")
        return mount

    def put_store(self, rank, mount):
        """That rank alone finds the slow store where the others find the fast one."""
        self.prefix[rank] += ["unshare", "-m", "sh", "-c", "mount --bind %s %s && exec \"$@\"" % (mount, self.data), "sh"]


def share_store(job, stack, ranks, options):
    mount = job.slow_store(stack, options)
    for rank in ranks:
        job.put_store(rank, mount)


def slow_loopback(job, stack, mbit):
    """All ranks in one network namespace whose loopback is shaped, and no memory shared between them."""
    name = "mlb-ranks-%d" % os.getpid()
    conditions.run_tool("ip", "netns", "add", name)
    stack.callback(subprocess.run, ["ip", "netns", "del", name])
    for words in (["ip", "link", "set", "lo", "up"],
                  ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "%dmbit" % mbit, "burst", "128kb", "latency", "500ms"]):
        conditions.run_tool("ip", "netns", "exec", name, *words)
    job.before = ["ip", "netns", "exec", name]


def slow_link(job, stack, mbit, slow, slow_mbit):
    """A network namespace for each rank, on a bridge: what one of them sends is shaped to less than what the others do."""
    names = ["mlb-%d-%s" % (os.getpid(), end) for end in ["hub"] + [str(i) for i in range(len(job.prefix))]]

    def at(name, *words):
        conditions.run_tool("ip", "netns", "exec", name, *words)
    for name in names:
        conditions.run_tool("ip", "netns", "add", name)
        stack.callback(subprocess.run, ["ip", "netns", "del", name])
        at(name, "ip", "link", "set", "lo", "up")
    hub, nodes = names[0], names[1:]
    for words in ("link add name hub0 type bridge", "addr add 10.213.78.254/24 dev hub0", "link set hub0 up"):
        at(hub, "ip", *words.split())
    for i, node in enumerate(nodes):
        at(hub, "ip", "link", "add", "port%d" % i, "type", "veth", "peer", "name", "eth0", "netns", node)
        at(hub, "ip", "link", "set", "port%d" % i, "master", "hub0", "up")
        at(node, "ip", "addr", "add", "10.213.78.%d/24" % (i + 1), "dev", "eth0")
        at(node, "ip", "link", "set", "eth0", "up")
        at(node, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "%dmbit" % (slow_mbit if i == slow else mbit), "burst", "64kb", "latency", "100ms")
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    reach = os.path.join(folder, "reach")
    with open(reach, "w") as file:
        file.write("#!/bin/sh\nhost=$1\nshift\nexec ip netns exec mlb-%d-${host#n} unshare -u sh -c 'hostname \"$0\"; exec sh -c \"$*\"' \"$host\" \"$@\"\n" % os.getpid())
    os.chmod(reach, 0o755)
    job.before = ["ip", "netns", "exec", hub]
    job.launcher = ["--host", ",".join("n%d" % i for i in range(len(nodes))), "--mca", "plm_rsh_agent", reach, "--mca", "plm_rsh_no_tree_spawn", "1",
                    "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.213.78.0/24", "--mca", "oob_tcp_if_include", "10.213.78.0/24"]


def cases(draw):
    """17, and what is varied in them."""
    def between(low, high):
        return draw.uniform(low, high)

    def some(*ranks):
        return draw.choice(ranks)
    slow, quota, hogged, far, full = some(1, 2, 3), some(1, 2), some(1, 2), some(0, 1, 3), some(0, 2, 3)
    read_us = int(between(40e3, 60e3))
    reads = {"read.depth": "4", "read.threads": "1", "read.cache": "cold"}
    return [
        Case("healthy", ("step", {"compute"})),
        Case("uneven-steps", ("step", {"compute"}), settings={"step.jitter": "%.2f" % between(0.1, 0.2)}),
        Case("slow-device", ("sync", {"imbalance"}), settings={"inject.slow_device": "%.2f" % between(1.8, 3)}, straggler={3},
             cause=("step", {"compute"})),
        Case("slightly-slow-device", ("sync", {"imbalance"}), settings={"inject.slow_device": "%.2f" % between(1.25, 1.4)}, straggler={3},
             cause=("step", {"compute"})),
        Case("five-times", ("sync", {"imbalance"}), settings={"inject.slow_device": "5"}, straggler={3}, cause=("step", {"compute"})),
        Case("quota", ("sync", {"imbalance"}), settings={"overhead.sample": "1ms"}, straggler={quota}, cause=("decode", {"quota"}),
             plant=lambda job, stack: job.quota(stack, quota, between(0.1, 0.13))),
        Case("neighbour", ("sync", {"imbalance"}), ranks=3, settings={"overhead.sample": "1500us"}, straggler={2},
             cause=("decode", {"external", "cores"}),
             plant=lambda job, stack: (job.pin(0, 0), job.pin(1, 0), job.pin(2, 1), job.hogs(stack, 1, 5))),
        Case("far-store", ("sync", {"imbalance"}), settings=reads, straggler={far}, cause=("read", {"latency"}),
             plant=lambda job, stack: share_store(job, stack, [far], ["--latency", str(read_us)])),
        Case("full-store", ("sync", {"imbalance"}), settings=dict(reads, **{"read.depth": "8"}), straggler={full}, cause=("read", FULL | {"bandwidth", "iops"}),
             plant=lambda job, stack: share_store(job, stack, [full], ["--latency", "10000", "--iops", str(int(between(80, 110)))])),
        Case("two-far-stores", ("sync", {"imbalance"}), settings=reads, straggler={1, 2}, cause=("read", {"latency"}),
             plant=lambda job, stack: share_store(job, stack, [1, 2], ["--latency", str(read_us)])),
        Case("shared-slots", ("read", FULL), settings=dict(reads, **{"read.depth": "8"}),
             plant=lambda job, stack: share_store(job, stack, range(4), ["--latency", "10000", "--slots", str(some(3, 4))])),
        Case("shared-bandwidth", ("read", FULL | {"bandwidth"}), settings=dict(reads, **{"read.depth": "8"}),
             plant=lambda job, stack: share_store(job, stack, range(4), ["--latency", "2000", "--bytes-per-s", str(int(between(4e6, 6e6)))])),
        Case("latency-of-all", ("read", {"latency"}), settings=dict(reads, **{"read.depth": "4"}),
             plant=lambda job, stack: share_store(job, stack, range(4), ["--latency", str(read_us)])),
        Case("gradients", ("sync", {"exchange"}), settings={"step.time": "10ms", "sync.gradients": "%dMiB" % int(between(48, 80))}),
        Case("slow-network", ("sync", {"exchange"}), settings={"sync.gradients": "1MiB"}, plant=lambda job, stack: slow_loopback(job, stack, int(between(150, 250))),
             launcher=["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]),
        Case("one-slow-link", ("sync", {"exchange"}), ranks=3, settings={"sync.gradients": "1MiB"},
             plant=lambda job, stack: slow_link(job, stack, 200, some(0, 1, 2), int(between(20, 40)))),
        Case("few-cores", ("decode", {"cores"}), settings={"overhead.sample": "%dus" % int(between(5000, 7000))}),
    ]


def command(args, case, job, out):
    words = job.before + ["mpirun", "--oversubscribe", *case.launcher, *job.launcher]
    program = [args.program, "diagnose", args.config, "--json", "--out", out]
    for key, value in dict(BASE, **case.settings, **{"dataset.path": job.data}).items():
        program += ["--set", "%s=%s" % (key, value)]
    for rank in range(case.ranks):
        words += ([":"] if rank else []) + ["-n", "1"] + job.prefix[rank] + program
    return words


def diagnose(args, case, out):
    job = Job(args.tools, args.data, case.ranks)
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with contextlib.ExitStack() as stack:
        if case.plant:
            case.plant(job, stack)
        begun = time.monotonic()
        words = command(args, case, job, out)
        if args.verbose:
            print(shlex.join(words), file=sys.stderr)
        done = subprocess.run(words, capture_output=True, text=True, timeout=CALL_S, env=environment)
        took = time.monotonic() - begun
    try:
        return json.loads(done.stdout), took
    except ValueError:
        raise conditions.Cannot("exit %d, no document: %s" % (done.returncode, done.stderr.strip().splitlines()[-1:])) from None


def judge(case, document):
    """Words and what is right: (told, right, straggler right): of several that lag, all are counted, and one is named first."""
    v = document["verdict"]
    s = v.get("straggler")
    told = "%s/%s %.2f" % (v["stage"], v["resource"], v["confidence"])
    if s:
        told += " (%s: %s/%s %.2f)" % (s["who"], s["stage"], s["resource"], s["confidence"])
    found = v["stage"] == case.truth[0] and v["resource"] in case.truth[1]
    if case.straggler is None:
        return told, found and s is None, s is None
    named = s is not None and s["rank"] in case.straggler and s["count"] == len(case.straggler)
    return told, found and named and s["stage"] == case.cause[0] and s["resource"] in case.cause[1], named


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("tools")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--draw", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    args.tools = os.path.abspath(args.tools)
    work = args.keep or tempfile.mkdtemp(prefix="mlbench-ranks-")
    os.makedirs(work, exist_ok=True)
    args.data, args.config = os.path.join(work, "data"), os.path.join(work, "ranks.ini")
    with open(args.config, "w") as file:
        file.write("# everything is set on the command line\n[run]\nname = ranks\n")
    settings = [word for key, value in dict(BASE, **{"dataset.path": args.data}).items() for word in ("--set", "%s=%s" % (key, value))]
    subprocess.run([args.program, "gen", args.config, *settings], check=True, capture_output=True)
    all_of, right, named, with_straggler, wrong_sure, cannot, times = 0, 0, 0, 0, [], [], []
    for case in cases(random.Random(args.draw)):
        if args.only and case.name not in args.only:
            continue
        out = os.path.join(work, case.name)
        shutil.rmtree(out, ignore_errors=True)
        try:
            document, took = diagnose(args, case, out)
        except (conditions.Cannot, subprocess.TimeoutExpired, OSError) as why:
            cannot.append(case.name)
            print("%-22s cannot: %s" % (case.name, why), flush=True)
            continue
        told, ok, name_ok = judge(case, document)
        all_of += 1
        right += ok
        with_straggler += case.straggler is not None
        named += case.straggler is not None and name_ok
        times.append(took)
        sure = max(document["verdict"]["confidence"] if not ok and not (document["verdict"]["stage"] == case.truth[0] and
                   document["verdict"]["resource"] in case.truth[1] and name_ok) else 0,
                   0 if ok or not document["verdict"].get("straggler") else document["verdict"]["straggler"]["confidence"] or 0)
        if not ok and sure >= SURE:
            wrong_sure.append(case.name)
        truth = "%s/%s" % (case.truth[0], "|".join(sorted(case.truth[1])))
        if case.straggler is not None:
            truth += " (rank %s: %s/%s)" % ("|".join(map(str, sorted(case.straggler))), case.cause[0], "|".join(sorted(case.cause[1])))
        print("%-22s %-5s %5.1f s  %s%s" % (case.name, "right" if ok else "WRONG", took, told, "" if ok else "   truth: " + truth), flush=True)
    print("ranks: %d of %d right, the straggler named in %d of %d, wrong at %.1f: %s, cannot: %s, %.1f s in the median" % (
        right, all_of, named, with_straggler, SURE, ", ".join(wrong_sure) or "none", ", ".join(cannot) or "none",
        sorted(times)[len(times) // 2] if times else float("nan")))
    if not args.keep:
        shutil.rmtree(work, ignore_errors=True)
    if cannot:
        return 3
    return 0 if right >= RIGHT_LEAST * all_of and named == with_straggler and not wrong_sure else 1


sys.exit(main())
