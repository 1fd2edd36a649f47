/* Which point of a grid to measure next, and when to stop. First a few points that span the grid;
 * then always the one with the least certain prediction, until every prediction is as certain as
 * asked; then the point that would be recommended, so that no recommendation rests on a prediction.
 * Pure functions of the measurements and of the forecasts that follow from them, so a killed sweep
 * continues as it would have.
 *
 * An adaptive sweep (adaptive.h, sweep.mode = adaptive) measures the centre and the corners of
 * the grid (a fraction of them in three dimensions and more), then always the setting that is
 * predicted least surely, until every 90 % interval is within sweep.error; then what would be
 * recommended, if it is predicted 1 % above the best that is measured. A measurement outside its
 * interval is said, and the loop goes on. Every decision is a function of the record, so a killed
 * sweep goes on as it would have; predictions are made anew each time, stand in columns of their
 * own, and are never read back. */
#ifndef MLBENCH_ANALYZE_ADAPTIVE_H
#define MLBENCH_ANALYZE_ADAPTIVE_H

#include "harness/analyze/forecast.h"

#include <stdbool.h>
#include <stddef.h>

enum { ADAPTIVE_DESIGN_MAX = 9, ADAPTIVE_POINTS_MAX = 1000 };

/* The points nearest to the centre of the grid and to its corners, each once: all of them with one
 * or two dimensions; with three, four of the eight, so that each pair of ends occurs; with more,
 * the eight of a two-level design by Hadamard columns (R. L. Plackett, J. P. Burman, Biometrika
 * 33(4), 1946).  By rank on each dimension, so that 1,2,64 is as even as 1,2,3.  Returns how many;
 * 0 without memory. */
size_t adaptive_design(const struct forecast_space *space, size_t design[ADAPTIVE_DESIGN_MAX]);

enum adaptive_state { ADAPTIVE_UNMEASURED, ADAPTIVE_MEASURED, ADAPTIVE_FAILED };

struct adaptive_input {
	size_t points;
	const enum adaptive_state *state; /* (points) */
	const double *measured;           /* (points): samples/s; NAN */
	const struct forecast *forecasts; /* (points): of those that are not measured */
	const size_t *design;
	size_t design_count;
	double error; /* half-width over throughput that every forecast must reach */
	/* The latest measurement is outside the interval that was predicted for it from the
	 * others. */
	bool surprised;
};

enum adaptive_reason {
	ADAPTIVE_DESIGN,  /* measure: one of the first few */
	ADAPTIVE_UNSURE,  /* measure: the forecast with the widest interval */
	ADAPTIVE_CONFIRM, /* measure: predicted to be the best */
	/* measure: the latest missed its interval; the widest one, though sure enough */
	ADAPTIVE_SURPRISE,
	ADAPTIVE_SURE, /* stop: every forecast is as sure as asked, and the best is measured */
	ADAPTIVE_ALL,  /* stop: nothing is left to measure */
};

struct adaptive_choice {
	bool stop;
	enum adaptive_reason reason;
	size_t point; /* to be measured; points when stop */
};
struct adaptive_choice adaptive_next(const struct adaptive_input *input);

const char *adaptive_reason_words(enum adaptive_reason reason);

#endif
