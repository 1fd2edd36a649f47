/* What a reader of pictures keeps of them: sums of the last seconds, for differences, and series for graphs.  Bounded. */
#ifndef MLBENCH_LIVE_RECENT_H
#define MLBENCH_LIVE_RECENT_H

#include "harness/analyze/verdict.h"
#include "harness/measure/live.h"

#include <stddef.h>

enum { HISTORY_SUMS = 56, HISTORY_VALUES = 512 };

enum history_series {
	HISTORY_THROUGHPUT,
	HISTORY_STEP,
	HISTORY_READ,
	HISTORY_MEMORY,
	HISTORY_SERIES
};

struct history {
	uint64_t begun_ns,
		last_ns; /* of the repetition that the sums are of; of the newest picture */
	struct live_sums sums[HISTORY_SUMS]; /* oldest first */
	size_t sum_count;
	float values[HISTORY_SERIES]
		    [HISTORY_VALUES]; /* oldest first; NAN: between two repetitions, unknown */
	size_t value_count;
	double most[HISTORY_SERIES]; /* of all that were ever seen */
};

/* Any picture, in their order; those that follow too fast are left out. */
void history_add(struct history *history, const struct live_view *view);

/* The sums that are so old, or the oldest of this repetition; NULL: there are none.  least_ns: none before that. */
const struct live_sums *history_before(const struct history *history, const struct live_view *view,
	double seconds, uint64_t least_ns);

/* Over the last ten seconds, or since the warm-up. */
void history_verdict(
	const struct history *history, const struct live_view *view, struct live_verdict *out);

/* Shares of the stage's thread time over the last two seconds; false: not known. */
bool history_states(const struct history *history, const struct live_view *view, size_t stage,
	double shares[THREAD_STATES], double *items_per_s);

#endif
