/* Which samples the items of a trace are: the names of the slowest, and which lie in one place. */
#ifndef MLBENCH_PIPELINES_TRACE_NAMES_H
#define MLBENCH_PIPELINES_TRACE_NAMES_H

#include "harness/record/trace.h"
#include "workloads/dataset/dataset.h"

/* Fills in names, and place of each item whose sample is known.  0 or -ENOMEM. */
int trace_name_samples(struct trace *trace, const struct dataset *dataset);

#endif
