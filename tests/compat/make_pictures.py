#!/usr/bin/env python3
"""Writes pictures of every format and several sizes to a folder, for compare.py."""
import sys

import numpy
from PIL import Image


def picture(random, width, height):
    """Shapes on slopes with some noise: edges, flat areas and texture."""
    y, x = numpy.mgrid[0:height, 0:width]
    value = numpy.stack([x * 3 + y, 255 - x, (x * y) // 40 + 2 * y], axis=-1) % 256
    for _ in range(30):
        cx, cy = random.integers(0, width), random.integers(0, height)
        radius = random.integers(3, max(4, height // 4))
        value[(x - cx) ** 2 + (y - cy) ** 2 < radius ** 2] = random.integers(0, 256, 3)
    value = value + random.normal(0, 6, value.shape)
    return Image.fromarray(numpy.clip(value, 0, 255).astype("uint8"))


def main():
    folder = sys.argv[1]
    random = numpy.random.default_rng(1)
    photo = picture(random, 500, 375)
    photo.save(f"{folder}/420.jpg", quality=90)
    photo.save(f"{folder}/422.jpg", quality=90, subsampling=1)
    photo.save(f"{folder}/444.jpg", quality=95, subsampling=0)
    photo.save(f"{folder}/progressive.jpg", quality=85, progressive=True)
    photo.convert("L").save(f"{folder}/gray.jpg", quality=90)
    photo.convert("CMYK").save(f"{folder}/cmyk.jpg", quality=90)
    photo.save(f"{folder}/rgb.png")
    photo.convert("RGBA").save(f"{folder}/rgba.png")
    photo.convert("L").save(f"{folder}/gray.png")
    photo.convert("LA").save(f"{folder}/gray_alpha.png")
    photo.convert("P").save(f"{folder}/palette.png")
    photo.convert("1").save(f"{folder}/one_bit.png")
    photo.save(f"{folder}/rgb.ppm")
    picture(random, 130, 90).save(f"{folder}/small.jpg", quality=90)
    picture(random, 1600, 1100).save(f"{folder}/large.jpg", quality=90)
    picture(random, 9, 300).save(f"{folder}/thin.png")
    picture(random, 1, 1).save(f"{folder}/one.png")


if __name__ == "__main__":
    main()
