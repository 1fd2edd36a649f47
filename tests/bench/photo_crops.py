#!/usr/bin/env python3
"""Cuts photographs from Debian packages into PPM files for bench_pictures.

Usage: photo_crops.py OUT [ROOT] [WIDTH HEIGHT]     (needs python3-pil)

ROOT is where the packages are unpacked ("/" when they are installed; elsewhere after
`apt-get download NAME && dpkg-deb -x NAME*.deb ROOT`).  The packages: mate-backgrounds,
lomiri-wallpapers-20.04, plasma-workspace-wallpapers, python3-sklearn.  Each photograph is shrunk so
that it just covers WIDTH x HEIGHT (500 x 375) and its middle is cut out, as it would be for a data
set.  Drawings and renderings in these packages are left out by name.
"""
import glob
import os
import sys

from PIL import Image

PHOTOS = [
    "usr/share/backgrounds/mate/nature/*.jpg",
    "usr/lib/python3/dist-packages/sklearn/datasets/images/*.jpg",
] + ["usr/share/backgrounds/%s_by_*.jpg" % name for name in (
    "Bridge", "Dragonfly", "Kleiber", "Picture_0B", "Picture_1A", "Wine", "aitzgorri", "free",
    "friends", "greentock", "life", "picosdeeuropa", "seeding", "sunset")
] + ["usr/share/wallpapers/%s/contents/images/2560x1600.jpg" % name for name in (
    "BytheWater", "ColdRipple", "ColorfulCups", "DarkestHour", "EveningGlow", "FallenLeaf", "Grey",
    "Kite", "OneStandsOut", "Path", "summer_1am")]


def main():
    out = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else "/"
    width, height = (int(a) for a in sys.argv[3:5]) if len(sys.argv) > 4 else (500, 375)
    os.makedirs(out, exist_ok=True)
    files = sorted(f for p in PHOTOS for f in glob.glob(os.path.join(root, p)))
    if not files:
        sys.exit("photo_crops: no photographs under %s; see the head of this file" % root)
    for index, name in enumerate(files):
        picture = Image.open(name).convert("RGB")
        scale = max(width / picture.width, height / picture.height)
        if scale > 1:
            continue
        picture = picture.resize((max(width, round(picture.width * scale)),
                                  max(height, round(picture.height * scale))), Image.LANCZOS)
        left, top = (picture.width - width) // 2, (picture.height - height) // 2
        picture.crop((left, top, left + width, top + height)).save(
            os.path.join(out, "%03d.ppm" % index))
    print("%d photographs" % len(os.listdir(out)))


if __name__ == "__main__":
    main()
