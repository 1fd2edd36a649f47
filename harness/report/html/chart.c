/* What the charts share: the table of them, filling their files, numbers and texts of rows, points of a sweep. */
#include "harness/report/html/chart.h"

#include "harness/analyze/diagnose.h"
#include "harness/record/fields.h"
#include "harness/report/html/assets.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DASH_LENGTHS = 4, NUMBER_BYTES = 40, NUMBER_BASE = 10 };

#define CHART(id, title, part) {#id, title, CHART_##part, chart_##id},
#define CHART_FILE(id)
const struct chart_kind chart_kinds[] = {
#include "harness/report/html/charts.def"
	{NULL, NULL, CHART_MORE, NULL},
};
#undef CHART
#undef CHART_FILE

/* --- filling a file ------------------------------------------------------------------------------- */

void chart_open(struct chart *chart, const char *file)
{
	const char *text = asset_chart(file);
	chart->file = text ? json_loads(text, 0, NULL) : NULL;
	const char *caption = json_string_value(json_object_get(chart->file, "description"));
	chart->drawing = json_pack("{s:s, s:{}, s:{}, s:[], s:[], s:[]}", "file", file, "signals",
		"data", "drop", "panels", "choices");
	if (!chart->drawing || !caption)
		chart->failed = true;
	else
		(void)snprintf(chart->caption, sizeof chart->caption, "%s", caption);
}

/* The member of that name in one of the file's lists; NULL: it has none. */
static json_t *chart_known(const struct chart *chart, const char *list, const char *name)
{
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(chart->file, list), i, one)
	{
		const char *its = json_string_value(json_object_get(one, "name"));
		if (its && strcmp(its, name) == 0)
			return one;
	}
	return NULL;
}

static void chart_put(struct chart *chart, const char *part, const char *name, json_t *value)
{
	const json_t *panels = json_object_get(chart->drawing, "panels");
	const size_t count = json_array_size(panels);
	json_t *at = count > 0 ? json_array_get(panels, count - 1) : chart->drawing;
	if (json_object_set_new(json_object_get(at, part), name, value))
		chart->failed = true;
}

void chart_param(struct chart *chart, const char *name, json_t *value)
{
	chart->failed = chart->failed ||
			(strcmp(name, "height") != 0 && !chart_known(chart, "signals", name));
	chart_put(chart, "signals", name, value);
}

void chart_data(struct chart *chart, const char *name, json_t *rows)
{
	chart->failed = chart->failed || !chart_known(chart, "data", name);
	chart_put(chart, "data", name, rows);
}

json_t *chart_panel(struct chart *chart)
{
	json_t *panel = json_pack("{s:{}, s:{}}", "signals", "data");
	if (json_array_append_new(json_object_get(chart->drawing, "panels"), panel))
		chart->failed = true;
	return panel;
}

static bool chart_has_mark(const json_t *group, const char *name)
{
	size_t i;
	json_t *mark;
	const size_t size = strlen(name);
	json_array_foreach(json_object_get(group, "marks"), i, mark)
	{
		const char *its = json_string_value(json_object_get(mark, "name"));
		if ((its && strncmp(its, name, size) == 0 && (!its[size] || its[size] == '_')) ||
			chart_has_mark(mark, name))
			return true;
	}
	return false;
}

void chart_drop(struct chart *chart, const char *name)
{
	if (!chart_has_mark(chart->file, name) ||
		json_array_append_new(json_object_get(chart->drawing, "drop"), json_string(name)))
		chart->failed = true;
}

void chart_choice(
	struct chart *chart, const char *param, json_t *label, json_t *texts, size_t start)
{
	if (json_array_append_new(json_object_get(chart->drawing, "choices"),
		    json_pack("{s:s, s:o, s:o, s:I}", "param", param, "label", label, "values",
			    texts, "start", (json_int_t)start)))
		chart->failed = true;
}

static bool chart_has_kind(
	const json_t *rows, const char *field, const char *needs, const char *name)
{
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		const char *its = json_string_value(json_object_get(row, field));
		if (its && strcmp(its, name) == 0 &&
			(!needs || json_is_number(json_object_get(row, needs))))
			return true;
	}
	return false;
}

