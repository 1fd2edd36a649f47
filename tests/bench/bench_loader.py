#!/usr/bin/env python3
"""mlbench end to end against PyTorch's DataLoader, in turn, on the same folder.

  tests/bench/bench_loader.py build/release/mlbench [--rounds 5] [--kinds jpeg,png-libpng,png-fast]

Both decode, crop, resize, flip and normalise batches of 64 with 2 workers from a warm page cache, no
step; mlbench with one batch prefetched, PyTorch with its default of two a worker.  Prints medians, min-max, the ratio of each round and its median, CPU time an image, and memory.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

CONFIG = """[run]
name = loader
[dataset]
path = {folder}
recipe = photo
samples = {samples}
bytes = {bytes}
format = {format}
[read]
engine = {engine}
cache = warm
[decode]
workers = {workers}
[batch]
size = 64
[prefetch]
depth = 1
[step]
backend = null
[measure]
repeats = 1
duration = {seconds}s
warmup = 1s
limits = off
"""


def one_mlbench(program, config, scratch, extra):
    out = tempfile.mkdtemp(prefix="run-", dir=scratch)
    command = [program, "run", config, "--quiet", "--out", os.path.join(out, "r")] + extra
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 3):  # 3: not steady, on a noisy machine; the rounds' spread tells
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
    with open(os.path.join(out, "r", "points.jsonl")) as lines:
        rows = [json.loads(line) for line in lines]
    row = next(r for r in rows if "throughput" in r)
    return {"images_per_s": row["throughput"],
            "cpu_us_per_image": row["cpu_seconds"] / row["samples"] * 1e6,
            "resident_bytes": row["rss_peak_bytes"], "pool_bytes": row["pool_bytes"]}


def one_torch(folder, workers):
    command = ["/usr/bin/python3", os.path.join(HERE, "torch_epochs.py"), folder, "--workers", str(workers)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return json.loads(lines[-1])


def line(name, values, unit, digits=0):
    print(f"  {name:<30} {statistics.median(values):>10,.{digits}f} "
          f"[{min(values):,.{digits}f}-{max(values):,.{digits}f}] {unit}")


def compare(program, kind, options, scratch):
    form = kind.split("-")[0]
    folder = os.path.join(scratch, form)
    config = os.path.join(scratch, kind + ".ini")
    with open(config, "w") as file:
        file.write(CONFIG.format(folder=folder, samples=options.samples, bytes=options.bytes if form == "jpeg" else "0",
                                 format=form, workers=options.workers, engine=options.engine,
                                 seconds=options.seconds))
    subprocess.run([program, "gen", config, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    extra = ["--set", "codec.png=" + kind.split("-")[1]] if "-" in kind else []
    extra += [word for item in options.set for word in ("--set", item)]
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(one_mlbench(program, config, scratch, extra))
        theirs.append(one_torch(folder, options.workers))
    print(f"{kind}: {options.workers} workers, batch 64, {options.samples} files, "
          f"{options.rounds} rounds in turn: median [min-max]")
    for name, rows in (("mlbench", ours), ("PyTorch", theirs)):
        line(name + " images/s", [r["images_per_s"] for r in rows], "")
        line(name + " CPU an image", [r["cpu_us_per_image"] for r in rows], "us")
        line(name + " memory", [r["resident_bytes"] / 2**20 for r in rows], "MiB")
    line("ratio of images/s", [a["images_per_s"] / b["images_per_s"] for a, b in zip(ours, theirs)], "x", 2)
    line("ratio of memory", [a["resident_bytes"] / b["resident_bytes"] for a, b in zip(ours, theirs)], "x", 2)
    line("mlbench over its pools", [(r["resident_bytes"] - r["pool_bytes"]) / 2**20 for r in ours], "MiB", 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=1280)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--bytes", default="97KB", help="mean size of the JPEG files")
    parser.add_argument("--engine", default="io_uring")
    parser.add_argument("--kinds", default="jpeg,png-libpng,png-fast")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    try:
        subprocess.run(["/usr/bin/python3", "-c", "import torch, torchvision"], check=True,
                       stderr=subprocess.DEVNULL)
    except (subprocess.CalledProcessError, FileNotFoundError):
        print("bench_loader: skipped: Debian's python3-torch and python3-torchvision are not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="mlbench-loader-") as scratch:
        for kind in options.kinds.split(","):
            compare(os.path.abspath(options.program), kind, options, scratch)


if __name__ == "__main__":
    main()
