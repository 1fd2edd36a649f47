/* Rows of the index that meet conditions. */
#include "harness/report/history.h"
#include "harness/report/history_filter.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static int copy_text(sqlite3_stmt *statement, int column, char **out)
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
		code |= copy_text(statement, column++, texts[i]);
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
static int read_rows(sqlite3_stmt *statement, bool all_points, struct history_rows *out)
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
		code = read_rows(statement, all_points, out);
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
