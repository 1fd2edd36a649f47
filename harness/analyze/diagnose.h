/* The whole diagnosis of one point: verdict, what each alternative would gain, the order of the
 * next limits, memory, phases.  A pure function of saved results and ceilings. */
#ifndef MLBENCH_ANALYZE_DIAGNOSE_H
#define MLBENCH_ANALYZE_DIAGNOSE_H

#include "harness/analyze/experiment.h"
#include "harness/analyze/point_model.h"
#include "harness/analyze/summary.h"

#include <stdbool.h>
#include <stddef.h>

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

/* effort as in point_model.h; 0 leaves the replay out (only wait states and resource rules). */
int diagnose_point(const struct diagnose_input *input, unsigned effort, struct diagnosis *out,
	struct error *err);

#endif
