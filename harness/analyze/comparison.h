/* Two results beside each other: the statistics of their differences, the conditions that a
 * comparison is judged by, and what else they differ in.  Pure functions.
 *
 * Differences between two sets of repetitions, point by point, with intervals and tests that hold
 * for the few repetitions that there are.
 *
 * What is compared is y: the logarithm of a figure (then a difference is a ratio), or a share as it
 * is.
 *
 * Test.  d = mean(b) - mean(a), and Student's t with se^2 = s^2 (1/na + 1/nb + 2 k).  Two to five
 * repetitions tell little of their own spread, so that each point's variance is drawn towards what
 * the points share (statistics.h) where there are three points or more, worth at most a degree of
 * freedom for each other point: points of a sweep do differ. Where one side has half as many
 * repetitions again as the other, their variances stay apart (Welch 1947).  A permutation of 3 and
 * 3 cannot go below p = 0.1, and a percentile bootstrap of 3 values that claims 99 % holds 75 %.
 * Over several points the p of each is adjusted by Holm's procedure (1979), which bounds the chance
 * of a single false alarm among them: a gate fails by any of them.
 *
 * Runs.  Two runs of the same thing differ by more than their repetitions say: placement of memory,
 * page cache, temperature and neighbours change from run to run, and more repetitions inside a run
 * do not average that out (T. Kalibera and R. Jones, Rigorous benchmarking in reasonable time, ISMM
 * 2013).  One run a side cannot tell how much; repetitions, which are set up anew and stand apart
 * in a sweep, tell the scale.  k = COMPARE_RUN_SHARE is the variance between runs in units of that
 * between repetitions: two runs are taken to vary by as much as two repetitions do.  0.3 to 1.4 was
 * measured on a busy machine; with k = 0, Student's plain t, up to every ninth pair of equal runs
 * alarmed there at 1 % (docs/ACCURACY.md).
 *
 * Interval.  d -+ c se.  c is the quantile of |t| over bootstrap samples: residuals of all points,
 * each divided by its point's deviation and made symmetric, are drawn anew, and the statistic is
 * computed as it was from the data (the studentised bootstrap: P. Hall, Ann. Statist. 16, 1988; A.
 * Davison and D. Hinkley, Bootstrap Methods, 1997, 2.4), so that heavy tails widen it.  With fewer
 * residuals than COMPARE_POOL_LEAST the bootstrap knows less of the tails than t does, and c is
 * Student's.  A difference counts as significant where the adjusted p is below the level and the
 * interval does not hold 0.
 *
 * Stalls.  A machine that stands still for a moment spoils one repetition among few, and its spread
 * then hides what the others show: with repetitions of 150 ms on a virtual machine, every fifth
 * slow-down by 5 % (docs/ACCURACY.md).  A stall only ever makes a repetition worse.  A second test
 * therefore leaves the (n - 1) / 2 worst of n on each side out, takes mean and deviation of the
 * rest, and corrects both for having chosen (under normal noise it alarms as seldom as the first).
 * p is twice the less of the two (Bonferroni), and both intervals are at 1 - significance / 2, so
 * that the one that is shown keeps the promise whichever it is.  The second one is shown where it
 * has the lesser p and finds a difference beyond the floor.  It never denies one: where neither
 * finds anything, intervals, floor and advice are those of all repetitions, since a cause that
 * slows one repetition in three is no stall.  It needs 3 to 16 repetitions, as many on each side.
 *
 * Noise floor: 1.96 sqrt(2) times the deviation between runs, which is taken as the larger of
 * sqrt(k) s and COMPARE_RUN_DEVIATION: three repetitions that happen to agree prove nothing about
 * the next run.  A smaller difference, significant or not, is "within the noise floor" and no
 * alarm.  Windows inside a repetition are not used: they count whole batches, are correlated, and
 * know nothing of what changes between runs. */
#ifndef MLBENCH_ANALYZE_COMPARISON_H
#define MLBENCH_ANALYZE_COMPARISON_H

#include "harness/analyze/point_model.h"
#include "harness/analyze/statistics.h"
#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/record/fact_list.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	COMPARE_POOL_LEAST = 24, /* residuals */
	COMPARE_RESAMPLES = 2000,
	COMPARE_REPEATS_MOST = 200, /* that are advised */
	COMPARE_POINTS_LEAST = 4,   /* to judge by the spread over points, without repetitions */
	COMPARE_STALLS_REPEATS_LEAST = 3,
	COMPARE_STALLS_REPEATS_MOST = 16,
};

#define COMPARE_RUN_SHARE 1.0
/* Relative deviation between runs of the same configuration that is taken where it is not known
 * better (docs/ACCURACY.md has what was measured). */
