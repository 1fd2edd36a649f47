/* Whether a student's setting gains what it must, from repetitions of three settings measured in turns: as it stood, the
 * student's, and the best.  Pure functions. */
#ifndef MLBENCH_LAB_LAB_JUDGE_H
#define MLBENCH_LAB_LAB_JUDGE_H

#include "harness/analyze/statistics.h"

#include <stddef.h>

enum {
	LAB_BLOCKS_LEAST = 3,
	LAB_BLOCKS_MOST = 16,
};

/* samples/s of one block; NAN: that repetition failed, and the block does not count. */
struct lab_block {
	double broken, yours, best;
};

enum lab_gain {
	LAB_GAIN_OPEN, /* more blocks would tell */
	LAB_GAIN_YES,
	LAB_GAIN_NO,
	LAB_GAIN_NONE, /* the best setting gains nothing here: nobody can pass */
};

struct lab_judgement {
	enum lab_gain gain;
	struct lab_block median; /* NAN without blocks */
	double share;            /* of (best - broken) that is gained; NAN: not known */
	struct interval
		interval; /* of it, at every look together; infinite to a side that is not known */
	size_t blocks;    /* that count */
};

/* pass: the share that must be gained.  rate: of a wrong answer, at all looks together (harness/analyze/paired_test.h). */
struct lab_judgement lab_judge(
	const struct lab_block *blocks, size_t count, double pass, double rate);

const char *lab_gain_name(enum lab_gain gain); /* "yes", "no", "unclear", "none" */

/* How far off a prediction is: 1.25 is a quarter too high, or a fifth too low; both at least `floor`. */
double lab_factor(double predicted, double measured, double floor);
/* Squared distance of a confidence from what came: 0 is perfect, 0.25 is what "50 %" gets whatever comes. */
double lab_brier(double confidence, int hit);

#endif
