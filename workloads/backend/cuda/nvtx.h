/* Ranges for Nsight Systems, in a domain of our own: without a profiler attached a mark is one look at a pointer. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_NVTX_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_NVTX_H

/* Any thread: opens a range of the calling thread; NULL ends the one that was opened last. */
void nvtx_mark(const char *name);

#endif
