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
#ifndef MLBENCH_ANALYZE_COMPARE_GATE_H
#define MLBENCH_ANALYZE_COMPARE_GATE_H

#include "harness/analyze/compare_statistics.h"
#include "harness/base/error.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

/* --- figures by name -------------------------------------------------------------------------- */

/* The figures of a repetition that two results are compared by: one table drives extraction, tables
 * and the names that a gate may use.  Pure functions. */

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
/* y of compare_statistics.h, NAN where there is none; and back. */
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

#endif
