/* Conditions on results, "KEY OP VALUE": `name=imagenet_like`, `throughput>1000`, `decode.workers=4`, `read.p99<5ms`,
 * `cpu~EPYC`.  A key is a column of the list, a key of the configuration, a metric, or a fact of the environment; a value
 * is read as that key's values are.  Each becomes a piece of SQL with its values bound apart: nothing that a user wrote
 * becomes SQL. */
#ifndef MLBENCH_REPORT_HISTORY_FILTER_H
#define MLBENCH_REPORT_HISTORY_FILTER_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/report/history_database.h"

#include <stdbool.h>
#include <stddef.h>

enum { HISTORY_CONDITIONS_MAX = 32, HISTORY_VALUES_MAX = 3 * HISTORY_CONDITIONS_MAX };

struct history_value {
	char *text; /* owned; NULL: a number */
	double number;
};

struct history_filter {
	struct buffer sql;                               /* " AND (...)" for each */
	struct history_value values[HISTORY_VALUES_MAX]; /* in the order of their places */
	size_t value_count, condition_count;
};

/* Adds a condition.  db: where facts of the environment are known by name; NULL: none are.  -EINVAL with what is wrong, and
 * the nearest valid name. */
int history_filter_add(struct history_filter *filter, const struct history_database *db,
	const char *condition, struct error *err);
/* Results that began at or after `seconds` (since the epoch). */
int history_filter_since(struct history_filter *filter, double seconds, struct error *err);
/* An SQLite code; *at is the number of the first place, and that behind the last one afterwards. */
int history_filter_bind(const struct history_filter *filter, sqlite3_stmt *statement, int *at);
void history_filter_release(struct history_filter *filter); /* safe on {0} */

/* "2026-11-01", "2026-11-01T08:30", "...:00Z", "20261101T083000Z" (all UTC), or a time ago: "90m", "12h", "7d", "2w".
 * now: seconds since the epoch.  -EINVAL. */
int history_time_parse(const char *text, double now, double *seconds, struct error *err);

#endif
