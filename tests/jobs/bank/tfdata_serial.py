#!/usr/bin/env python3
#: cause = loader/cpu
#: why = one parallel call of map decodes and augments all pictures
#: needs = tensorflow
#: python = venv
#: data = tfrecord
#: options = --parallel 1 --size 288 --step-ms 10
#: relieved = --size 48
#: fix = --parallel 2
#: fix_twin = decode.workers=2
#: owner = batch.size=32 augment.size=288
"""tf.data: records of JPEG files, decoded, cropped and flipped."""
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

from common import Job  # noqa: E402

job = Job(parallel=1, batch=32, size=288, step_ms=10.0)
FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def decode(record):
    row = tf.io.parse_single_example(record, FEATURES)
    picture = tf.image.resize(tf.io.decode_jpeg(row["image"], channels=3), [job.size + 32, job.size + 32], "bicubic")
    picture = tf.image.random_crop(tf.image.random_flip_left_right(picture), [job.size, job.size, 3])
    return tf.image.random_hue(picture / 255.0, 0.1), row["label"]


records = tf.data.TFRecordDataset(job.files(".tfrecord")).shuffle(200).repeat()
batches = records.map(decode, num_parallel_calls=job.parallel).batch(job.batch, drop_remainder=True).prefetch(2)
for batch in job.batches(batches):
    time.sleep(job.step_ms / 1000)
