/* Settings that were measured beside the one that is diagnosed: other points of its sweep, and what
 * --follow measured (trials.json), as changes of keys with a rate and its interval
 * (harness/report/trials.c). Pure functions on saved results.
 *
 * What was measured overrides what is predicted. For each change of a key, the last measured step
 * in that direction counts, with all other keys as they are there. If it gained at most 5 %, no
 * more of the key is recommended, and the evidence says so; if its interval reaches down to 5 %,
 * the prediction's interval is widened down to no gain. read.depth and read.threads count as one
 * means, except against CPU time. A recommended setting that was measured carries the measured
 * figure, and is dropped if that is no gain. Each failed prediction of the verdict divides its odds
 * by 4 (weigh_failures).
 *
 * diagnose --follow (harness/command/follow.c) sets a recommendation, measures it, and judges its
 * 90 % interval like an experiment: confirmed, failed, or unclear. An interval that reaches down to
 * no gain would confirm anything, so half of the promised gain (of its logarithm) is required
 * (experiment_promise). A setting stays if the interval of its gain is above 0, or above 5 % if the
 * prediction failed; else it is undone. Failed predictions make the exit status 1. trials.json
 * keeps each measured setting, so that what failed is not recommended again. */
#ifndef MLBENCH_ANALYZE_TRIAL_H
#define MLBENCH_ANALYZE_TRIAL_H

#include "harness/analyze/experiment.h"
#include "harness/analyze/statistics.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>

enum { SETTINGS_MAX = 4, SETTING_BYTES = 64 }; /* of a recommendation: keys, and "read.depth=16" */

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

/* The least gain that is worth changing a key for, as a share of the throughput. */
#define TRIED_GAIN_LEAST 0.05

/* What was measured at `config`; NULL: it was not tried. base: the diagnosed configuration. */
const struct tried_point *tried_at(
	const struct tried *tried, const struct config *base, const struct config *config);

enum tried_answer {
	TRIED_NOTHING, /* fewer than two values of the key were measured there */
	TRIED_GAINS,
	TRIED_UNSURE,  /* the interval of the gain reaches down to what is not worth it */
	TRIED_NO_GAIN, /* the last step was not worth it */
};

/* The last step in the direction of a key: from the last but one to the last measured value. */
struct tried_step {
	enum tried_answer answer;
	enum key_id key;
	int64_t from, to;
	double gain;             /* of the throughput, as a share */
	struct interval gain_90; /* NAN: not known */
};

/* For a numeric key, with all others as in `config`: upwards or downwards. */
struct tried_step tried_last_step(const struct tried *tried, const struct config *base,
	const struct config *config, enum key_id key, bool upwards);

/* "no gain was measured from read.depth=4 to 16 (-9 %)" */
const char *tried_words(const struct tried_step *step, char out[TRIED_WORDS_BYTES]);

/* Half-width of ln(samples/s), from at least one repetition. deviation (of ln of one repetition)
 * and freedom: what all points of the sweep say together; freedom 0: nothing, and the most that a
 * verdict allows is assumed. */
double tried_half(double deviation, double freedom, size_t repeats);

/* Predictions that failed. */
size_t tried_failed(const struct tried *tried);

/* --- advice that was taken: what was predicted, what was measured, whether it came true ------- */

enum { TRIALS_MAX = 40, TRIAL_SET_BYTES = SETTINGS_MAX * SETTING_BYTES };

struct trial {
	/* "read.depth=16 decode.workers=8", as it was recommended; "": it was not, only measured */
	char set[TRIAL_SET_BYTES];
	/* Every key that any trial has set, as it was then. */
	char settings[TRIED_CHANGES_MAX][SETTING_BYTES];
	size_t setting_count;
	/* samples/s where it was recommended, and half of the 90 % interval of its logarithm */
	double before, before_half;
	double rate, half; /* of the setting; NAN: it could not be measured */
	double predicted;  /* samples/s; NAN: nothing was */
	struct interval predicted_90;
	/* measured beside other load that was not there before, or not steady: half or twice as
	 * much may be true */
	bool disturbed;

	/* By trial_judge. */
	double gain;             /* of the throughput, as a share; NAN: not measured */
	struct interval gain_90; /* from the noise of both */
	enum experiment_outcome outcome;
	bool kept;
};

struct trials {
	struct trial list[TRIALS_MAX];
	size_t count;
};

/* A prediction holds if the measurement lies inside its interval (experiment_promise), fails if the
 * measurement's own interval does not reach it either, and is inconclusive in between, as for
 * experiments. A setting is kept if its gain is above noise; where the prediction does not hold,
 * only if the gain is certainly worth changing a key for. */
void trial_judge(struct trial *trial);

/* "predicted 3,198 (90 % CI 2,910-3,410), measured 333, a gain of ...: did not come true;
 * undone" */
enum { TRIAL_WORDS_BYTES = 240 };
const char *trial_words(const struct trial *trial, char out[TRIAL_WORDS_BYTES]);

/* Half of the 90 % interval of ln(samples/s), from the spread between repetitions and within them
 * (width: as a share; NAN: not known), whichever is wider. */
double trial_half(const double *repeats, size_t count, double width);

#endif
