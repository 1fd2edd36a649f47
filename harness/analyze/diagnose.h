/* The whole diagnosis of one point: verdict, what each alternative would gain, the order of the
 * next limits, memory, phases.  A pure function of saved results and ceilings. */
#ifndef MLBENCH_ANALYZE_DIAGNOSE_H
#define MLBENCH_ANALYZE_DIAGNOSE_H

#include "harness/analyze/experiment.h"
#include "harness/analyze/point_model.h"
#include "harness/analyze/summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RECOMMENDATIONS_MAX = 4,
	PHASES_MAX = 8,
};

/* One recommendation: keys to set together, and the predicted effect. */
struct recommendation {
	char settings[SETTINGS_MAX][SETTING_BYTES]; /* "decode.workers=8", as --set takes it */
	size_t setting_count;
	double predicted;         /* samples/s */
	struct interval interval; /* 90 % */
	/* samples/s: that setting was measured, too, which stands above the prediction; 0: it
	 * was not */
	double measured;
	char next_stage[NAME_BYTES], next_resource[NAME_BYTES]; /* what binds then */
	char words[EVIDENCE_BYTES];
};

/* A part of the run with its own bottleneck. */
struct phase {
	double begin_s, end_s;
	double throughput;
	char stage[NAME_BYTES], resource[NAME_BYTES];
	double confidence;
	/* Numbers of the repetitions that it was seen in.  A phase of one repetition has both alike, and then
	 * begin_s and end_s count from that repetition's beginning; otherwise they count from the beginning of the
	 * first repetition of the first phase. */
	uint32_t first_repetition, last_repetition;
	bool judged; /* the verdict is of this one; of several, of their one state */
};

struct memory_finding {
	bool leaks;               /* beyond pools filling and page cache */
	double bytes_per_s;       /* robust slope after warm-up; NAN: too short to tell */
	struct interval interval; /* 90 % */
	double seconds_to_full;   /* HUGE_VAL: never; NAN: not known */
	char stage[NAME_BYTES];   /* whose allocations grow; "" when it is not known */
	char words[EVIDENCE_BYTES];
};

struct diagnosis {
	struct verdict verdict;
	bool modelled; /* the replay could be calibrated; else why_not says */
	/* Share of the process's CPU time that is in no cost of the model: its threads hand samples over and look for work. */
	double handover_share;
	char why_not[EVIDENCE_BYTES];
	uint64_t samples_needed; /* too short a run: so many samples would do; 0: enough */
	double width; /* half of the throughput's 90 % interval over it, within repetitions; NAN */
	double replayed; /* samples/s of the replay as it stands, beside the measured one */
	struct elasticities elasticities;
	struct ladder ladder;
	struct recommendation recommendations[RECOMMENDATIONS_MAX];
	size_t recommendation_count; /* best first; 0: nothing to be had */
	struct knee knee;            /* workers 0: not known */
	struct memory_finding memory;
	struct phase phases[PHASES_MAX];
	size_t phase_count; /* 1: the limit did not change */
};

struct diagnose_input {
	const struct point_summary *point;
	const struct point_facts *facts;
	struct model_source source;
	/* (all_count): those of the source and the unsteady ones that it leaves out, in their
	 * order: a change that lasted shows in one of these.  NULL: the source has all. */
	const struct measurement *const *all;
	const struct traces *const *all_traces;
	size_t all_count;
	const struct tried *tried; /* what was measured beside it; NULL: nothing */
};

/* Its expected throughput: measured, or else predicted. */
double recommendation_rate(const struct recommendation *recommendation);

/* "The throughput changed from 483 to 113 samples/s between repetitions 0 and 1, ...": phases of several repetitions, or
 * of one; "" if there is but one phase.  Returns out. */
const char *diagnosis_change_words(const struct diagnosis *diagnosis, char out[EVIDENCE_BYTES]);

/* effort as in point_model.h; 0 leaves the replay out (only wait states and resource rules). */
int diagnose_point(const struct diagnose_input *input, unsigned effort, struct diagnosis *out,
	struct error *err);

/* --- a run whose bottleneck changes ----------------------------------------------------------- */

