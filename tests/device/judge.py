#!/usr/bin/env python3
"""Reads what tests/device/run.sh measured and prints one line per check: STATUS, a tab, what was found.

    judge.py probe FILE            the data sheet has a device, and what it gives
    judge.py repeat NAME RESULT    repetitions of one process gave the same bits
    judge.py sweep RESULT          every point ran on a device
    judge.py ran NAME RESULT       a run was on a device: its rate and what share of the peak that is
    judge.py watched NAME RESULT   likewise, and what the driver said of clocks, power and throttling
    judge.py binding NAME RESULT DIAGNOSIS   which stage binds, and its margin
"""

import json
import math
import os
import sys
from typing import Any, Dict, List, Optional


def say(status: str, text: str) -> None:
    print("%s\t%s" % (status, " ".join(text.split())))


def measurements(folder: str) -> List[Dict[str, Any]]:
    """The repetitions; the first line is the head."""
    with open(os.path.join(folder, "points.jsonl")) as file:
        lines = [json.loads(line) for line in file if line.strip()]
    return [line for line in lines if "throughput" in line]


def rate(value: Optional[float], unit: str, scale: float) -> str:
    return "?" if value is None else "%.3g %s" % (value / scale, unit)


def probe(path: str) -> None:
    with open(path) as file:
        sheet = json.load(file)
    device = sheet.get("device")
    if not device:
        why = [line for line in sheet["missing"] if line.startswith("device")]
        say("FAIL", "no device in the data sheet: %s" % (why[0] if why else "no reason given"))
        return
    wanted = ["memory_bytes_per_s", "launch_ns", "kernel_ns", "graph_kernel_ns", "round_trip_ns"]
    lacking = [name for name in wanted if device.get(name) is None]
    kinds = {(copy["to_device"], copy["pinned"]) for copy in device["copies"]}
    if len(kinds) < 4:
        lacking.append("copies of %d of 4 kinds" % len(kinds))
    if not any(gemm["is_best"] for gemm in device["gemms"]):
        lacking.append("products")
    reasons = [line for line in sheet["missing"] if line.startswith("device")]
    if lacking:
        say("FAIL", "%s: lacks %s; %s" % (device["name"], ", ".join(lacking), "; ".join(reasons)))
    else:
        say("PASS", "%s: %d copies, %d products" % (device["name"], len(device["copies"]), len(device["gemms"])))
    for line in reasons:
        say("INFO", line)
    most = max((copy["bytes"] for copy in device["copies"]), default=0)
    for copy in device["copies"]:
        if copy["bytes"] == most:
            say("INFO", "%s device, %s, %.0f MiB: %s" % ("to" if copy["to_device"] else "from",
                "pinned" if copy["pinned"] else "pageable", most / 2**20, rate(copy["bytes_per_s"], "GB/s", 1e9)))
    say("INFO", "its memory %s; launch %s; kernel %s, in a graph %s; round trip %s" % (
        rate(device["memory_bytes_per_s"], "TB/s", 1e12), rate(device["launch_ns"], "us", 1e3), rate(device["kernel_ns"], "us", 1e3),
        rate(device["graph_kernel_ns"], "us", 1e3), rate(device["round_trip_ns"], "us", 1e3)))
    for gemm in device["gemms"]:
        if gemm["is_best"]:
            say("INFO", "products in %s: %s" % (gemm["precision"], rate(gemm["flops"], "TFLOP/s", 1e12)))


def repeat(name: str, folder: str) -> None:
    """Bits are compared through JSON, which gives a double exactly; the last loss depends on every step before it."""
    runs = measurements(folder)
    failed = [run for run in runs if run.get("error")]
    if failed or len(runs) < 2:
        say("FAIL", "%s: %d repetitions; %s" % (name, len(runs), failed[0]["error"] if failed else ""))
        return
    losses = {(run["loss_first"], run["loss_last"]) for run in runs}
    checksums = {str(run.get("checksum")) for run in runs}
    promised = all(device["deterministic"] for run in runs for device in run["devices"])
    loss = runs[0]["loss_last"]
    if loss is None or not math.isfinite(loss):
        say("FAIL", "%s: the last loss is no number" % name)
    elif len(checksums) > 1:
        say("FAIL", "%s: the batches were not the same" % name)
    elif len(losses) == 1:
        say("PASS", "%s: %d repetitions, the same bits (loss %.9g); promised by the libraries: %s" % (
            name, len(runs), loss, "yes" if promised else "no"))
    else:
        spread = max(last for _, last in losses) - min(last for _, last in losses)
        say("FAIL" if promised else "INFO", "%s: losses differ by %.3g; the same bits were %spromised" % (
            name, spread, "" if promised else "not "))


