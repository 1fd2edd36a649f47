/* Rows of the index that meet conditions, and the series over time that they form. */
#include "harness/report/history_series.h"

#include "harness/analyze/statistics.h"
#include "harness/report/history.h"
#include "harness/report/history_filter.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rows ------------------------------------------------------------------------------------- */

enum { PATH_BYTES = 80, ROWS_MAX = 4000000 };

/* In the order of read_row. */
static const char select_sql[] =
	"SELECT r.folder, r.problem, r.name, r.hash, r.node, r.host, r.cpu, r.version, r.status,"
	" r.backend, r.facts, p.settings, p.stage, p.also, p.resource, p.status,"
	" r.started, r.finished, p.throughput, p.low, p.high, p.confidence, r.emulated, r.points,"
	" p.point, json_extract(p.metrics, '$.contaminated'), %s"
	" FROM results r LEFT JOIN points p ON p.result = r.id WHERE 1%s"
	" ORDER BY r.started IS NULL, r.started, r.folder, p.throughput IS NULL, p.throughput DESC,"
	" p.point";

static void row_release(struct history_row *row)
{
	char *const texts[] = {row->folder, row->problem, row->name, row->hash, row->node,
		row->host, row->cpu, row->version, row->status, row->backend, row->facts,
		row->settings, row->stage, row->also, row->resource, row->point_status};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		free(texts[i]);
}

/* NULL stays NULL. */
static int select_copy_text(sqlite3_stmt *statement, int column, char **out)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);
	*out = text ? strdup(text) : NULL;
	return text && !*out ? -ENOMEM : 0;
}

static double number_at(sqlite3_stmt *statement, int column)
{
	const int type = sqlite3_column_type(statement, column);
	return type == SQLITE_FLOAT || type == SQLITE_INTEGER
		       ? sqlite3_column_double(statement, column)
		       : (double)NAN;
}

static int read_row(sqlite3_stmt *statement, struct history_row *row)
{
	char **const texts[] = {&row->folder, &row->problem, &row->name, &row->hash, &row->node,
		&row->host, &row->cpu, &row->version, &row->status, &row->backend, &row->facts,
		&row->settings, &row->stage, &row->also, &row->resource, &row->point_status};
	double *const numbers[] = {&row->started, &row->finished, &row->throughput, &row->low,
		&row->high, &row->confidence};
	int column = 0;
	int code = 0;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		code |= select_copy_text(statement, column++, texts[i]);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		*numbers[i] = number_at(statement, column++);
	row->emulated = sqlite3_column_int(statement, column++) != 0;
	row->points = sqlite3_column_int64(statement, column++);
	row->point = sqlite3_column_int64(statement, column++);
	row->contaminated = number_at(statement, column++) > 0;
	row->value = number_at(statement, column++);
	return code;
}

/* The next row's place; NULL without memory. */
static struct history_row *make_row(struct history_rows *rows)
{
	if (rows->count == ROWS_MAX)
		return NULL;
	if (rows->count == rows->room) {
		const size_t room = rows->room ? 2 * rows->room : 64;
		struct history_row *larger = realloc(rows->rows, room * sizeof *larger);
		if (!larger)
			return NULL;
		rows->rows = larger;
		rows->room = room;
	}
	struct history_row *row = &rows->rows[rows->count++];
	*row = (struct history_row){0};
	return row;
}

static bool is_same_result(const struct history_rows *rows, sqlite3_stmt *statement)
{
	const char *folder = (const char *)sqlite3_column_text(statement, 0);
	return rows->count > 0 && folder && strcmp(rows->rows[rows->count - 1].folder, folder) == 0;
}

/* An SQLite code. */
static int select_read_rows(sqlite3_stmt *statement, bool all_points, struct history_rows *out)
{
	int code;
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!all_points && is_same_result(out, statement))
			continue;
		struct history_row *row = make_row(out);
		if (!row || read_row(statement, row))
			return SQLITE_NOMEM;
	}
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The expression for a metric's values; path is bound to its place, if it has one. */
static const char *value_sql(const struct history_metric *metric)
{
	if (!metric)
		return "NULL";
	if (strcmp(metric->name, "throughput") == 0)
		return "p.throughput";
	if (strcmp(metric->name, "confidence") == 0)
		return "p.confidence";
	return "json_extract(p.metrics, ?)";
}

static int bind_all(const struct history_filter *filter, const struct history_metric *metric,
	sqlite3_stmt *statement)
{
	int at = 1;
	int code = SQLITE_OK;
	if (strchr(value_sql(metric), '?')) {
		char path[PATH_BYTES];
		(void)snprintf(path, sizeof path, "$.\"%s\"", metric->name);
		code = sqlite3_bind_text(statement, at++, path, -1, SQLITE_TRANSIENT);
	}
	if (code == SQLITE_OK && filter)
		code = history_filter_bind(filter, statement, &at);
	return code;
}

