#!/usr/bin/env python3
#: cause = loader/gil
#: why = four threads augment in Python, so that they take turns with one interpreter
#: needs = spdl.io spdl.pipeline
#: python = venv
#: data = thumbs
#: options = --threads 4 --python-ms 12 --step-ms 15
#: relieved = --python-ms 0
#: fix = --threads 8
#: fix_twin = decode.workers=8
#: owner = batch.size=16
"""SPDL with an augmentation in Python beside its decoding."""
import time

import spdl.io
from spdl.pipeline import PipelineBuilder

from common import Job, spend

job = Job(threads=4, batch=16, python_ms=12.0, step_ms=15.0)
files = job.files(".jpg")


def endless():
    while True:
        yield from files


def augment(path):
    picture = spdl.io.load_image(path, filter_desc=spdl.io.get_video_filter_desc(scale_width=64, scale_height=64))
    spend(job.python_ms / 1000)
    return picture


pipeline = (PipelineBuilder().add_source(endless()).pipe(augment, concurrency=job.threads).aggregate(job.batch)
            .add_sink(4).build(num_threads=job.threads))
with pipeline.auto_stop():
    for batch in job.batches(pipeline, size=len):
        time.sleep(job.step_ms / 1000)
