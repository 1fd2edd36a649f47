/* The page cache: what of a data set is in it, and how to empty or fill it.  cachestat(2) where the
 * kernel has it (6.5), else mincore(2).  Files of a store that is not local are never in it. */
#ifndef MLBENCH_WORKLOADS_SOURCE_RESIDENCY_H
#define MLBENCH_WORKLOADS_SOURCE_RESIDENCY_H

#include "harness/base/error.h"
#include "workloads/dataset/dataset.h"

struct residency {
	uint64_t resident_pages, total_pages; /* of the files that were asked */
	uint64_t asked;                       /* files, each time that one was */
	const char *how;                      /* "cachestat", "mincore" */
};

/* Measures; most_ns: opens files for about so long at most and takes them from all over the data set, since
 * an open may be a round trip (0: every file).  -ENOTSUP with the reason when the kernel offers neither call,
 * or the files are not local. */
int residency_measure(
	const struct dataset *dataset, uint64_t most_ns, struct residency *out, struct error *err);

/* Evicts every file and proves it: asks each at once, and repeats with those of which pages stay, until the
 * resident share is below 0.5 %, for at most 5 s after the first pass.  -EBUSY with the remaining share
 * otherwise; -ENOTSUP: residency_evictable. */
int residency_evict(const struct dataset *dataset, struct residency *after, struct error *err);
/* -ENOTSUP with the reason where nothing under that folder can be evicted: a memory file system. */
int residency_evictable(const char *root, struct error *err);

/* Reads every file once, and proves it: -ENOMEM when less than 99 % stays (the set is larger than the cache).
 * Like the others it ends with -EINTR when store_patience.stop is set. */
int residency_warm(const struct dataset *dataset, struct residency *after, struct error *err);

/* The same of one open file: measuring, and evicting with the same proof in at most half a second. */
int residency_of_file(int fd, struct residency *out, struct error *err);
int residency_evict_file(int fd, struct residency *after, struct error *err);
/* Whether a file or folder lies in memory: nothing of it is ever read from storage, with O_DIRECT neither. */
bool residency_is_memory(int fd);

/* "cachestat(2)", "mincore(2)" or a reason why residency cannot be measured, for doctor. */
const char *residency_method(bool *available);

#endif
