#!/usr/bin/env python3
"""Compares mlbench's samples with torchvision's of the same files and crop boxes.

  compare.py TRANSFORM_FILE_PROGRAM FILE...

Exact tolerances, in levels of 0..255 before normalising:
  no difference above 1 level, and at most 2 % of values differ at all (both round to whole levels
  after each of the two passes; mlbench's weights have 14 bits, PIL's 22).
"""
import os
import subprocess
import sys
import tempfile

import numpy
from PIL import Image
from torchvision import transforms as T
from torchvision.transforms import functional as F

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
LARGEST, SHARE = 1.0, 0.02
SEEDS = 6


def ours(program, lines, size, keys, dtype):
    with tempfile.NamedTemporaryFile(delete=False) as out:
        pass
    try:
        done = subprocess.run([program, out.name, *keys], input="\n".join(lines) + "\n", text=True,
                              stdout=subprocess.PIPE, check=True)
        samples = numpy.fromfile(out.name, dtype=dtype).reshape(len(lines), -1)
    finally:
        os.unlink(out.name)
    return done.stdout.splitlines(), samples


def theirs(path, box, flip, size):
    x, y, width, height = box
    picture = Image.open(path).convert("RGB")
    picture = F.resized_crop(picture, y, x, height, width, [size, size], T.InterpolationMode.BILINEAR)
    if flip:
        picture = F.hflip(picture)
    return T.Normalize(MEAN, STD)(T.ToTensor()(picture)).numpy()


def compare(program, files, size, png):
    keys = [f"augment.size={size}", f"codec.png={png}"]
    jobs = [(seed, path) for path in files for seed in range(SEEDS)]
    told, samples = ours(program, [f"{s} {p}" for s, p in jobs], size, keys, numpy.float32)
    scale = 255 * numpy.array(STD, dtype=numpy.float64).reshape(3, 1, 1)
    largest, differing, values, failed = 0.0, 0, 0, 0
    for (seed, path), line, sample in zip(jobs, told, samples):
        if line.startswith("bad"):
            print(f"  {path} seed {seed}: {line}")
            failed += 1
            continue
        *box, flip = map(int, line.split())
        levels = numpy.abs((sample.reshape(3, size, size) - theirs(path, box, flip, size)) * scale)
        worst, many = float(levels.max()), int((levels > 0.01).sum())
        largest, differing, values = max(largest, worst), differing + many, values + levels.size
        if worst > LARGEST + 0.01 or many > SHARE * levels.size:
            print(f"  {path} seed {seed} box {box} flip {flip}: {worst:.2f} levels, "
                  f"{100 * many / levels.size:.2f} % of values differ")
            failed += 1
    print(f"size {size}, png {png}: {len(jobs)} samples, largest difference {largest:.2f} levels, "
          f"{100 * differing / max(values, 1):.3f} % of values differ, {failed} failed")
    return len(jobs) - failed, failed


def main():
    program, files = sys.argv[1], sys.argv[2:]
    passed = failed = 0
    for size, png in ((224, "fast"), (224, "libpng"), (97, "fast")):
        good, bad = compare(program, files, size, png)
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
