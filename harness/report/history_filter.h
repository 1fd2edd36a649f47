/* What of the results is asked for.
 *
 * Metrics: the numbers of a point that the history filters by and plots: names, units, where a point of summary.json has
 * them, and how a person writes a value.
 *
 * Conditions, "KEY OP VALUE": `name=imagenet_like`, `throughput>1000`, `decode.workers=4`, `read.p99<5ms`, `cpu~EPYC`.
 * A key is a column of the list, a key of the configuration, a metric, or a fact of the environment; a value is read as
 * that key's values are.  What a result does not know meets no condition. */
#ifndef MLBENCH_REPORT_HISTORY_FILTER_H
#define MLBENCH_REPORT_HISTORY_FILTER_H

#include "harness/base/error.h"
#include "harness/config/config.h"

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
	char path[96]; /* in a point of summary.json */
	double scale;  /* from there to the unit */
	enum history_unit unit;
	bool has_interval; /* of the repeats: throughput */
	int better;        /* 1: more is, -1: less is, 0: neither */
};

/* -EINVAL with the nearest name. */
int history_metric_find(const char *name, struct history_metric *metric, struct error *err);
/* point: of summary.json; NULL: none.  NAN: not known. */
double history_metric_value(const struct history_metric *metric, const json_t *point);

/* "5ms", "90%", "2GiB", "1200": -EINVAL where it is none. */
int history_unit_parse(enum history_unit unit, const char *text, double *value);
enum { HISTORY_NUMBER_BYTES = 40 };
const char *history_unit_format(
	enum history_unit unit, double value, char out[HISTORY_NUMBER_BYTES]);
const char *history_unit_name(
	enum history_unit unit); /* "samples/s", "s", ...; "" for a plain number */

enum { HISTORY_CONDITIONS_MAX = 32, HISTORY_KEY_BYTES = 64 };

enum history_operator {
	OP_EQUAL,
	OP_NOT,
	OP_LESS,
	OP_LESS_EQUAL,
	OP_MORE,
	OP_MORE_EQUAL,
	OP_CONTAINS
};

struct history_condition {
	const char *whole, *value; /* the caller's */
	char key[HISTORY_KEY_BYTES];
	enum history_operator op;
	enum { OF_COLUMN, OF_CONFIG, OF_METRIC, OF_FACT } of;
	size_t column;
	enum key_id config_key;
	struct history_metric metric;
	bool is_prefix, is_number;
	double number;
};

struct history_filter {
	struct history_condition conditions[HISTORY_CONDITIONS_MAX];
	size_t count;
	double since;  /* results that began at or after it, in seconds since the epoch; 0: all */
	json_t *facts; /* {"group.name": true} of the environments that were seen; owned */
};

/* Adds a condition; its text has to live as long.  -EINVAL with what is wrong, and the nearest valid name. */
int history_filter_add(struct history_filter *filter, const char *condition, struct error *err);
/* row: as history.c makes it; point, summary: of summary.json, or NULL. */
bool history_filter_meets(const struct history_filter *filter, const json_t *row,
	const json_t *summary, const json_t *point);
/* Which facts there are is known when all results are read: -EINVAL for a condition on one that no result has. */
void history_filter_learn(struct history_filter *filter, json_t *environment);
int history_filter_check(const struct history_filter *filter, struct error *err);
void history_filter_release(struct history_filter *filter); /* safe on {0} */

/* "2026-11-01", "2026-11-01T08:30", "...:00Z", "20261101T083000Z" (all UTC), or a time ago: "90m", "12h", "7d", "2w".
 * now: seconds since the epoch.  -EINVAL. */
int history_time_parse(const char *text, double now, double *seconds, struct error *err);

#endif
