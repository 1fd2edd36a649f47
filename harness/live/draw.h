/* The view of a run on a canvas of any size: what matters most comes first, and what has no room is left out. */
#ifndef MLBENCH_LIVE_DRAW_H
#define MLBENCH_LIVE_DRAW_H

#include "harness/analyze/verdict.h"
#include "harness/live/canvas.h"
#include "harness/live/stall.h"
#include "harness/measure/live.h"

/* What a reader of pictures keeps of them: sums of the last seconds, for differences, and series for graphs.  Bounded. */
enum { RECENT_SUMS = 56, RECENT_VALUES = 512 };

enum recent_series { RECENT_THROUGHPUT, RECENT_STEP, RECENT_READ, RECENT_MEMORY, RECENT_SERIES };

struct recent {
	uint64_t begun_ns,
		last_ns; /* of the repetition that the sums are of; of the newest picture */
	struct live_sums sums[RECENT_SUMS]; /* oldest first */
	size_t sum_count;
	float values[RECENT_SERIES]
		    [RECENT_VALUES]; /* oldest first; NAN: between two repetitions, unknown */
	size_t value_count;
	double most[RECENT_SERIES]; /* of all that were ever seen */
};

/* Any picture, in their order; those that follow too fast are left out. */
void recent_add(struct recent *history, const struct live_view *view);

/* The sums that are so old, or the oldest of this repetition; NULL: there are none.  least_ns: none before that. */
const struct live_sums *recent_before(const struct recent *history, const struct live_view *view,
	double seconds, uint64_t least_ns);

/* Over the last ten seconds, or since the warm-up. */
void recent_verdict(
	const struct recent *history, const struct live_view *view, struct live_verdict *out);

/* Shares of the stage's thread time over the last two seconds; false: not known. */
bool recent_states(const struct recent *history, const struct live_view *view, size_t stage,
	double shares[THREAD_STATES], double *items_per_s);

struct scene {
	const struct live_view *view; /* NULL: nothing was shown yet */
	const struct recent *history;
	const struct live_verdict *verdict;
	const struct stall *stall;
	const char *log; /* lines */
	bool own;        /* the run is this process: q stops it */
	bool keyless;    /* no key comes through to it */
	bool paused, help, stopping, over;
	uint64_t now_ns;
};

void draw_scene(struct canvas *canvas, const struct scene *scene);

#endif
