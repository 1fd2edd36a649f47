/* What one point left in its record, in full: measurements, and service times in sequence. */
#ifndef MLBENCH_REPORT_MATERIAL_H
#define MLBENCH_REPORT_MATERIAL_H

#include "harness/record/record.h"
#include "harness/record/trace.h"

#include <stdbool.h>

struct material {
	struct measurement *repeats; /* (all_count), owned: good and unsteady ones */
	struct traces *traces;       /* likewise; {0} where they were not wanted */
	/* (count) of them, that count and are of the state that lasts; owned */
	const struct measurement **repeat_list;
	const struct traces **traces_list;
	size_t count;
	const struct measurement **all_list; /* (all_count), in their order */
	const struct traces **all_traces_list;
	size_t all_count;
	/* What other points of the sweep read that differ in read.depth and read.threads alone; owned. */
	struct read_point *others;
	size_t other_count;
	struct read_block read_blocks[RECORD_READ_BLOCKS_MAX]; /* of the point */
	size_t read_block_count;
	struct error why; /* of the first repetition that could not be loaded */
};

struct material_choice {
	size_t most; /* repetitions of each status, the last ones; 0: all */
	bool without_traces;
};

/* The repetitions of a point; only those whose traces can be had, where they are wanted.  -ENOENT: it was not measured;
 * -ENODATA: no service times were recorded.  Release it in any case. */
int material_load(struct material *material, const struct record *record, size_t point,
	const struct material_choice *choice, struct error *err);
void material_release(struct material *material); /* safe on {0} */

#endif