/* The run is cut into phases: change points of the throughput and of the state
 * shares over its windows, and what was measured between two of them as a measurement of its
 * own. */

struct phase_cut {
	size_t repeat;                /* that was cut: index into the repeats */
	double edges[PHASES_MAX + 1]; /* s since the repetition began; count + 1 of them */
	size_t count;                 /* phases; 1: the limit did not change */
	size_t after; /* repeats that follow it and are like its last phase: the change lasted */
	bool known;   /* not found by the rates: a quota changed */
};

/* Cuts as most repetitions show it, with the edges of the first of these. A change that lasted
 * shows in one repetition only: those before it are like its first phase, those after it like its
 * last. In an unsteady repetition everything after the warm-up counts, because its cut may be
 * anywhere; in a steady one what was measured. */
void phases_cut(const struct measurement *const *repeats, size_t count, struct phase_cut *out);

/* Whether two rates may be of one bottleneck. */
bool phases_rates_alike(double a, double b);

/* --- a rate that changes between repetitions -------------------------------------------------- */

/* A burst credit that ends, a quota that is cut, a cache that is filled: repetitions that differ so much
 * that they are not of one state.  What counts is the rate of each repetition or, where it changes inside of
 * one, of its two parts.  Binary segmentation as for the windows: a stretch is another regime if its
 * mean of ln(rate) differs from that of the others by a factor of 1.4 or more, and by so many standard errors
 * that of runs whose repetitions only scatter by 10 or 15 % at most one in a thousand is cut, and by 20 % one in
 * a hundred, for 2 to 30 repetitions; two must differ by a factor of three (tests/unit/test_phases.c holds it to that). */

struct regimes {
	size_t count; /* 1: the rate did not change */
	struct regime {
		/* Indices of its repetitions.  One inside of which the rate changes is in two regimes, and whole
		 * in none: those that are whole are [whole, whole_end). */
		size_t first, last, whole, whole_end;
		double begin_s, end_s; /* in the first and in the last of these, since each began */
		double rate;           /* samples/s, geometric mean */
		bool lasts;            /* the last one, and those before that had the same rate */
	} of[PHASES_MAX];
	/* The last one is only a part, or one repetition beside three others or more: nobody knows
	 * whether it lasts, so that the one before it does. */
	bool open;
};

/* The repetitions in the order in which they were measured. */
void regimes_find(const struct measurement *const *repeats, size_t count, struct regimes *out);

/* False: the rates are so near to each other that there is one regime. */
bool regimes_may_differ(const double *rates, size_t count);

/* Whether that repetition is whole in a regime that lasts: of at least one it is true, and of all if there
 * is no change. */
bool regimes_last(const struct regimes *regimes, size_t repetition);

/* The part of m in [from, to), from its windows: states, CPU time, run queue, throughput, bytes,
 * and what other processes, the host and the quota took meanwhile; the disk's reads in proportion
 * to the bytes. Waits for I/O and locks are not kept per window and are taken from the whole run.
 * Service times are those of `traces` that ended in it (NULL: none). The copy owns nothing. */
void phase_slice(const struct measurement *m, const struct traces *traces, double from, double to,
	struct measurement *out);

/* The items of traces that ended in [from, to): borrowed, nothing to release. */
void phase_slice_traces(const struct traces *traces, double from, double to, struct traces *out);

/* --- change points ---------------------------------------------------------------------------- */

/* Change points of several series at once: where a run's throughput or the shares of its states
 * move to another level and stay there.  Pure functions.
 *
 * Binary segmentation: finds the stretch whose mean differs most significantly from that of the
 * rest, in any of the series, then does the same in each part.  Values are first clipped to four
 * deviations about a running median, so that no single window makes a level.  The penalty is a
 * critical value of the difference in standard errors; its noise is taken from differences and
 * inflated for first-order autocorrelation.  It was found by simulation so that a steady AR(1)
 * series shows a change in at most 2 of 100 runs, all series of a run together
 * (tests/unit/test_phases.c holds it to that). */

enum {
	CHANGE_SERIES_MAX = 20,
	CHANGE_VALUES_MAX = 128,
	CHANGE_SEGMENTS_MAX = 8,
	CHANGE_SEGMENT_MIN = 5, /* values */
};

