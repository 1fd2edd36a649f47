#!/usr/bin/env python3
"""Makes a data set of real photographs as people have them: several sizes, formats, qualities and subsamplings.

Usage: photo_mixture.py OUT [ROOT [COUNT]]     (needs python3-pil and the packages of photo_crops.py)

Each of COUNT (600) files is a crop of one of the photographs, a part of it between a third and all, shrunk to one of a few sizes.
From seed 1, so that the same packages give the same files."""
import glob
import os
import random
import sys

from PIL import Image

from photo_crops import PHOTOS

# share, format, longest edge from and to, options of the encoder
KINDS = [
    (0.55, "jpg", 480, 520, dict(quality=95, subsampling="4:2:0")),
    (0.12, "jpg", 300, 1200, dict(quality=85, subsampling="4:2:0")),
    (0.10, "jpg", 640, 640, dict(quality=75, subsampling="4:2:0", progressive=True)),
    (0.08, "jpg", 500, 900, dict(quality=92, subsampling="4:4:4")),
    (0.05, "jpg", 400, 500, dict(quality=90, exif=True)),
    (0.03, "jpg", 350, 500, dict(quality=90, gray=True)),
    (0.05, "png", 256, 400, dict()),
    (0.02, "png", 256, 400, dict(palette=True)),
]


def crop(picture, edge, rng):
    part = rng.uniform(1 / 3, 1)
    width, height = int(picture.width * part), int(picture.height * part)
    shape = rng.choice([4 / 3, 4 / 3, 3 / 2, 3 / 4, 1])
    width, height = min(width, int(height * shape)), min(height, int(width / shape))
    left, top = rng.randint(0, picture.width - width), rng.randint(0, picture.height - height)
    scale = min(1, edge / max(width, height))
    return picture.resize((max(16, round(width * scale)), max(16, round(height * scale))), Image.LANCZOS,
                          box=(left, top, left + width, top + height), reducing_gap=3)


def save(picture, name, options):
    options = dict(options)
    if options.pop("gray", False):
        picture = picture.convert("L")
    if options.pop("palette", False):
        picture = picture.convert("P", palette=Image.ADAPTIVE)
    if options.pop("exif", False):
        exif = Image.Exif()
        exif[0x010e] = "x" * 20000
        options["exif"] = exif
    picture.save(name, **options)


def main():
    out = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else "/"
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 600
    files = sorted(f for p in PHOTOS for f in glob.glob(os.path.join(root, p)))
    if not files:
        sys.exit("photo_mixture: no photographs under %s; see photo_crops.py" % root)
    rng = random.Random(1)
    kinds = [kind for kind in KINDS for _ in range(round(kind[0] * count))]
    rng.shuffle(kinds)
    for index, name in enumerate(files):
        with Image.open(name) as opened:
            photograph = opened.convert("RGB")
        for number in range(index, len(kinds), len(files)):
            _, ending, least, most, options = kinds[number]
            folder = os.path.join(out, "class_%02d" % (number % 10))
            os.makedirs(folder, exist_ok=True)
            save(crop(photograph, rng.randint(least, most), rng),
                 os.path.join(folder, "%05d.%s" % (number, ending)), options)
    print("%d files of %d photographs" % (len(kinds), len(files)))


if __name__ == "__main__":
    main()
