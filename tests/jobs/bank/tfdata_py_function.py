#!/usr/bin/env python3
#: cause = loader/gil
#: why = an augmentation in Python through py_function: four parallel calls take turns with one interpreter
#: needs = tensorflow
#: python = venv
#: data = tfrecord
#: options = --parallel 4 --python-ms 8 --step-ms 10
#: relieved = --python-ms 0
#: fix = --parallel 8
#: fix_twin = decode.workers=8
#: owner = batch.size=16
"""tf.data with numpy_function in the middle."""
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

from common import Job, spend  # noqa: E402

job = Job(parallel=4, batch=16, python_ms=8.0, step_ms=10.0)
FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def augment(picture):
    spend(job.python_ms / 1000)
    return picture[:, ::-1]


def decode(record):
    row = tf.io.parse_single_example(record, FEATURES)
    picture = tf.image.resize(tf.io.decode_jpeg(row["image"], channels=3), [96, 96])
    return tf.ensure_shape(tf.numpy_function(augment, [picture], tf.float32), [96, 96, 3]), row["label"]


records = tf.data.TFRecordDataset(job.files(".tfrecord")).shuffle(200).repeat()
batches = records.map(decode, num_parallel_calls=job.parallel).batch(job.batch, drop_remainder=True).prefetch(2)
for batch in job.batches(batches):
    time.sleep(job.step_ms / 1000)
