#!/usr/bin/env python3
"""Data sets in the formats of frameworks, written by those frameworks: `formats.py NAME FOLDER`.  A function of the name alone.

  arrow     8,000 texts as a table of Hugging Face datasets
  litdata   photos as litdata's chunks
  tfrecord  photos as TensorFlow's records, 4 files of 120
  parquet   2,048 rows of 16 KiB of floats, in row groups of 256
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import data as plain  # noqa: E402

TEXTS, TEXT_WORDS, ROWS, GROUP, FLOATS = 8000, 200, 2048, 256, 4096


def photos_of(folder):
    """Photos beside the folder's own files, away when it is done with."""
    path = folder.rstrip("/") + ".photos"
    plain.photos(path)
    return path, sorted(os.path.join(path, name) for name in os.listdir(path))


def arrow(folder):
    import datasets
    import numpy
    rng = numpy.random.default_rng(3)
    words = ["".join(plain.SYLLABLES[j] for j in rng.integers(0, len(plain.SYLLABLES), rng.integers(1, 5))) for _ in range(30000)]
    texts = [" ".join(words[i % len(words)] for i in rng.zipf(1.2, TEXT_WORDS)) for _ in range(TEXTS)]
    datasets.Dataset.from_dict({"text": texts}).save_to_disk(folder)


def litdata(folder):
    import numpy
    import litdata as framework
    import torch
    from PIL import Image
    scratch, files = photos_of(folder)
    writer = framework.streaming.writer.BinaryWriter(folder, chunk_bytes="4MB")
    for i, path in enumerate(files):
        picture = torch.from_numpy(numpy.asarray(Image.open(path).resize((96, 96)))).permute(2, 0, 1).contiguous()
        writer[i] = {"image": picture, "label": i % 10}
    writer.done()
    writer.merge()
    subprocess.run(["rm", "-r", scratch], check=True)


def tfrecord(folder):
    import tensorflow
    scratch, files = photos_of(folder)
    for part in range(4):
        with tensorflow.io.TFRecordWriter(os.path.join(folder, "part-%d.tfrecord" % part)) as writer:
            for i, path in enumerate(files[part % 2::2]):
                with open(path, "rb") as file:
                    image = tensorflow.train.Feature(bytes_list=tensorflow.train.BytesList(value=[file.read()]))
                label = tensorflow.train.Feature(int64_list=tensorflow.train.Int64List(value=[i % 10]))
                features = tensorflow.train.Features(feature={"image": image, "label": label})
                writer.write(tensorflow.train.Example(features=features).SerializeToString())
    subprocess.run(["rm", "-r", scratch], check=True)


def parquet(folder):
    import numpy
    import pyarrow
    import pyarrow.parquet
    rng = numpy.random.default_rng(4)
    rows = [rng.standard_normal(FLOATS, numpy.float32).round(2) for _ in range(ROWS)]
    table = pyarrow.table({"signal": pyarrow.array(rows, pyarrow.list_(pyarrow.float32())), "label": numpy.arange(ROWS) % 10})
    pyarrow.parquet.write_table(table, os.path.join(folder, "signals.parquet"), row_group_size=GROUP, compression="zstd")


MAKERS = {"arrow": arrow, "litdata": litdata, "tfrecord": tfrecord, "parquet": parquet}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MAKERS:
        sys.exit("usage: formats.py %s FOLDER" % "|".join(MAKERS))
    os.makedirs(sys.argv[2], exist_ok=True)
    MAKERS[sys.argv[1]](sys.argv[2])
