/* Visits every file of a data set once, by several threads: for loading, evicting and warming. */
#ifndef MLBENCH_WORKLOADS_SOURCE_WALK_H
#define MLBENCH_WORKLOADS_SOURCE_WALK_H

#include "workloads/dataset/dataset.h"

/* Called from the walk's threads, for each sample once; thread < the walk's threads. */
typedef void sample_visit(void *context, unsigned thread, uint32_t sample);

enum { WALK_THREADS_MAX = 16 };

/* threads: 0 as many as cores, WALK_THREADS_MAX at most; fewer run when threads cannot be had. */
void sample_walk(
	const struct dataset *dataset, unsigned threads, sample_visit *visit, void *context);

#endif
