/* run.verify's checksums held beside each other.  The samples of the first epoch and their order are a function of the data, the
 * seed and what makes a sample of a file: repetitions that agree in these must agree in their checksums, however many ranks,
 * devices, workers, readers or buffers there were.  Pure functions. */
#ifndef MLBENCH_REPORT_CHECKSUMS_H
#define MLBENCH_REPORT_CHECKSUMS_H

#include "harness/record/measurement.h"
#include "harness/record/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct checksum {
	uint64_t content; /* hash of what decides on the samples: equal contents, equal values */
	uint64_t value;
	uint32_t point, repeat;
	uint32_t ranks; /* in the sum */
};

struct checksums {
	struct checksum *list; /* owned */
	size_t count;
};

/* Adds the repetition's, if it has one.  0 or -ENOMEM. */
int checksums_add(struct checksums *sums, const struct record *record, const struct measurement *m);
void checksums_release(struct checksums *sums); /* safe on {0} */

struct checksum_check {
	size_t checked;         /* repetitions with a checksum */
	size_t together;        /* of these, that have another one to agree with */
	bool differ;            /* some do not: a wrong result */
	char words[NOTE_BYTES]; /* "" where none was checked */
};

/* Of one result, or of two: b may be NULL, and then only what both have in common is looked at.  0 or -ENOMEM. */
int checksums_check(
	const struct checksums *a, const struct checksums *b, struct checksum_check *check);

#endif
