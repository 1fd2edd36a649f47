#!/usr/bin/env python3
#: cause = read/latency
#: why = each read of a small file takes 8 ms; grain has four threads that read
#: needs = grain PIL numpy
#: python = venv
#: data = thumbs
#: around = latency:8000
#: options = --threads 4 --step-ms 5
#: relieved = latency:0
#: fix = --threads 16
#: fix_twin = read.depth=16
#: owner = batch.size=32 augment.size=32
"""grain over a folder of thumbnails on a store that is far away."""
import io
import time

import grain
import numpy
from PIL import Image

from common import Job

job = Job(threads=4, batch=32, step_ms=5.0)


class Files:
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb", buffering=0) as file:
            return file.read()


def decode(blob):
    return numpy.asarray(Image.open(io.BytesIO(blob)).convert("RGB").resize((32, 32)), numpy.float32) / 255


pictures = grain.MapDataset.source(Files(job.files(".jpg"))).shuffle(seed=1).map(decode).repeat()
options = grain.ReadOptions(num_threads=job.threads, prefetch_buffer_size=4 * job.threads)
for batch in job.batches(pictures.to_iter_dataset(options).batch(job.batch, drop_remainder=True)):
    time.sleep(job.step_ms / 1000)