#define COMPARE_RUN_DEVIATION 0.004

/* One point: repetitions in the order of their numbers.  Values are finite. */
struct difference_samples {
	const double *a, *b;
	size_t a_count, b_count;
};

/* What a machine that stands still does to the figure. */
enum stall_sense { STALLS_UNKNOWN, STALLS_LESSEN, STALLS_RAISE };

struct difference_rules {
	double significance;  /* 0.01 */
	double run_share;     /* k: COMPARE_RUN_SHARE */
	double run_deviation; /* at least so much between runs, in units of y */
	double resolution;    /* the least difference that one wants to see: 0.05 */
	bool bootstrap;       /* false: c is Student's everywhere */
	enum stall_sense stalls;
	uint64_t seed;
};

enum difference_verdict {
	DIFFERENCE_MISSING, /* one side has no value */
	DIFFERENCE_UNTOLD,  /* too few repetitions for any test */
	/* not significant, and the interval reaches beyond floor and resolution */
	DIFFERENCE_UNSURE,
	DIFFERENCE_NONE,  /* not significant, and the interval lies within them */
	DIFFERENCE_NOISE, /* significant, and within the floor */
	DIFFERENCE_LESS,
	DIFFERENCE_MORE,
};

struct difference {
	double a, b;              /* means of y; NAN: missing */
	double value;             /* b - a */
	double error;             /* se of it; NAN: not known */
	double freedom;           /* degrees of it */
	double critical;          /* c */
	struct interval interval; /* at 1 - significance; NAN */
	double p;                 /* two-sided, of as many tests as there are; NAN */
	double adjusted;          /* p among the points (Holm); of the overall difference p */
	double deviation;         /* of one repetition, moderated; NAN */
	double run_share;         /* k that the error was computed with */
	double floor;
	size_t a_count, b_count; /* repetitions; of a mean, the least of any point */
	size_t tests;            /* whose least p counts: 1 or 2 */
	size_t set_aside;        /* repetitions of each side that a, b, value, ... leave out */
	bool is_mean;            /* over several points */
	enum difference_verdict verdict;
	/* UNSURE and UNTOLD: so many repetitions a side find the difference seen (or, where that is
	 * within the floor, one as large as floor and resolution) four times in five; 0: more than
	 * COMPARE_REPEATS_MOST */
	size_t repeats_needed;
};

/* out: (count).  overall: the mean of the points' differences (of logarithms: the geometric mean of
 * ratios), of exactly these points; NULL if not wanted.  0 or -ENOMEM. */
int compare_differences(const struct difference_samples *samples, size_t count,
	const struct difference_rules *rules, struct difference *out, struct difference *overall);

/* The least number of repetitions a side, more than there are, whose interval at this level keeps
 * clear of a bound `distance` away from d->value four times in five; 0: not even
 * COMPARE_REPEATS_MOST, or d has no spread.  d: of one point. */
size_t compare_repeats_for(const struct difference *d, double distance, double level);

/* The second test: whether the worst repetitions can be left out, and the difference then; a, b,
 * value, error, freedom, deviation, counts and set_aside are set. */
bool compare_stalls_apply(
	const struct difference_samples *samples, const struct difference_rules *rules);
struct difference compare_stalls_difference(
	const struct difference_samples *samples, const struct difference_rules *rules);

/* p[i] adjusted in place; NAN stays and does not count. */
void compare_holm(double *p, size_t count);

/* --- figures by name -------------------------------------------------------------------------- */

/* The figures of a repetition that two results are compared by: one table drives extraction, tables
 * and the names that a gate may use. */

enum {
	METRIC_NAME_BYTES = 48,
	METRIC_TEXT_BYTES = 48,
	METRICS_MAX = 128,
};

enum metric_unit {
	METRIC_PER_S, /* samples/s */
	METRIC_NS,
	METRIC_SHARE, /* 0..1: differences are in percentage points, of all others in % */
	METRIC_BYTES,
	METRIC_BYTES_PER_S,
	METRIC_CORES, /* likewise a plain difference */
	METRIC_MHZ,
	METRIC_WATTS,
	METRIC_CELSIUS, /* a plain difference */
};

enum metric_sense { METRIC_MORE_IS_BETTER, METRIC_LESS_IS_BETTER, METRIC_NEITHER };

struct metric_kind {
	const char *name;  /* "throughput", "p99" */
	const char *title; /* "service time, 99th percentile" */
	enum metric_unit unit;
	enum metric_sense sense;
	/* NAN: not available.  stage: NULL but for those of a stage. */
	double (*value)(const struct measurement *m, const struct stage_measurement *stage);
};

