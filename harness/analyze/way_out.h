/* What to set where there is no verdict, so that there will be one: which key to what.  From the rate that was seen and the
 * configuration; without them the key alone. */
#ifndef MLBENCH_ANALYZE_WAY_OUT_H
#define MLBENCH_ANALYZE_WAY_OUT_H

#include "harness/analyze/sufficiency.h"
#include "harness/analyze/summary.h"

enum { WAY_OUT_BYTES = 200 };

/* "set measure.duration to 14s or more": of a run that was too short by samples. */
const char *way_out_longer(const struct sufficiency *sufficiency, const struct point_facts *facts,
	const struct measurement *const *repeats, size_t count, char out[WAY_OUT_BYTES]);

/* Of one that was not steady: `reason` is what the steady-state test said. */
const char *way_out_steadier(
	const char *reason, const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* Of figures that contradict each other, as edges of a short run do. */
const char *way_out_again(const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* No thread's states were recorded. */
const char *way_out_states(const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* How many repetitions more make a verdict possible, as far as repetitions do: 0: it is possible, or no number within `most`
 * will do it, or one failed. repeats: all of them, whatever their status. */
size_t way_out_repetitions(const struct measurement *const *repeats, size_t count, size_t most);

/* The same for `needed` samples or items where `count` repetitions have `have`. */
size_t way_out_for_samples(uint64_t have, uint64_t needed, size_t count, size_t most);

#endif
