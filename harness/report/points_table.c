/* Points of a sweep, and each stage's limit, as tables. */
#include "harness/report/points_table.h"

#include "harness/base/units.h"
#include "harness/record/config_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELL_TEXT_BYTES = ERROR_TEXT_BYTES + NAME_BYTES, FIXED_COLUMNS = 6 };
_Static_assert(
	POINTS_TABLE_COLUMNS_MAX == CONFIG_AXES_MAX + FIXED_COLUMNS, "room for every column");

static void interval_text(const struct point_summary *p, char *out, size_t room)
{
	const double wide = fmax(p->ci95.high - p->median, p->median - p->ci95.low);
	if (p->repeat_count < 2 || isnan(wide) || p->median <= 0)
		(void)snprintf(out, room, "-");
	else
		(void)snprintf(out, room, "%.1f%%", 100 * wide / p->median);
}

/* Why a point that ran has no figure. */
static const char *why_nothing(const struct point_summary *p)
{
	for (size_t i = 0; i < p->note_count; i++)
		if (strstr(p->notes[i], "batches were measured"))
			return p->notes[i];
	return "throughput was not measured";
}

static void points_verdict_text(const struct point_summary *p, char *out, size_t room)
{
	const struct verdict *v = &p->verdict;
	const bool known = v->stage[0] && strcmp(v->stage, "none") != 0;
	const char *before = p->status == POINT_UNSTEADY ? "unsteady; " : "";
	if (p->status == POINT_FAILED)
		(void)snprintf(out, room, "failed: %s", p->error);
	else if (p->status == POINT_UNSTEADY && isnan(p->median))
		(void)snprintf(out, room, "unsteady: %s", why_nothing(p));
	else if (known)
		(void)snprintf(out, room, "%s%s%s%s / %s", before, v->stage,
			v->also[0] ? " + " : "", v->also, v->resource);
	else
		(void)snprintf(out, room, "%s%s", before, "inconclusive");
}

/* The measured best, which bars stand beside; 0: none. */
static double best_rate(const struct report *report)
{
	return report->best < report->record->grid.points ? report->points[report->best]->median
							  : 0;
}

/* The cells behind the keys, of a point that was not measured. */
static void points_add_forecast(
	const struct report *report, const struct forecast *forecast, struct table *table)
{
	char number[UNITS_BYTES];
	const double most = best_rate(report);
	table_add(table, INK_DIM, "~%s", units_format_count(forecast->throughput, number));
	table_add(table, INK_DIM, "~%.1f%%", 100 * forecast->half_width);
	table_add(table, INK_DIM, "%.4f", most > 0 ? fmin(forecast->throughput / most, 1) : 0);
	table_add(table, INK_DIM, "-");
	table_add(table, INK_DIM, "-");
	struct buffer from = {0};
	for (size_t i = 0; i < forecast->from_count; i++)
		buffer_format(&from, "%s%u", i ? ", " : "", forecast->from[i]);
	table_add(table, INK_DIM, "predicted from point%s %s", forecast->from_count == 1 ? "" : "s",
		from.data ? from.data : "");
	buffer_release(&from);
}

static void points_add_point(const struct report *report, size_t point, struct table *table)
{
	const struct point_summary *p = report->points[point];
	char text[CELL_TEXT_BYTES];
	char number[UNITS_BYTES];
	for (size_t axis = 0; axis < report->record->config.axis_count; axis++)
		table_add(table, INK_PLAIN, "%s",
			report_setting(report, point, axis, text, sizeof text));
	const struct forecast *forecast = report_forecast(report, point);
	if (forecast) {
		points_add_forecast(report, forecast, table);
		return;
	}
	if (!p) {
		for (int i = 0; i < FIXED_COLUMNS - 1; i++)
			table_add(table, INK_PLAIN, "%s", "");
		table_add(table, INK_DIM, "not measured");
		return;
	}
	const bool failed = p->status == POINT_FAILED || isnan(p->median);
	const double most = best_rate(report);
	table_add(table, point == report->best ? INK_BOLD : INK_PLAIN, "%s",
		failed ? "-" : units_format_count(p->median, number));
	interval_text(p, text, sizeof text);
	table_add(table, INK_DIM, "%s", failed ? "-" : text);
	table_add(table, INK_ACCENT, "%.4f", failed || most <= 0 ? 0 : p->median / most);
	(void)units_or_dash(units_format_share, failed ? (double)NAN : p->step_utilisation, number);
	table_add(table, INK_PLAIN, "%s", number);
	if (failed)
		table_add(table, INK_DIM, "-");
	else
		table_add(table, INK_DIM, "%.2f", p->verdict.confidence);
	points_verdict_text(p, text, sizeof text);
	table_add(table,
		failed                        ? INK_BAD
		: p->status == POINT_UNSTEADY ? INK_WARN
					      : INK_PLAIN,
		"%s", text);
}

/* Heads of the swept keys: the section above the name. */
static void key_columns(
	const struct report *report, char (*heads)[CONFIG_NAME_BYTES], struct table_column *columns)
{
	const struct config *config = &report->record->config;
	for (size_t axis = 0; axis < config->axis_count; axis++) {
		const struct key *key = &config_keys[config->axes[axis].key];
		(void)snprintf(heads[axis], CONFIG_NAME_BYTES, "%s\n%s", key->section, key->name);
		columns[axis] = (struct table_column){.head = heads[axis]};
	}
}

void points_table_open(
	struct points_table *points, const struct report *report, bool utf8, size_t most)
{
	const size_t keys = report->record->config.axis_count;
	const struct table_column fixed[FIXED_COLUMNS] = {
		{.head = "samples/s"},
		{.head = "±95 %", .keep = 3},
		{.head = "", .bar = true, .keep = 5},
		{.head = "step\nbusy", .keep = 4},
		{.head = "confi-\ndence", .keep = 2},
		{.head = "bottleneck", .left = true},
	};
	key_columns(report, points->heads, points->columns);
	memcpy(points->columns + keys, fixed, sizeof fixed);
	if (!utf8)
		points->columns[keys + 1].head = "+-95 %";
	points->columns[keys + FIXED_COLUMNS - 1].wraps = report->failed > 0;
	table_open(&points->table, points->columns, keys + FIXED_COLUMNS);
	for (size_t point = 0; point < report->record->grid.points && point < most; point++)
		points_add_point(report, point, &points->table);
}
