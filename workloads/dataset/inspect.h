/* Looking at many files of a user's folder at once: sizes, times, headers. */
#ifndef MLBENCH_WORKLOADS_DATASET_INSPECT_H
#define MLBENCH_WORKLOADS_DATASET_INSPECT_H

#include "workloads/dataset/scan.h"

#include <stddef.h>

/* Fills in what is not known yet of files[which[i]], i < count, or of the first `count` files
 * where which is NULL: kind, size and time, and, with headers, what the picture's header says.
 * A file that cannot be read, or is no picture, gets its reason, which is a finding and no
 * failure; one that has a reason is left alone.  Requests in flight: scan->depth at most;
 * memory: 64 KiB each, 256 MiB in all where headers are longer.  -EINTR: stopped, when what was
 * in flight had come back. */
int inspect_files(struct folder_scan *scan, struct found *files, const size_t *which, size_t count,
	bool headers, struct error *err);

/* Whether this process may look at files through io_uring. */
bool inspect_ring_works(void);

#endif
