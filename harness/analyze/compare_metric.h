/* The figures of a repetition that two results are compared by: one table drives extraction, tables
 * and the names that a gate may use.  Pure functions. */
#ifndef MLBENCH_ANALYZE_COMPARE_METRIC_H
#define MLBENCH_ANALYZE_COMPARE_METRIC_H

#include "harness/base/error.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

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

#endif