struct metric {
	const struct metric_kind *kind;
	char stage[NAME_BYTES];       /* "" : of the run or its devices */
	char name[METRIC_NAME_BYTES]; /* "throughput", "decode.capacity", "device.power" */
};

/* Every metric that a measurement with these stages can have; throughput is the first.  Returns how
 * many. */
size_t metrics_of_stages(
	const char (*stages)[NAME_BYTES], size_t stage_count, struct metric metrics[METRICS_MAX]);

/* Of any stage that there can be.  -EINVAL: no such metric, with the nearest name. */
int metric_find(const char *name, struct metric *metric, struct error *err);

double metric_value(const struct metric *metric, const struct measurement *m); /* NAN */

/* Whether differences are ratios (and y is a logarithm) rather than plain. */
bool metric_is_ratio(const struct metric *metric);
/* y, NAN where there is none; and back. */
double metric_scaled(const struct metric *metric, double value);
double metric_unscaled(const struct metric *metric, double y);
/* A difference of y as a change: -0.05 is 5 % less, or 5 percentage points, or as many units. */
double metric_change(const struct metric *metric, double difference);

/* "1,786", "1.50 ms", "97.1%"; "-" for NAN.  Returns out. */
const char *metric_text(const struct metric *metric, double value, char out[METRIC_TEXT_BYTES]);
/* "-5.2 %", "+1.3 points", "+0.42 cores"; "-" for NAN. */
const char *metric_change_text(
	const struct metric *metric, double change, char out[METRIC_TEXT_BYTES]);
const char *metric_unit_name(enum metric_unit unit); /* "samples/s" */

/* --- gates ------------------------------------------------------------------------------------ */

/* Conditions that a comparison is judged by: METRIC OP VALUE, OP one of < > <= >=; with % the
 * change against the baseline is meant (for shares: in per cent of the baseline's share), without
 * it the figure itself, in its own unit ("step_time > 3ms", "decode.busy > 0.9").  --fail-if says
 * what must not be ("throughput < -5%"), --require what must be ("throughput > -5%"): the same
 * limit, and only the burden of proof differs.
 *
 * There are three outcomes, since a difference that was not found is no proof that there is none.
 *
 * WORSE: beyond the limit with the whole of the interval at the level of significance, and beyond
 * the noise floor; at any point (by Holm among the points) or in their mean, at half the level each
 * where there are several points.  Results that are not beyond the limit anywhere are called worse
 * as rarely as the level says. WITHIN: the interval of every point lies on the good side of the
 * limit, further from it than the noise floor.  A claim about all points needs no adjustment: it is
 * wrong only where the point that is beyond the limit was (an intersection-union test: R. Berger,
 * Technometrics 24, 1982), so that this error, too, is as rare as the level says. INCONCLUSIVE:
 * neither is shown, or a result lacks the figure: a gate never passes open. */

enum { GATE_TEXT_BYTES = 96, GATE_WHY_BYTES = 200 };

struct gate {
	char text[GATE_TEXT_BYTES]; /* as given */
	struct metric metric;
	bool required; /* --require: the text is what must be shown */
	bool above;    /* what is above the limit is worse */
	bool relative; /* value is a change: -0.05 */
	double value;  /* the limit */
};

enum gate_outcome { GATE_WITHIN, GATE_INCONCLUSIVE, GATE_WORSE }; /* the worst is last */

struct gate_result {
	enum gate_outcome outcome;
	/* The pair that decides: which is worse most surely, else which is the least shown to be
	 * within; the number of pairs: their mean */
	size_t point;
	size_t points; /* at how many it is worse, or is not shown to be within */
	bool missing;  /* INCONCLUSIVE, for a result lacks the figure */
	/* INCONCLUSIVE: about so many a side would decide; 0: not known, or too many */
	size_t repeats_needed;
	char why[GATE_WHY_BYTES]; /* the change and its interval, or what is missing */
};

/* -EINVAL: what is wrong, with the nearest valid name. */
int gate_parse(const char *text, bool required, struct gate *gate, struct error *err);

/* Whether the comparison fails by it: worse, or, where it was required, not shown. */
bool gate_fails(const struct gate *gate, const struct gate_result *result);

/* differences of gate->metric: (count), and over all of them.  level: of significance. */
void gate_judge(const struct gate *gate, const struct difference *differences, size_t count,
	const struct difference *overall, double level, struct gate_result *result);

/* --- which of their points are the same ------------------------------------------------------- */

/* Two points are the same where the values of every key that either side sweeps are, whatever the
 * order of axes and values. */
