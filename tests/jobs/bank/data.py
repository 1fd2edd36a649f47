#!/usr/bin/env python3
"""The data sets of the bank: `data.py NAME FOLDER` writes one.  A function of the name alone; nothing is downloaded.

  photos thumbs uneven large
                         JPEG files of tests/jobs/twelve.py
  classes                photos in one folder for each of ten classes (torchvision's ImageFolder)
  png                    96 pictures as PNG
  shards                 photos as webdataset's tar shards: 8 of 60, a .jpg and a .cls for each sample
  npy                    512 arrays of float32, 3 x 64 x 64, a file each
  tokens                 tokens.bin: 64 MiB of uint16 for numpy.memmap
  text                   text.txt: 20,000 lines of 200 words
  records                records.bin: 256 MiB in records of 4 KiB
  arrow litdata parquet tfrecord   in the formats of frameworks, by formats.py
"""
import io
import os
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # whose NumPy and Pillow are Debian's
CLASSES, SHARDS, PNGS, ARRAYS, TOKENS, LINES, WORDS, RECORD_MIB = 10, 8, 96, 512, 32 << 20, 20000, 200, 256
SYLLABLES = "ba be bo da di du fa fe ga go ka ki la le lo ma mi mo na ne no pa pe ra ri ro sa se so ta te ti tu va vi za ze".split()


def photos(folder):
    pictures("photos", folder)


def pictures(name, folder):
    subprocess.run([PYTHON, os.path.join(HERE, "..", "torch_job.py"), "--make", name, folder], check=True)


def classes(folder):
    photos(folder)
    for i, name in enumerate(sorted(os.listdir(folder))):
        group = os.path.join(folder, "%02d" % (i % CLASSES))
        os.makedirs(group, exist_ok=True)
        os.rename(os.path.join(folder, name), os.path.join(group, name))


def png(folder):
    from PIL import Image
    photos(folder)
    for i, name in enumerate(sorted(os.listdir(folder))):
        path = os.path.join(folder, name)
        if i < PNGS:
            Image.open(path).save(os.path.splitext(path)[0] + ".png")
        os.remove(path)


def shards(folder):
    """Each photo twice, so that shards hold enough."""
    photos(folder)
    names = sorted(os.listdir(folder))
    for shard in range(SHARDS):
        with tarfile.open(os.path.join(folder, "shard-%03d.tar" % shard), "w", format=tarfile.USTAR_FORMAT) as archive:
            for i, name in enumerate(names[shard % 4::4]):
                key = "%03d%05d" % (shard, i)
                with open(os.path.join(folder, name), "rb") as file:
                    for ending, value in (("jpg", file.read()), ("cls", b"%d" % (i % CLASSES))):
                        member = tarfile.TarInfo(key + "." + ending)
                        member.size = len(value)
                        archive.addfile(member, io.BytesIO(value))
    for name in names:
        os.remove(os.path.join(folder, name))


def npy(folder):
    import numpy
    rng = numpy.random.default_rng(1)
    for i in range(ARRAYS):
        numpy.save(os.path.join(folder, "%05d.npy" % i), rng.standard_normal((3, 64, 64), numpy.float32))


def tokens(folder):
    import numpy
    rng = numpy.random.default_rng(2)
    rng.zipf(1.3, TOKENS).clip(0, 50256).astype(numpy.uint16).tofile(os.path.join(folder, "tokens.bin"))


def text(folder):
    import numpy
    rng = numpy.random.default_rng(3)
    words = ["".join(SYLLABLES[j] for j in rng.integers(0, len(SYLLABLES), rng.integers(1, 5))) for _ in range(30000)]
    with open(os.path.join(folder, "text.txt"), "w") as file:
        for _ in range(LINES):
            print(" ".join(words[i % 30000] for i in rng.zipf(1.2, WORDS)), file=file)


def records(folder):
    import numpy
    rng = numpy.random.default_rng(5)
    with open(os.path.join(folder, "records.bin"), "wb") as file:
        for _ in range(RECORD_MIB // 4):
            file.write(rng.bytes(4 << 20))


def jobs_python():
    """The interpreter with the frameworks (make jobs-venv)."""
    return os.environ.get("MLBENCH_JOBS_PYTHON") or os.path.join(HERE, "..", "..", "..", "build", "jobs-venv", "bin", "python")


def of_framework(name):
    return lambda folder: subprocess.run([jobs_python(), os.path.join(HERE, "formats.py"), name, folder], check=True)


MAKERS = {"photos": photos, "thumbs": lambda folder: pictures("thumbs", folder), "uneven": lambda folder: pictures("uneven", folder),
          "large": lambda folder: pictures("large", folder), "classes": classes, "png": png, "shards": shards, "npy": npy, "tokens": tokens,
          "text": text, "records": records, **{name: of_framework(name) for name in ("arrow", "litdata", "parquet", "tfrecord")}}


def make(name, base):
    """The folder of a data set below base, made where it is missing."""
    path = os.path.join(base, name)
    if not os.path.isdir(path):
        subprocess.run(["rm", "-rf", path + ".part"], check=True)
        subprocess.run([PYTHON, os.path.abspath(__file__), name, path + ".part"], check=True)
        os.rename(path + ".part", path)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MAKERS:
        sys.exit("usage: data.py %s FOLDER" % "|".join(MAKERS))
    os.makedirs(sys.argv[2], exist_ok=True)
    MAKERS[sys.argv[1]](sys.argv[2])
