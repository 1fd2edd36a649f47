#!/usr/bin/env python3
#: cause = step/unknown or step/compute
#: why = a step of 120 ms on a device; tf.data could give several times as much
#: needs = tensorflow
#: python = venv
#: data = tfrecord
#: options = --step-ms 120
#: relieved = --step-ms 40
#: fix = --parallel 4
#: fix_twin = decode.workers=4
#: owner = batch.size=16 augment.size=96
"""A healthy tf.data pipeline in front of a slow step."""
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

from common import Job  # noqa: E402

job = Job(parallel=2, batch=16, step_ms=120.0)
FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def decode(record):
    row = tf.io.parse_single_example(record, FEATURES)
    return tf.image.resize(tf.io.decode_jpeg(row["image"], channels=3), [96, 96]), row["label"]


records = tf.data.TFRecordDataset(job.files(".tfrecord")).shuffle(200).repeat()
batches = records.map(decode, num_parallel_calls=job.parallel).batch(job.batch, drop_remainder=True).prefetch(2)
for batch in job.batches(batches):
    time.sleep(job.step_ms / 1000)
