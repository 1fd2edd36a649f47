/* The page cache: what of a data set is in it, and how to empty or fill it.  cachestat(2) where the
 * kernel has it (6.5), else mincore(2).  Files of a store that is not local are never in it. */
#ifndef MLBENCH_WORKLOADS_SOURCE_RESIDENCY_H
#define MLBENCH_WORKLOADS_SOURCE_RESIDENCY_H

#include "harness/base/error.h"
#include "workloads/dataset/dataset.h"

struct residency {
	uint64_t resident_pages, total_pages;
	const char *how; /* "cachestat", "mincore" */
};

/* Measures; -ENOTSUP with the reason when the kernel offers neither, or the files are not local. */
int residency_measure(const struct dataset *dataset, struct residency *out, struct error *err);

/* Evicts every file and proves it: repeats (readahead in flight brings pages back) until the measured
 * residency is below 0.5 %, at most 5 s.  -EBUSY with the remaining share otherwise. */
int residency_evict(const struct dataset *dataset, struct residency *after, struct error *err);

/* Reads every file once, and proves it: -ENOMEM when less than 99 % stays (the set is larger than the cache). */
int residency_warm(const struct dataset *dataset, struct residency *after, struct error *err);

/* The same of one open file: measuring, and evicting with the same proof in at most half a second. */
int residency_of_file(int fd, struct residency *out, struct error *err);
int residency_evict_file(int fd, struct residency *after, struct error *err);

/* Drops what can be dropped of an open file; flush: dirty pages are written out first.  Where the kernel
 * tells that there are some, they are in any case. */
void residency_drop(int fd, bool flush);

/* "cachestat(2)", "mincore(2)" or a reason why residency cannot be measured, for doctor. */
const char *residency_method(bool *available);

#endif