int history_select(const struct history *history, const struct history_filter *filter,
	const struct history_metric *metric, bool all_points, struct history_rows *out,
	struct error *err)
{
	struct buffer sql = {0};
	sqlite3_stmt *statement = NULL;
	*out = (struct history_rows){0};
	buffer_format(&sql, select_sql, value_sql(metric),
		filter && filter->sql.data ? filter->sql.data : "");
	if (sql.failed || (filter && filter->sql.failed))
		return error_set(err, -ENOMEM, "out of memory for the history");
	int code = sqlite3_prepare_v2(history->db.handle, sql.data, -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = bind_all(filter, metric, statement);
	if (code == SQLITE_OK)
		code = select_read_rows(statement, all_points, out);
	(void)sqlite3_finalize(statement);
	buffer_release(&sql);
	if (code == SQLITE_NOMEM)
		return error_set(err, -ENOMEM, "out of memory for the history");
	return code == SQLITE_OK ? 0 : history_database_error(&history->db, "read the index", err);
}

void history_rows_release(struct history_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		row_release(&rows->rows[i]);
	free(rows->rows);
	*rows = (struct history_rows){0};
}

/* --- series ----------------------------------------------------------------------------------- */

enum { FACTS_SHOWN_MAX = 6 };
static const double INTERVAL_ERRORS = 2 * 1.96; /* a 95 % interval in standard errors */

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Name, configuration, node, setting; then time. */
static int by_series(const void *a, const void *b)
{
	const struct history_row *left = *(const struct history_row *const *)a;
	const struct history_row *right = *(const struct history_row *const *)b;
	int order = compare_text(left->name, right->name);
	order = order ? order : compare_text(left->hash, right->hash);
	order = order ? order : compare_text(left->node, right->node);
	order = order ? order : compare_text(left->settings, right->settings);
	if (order)
		return order;
	if (left->started != right->started)
		return left->started < right->started ? -1 : 1;
	return compare_text(left->folder, right->folder);
}

static bool is_comparable(const struct history_row *a, const struct history_row *b)
{
	return compare_text(a->name, b->name) == 0 && compare_text(a->hash, b->hash) == 0 &&
	       compare_text(a->node, b->node) == 0;
}

static bool is_same_setting(const struct history_row *a, const struct history_row *b)
{
	return is_comparable(a, b) && compare_text(a->settings, b->settings) == 0;
}

struct stretch {
	size_t first, count;
};

static double median_rate(const struct history_row *const *rows, size_t count)
{
	double *rates = malloc((count + 1) * sizeof *rates);
	size_t known = 0;
	for (size_t i = 0; rates && i < count; i++)
		if (isfinite(rows[i]->throughput))
			rates[known++] = rows[i]->throughput;
	const double median = known > 0 ? statistics_median(rates, known) : 0;
	free(rates);
	return median;
}

/* The setting of a comparable stretch that is plotted. */
static struct stretch series_choose(const struct history_row *const *rows, struct stretch all)
{
	struct stretch best = {0};
	double best_rate = 0;
	for (size_t first = all.first; first < all.first + all.count;) {
		size_t last = first;
		while (last < all.first + all.count && is_same_setting(rows[first], rows[last]))
			last++;
		const size_t count = last - first;
		const double rate = median_rate(rows + first, count);
		if (count > best.count || (count == best.count && rate > best_rate)) {
			best = (struct stretch){first, count};
			best_rate = rate;
		}
		first = last;
	}
	return best;
}

static double own_error(const struct history_row *row, const struct history_metric *metric)
{
	return metric->has_interval ? (row->high - row->low) / INTERVAL_ERRORS : (double)NAN;
}

static enum level_scale series_scale_of(
	const struct history_series *series, const struct history_metric *metric)
{
	if (metric->unit == HISTORY_SHARE)
		return LEVEL_DIFFERENCE;
	for (size_t i = 0; i < series->count; i++)
		if (series->values[i].value <= 0)
			return LEVEL_DIFFERENCE;
	return LEVEL_RATIO;
}

static int series_fill(struct history_series *series, const struct history_row *const *rows,
	struct stretch stretch, const struct history_plot *plot)
{
	const size_t most = LEVEL_VALUES_MAX;
	series->left_out = stretch.count > most ? stretch.count - most : 0;
	series->count = stretch.count - series->left_out;
	series->rows = calloc(series->count, sizeof(const struct history_row *));
	series->values = calloc(series->count, sizeof *series->values);
	if (!series->rows || !series->values)
		return -ENOMEM;
	for (size_t i = 0; i < series->count; i++) {
		const struct history_row *row = rows[stretch.first + series->left_out + i];
		series->rows[i] = row;
		series->values[i] = (struct level_value){row->value, own_error(row, &plot->metric)};
	}
	series->scale = series_scale_of(series, &plot->metric);
	series->change_count = level_changes_find(
		series->values, series->count, series->scale, plot->significance, series->changes);
	return 0;
}

static int series_add_series(
	struct history_plot *plot, const struct history_row *const *rows, struct stretch stretch)
{
	struct history_series *larger = realloc(plot->series, (plot->count + 1) * sizeof *larger);
	if (!larger)
		return -ENOMEM;
	plot->series = larger;
	struct history_series *series = &plot->series[plot->count++];
	*series = (struct history_series){0};
	return series_fill(series, rows, stretch, plot);
}

static int group(struct history_plot *plot, const struct history_row *const *rows, size_t count)
{
	int code = 0;
	for (size_t first = 0; first < count && !code;) {
		size_t last = first;
		while (last < count && is_comparable(rows[first], rows[last]))
			last++;
		code = series_add_series(
			plot, rows, series_choose(rows, (struct stretch){first, last - first}));
		first = last;
	}
	return code;
}

/* Measured, and of a known time. */
static bool series_counts(const struct history_row *row)
{
	return row->settings && isfinite(row->value) && isfinite(row->started) &&
	       row->point_status && strcmp(row->point_status, "failed") != 0;
}

int history_plot_make(struct history_plot *plot, const struct history_rows *rows,
	const struct history_metric *metric, double significance, struct error *err)
{
	*plot = (struct history_plot){.metric = *metric, .significance = significance};
	const struct history_row **sorted =
		calloc(rows->count + 1, sizeof(const struct history_row *));
	if (!sorted)
		return error_set(err, -ENOMEM, "out of memory for the history");
	size_t count = 0;
	for (size_t i = 0; i < rows->count; i++)
		if (series_counts(&rows->rows[i]))
			sorted[count++] = &rows->rows[i];
	if (count > 0)
		qsort(sorted, count, sizeof(const struct history_row *), by_series);
	const int code = group(plot, sorted, count);
	free(sorted);
	return code ? error_set(err, code, "out of memory for the history") : 0;
}

void history_plot_release(struct history_plot *plot)
{
	for (size_t i = 0; i < plot->count; i++) {
		free(plot->series[i].rows);
		free(plot->series[i].values);
	}
	free(plot->series);
	*plot = (struct history_plot){0};
}

double history_series_level(const struct history_series *series, size_t i)
{
	if (series->change_count == 0)
		return level_of(series->values, 0, series->count, series->scale);
	double level = series->changes[0].before;
	for (size_t c = 0; c < series->change_count && series->changes[c].at <= i; c++)
		level = series->changes[c].after;
	return level;
}

const char *history_change_size(
	const struct history_series *series, size_t change, char out[HISTORY_NUMBER_BYTES])
{
	const struct level_change *c = &series->changes[change];
	if (series->scale == LEVEL_RATIO)
		(void)snprintf(
			out, HISTORY_NUMBER_BYTES, "%+.1f %%", 100 * (c->after / c->before - 1));
	else
		(void)snprintf(out, HISTORY_NUMBER_BYTES, "%+.3g", c->after - c->before);
	return out;
}

/* Facts that come and go from run to run and explain nothing. */
static bool is_transient(const char *name)
{
	static const char *const names[] = {"load.", "memory.available", "memory.free",
		"memory.cached", "data.free", "mlbench.ceilings", "gpu."};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return strcmp(name, "gpu.driver_version") != 0;
	return false;
}

static void series_add_value(struct buffer *out, const json_t *value)
{
	if (json_is_string(value))
		buffer_text(out, json_string_value(value));
	else if (json_is_number(value))
		buffer_format(out, "%g", json_number_value(value));
	else
		buffer_text(out, "unknown");
}

void history_change_facts(const struct history_series *series, size_t change, struct buffer *out)
{
	const size_t at = series->changes[change].at;
	const char *texts[] = {series->rows[at - 1]->facts, series->rows[at]->facts};
	json_t *before = texts[0] ? json_loads(texts[0], 0, NULL) : NULL;
	json_t *after = texts[1] ? json_loads(texts[1], 0, NULL) : NULL;
	const char *name;
	json_t *value;
	size_t shown = 0;
	json_object_foreach(after, name, value)
	{
		const json_t *old = json_object_get(before, name);
		if (!old || json_equal(old, value) || is_transient(name))
			continue;
		if (shown++ == FACTS_SHOWN_MAX) {
			buffer_text(out, "; and more");
			break;
		}
		buffer_format(out, "%s%s ", shown > 1 ? "; " : "", name);
		series_add_value(out, old);
		buffer_text(out, " -> ");
		series_add_value(out, value);
	}
	json_decref(before);
	json_decref(after);
}
