#!/usr/bin/env python3
"""The README's case, over and over: `mlbench diagnose configs/story.ini`, each run with no earlier results and no kept probe.

    tests/bank/story.py MLBENCH [--runs 40] [--beside hog] [--keep FOLDER]

Right is (read, latency).  --beside hog keeps one core busy meanwhile; --keep saves what each run printed.  Exit status: 0 all
bars are met, 1 one is missed, 2 wrong use.  It measures, so it is no part of `make check`."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from typing import Dict, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import report
import score

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "story.ini")
RIGHT = ("read", "latency")
HOG = ("sha256sum", "/dev/zero")
LIMIT_S = 120.0
WRONG_INPUT, NOT_STEADY, INTERRUPTED = 2, 3, 130
# Shares of the runs, and seconds of 95 % of them.
QUIET = {"right": 0.95, "unknown": 0.05, "seconds": 10.0}
BESIDE = {"right": 0.90, "unknown": 0.10, "seconds": 20.0}


def outcome(status: int, verdict: dict) -> str:
    stage, resource = verdict.get("stage") or "none", verdict.get("resource") or "unknown"
    if status == NOT_STEADY or stage == "none" or resource == "unknown":
        return "unknown"
    return "right" if (stage, resource) == RIGHT else "wrong"


def bars(runs: List[dict], wanted: Dict[str, float]) -> List[dict]:
    count = len(runs)
    share = lambda name: score.share(sum(1 for run in runs if run["outcome"] == name), count)
    times = sorted(run["seconds"] for run in runs)
    return [
        score.bar("right: read / latency", share("right"), wanted["right"], True, count),
        score.bar("unknown or inconclusive", share("unknown"), wanted["unknown"], False, count),
        score.bar("wrong", share("wrong"), 0, False, count),
        score.bar("seconds, 95 % of the runs", times[math.ceil(0.95 * count) - 1] if times else None, wanted["seconds"], False, count, "s"),
    ]


def diagnose(program: str, folder: str, environment: Dict[str, str], keep: str, number: int) -> dict:
    """One run in an empty folder."""
    out = os.path.join(folder, "out")
    began = time.monotonic()
    done = subprocess.run([program, "diagnose", CONFIG, "--out", out], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
                          env={**environment, "XDG_CACHE_HOME": os.path.join(folder, "cache")})
    seconds = time.monotonic() - began
    if done.returncode in (WRONG_INPUT, INTERRUPTED):
        sys.exit("story: mlbench diagnose: exit status %d: %s" % (done.returncode, done.stderr.strip()[-400:]))
    with open(os.path.join(out, "summary.json")) as file:
        verdict = json.load(file)["points"][0]["verdict"] or {}
    if keep:
        with open(os.path.join(keep, "run-%02d.txt" % number), "w") as file:
            file.write(done.stdout)
    return {"seconds": seconds, "status": done.returncode, "outcome": outcome(done.returncode, verdict), "verdict": verdict}


def line(number: int, run: dict) -> str:
    verdict = run["verdict"]
    return "%3d %6.1f s  %-24s %.2f  %s" % (number, run["seconds"], "%s / %s" % (verdict.get("stage") or "-", verdict.get("resource") or "-"),
                                          verdict.get("confidence") or 0, run["outcome"])


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(description="diagnoses configs/story.ini again and again, and scores the verdicts")
    parser.add_argument("program", help="the built mlbench")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--beside", choices=("hog",), help="keep one core busy meanwhile")
    parser.add_argument("--keep", default="", metavar="FOLDER", help="save what each run printed, and runs.json")
    options = parser.parse_args(arguments)
    program, runs = os.path.abspath(options.program), []
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mlbench-story-") as folder:
        environment = {**os.environ, "MLBENCH_DATA": os.path.join(folder, "data")}
        subprocess.run([program, "gen", CONFIG, "--quiet"], env=environment, check=True)
        hog = subprocess.Popen(HOG, stdout=subprocess.DEVNULL) if options.beside else None
        try:
            for number in range(1, options.runs + 1):
                with tempfile.TemporaryDirectory(dir=folder) as empty:
                    runs.append(diagnose(program, empty, environment, options.keep, number))
                print(line(number, runs[-1]), flush=True)
        finally:
            if hog:
                hog.kill()
                hog.wait()
    judged = bars(runs, BESIDE if options.beside else QUIET)
    if options.keep:
        with open(os.path.join(options.keep, "runs.json"), "w") as file:
            json.dump({"runs": runs, "bars": judged}, file, indent=1)
    times = sorted(run["seconds"] for run in runs)
    print("", "median %.1f s" % times[len(times) // 2] if times else "", *report.bar_lines(judged), sep="\n")
    return 1 if score.missed(judged) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