/* A row of a kind that the list lacks would be drawn without a colour, and nobody would see it. */
static bool chart_lists_kind(const struct chart_ink *inks, size_t count, const json_t *kind)
{
	size_t i = 0;
	while (i < count && json_is_string(kind) &&
		strcmp(inks[i].name, json_string_value(kind)) != 0)
		i++;
	return !json_is_string(kind) || i < count;
}

void chart_legend(struct chart *chart, const char *field, const char *needs,
	const struct chart_ink *inks, size_t count)
{
	char name[NAME_BYTES];
	size_t i;
	const json_t *row;
	json_t *kinds = json_array();
	json_t *colours = json_array();
	json_t *shapes = json_array();
	json_array_foreach(chart->table.rows, i, row)
	{
		if (!chart_lists_kind(inks, count, json_object_get(row, field)))
			chart->failed = true;
	}
	for (i = 0; i < count; i++) {
		if (!chart_has_kind(chart->table.rows, field, needs, inks[i].name))
			continue;
		parts_append(&kinds, json_string(inks[i].name));
		parts_append(&colours, json_string(inks[i].colour));
		parts_append(&shapes, json_string(inks[i].shape ? inks[i].shape : "circle"));
	}
	(void)snprintf(name, sizeof name, "%ss", field);
	chart_param(chart, name, kinds);
	(void)snprintf(name, sizeof name, "%s_colours", field);
	chart_param(chart, name, colours);
	(void)snprintf(name, sizeof name, "%s_shapes", field);
	if (count > 0 && inks[0].shape)
		chart_param(chart, name, shapes);
	else
		json_decref(shapes);
}

int chart_done(struct chart *chart)
{
	json_decref(chart->file);
	chart->file = NULL;
	return chart->drawing && chart->table.rows && !chart->failed && !chart->text.failed &&
			       !chart->finding.failed
		       ? 0
		       : -ENOMEM;
}

int chart_why_not(struct chart *chart, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	(void)vsnprintf(chart->why_not, sizeof chart->why_not, format, list);
	va_end(list);
	return 0;
}

/* --- rows and columns ----------------------------------------------------------------------------- */

json_t *parts_number(double value)
{
	char text[NUMBER_BYTES];
	if (!isfinite(value))
		return json_null();
	(void)snprintf(text, sizeof text, "%.*g", PARTS_DIGITS, value);
	const double rounded = strtod(text, NULL);
	const bool whole = fabs(rounded) < 1e15 && rounded == floor(rounded);
	return whole ? json_integer((json_int_t)rounded) : json_real(rounded);
}

json_t *parts_text(const char *text)
{
	char cut[PARTS_TEXT_BYTES];
	const size_t size = strlen(text);
	if (size < sizeof cut)
		return fields_text(text);
	size_t keep = sizeof cut - 1;
	while (keep > 0 && ((unsigned char)text[keep] & 0xC0) == 0x80) /* not in a character */
		keep--;
	(void)snprintf(cut, sizeof cut, "%.*s", (int)keep, text);
	return fields_text(cut);
}

void parts_append(json_t **array, json_t *value)
{
	if (json_array_append_new(*array, value) == 0)
		return;
	json_decref(*array);
	*array = NULL;
}

/* --- tables ------------------------------------------------------------------------------------- */

void parts_column(
	struct parts_columns *columns, const char *field, const char *head, enum page_format format)
{
	if (columns->count == PARTS_COLUMNS_MAX)
		return;
	columns->list[columns->count].format = format;
	(void)snprintf(columns->list[columns->count].field, NAME_BYTES, "%s", field);
	(void)snprintf(columns->list[columns->count].head, PARTS_TEXT_BYTES, "%s", head);
	columns->count++;
}

int parts_columns_make(const struct parts_columns *columns, struct page_table *table)
{
	const size_t head_bytes = columns->count * sizeof(struct page_column);
	const size_t each = sizeof columns->list[0].field + sizeof columns->list[0].head;
	struct page_column *made = malloc(head_bytes + columns->count * each + 1);
	if (!made)
		return -ENOMEM;
	char *texts = (char *)made + head_bytes;
	for (size_t i = 0; i < columns->count; i++) {
		char *field = texts + i * each;
		char *head = field + sizeof columns->list[0].field;
		memcpy(field, columns->list[i].field, sizeof columns->list[0].field);
		memcpy(head, columns->list[i].head, sizeof columns->list[0].head);
		made[i] = (struct page_column){field, head, columns->list[i].format};
	}
	table->made_columns = made;
	table->columns = made;
	table->column_count = columns->count;
	return 0;
}

