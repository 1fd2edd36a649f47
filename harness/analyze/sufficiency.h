/* Whether enough was measured for a verdict: the 90 % interval of the throughput, from its spread
 * over the run, may be at most a fifth of it to either side.  A width w of n samples takes n (w /
 * 0.2)^2. */
#ifndef MLBENCH_ANALYZE_SUFFICIENCY_H
#define MLBENCH_ANALYZE_SUFFICIENCY_H

#include "harness/analyze/summary.h"

#include <stddef.h>
#include <stdint.h>

struct sufficiency {
	uint64_t samples; /* measured, all repeats */
	uint64_t needed;  /* 0: these are enough */
	double width;     /* half of the interval over the throughput; NAN: too few to tell */
};

struct sufficiency sufficiency_of(const struct measurement *const *repeats, size_t count);

/* --- the rate over a repetition --------------------------------------------------------------- */

/* Throughput over a repetition, from its windows.  Windows count whole batches, so that short ones
 * alternate between nothing and a batch: samples are spread evenly between the windows in which
 * they rose. */

/* Samples through the step at time t (s), interpolated. */
double rate_samples_at(const struct measurement *m, double t);

/* How many equal parts [from, to] may be cut into, at most `most`, so that each has at least
 * `batches` steps and one window. */
size_t rate_parts(const struct measurement *m, double from, double to, double batches, size_t most);

/* Samples per second in each of `parts` equal parts of [from, to]. */
void rate_series(const struct measurement *m, double from, double to, size_t parts, double *rates);

/* --- the way out: what to set so that there will be a verdict --------------------------------- */

enum { WAY_OUT_BYTES = 200 };

/* "set measure.duration to 14s or more": for a run with too few samples. */
const char *way_out_longer(const struct sufficiency *sufficiency, const struct point_facts *facts,
	const struct measurement *const *repeats, size_t count, char out[WAY_OUT_BYTES]);

/* For a run that was not steady; `reason` is what the steady-state test said. */
const char *way_out_steadier(
	const char *reason, const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* For figures that contradict each other, as the edges of a short run do. */
const char *way_out_again(const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* For a run without recorded thread states. */
const char *way_out_states(const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* How many more repetitions make a verdict possible. 0: it is possible already, no number within
 * `most` will do, or one failed. repeats: all of them, whatever their status. */
size_t way_out_repetitions(const struct measurement *const *repeats, size_t count, size_t most);

/* The same for `needed` samples or items where `count` repetitions have `have`. */
size_t way_out_for_samples(uint64_t have, uint64_t needed, size_t count, size_t most);

#endif