struct point_pair {
	size_t a, b; /* points of the grids */
};

struct point_match {
	bool swept
		[KEY_COUNT]; /* keys that points are matched by; none: two single runs are a pair */
	struct point_pair *pairs; /* in the order of a's points; owned */
	size_t pair_count;
	size_t *only_a, *only_b; /* points without a partner; owned */
	size_t only_a_count, only_b_count;
};

/* 0 or -ENOMEM. */
int point_match(const struct config *a, const struct config_grid *a_grid, const struct config *b,
	const struct config_grid *b_grid, struct point_match *match);
void point_match_release(struct point_match *match); /* safe on {0} */

/* The value of a key at a point of a grid. */
const struct config_value *point_value(
	const struct config *config, const struct config_grid *grid, size_t point, enum key_id key);

/* Whether two values of a key are the same. */
bool config_value_same(enum key_id key, const struct config_value *a, const struct config_value *b);

/* --- keys and facts that differ --------------------------------------------------------------- */

/* What two results differ in besides their figures: keys of the configuration and facts of the
 * node, each with what it means for a comparison.  Two tables in compare_facts.c are the policy. */

enum compare_weight {
	/* says how a run is named and measured, or is another word for the same */
	COMPARE_HARMLESS,
	COMPARE_MINOR,   /* a version, a mount option: may matter */
	COMPARE_SETTING, /* a key that changes what runs: perhaps what is to be compared */
	COMPARE_STRONG,  /* another CPU, GPU, storage, a planted condition: probably the cause */
	/* the samples are not the same work: their rates mean nothing beside each other */
	COMPARE_REFUSED,
};

enum { COMPARE_NAME_BYTES = 64 };

struct compare_fact {
	enum compare_weight weight;
	char name[COMPARE_NAME_BYTES]; /* "decode.workers", "cpu.model" */
	bool is_key;                   /* of the configuration */
	char *a, *b;                   /* as text; owned */
};

struct compare_facts {
	struct compare_fact *list; /* heaviest first; owned */
	size_t count, room;
	bool failed;
	bool storage; /* the same samples are, or may be, stored in other ways (config_is_storage) */
};

/* Keys that differ and are not matched by value at each point (swept). */
void compare_keys(struct compare_facts *facts, const struct config *a, const struct config *b,
	const bool swept[KEY_COUNT]);
void compare_environments(
	struct compare_facts *facts, const struct fact_list *a, const struct fact_list *b);
/* One more, found by the caller. */
void compare_fact_add(struct compare_facts *facts, enum compare_weight weight, const char *name,
	const char *a, const char *b);
void compare_facts_sort(struct compare_facts *facts);
void compare_facts_release(struct compare_facts *facts); /* safe on {0} */

size_t compare_facts_count(const struct compare_facts *facts, enum compare_weight weight);

const char *compare_weight_name(enum compare_weight weight); /* "strong" */

/* A value as text that may be long: fresh, NULL without memory. */
char *config_value_text(enum key_id key, const struct config_value *value);

/* --- where a difference comes from ------------------------------------------------------------ */

/* Where a difference of throughput comes from. The costs of one result are put into the replay of
 * the other, stage by stage; each stage gets the mean of what it changes over all orders in which
 * the stages could be exchanged (the Shapley value: L. Shapley, A value for n-person games, 1953).
 * The parts sum to the whole difference of the two replays, however the stages interact; what was
 * measured beyond that is unexplained. Without recorded service times the lowest of the stages'
 * capacities stands in for the replay. Pure functions. */

enum { EXPLAIN_PARTS_MAX = REPLAY_STAGES + 2 };

struct explain_part {
	char name[NAME_BYTES]; /* a stage, "threads and buffers", or "cores" */
	double effect;         /* on ln(throughput); the parts sum to `explained` */
};

struct explanation {
	bool replayed;            /* else by capacities */
	char why_not[NOTE_BYTES]; /* no replay, because ... */
	double measured;          /* ln(B / A) */
	double explained;         /* ln of the replays' (or least capacities') ratio */
	struct explain_part
		parts[EXPLAIN_PARTS_MAX]; /* largest effect first; those of none are left out */
	size_t part_count;
};

/* 0; -E2BIG, -ENOMEM, -EINVAL as replay_run. */
int explain_by_replay(const struct model *a, const struct model *b, double measured,
	struct explanation *out, struct error *err);

/* One capacity per stage, samples/s; NAN: it never showed, so it is no bottleneck. */
struct explain_capacity {
	char stage[NAME_BYTES];
	double a, b;
};
void explain_by_capacities(const struct explain_capacity *stages, size_t count, double measured,
	struct explanation *out);

#endif
