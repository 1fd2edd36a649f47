/* One piece of advice that was taken: what was predicted, what was measured, whether that came true, and whether the setting
 * stays.  Pure functions. */
#ifndef MLBENCH_ANALYZE_TRIAL_H
#define MLBENCH_ANALYZE_TRIAL_H

#include "harness/analyze/diagnose.h"
#include "harness/analyze/experiment.h"

enum { TRIALS_MAX = 40, TRIAL_SET_BYTES = SETTINGS_MAX * SETTING_BYTES };

struct trial {
	char set[TRIAL_SET_BYTES]; /* "read.depth=16 decode.workers=8", as it was recommended; "": it was not, only measured */
	/* Every key that any trial has set, as it was then. */
	char settings[TRIED_CHANGES_MAX][SETTING_BYTES];
	size_t setting_count;
	double before,
		before_half; /* samples/s where it was recommended; half of the 90 % interval of its logarithm */
	double rate, half; /* of the setting; NAN: it could not be measured */
	double predicted;  /* samples/s; NAN: nothing was */
	struct interval predicted_90;
	bool disturbed; /* measured beside other load that was not there before, or not steady: half or twice as much may be true */

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

/* A prediction holds inside its interval (experiment_promise), fails where the measurement's own interval does not reach that either, and is
 * unclear between, as an experiment's.  A setting stays where its gain is above noise; where the prediction does not hold, only where the
 * gain is for sure what a key is worth turning for. */
void trial_judge(struct trial *trial);

/* "predicted 3,198 (2,910-3,410), measured 333: did not come true; undone" */
enum { TRIAL_WORDS_BYTES = 240 };
const char *trial_words(const struct trial *trial, char out[TRIAL_WORDS_BYTES]);

/* Half of the 90 % interval of ln(samples/s), from the spread between repetitions and within them (width: as a share; NAN: not
 * known), whichever is wider. */
double trial_half(const double *repeats, size_t count, double width);

#endif
