#!/usr/bin/env python3
"""Results of `mlbench accept` of nodes that are made up, for the tests and the bench of `mlbench fleet`.

make_nodes.py FOLDER [--nodes 40] [--cores 4] [--points 0] [--seed 1] [--plant FILE]

Healthy nodes differ by 0.4 %, their repetitions by 1 %.  FILE is JSON: {"node003": {"slow": 0.05, "core": [2, 0.3],
"read": 0.2, "facts": {"cpu.microcode": "0x1"}, "memory": 448, "verdict": "FAIL", "name": "...", "started": "...",
"folder": "..."}}; a list plants several results of one node.  --points: of each series over time, which make results as
large as those of the standard tier.
"""
import argparse
import copy
import json
import os
import random

CHECKS = {
    "cores": ("ceiling", [("decode.core", 410.0, "core")]),
    "matrix products": ("ceiling", [("gemm.core", 41e9, "core")]),
    "storage": ("ceiling", [("read.cold", 1.9e9, "")]),
    "training": ("pipeline", [("throughput", 1200.0, ""), ("read.capacity", 1500.0, ""), ("decode.capacity", 1230.0, ""),
                              ("step.capacity", 1900.0, ""), ("read.p99", 4.1e6, ""), ("decode.p99", 9.0e6, "")]),
    "memory errors": ("burn", [("burn.drift", 0.0, "")]),
}
LESS = {"read.p99", "decode.p99", "burn.drift"}


def environment(name, cores):
    return {
        "node": {"name": name, "name_from": "--node"},
        "cpu": {"model": "A CPU of 2.6 GHz", "microcode": "0x2b", "flags": "avx avx2 fma avx512f", "hypervisor": "no",
                "sockets": 2, "cores": cores, "threads": 2 * cores, "numa_nodes": 2, "smt": "on",
                "governor": "performance", "max_mhz": 3700, "affinity": "0-%d" % (2 * cores - 1), "allowed": 2 * cores},
        "memory": {"total": 540000000000, "available": 520000000000, "transparent_huge_pages": "madvise",
                   "huge_pages": 0, "page_size": 4096},
        "cgroup": {"container": "none that shows", "cpu_limit": "none", "memory_limit": "none"},
        "kernel": {"nodename": name, "release": "6.1.0-18-amd64", "machine": "x86_64", "clocksource": "tsc"},
        "data": {"path": "/data", "mount": "/data", "file_system": "ext4", "options": "rw,noatime",
                 "disk": "nvme0n1", "disk_model": "A DISK 3.84 TB", "scheduler": "none", "rotational": "no",
                 "read_ahead": 131072, "free": 1e12},
        "gpu": {"devices": {"missing": "no NVIDIA device"}, "driver": {"missing": "no driver"}},
        "load": {"average_1min": 0.1},
    }


def values_of(rng, plant, figure, level, factor, core=None):
    if figure == "burn.drift":
        return [0.0]
    if core is not None and plant.get("core") and plant["core"][0] == core:
        factor *= 1 - plant["core"][1]
    if figure in LESS:
        factor = 1 / factor
    return [level * factor * rng.gauss(1, plant.get("noise", 0.01)) for _ in range(plant.get("repeats", 7))]


def result(name, seed, cores, points, plant):
    rng = random.Random(seed)
    healthy = 1 - plant.get("slow", 0)
    measured, checks = [], []
    for check, (kind, figures) in CHECKS.items():
        entries = []
        decode, read = (healthy * rng.gauss(1, 0.004) for _ in range(2))
        read *= 1 - plant.get("read", 0)
        for figure, level, place in figures:
            factor = healthy * rng.gauss(1, 0.004)
            if check == "training":
                factor = read if figure.startswith("read") else decode
                if figure == "throughput":
                    factor = min(1500 * read, 1230 * decode) / 1230
                if figure == "step.capacity":
                    factor = rng.gauss(1, 0.004)
            for core in range(cores) if place else [None]:
                entries.append({"figure": figure, "place": "%s %d" % (place, core) if place else "",
                                "values": values_of(rng, plant, figure, level, factor, core), "peak": None, "source": None})
        series = [{"series": s, "place": "core %d" % c, "unit": "samples/s",
                   "points": [[float(t), round(rng.gauss(400, 4), 2)] for t in range(points)]}
                  for s in ("rate", "clock", "temperature") for c in range(min(cores, 16))] if points and kind == "burn" else []
        slowest = "read" if 1500 * read < 1230 * decode else "decode"
        measured.append({"check": check, "kind": kind, "state": "done", "why": None, "activity": "", "started_s": 1.0,
                         "seconds": 4.0, "rounds": 1, "values": entries, "facts": [], "missing": [], "events": [],
                         "series": series, "notes": ["Bottleneck: %s." % slowest] if kind == "pipeline" else []})
        verdict = plant.get("verdict", "PASS") if check == "cores" else "PASS"
        findings = [] if verdict == "PASS" else [
            {"figure": "decode.core", "place": "core 1", "level": "fail", "verdict": verdict, "asked": ">= 400 samples/s",
             "unit": "samples/s", "sense": "more", "measured": 328.0, "low": 320.0, "high": 335.0, "limit_low": 400.0,
             "limit_high": None, "repetitions": 7, "by": -0.18, "action": "isolate",
             "sentence": "decode.core at core 1 is 328 samples/s, 18 % below the limit of 400 samples/s",
             "remedy": "look for what runs on it", "runbook": "accept/decode.core", "repeat": "mlbench accept node.ini"}]
        checks.append({"check": check, "kind": kind, "verdict": verdict, "sentence": verdict, "seconds": 4.0,
                       "findings": findings})
    facts = environment(name, cores)
    if "memory" in plant:
        facts["memory"]["total"] = int(plant["memory"] * 0.98 * 2**30)
    for key, value in plant.get("facts", {}).items():
        group, member = key.split(".", 1)
        facts[group][member] = value
    verdict = plant.get("verdict", "PASS")
    bad = verdict in ("FAIL", "ERROR")
    return {"schema": "mlbench.accept/1", "program": "0.1.0", "node": {"name": name, "name_from": "--node"},
            "environment": facts, "tier": "standard", "started": plant.get("started", "2025-11-26T03:10:00Z"),
            "plan": {"name": "node", "file": "node.ini", "hash": "0", "text": ""}, "note": None,
            "judged_by": {"plan": {}, "tier": "standard", "baseline": None}, "verdict": verdict,
            "exit_status": {"FAIL": 1, "ERROR": 3}.get(verdict, 0), "complete": plant.get("complete", True),
            "sentence": "%s: made up" % verdict, "action": "isolate" if bad else "none", "seconds": 48.0,
            "counts": {"PASS": 5 - bad, "WARN": 0, "FAIL": int(verdict == "FAIL"), "SKIP": 0, "ERROR": int(verdict == "ERROR")},
            "errors": {"false_fail": 0.01, "false_pass": 0.01}, "checks": checks, "measured": measured}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--nodes", type=int, default=40)
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--points", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant")
    args = parser.parse_args()
    plants = json.load(open(args.plant)) if args.plant else {}
    for i in range(1, args.nodes + 1):
        name = "node%03d" % i
        listed = plants.get(name, {})
        for k, plant in enumerate(listed if isinstance(listed, list) else [copy.deepcopy(listed)]):
            folder = os.path.join(args.folder, plant.get("folder", "%s-%d" % (name, k) if k else name))
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "accept.json"), "w") as out:
                json.dump(result(plant.get("name", name), args.seed * 1000003 + 7 * i + k, args.cores, args.points, plant),
                          out, indent=1)


main()
