/* Differences between two sets of repetitions, point by point, with intervals and tests that hold
 * for the few repetitions that there are.  Pure functions.
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
#ifndef MLBENCH_ANALYZE_COMPARE_STATISTICS_H
#define MLBENCH_ANALYZE_COMPARE_STATISTICS_H

#include "harness/analyze/statistics.h"

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

/* Student's t with freedom > 0 degrees, not necessarily whole: P(T <= t), and its inverse for 0 < p
 * < 1. */
double compare_student(double t, double freedom);
double compare_student_quantile(double p, double freedom);

#endif