def rates(runs: List[dict]) -> List[float]:
    """Samples/s, sorted; a repetition of too few batches has none."""
    return sorted(run["throughput"] for run in runs if run["throughput"])


def at_best(runs: List[dict]) -> str:
    return "%.0f samples/s" % rates(runs)[-1] if rates(runs) else "no rate, for too few batches"


def sweep(folder: str) -> None:
    runs = measurements(folder)
    bad = [run for run in runs if run["status"] not in ("ok", "unsteady")]
    elsewhere = [run for run in runs if not run.get("devices") or any(device["emulated"] for device in run["devices"])]
    if bad or not runs:
        say("FAIL", "%d of %d points failed: %s" % (len(bad), len(runs), bad[0].get("error") if bad else "none ran"))
    elif elsewhere:
        say("FAIL", "%d of %d points ran on no real device" % (len(elsewhere), len(runs)))
    else:
        unsteady = sum(run["status"] == "unsteady" for run in runs)
        say("PASS", "%d repetitions on %s%s; at best %s" % (
            len(runs), runs[0]["devices"][0]["name"], ", %d not steady" % unsteady if unsteady else "", at_best(runs)))


def ran(name: str, folder: str) -> bool:
    runs = [run for run in measurements(folder) if run["status"] in ("ok", "unsteady")]
    devices = [device for run in runs for device in run.get("devices") or []]
    if not devices or any(device["emulated"] or not device.get("step_seconds") for device in devices):
        say("FAIL", "%s: no repetition on a real device" % name)
        return False
    share = devices[0].get("model_utilisation")
    say("PASS", "%s: %s, %d device%s, %s%s" % (name, devices[0]["precision"], len({d["index"] for d in devices}),
        "s" if len({d["index"] for d in devices}) > 1 else "", at_best(runs),
        ", %.0f %% of the published peak" % (100 * share) if share else ""))
    return True


def watched(name: str, folder: str) -> None:
    if not ran(name, folder):
        return
    device = measurements(folder)[-1]["devices"][0]
    known = [key for key in ("sm_clock_mhz", "power_w", "temperature_c") if device.get(key) is not None]
    throttles = device.get("throttles")
    if not known and throttles is None:
        say("INFO", "%s: the driver says nothing of clocks and power (no NVML)" % name)
        return
    say("INFO", "%s: %s; held down by %s" % (name, ", ".join("%s %s" % (key, device[key]) for key in known) or "no figures",
        ", ".join("%s %.0f %%" % (reason, 100 * share) for reason, share in throttles or []) or "nothing"))


def limits_of(folder: str) -> Dict[str, float]:
    """Stages run alone, where they were; else capacities."""
    with open(os.path.join(folder, "summary.json")) as file:
        summary = json.load(file)
    found = {}
    for limit in summary.get("limits") or []:
        if isinstance(limit["capacity"], (int, float)):
            found[limit["stage"]] = limit["capacity"]
    if not found:
        for stage in measurements(folder)[0]["stages"]:
            if stage.get("capacity"):
                found[stage["name"]] = stage["capacity"]
    return found


def verdict_of(path: str) -> str:
    """From the log of `diagnose --json`: the first line is the command."""
    try:
        with open(path) as file:
            text = file.read()
        document = json.loads(text[text.index("{"):text.rindex("}") + 1])
    except (OSError, ValueError):
        return "no diagnosis"
    verdict = document.get("verdict") or {}
    return "%s, %s" % (verdict.get("stage"), verdict.get("resource"))


def binding(name: str, folder: str, diagnosis: str) -> None:
    runs = measurements(folder)
    failed = [run for run in runs if run["status"] not in ("ok", "unsteady")]
    if failed or not runs:
        say("FAIL", "%s: %s" % (name, failed[0].get("error") if failed else "nothing was measured"))
        return
    known = rates(runs)
    throughput = "%.0f samples/s" % known[len(known) // 2] if known else at_best(runs)
    limits = sorted(limits_of(folder).items(), key=lambda item: item[1])
    text = "%s: %s; diagnosed: %s" % (name, throughput, verdict_of(diagnosis))
    if limits:
        text += "; limits: " + ", ".join("%s %.0f" % item for item in limits)
    if len(limits) > 1:
        text += "; %s binds, the next could do %.2f times as much" % (limits[0][0], limits[1][1] / limits[0][1])
    say("PASS", text)


def main(arguments: List[str]) -> int:
    commands = {"probe": probe, "repeat": repeat, "sweep": sweep, "binding": binding, "ran": ran, "watched": watched}
    if not arguments or arguments[0] not in commands:
        print(__doc__, file=sys.stderr)
        return 2
    commands[arguments[0]](*arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
