/* Experiments that test a diagnosis (diagnose --verify): a stage is replaced by ready-made outputs,
 * slowed by 5 and 10 %, the recommended keys are set, or a job of ranks goes without its straggler,
 * and the throughput is compared with the prediction. Pure functions, for planning and statistics; harness/command/verify.c derives
 * the configurations and harness/command/verify.c runs them.
 *
 * Blocks. Baseline A and variant B run as ABBA or BAAB, by a seeded coin, which cancels a linear
 * drift of the node. A block yields one log ratio of B to A and two baseline rates. If a baseline
 * run is off the median of all by 5 % and 5 robust deviations, its block is set aside and measured
 * again, at most twice per experiment (verification_set_aside).
 *
 * Order. First comes what tells most: the substitution of the stage that the verdict names, the
 * recommended setting, the other substitutions; then the larger slow-downs, then the smaller ones.
 * Every experiment of such a group gets a block, and a second one unless it is decided by then: its
 * 90 % interval lies inside what bears the prediction out, or outside of that after four blocks.
 * From then on the time goes to those that are open, the one that is likely to be decided soonest
 * first, until all are decided or the budget is spent.
 *
 * Interval of a mean: Student's t with a moderated variance (G. Smyth, 2004): the experiments share
 * most of their noise, so each variance is drawn towards the pooled one, s~^2 = (d0 s0^2 + (n-1)
 * s^2) / (d0 + n-1). Simulated coverage is 88 to 93 % of 90 (test_experiment.c); a percentile
 * bootstrap of two to four blocks covers half of what it claims. A measured elasticity is the
 * least-squares slope through the origin over both slow-downs. The sum of elasticities shows
 * whether something that limits belongs to no stage.
 *
 * Outcome. What bears a prediction out is its 90 % interval, 3 % wider on both sides (slow-downs: a
 * quarter of the slow-down), which is about what the replay is off by. It has one side where only
 * one side speaks against the verdict (verification_aim): a stage that is named the bottleneck may
 * matter more than predicted, any other one less. A prediction is confirmed if the measurement is
 * inside, failed if after two blocks or more the measurement's own interval does not reach it
 * either, else unclear; it is also unclear if the baseline has drifted by as much since the
 * diagnosis. Each failed prediction divides the odds that
 * the verdict is right by 4 (same stage, or the setting) or 1.5 (other stage). The confidence falls
 * to 0.2 if another stage's measured elasticity exceeds that of the bottleneck beyond both
 * intervals. verification.json keeps predictions, ratios and the remaining confidence; the rest is
 * computed again when it is shown. */
#ifndef MLBENCH_ANALYZE_EXPERIMENT_H
#define MLBENCH_ANALYZE_EXPERIMENT_H

#include "harness/analyze/statistics.h"
#include "harness/analyze/summary.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EXPERIMENTS_MAX = 16,
	EXPERIMENT_BLOCKS_MAX = 32,
	EXPERIMENT_RUNS = 4,        /* of a block */
	EXPERIMENT_BASELINES = 2,   /* of them, the configuration as it is */
	EXPERIMENT_REPEATS_MAX = 2, /* blocks of one experiment that are measured again */
	EXPERIMENT_WHAT_BYTES = 160,
	EXPERIMENT_STAGES_MAX = 4,
	EXPERIMENT_BLOCKS_LEAST = 2,
	EXPERIMENT_BLOCKS_DOUBTED =
		4, /* before a prediction is left failed or unclear, time permitting */
};

enum experiment_kind {
	EXPERIMENT_SUBSTITUTE, /* the stage hands out ready-made outputs of the same size */
	EXPERIMENT_SLOW,       /* the stage takes `factor` times as long */
	EXPERIMENT_KNOB,       /* the recommended keys are set */
	EXPERIMENT_WITHOUT,    /* a job of ranks without its straggler */
	EXPERIMENT_KINDS
};

enum experiment_outcome {
	EXPERIMENT_UNTRIED,     /* no block was finished */
	EXPERIMENT_UNPREDICTED, /* measured, without a prediction to hold it against */
	/* Outside the prediction's interval, by less than the measurement is sure of, or than the
	 * baseline among the experiments is away from what was diagnosed (slow-downs excepted: they
	 * are local). */
	EXPERIMENT_UNCLEAR,
	EXPERIMENT_CONFIRMED, /* inside what bears the prediction out */
	EXPERIMENT_FAILED, /* outside, and the measurement's own 90 % interval does not reach it */
	EXPERIMENT_OUTCOMES
};

/* Which miss of the prediction speaks against the verdict: the stage, or the setting, has an effect
 * that is smaller than predicted, or larger. */
enum experiment_refutes { REFUTES_EITHER, REFUTES_LESS, REFUTES_MORE, REFUTES };

struct experiment {
	enum experiment_kind kind;
	char stage[NAME_BYTES];
	double factor;                    /* slow-down; 1 for the others */
	char what[EXPERIMENT_WHAT_BYTES]; /* "decode: ready-made samples", "decode.workers=8" */
	/* Throughput over the baseline's, by replay; NAN: not predicted, why says. */
	double predicted;
	struct interval predicted_90;
	enum experiment_refutes refutes;
	bool named; /* about the stage that the verdict names, and so tried before the others */
	char why[EXPERIMENT_WHAT_BYTES]; /* no prediction, or no measurement, because ... */

