/* What the storage under a folder gives: bytes/s, requests/s and latency over requests in flight, sizes,
 * and state of the page cache (cold past it, cold through it, warm).  Reads are at random offsets of
 * scratch files written for the purpose, which lose their names as soon as they are open: they vanish
 * with the process, however it ends. */
#ifndef MLBENCH_WORKLOADS_SOURCE_PROBE_READ_H
#define MLBENCH_WORKLOADS_SOURCE_PROBE_READ_H

#include "harness/measure/probe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBE_DEPTHS_MAX = 7, PROBE_SIZES_MAX = 3, PROBE_DEPTH_MOST = 64 };

struct probe_read_plan {
	const char *folder;              /* the scratch files go here */
	uint64_t cold_bytes, warm_bytes; /* of the scratch files, at most */
	uint64_t write_ns; /* time to write them in, at most; what is there by then is read */
	unsigned depths[PROBE_DEPTHS_MAX]; /* each at most PROBE_DEPTH_MOST */
	size_t depth_count;
	uint64_t sizes[PROBE_SIZES_MAX]; /* bytes a request, multiples of READ_ALIGN_BYTES */
	size_t size_count;
	bool without_uring; /* threads of pread in any case */
	uint64_t seed;      /* of offsets and order */
};

/* Fills reads, engine and scratch_bytes.  -ENOSPC, -EROFS, -EACCES ...: there is no place for the
 * scratch files; err has the reason. */
int probe_read(const struct probe_read_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err);

#endif