struct change_series {
	double values[CHANGE_VALUES_MAX];
	double least; /* a smaller difference of levels is of no interest */
};

struct change_set {
	struct change_series series[CHANGE_SERIES_MAX];
	size_t series_count, count; /* values of each */
};

/* First value of each segment, ascending; at least one segment, which begins at 0. */
struct segmentation {
	size_t starts[CHANGE_SEGMENTS_MAX];
	size_t count;
};

/* Clips the values of set. */
void change_points_find(struct change_set *set, struct segmentation *out);

/* --- the growth of memory --------------------------------------------------------------------- */

/* Whether memory grows without end.  What counts is anonymous memory (resident less mapped files,
 * so never the page cache), after the warm-up.  A leak rises by a robust slope whose interval
 * excludes zero, and still rises in the last third as it did in the first: pools and arenas that
 * fill up level off, and what is freed again (a saw-tooth) is judged by its troughs.  Pure
 * functions. */

enum growth_shape {
	GROWTH_TOO_SHORT,
	GROWTH_NONE,
	GROWTH_LEVELS_OFF, /* it rose, and hardly does at the end */
	GROWTH_RETURNS,    /* it rises and falls back */
	GROWTH_ENDLESS,
};

struct growth {
	enum growth_shape shape;
	double slope;             /* bytes/s; NAN: too short */
	struct interval interval; /* 90 % */
};

/* bytes at times t (s, ascending), count of them, from the end of the warm-up on. */
struct growth growth_of(const double *t, const double *bytes, size_t count, uint64_t seed);

/* Of a point: the majority of its repeats decides. */
void memory_find(const struct measurement *const *repeats, size_t count,
	const struct point_facts *facts, struct memory_finding *out);

/* --- what a faster input could still gain ----------------------------------------------------- */

/* How much a faster data loader could still gain: the one answer that verdicts, advice, sentences
 * and pages share. */

struct headroom {
	/* The stage before the step that is as busy as can be, or that the verdict names beside the
	 * step; NULL: none, the input has capacity to spare. */
	const struct stage_summary *tight;
	/* Of the throughput, until the step is at its capacity; 0: it is there; NAN: the capacity
	 * is not known. */
	double gain;
	bool lacks_cpu;   /* the verdict is that something else takes the step's CPU time */
	double waits;     /* share of the time that the step starves */
	double exchanges; /* share of the time that it stands still for the exchange of gradients, and for others before that */
};

struct headroom headroom_of_input(const struct point_summary *point, const struct verdict *verdict);

enum { HEADROOM_BYTES = 200 };
/* "A faster decode stage could gain at most 5 %.", "The step lacks CPU time, not input.", or
 * "Healthy: the data loader keeps the step busy. ..."; returns out. */
const char *headroom_words(const struct headroom *headroom, char out[HEADROOM_BYTES]);

/* --- what to change --------------------------------------------------------------------------- */

/* The keys that may move the current bottleneck are tried
 * in the replay; the smallest setting of the best one is kept, then the next bottleneck is taken
 * on, and so on. */

/* Where to begin. */
struct recommend_start {
	const struct model *model;
	const struct config *config;  /* of the point */
	const char *stage, *resource; /* of the verdict */
	unsigned cores;
	unsigned effort;           /* as in model.h */
	const struct tried *tried; /* NULL: nothing was measured beside it */
};

/* Fills out->recommendations, best first: the whole chain, then the shorter ones. It contains only
 * settings whose gain exceeds the width of its interval. */
int recommend(const struct recommend_start *start, struct diagnosis *out, struct error *err);

/* Words for the verdict's advice: the chain, or why no setting helps. */
void recommend_advise(const struct diagnosis *diagnosis, const struct point_summary *point,
	const struct point_facts *facts, char *out, size_t room);

/* Advice that "no setting helps" where more files in flight were measured to give more: names that first. */
struct storage;
void recommend_qualify(
	const struct storage *storage, const struct point_facts *facts, char *advice, size_t room);

/* What helps where no setting does; false: nothing is known. */
bool recommend_without_keys(const struct point_summary *point, const char *stage,
	const char *resource, char *out, size_t room);

#endif
