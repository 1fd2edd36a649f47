#!/usr/bin/env python3
#: cause = loader/cpu
#: why = one thread of SPDL decodes every picture three times
#: needs = spdl.io spdl.pipeline
#: python = venv
#: data = photos
#: options = --threads 1 --step-ms 15
#: relieved = --threads 2 --again 0
#: fix = --threads 2
#: fix_twin = decode.workers=2
#: owner = batch.size=32
"""SPDL: threads that decode without the GIL, in one process."""
import time

import spdl.io
from spdl.pipeline import PipelineBuilder

from common import Job

job = Job(threads=1, batch=32, again=2, size=224, step_ms=15.0)
files = job.files(".jpg")


def endless():
    while True:
        yield from files


def decode(path):
    """Several sizes of each picture, each decoded by itself."""
    for _ in range(job.again):
        spdl.io.load_image(path, filter_desc=spdl.io.get_video_filter_desc(scale_width=job.size + 32, scale_height=job.size + 32))
    return spdl.io.load_image(path, filter_desc=spdl.io.get_video_filter_desc(scale_width=job.size, scale_height=job.size))


pipeline = (PipelineBuilder().add_source(endless()).pipe(decode, concurrency=job.threads).aggregate(job.batch)
            .add_sink(4).build(num_threads=job.threads))
with pipeline.auto_stop():
    for batch in job.batches(pipeline, size=len):
        time.sleep(job.step_ms / 1000)
