#!/usr/bin/python3
"""CPU time of one sample, mlbench's transform against PIL and torchvision on the same files, in turn.

  bench_image_torch.py BUILD/mlbench [FOLDER]

Both decode, crop (random resized, 224), flip and normalise to float32 CHW, in one thread and without
any loader around; so this compares the work itself.  The folder holds JPEG and PNG files, by default
24 synthetic photographs of 500 x 375 that mlbench generates.
"""
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
REPEATS = 5


def make_pictures(mlbench, folder):
    for form in ("jpeg", "png"):
        keys = {"dataset.recipe": "photo", "dataset.path": f"{folder}/{form}", "dataset.samples": 24,
                "dataset.format": form, "dataset.size_sigma": 0, "dataset.classes": 1}
        config = f"{folder}/{form}.ini"
        with open(config, "w") as out:
            for key, value in keys.items():
                section, name = key.split(".")
                out.write(f"[{section}]\n{name} = {value}\n")
        subprocess.run([mlbench, "gen", config], check=True, stdout=subprocess.DEVNULL)


def torch_us(files, transform):
    start = time.thread_time()
    for path in files:
        with open(path, "rb") as file:
            transform(Image.open(file).convert("RGB"))
    return (time.thread_time() - start) / len(files) * 1e6


def ours_us(program, files):
    text = subprocess.run([program, *files], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in text.splitlines():
        for name in ("jpeg sample  ", "png sample fast  ", "png sample libpng  "):
            if line.startswith(name):
                found[name.strip()] = float(line[len(name):].split()[0])
    return found


def show(name, values):
    print(f"{name:28} {statistics.median(values):9.1f}  [{min(values):.1f} - {max(values):.1f}]")


def compare(program, kind, files, transform, rows):
    theirs, ours = [], {}
    for _ in range(REPEATS):
        theirs.append(torch_us(files, transform))
        for name, value in ours_us(program, files).items():
            if name in rows:
                ours.setdefault(name, []).append(value)
    print(f"{len(files)} {kind} files, CPU us a sample: median [min - max] of {REPEATS}")
    show("PIL and torchvision", theirs)
    for name, values in ours.items():
        show(f"mlbench, {name}", values)
        ratios = [a / b for a, b in zip(theirs, values)]
        print(f"  torchvision / mlbench       {statistics.median(ratios):9.2f}  "
              f"[{min(ratios):.2f} - {max(ratios):.2f}]")


def main():
    mlbench = sys.argv[1]
    program = os.path.join(os.path.dirname(mlbench), "bench", "bench_decode")
    transform = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    with tempfile.TemporaryDirectory() as made:
        folder = sys.argv[2] if len(sys.argv) > 2 else made
        if len(sys.argv) < 3:
            make_pictures(mlbench, folder)
        for kind, rows in (("jpg", ["jpeg sample"]), ("png", ["png sample fast", "png sample libpng"])):
            files = sorted(glob.glob(f"{folder}/**/*.{kind}", recursive=True))
            if files:
                compare(program, kind, files, transform, rows)


try:
    import torch
    from PIL import Image
    from torchvision import transforms
except ImportError as error:
    print(f"bench_image_torch: skipped: {error}")
    sys.exit(77)
torch.set_num_threads(1)
main()