	double ratios[EXPERIMENT_BLOCKS_MAX]; /* ln(B/A), one a block */
	/* samples/s of each block's A runs; NAN: not known (files of older versions). */
	double baselines[EXPERIMENT_BLOCKS_MAX][EXPERIMENT_BASELINES];
	size_t blocks;
	double baseline;   /* samples/s, geometric mean of all A runs; NAN without a block */
	uint32_t repeated; /* blocks that were set aside: their baseline was not the others' */
	bool broken;       /* could not run: no more blocks of it */

	/* By verification_weigh. */
	double measured;             /* throughput over the baseline's; NAN without a block */
	struct interval measured_90; /* of that ratio */
	double throughput; /* samples/s, geometric mean of the B runs; NAN without a block */
	enum experiment_outcome outcome;
	bool decided; /* more blocks would not change the outcome, at 90 % */
};

/* Elasticity -dlnX/dln s of a stage, from its slow-downs: least squares through the origin. */
struct measured_elasticity {
	char stage[NAME_BYTES];
	double value;
	struct interval interval; /* 90 % */
	double replayed;          /* the same quotients of the predictions; NAN: none */
};

struct verification {
	uint64_t seed;
	double throughput;           /* samples/s that was diagnosed */
	uint32_t ranks;              /* whose slowest one samples/s are of; 0: one process */
	double budget_s, spent_s;    /* time for experiments */
	double warmup_s, duration_s; /* of a run */
	struct experiment experiments[EXPERIMENTS_MAX];
	size_t count;
	bool interrupted;

	/* By verification_weigh. */
	struct measured_elasticity elasticities[EXPERIMENT_STAGES_MAX];
	size_t elasticity_count;
	double elasticity_sum; /* NAN: not every stage was slowed down; bar: 0.93 to 1.07 */
	struct interval elasticity_sum_90;
	double replayed_sum;
	size_t confirmed, failed, unclear;
	/* experiments that are not decided and have fewer blocks than they need, broken ones
	 * excepted */
	size_t untried;
	size_t repeated; /* blocks, of all experiments */
};

/* Which of a block's runs are the variant: ABBA or BAAB, by a coin that is a function of the
 * seed. */
void experiment_order(
	uint64_t seed, size_t experiment, size_t block, bool is_variant[EXPERIMENT_RUNS]);

/* ln(B/A) of a block from the throughputs of its runs, all > 0; those of the A runs to
 * baselines. */
double experiment_ratio(const double throughputs[EXPERIMENT_RUNS],
	const bool is_variant[EXPERIMENT_RUNS], double baselines[EXPERIMENT_BASELINES]);

/* Adds a block. */
void experiment_add(
	struct experiment *experiment, double ratio, const double baselines[EXPERIMENT_BASELINES]);

/* Slowed-down reads run later than the rest and have their own baseline, because storage is slowed
 * down only once its own pace is known. */
bool experiment_is_late(const struct experiment *experiment);

/* Sets one block aside so that verification_next asks for it again: the block with the baseline run
 * furthest from the median of all, if it is off by more than 5 % and more than 5 of their robust
 * standard deviations. What the variant gave is not looked at. An experiment loses
 * EXPERIMENT_REPEATS_MAX blocks at most: a node that has changed for good is measured as it is.
 * Returns the index of the experiment; count: all may stay. */
size_t verification_set_aside(struct verification *verification);

/* The stage that it blames: of a straggler the one that holds it back. */
const char *verification_blames(const struct verdict *verdict);

/* Which miss of each prediction speaks against the verdict, and which experiments are about what it
 * names. Of a pair of stages, and without a stage, either miss does. */
void verification_aim(struct verification *verification, const struct verdict *verdict);

/* Which experiment gets the next block, as the head of this file has it. count: all are decided. */
size_t verification_next(const struct verification *verification);

/* More than predicted, where that supports the verdict: confirmed for that alone. */
bool experiment_exceeds(const struct experiment *experiment);

/* Rates, intervals, outcomes, elasticities and their sum, from the blocks. */
void verification_weigh(struct verification *verification);

/* The verdict's remaining confidence. Each failed prediction divides the odds that the verdict is
 * right by 4 (same stage, or the recommended setting) or 1.5 (another stage). Where the measured
 * elasticities say that another stage limits more, beyond both intervals, it is at most 0.2.
 * Nothing raises it. */
double verification_confidence(
	const struct verification *verification, const struct verdict *verdict);

/* The stage whose measured elasticity is above the verdict's, beyond both intervals; NULL: none, or
 * it was not measured. */
const struct measured_elasticity *verification_contradicts(
	const struct verification *verification, const struct verdict *verdict);

/* How long each run may last so that every experiment gets its first two blocks within most of the
 * budget, as far as a run may be so short. */
struct experiment_timing {
	double warmup_s, duration_s;
	double round_s; /* one block of every experiment */
	bool fits; /* a round is within the budget: what tells most gets its second blocks first */
};
struct experiment_timing experiment_timing_of(size_t experiments, double budget_s,
	double warmup_most_s, double duration_most_s, double batch_s, double fill_s,
	double overhead_s);

/* Student's t: the quantile 0.95 with so many degrees of freedom, >= 1. */
double experiment_student_95(size_t freedom);

const char *experiment_kind_name(enum experiment_kind kind);
const char *experiment_outcome_name(enum experiment_outcome outcome);
const char *experiment_refutes_name(enum experiment_refutes refutes);

/* --- settings that were measured -------------------------------------------------------------- */

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

/* "Reducing decode.workers from 2 to 1 costs 48 %": true where the step surely was a loss. */
bool tried_costs(const struct tried_step *step, char out[TRIED_WORDS_BYTES]);

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