/* --- series --------------------------------------------------------------------------------------- */

static const char *const parts_colours[] = PALETTE_SERIES;
static const int parts_dashes[][DASH_LENGTHS] = {{1, 0, 1, 0}, {6, 3, 6, 3}, {2, 2, 2, 2},
	{8, 3, 2, 3}, {12, 4, 12, 4}, {4, 2, 1, 2}, {1, 4, 1, 4}, {10, 2, 10, 2}};

json_t *parts_colour(size_t series)
{
	return json_string(parts_colours[series % PARTS_COUNT(parts_colours)]);
}

json_t *parts_dash(size_t series)
{
	const int *dash = parts_dashes[series % PARTS_COUNT(parts_dashes)];
	return json_pack("[iiii]", dash[0], dash[1], dash[2], dash[3]);
}

/* --- points of a sweep ----------------------------------------------------------------------------- */

const char *parts_point_label(const struct report *report, size_t point, char *out, size_t room)
{
	char value[CONFIG_VALUE_BYTES];
	size_t used = (size_t)snprintf(out, room, "#%zu", point);
	for (size_t axis = 0; axis < report->record->config.axis_count && used < room; axis++)
		used += (size_t)snprintf(out + used, room - used, "%s%s", axis ? " / " : "  ",
			report_setting(report, point, axis, value, sizeof value));
	return out;
}

json_t *parts_settings(const struct report *report, size_t point)
{
	struct buffer text = {0};
	report_settings(report, point, &text);
	json_t *json = text.failed ? NULL : parts_text(text.data ? text.data : "");
	buffer_release(&text);
	return json;
}

struct parts_ranked {
	double throughput;
	size_t point;
};

static int parts_fastest_first(const void *a, const void *b)
{
	const struct parts_ranked *left = a;
	const struct parts_ranked *right = b;
	if (left->throughput != right->throughput)
		return left->throughput > right->throughput ? -1 : 1;
	return left->point < right->point ? -1 : left->point > right->point;
}

static size_t parts_rank(const struct report *report, struct parts_ranked *ranked)
{
	size_t count = 0;
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const struct point_summary *p = report->points[i];
		if (p && p->status != POINT_FAILED && isfinite(p->median))
			ranked[count++] = (struct parts_ranked){p->median, i};
	}
	qsort(ranked, count, sizeof *ranked, parts_fastest_first);
	return count;
}

size_t *parts_points(const struct report *report, size_t *count, size_t *all)
{
	struct parts_ranked *ranked = calloc(report->record->grid.points + 1, sizeof *ranked);
	size_t *points = calloc(PARTS_POINTS_MOST, sizeof *points);
	if (!ranked || !points) {
		free(ranked);
		free(points);
		return NULL;
	}
	*all = parts_rank(report, ranked);
	*count = *all < PARTS_POINTS_MOST ? *all : PARTS_POINTS_MOST;
	/* With more: the first, the last, and evenly between. */
	for (size_t i = 0; i < *count; i++)
		points[i] = ranked[*all > *count ? i * (*all - 1) / (*count - 1) : i].point;
	free(ranked);
	return points;
}

const struct point_summary *parts_point(const struct chart_input *input)
{
	return input->point < input->report->record->grid.points
		       ? input->report->points[input->point]
		       : NULL;
}

const struct diagnosis *parts_diagnosis(const struct chart_input *input)
{
	return input->report->diagnoses && input->point < input->report->record->grid.points
		       ? input->report->diagnoses[input->point]
		       : NULL;
}

const char *parts_stage(const char *stage)
{
	return stage_is(stage, STAGE_STEP) ? "the training step" : stage;
}

void parts_listed(struct buffer *out, size_t at, size_t count, const char *text)
{
	const char *before = at == 0 ? "" : at + 1 == count ? " and " : ", ";
	buffer_format(out, "%s%s", before, text);
}
