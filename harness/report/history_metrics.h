/* The numbers of a point that the history keeps, filters by and plots: names, units, and how a person writes a value. */
#ifndef MLBENCH_REPORT_HISTORY_METRICS_H
#define MLBENCH_REPORT_HISTORY_METRICS_H

#include "harness/analyze/summary.h"
#include "harness/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum history_unit {
	HISTORY_RATE,    /* samples/s */
	HISTORY_SHARE,   /* 0..1 */
	HISTORY_SECONDS, /* stored in s */
	HISTORY_BYTES,
	HISTORY_BYTES_PER_S,
	HISTORY_PLAIN,
};

struct history_metric {
	char name[64]; /* "throughput", "decode.capacity", "read.p99" */
	enum history_unit unit;
	bool has_interval; /* of the repeats: throughput */
	int better;        /* 1: more is, -1: less is, 0: neither */
};

/* -EINVAL with the nearest name. */
int history_metric_find(const char *name, struct history_metric *metric, struct error *err);
bool history_metric_is(const char *name, struct history_metric *metric);

/* All names, for suggestions and help: returns how many, at most room. */
size_t history_metric_names(char (*names)[64], size_t room);

/* {"read.p99": 0.00125, ...}: what is known of a point; NULL without memory. */
json_t *history_metrics_of(const struct point_summary *point);

/* "5ms", "90%", "2GiB", "1200": -EINVAL where it is none. */
int history_unit_parse(enum history_unit unit, const char *text, double *value);
enum { HISTORY_NUMBER_BYTES = 40 };
const char *history_unit_format(
	enum history_unit unit, double value, char out[HISTORY_NUMBER_BYTES]);
const char *history_unit_name(
	enum history_unit unit); /* "samples/s", "s", ...; "" for a plain number */

#endif
