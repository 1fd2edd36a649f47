/* The verdict while a run is in progress: what the run shows of itself (harness/measure/live.h)
 * between two moments, judged by the rules for a finished run, from wait states and times alone,
 * without a replay. A pure function; it says so when it is too early. */
#ifndef MLBENCH_ANALYZE_LIVE_VERDICT_H
#define MLBENCH_ANALYZE_LIVE_VERDICT_H

#include "harness/analyze/summary.h"
#include "harness/measure/live.h"

struct live_verdict {
	bool told;     /* else words say why there is none yet */
	double over_s; /* seconds that it is over */
	struct verdict verdict;
	char words
		[EVIDENCE_BYTES]; /* "forming: decode / cpu, so far (likely, 72 % sure, over 8.1 s)" */
};

/* from: at an earlier moment of the same repetition, after its warm-up (to->warm is one). */
void live_verdict_of(
	const struct live_sums *from, const struct live_view *to, struct live_verdict *out);

#endif
