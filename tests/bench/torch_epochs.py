#!/usr/bin/env python3
"""Epochs of PyTorch's DataLoader over an ImageFolder, one JSON line each: the work that
configs/decode_only.ini does (decode, random resized crop 224, flip, float32 CHW, normalise; no step).

Needs Debian's python3-torch, python3-torchvision and python3-pil.  The first epoch is a warm-up.
"""
import argparse
import json
import os
import resource
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch  # noqa: E402
from torchvision import datasets, transforms  # noqa: E402


def family_cpu_seconds():
    """CPU time of this process and its live children."""
    ticks, me = 0, os.getpid()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if me in (int(entry), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def family_resident_bytes():
    """Proportional set size of this process and its children: shared pages count once."""
    total, me = 0, os.getpid()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
            if me not in (int(entry), parent):
                continue
            with open(f"/proc/{entry}/smaps_rollup") as rollup:
                total += next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue
    return total * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()

    torch.set_num_threads(1)
    transform = transforms.Compose([
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])
    data = datasets.ImageFolder(options.folder, transform)
    loader = torch.utils.data.DataLoader(data, batch_size=options.batch, shuffle=True, drop_last=True,
                                         num_workers=options.workers, persistent_workers=True)
    for epoch in range(options.epochs):
        cpu, start, images = family_cpu_seconds(), time.perf_counter(), 0
        for batch, _ in loader:
            images += len(batch)
        seconds = time.perf_counter() - start
        print(json.dumps({
            "epoch": epoch,
            "images_per_s": images / seconds,
            "cpu_us_per_image": (family_cpu_seconds() - cpu) / images * 1e6,
            "resident_bytes": family_resident_bytes(),
            "peak_self_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }), flush=True)


if __name__ == "__main__":
    main()
