#!/usr/bin/env python3
#: cause = sync/network
#: why = two ranks sum 64 MB of gradients over TCP after each short step
#: needs = mpi4py numpy program:mpirun
#: python = venv
#: launch = mpirun --mca btl tcp,self -n 2
#: data = npy
#: options = --megabytes 64 --step-ms 20
#: relieved = --megabytes 1
#: fix = --megabytes 32
#: fix_twin = sync.gradients*=0.5
#: owner = batch.size=16
"""mpi4py: data parallel training by hand, gradients in one large message."""
import time

import numpy
from mpi4py import MPI

from common import Job

job = Job(batch=16, megabytes=64, step_ms=20.0)
world = MPI.COMM_WORLD
files = job.files(".npy")[world.rank::world.size]
gradients = numpy.ones(job.megabytes << 18, numpy.float32)
summed = numpy.empty_like(gradients)
if world.rank:
    job.log = None


def batches():
    while not world.allreduce(job.ended, MPI.LOR):
        for begin in range(0, len(files) - job.batch, job.batch):
            yield numpy.stack([numpy.load(path) for path in files[begin:begin + job.batch]])


for batch in job.batches(batches()):
    time.sleep(job.step_ms / 1000)
    gradients[:batch.size % len(gradients)] *= 0.999
    world.Allreduce(gradients, summed)
