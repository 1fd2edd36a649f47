/* What one point left in its record, in full: measurements, and service times in sequence. */
#ifndef MLBENCH_COMMAND_MATERIAL_H
#define MLBENCH_COMMAND_MATERIAL_H

#include "harness/measure/trace.h"
#include "harness/report/record.h"

#include <stdbool.h>

struct material {
	struct measurement *repeats;            /* (count), owned */
	struct traces *traces;                  /* likewise; {0} where they were not wanted */
	const struct measurement **repeat_list; /* of them, owned */
	const struct traces **traces_list;
	size_t count;
	/* What other points of the sweep read that differ in read.depth and read.threads alone; owned. */
	struct read_point *others;
	size_t other_count;
	struct error why; /* of the first repetition that could not be loaded */
};

/* All good repetitions of a point (the unsteady ones where there is no other).  with_traces: only those
 * whose traces can be had.  -ENOENT: it was not measured; -ENODATA: no service times were recorded.
 * Release it in any case. */
int material_load(struct material *material, const struct record *record, size_t point,
	bool with_traces, struct error *err);
void material_release(struct material *material); /* safe on {0} */

/* The status of the repetitions that are taken, and how many there are. */
enum measurement_status material_status(const struct record *record, size_t point, size_t *count);

#endif
