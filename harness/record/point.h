/* What the repetitions of a point come to, and which of them count. */
#ifndef MLBENCH_RECORD_POINT_H
#define MLBENCH_RECORD_POINT_H

#include "harness/record/measurement.h"

enum point_status { POINT_OK, POINT_UNSTEADY, POINT_FAILED, POINT_INTERRUPTED, POINT_STATUSES };

/* For all that is said of a point: the good ones; and, where fewer than half of all are good, those that never settled, too. */
enum point_status point_status_of(const size_t with_status[MEASUREMENT_STATUSES]);
bool point_counts(enum point_status point, enum measurement_status repetition);

const char *point_status_name(enum point_status status); /* "ok", "unsteady", ... */

/* The limit of a stage on this node, and how it was found. */
struct stage_limit {
	char stage[NAME_BYTES];
	double capacity;      /* samples/s */
	char how[NOTE_BYTES]; /* "alone: memory source, null step, 2 workers" */
};

#endif
