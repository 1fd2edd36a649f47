/* Settings that were measured beside the one that is diagnosed: other points of its sweep, and what --follow set from it.
 * What was measured stands above any prediction: of the same setting, and of going on in a direction in which nothing was
 * gained.  Pure functions on saved results. */
#ifndef MLBENCH_ANALYZE_TRIED_H
#define MLBENCH_ANALYZE_TRIED_H

#include "harness/analyze/statistics.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>

enum { TRIED_CHANGES_MAX = 8, TRIED_WORDS_BYTES = 160 };

struct tried_change {
	enum key_id key;
	struct config_value value; /* a text is borrowed */
};

struct tried_point {
	struct tried_change changes[TRIED_CHANGES_MAX]; /* against the diagnosed configuration */
	size_t change_count;                            /* 0: that configuration itself */
	double rate; /* samples/s, median; NAN: it could not be measured */
	double half; /* of the 90 % interval of ln(rate); NAN: not known */
	/* The diagnosis predicted it, and the measurement does not bear that out. */
	bool failed;
	double predicted; /* failed: samples/s */
	struct interval predicted_90;
};

struct tried {
	const struct tried_point *points; /* the diagnosed one is among them */
	size_t count;
};

/* What is worth turning a key for, as a share of the throughput. */
#define TRIED_GAIN_LEAST 0.05

/* What was measured of `config`; NULL: it was not tried.  base: the diagnosed configuration. */
const struct tried_point *tried_at(
	const struct tried *tried, const struct config *base, const struct config *config);

enum tried_answer {
	TRIED_NOTHING, /* fewer than two values of the key were measured there */
	TRIED_GAINS,
	TRIED_UNSURE,  /* the interval of the gain reaches down to what is not worth it */
	TRIED_NO_GAIN, /* the last step was not worth it */
};

/* The last step in the direction of a key: from the next to last to the last value that was measured. */
struct tried_step {
	enum tried_answer answer;
	enum key_id key;
	int64_t from, to;
	double gain;             /* of the throughput, as a share */
	struct interval gain_90; /* NAN: not known */
};

/* Of a numeric key, all others as in `config`: upwards or downwards. */
struct tried_step tried_last_step(const struct tried *tried, const struct config *base,
	const struct config *config, enum key_id key, bool upwards);

/* "no gain was measured from read.depth=4 to 16 (-9 %)" */
const char *tried_words(const struct tried_step *step, char out[TRIED_WORDS_BYTES]);

/* Of the samples/s that repetitions gave; at least one.  freedom and deviation (of ln of one repetition): what all points
 * of the sweep say together; freedom 0: nothing, and so much is assumed as a verdict allows at most. */
double tried_half(double deviation, double freedom, size_t repeats);

/* Predictions that failed. */
size_t tried_failed(const struct tried *tried);

#endif
