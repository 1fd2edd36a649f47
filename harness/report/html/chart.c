/* What the charts share: filling their files, numbers and texts of rows. */
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

/* --- words ------------------------------------------------------------------------------------------ */

const char *parts_stage(const char *stage)
{
	return stage_is(stage, STAGE_STEP) ? "the training step" : stage;
}

void parts_listed(struct buffer *out, size_t at, size_t count, const char *text)
{
	const char *before = at == 0 ? "" : at + 1 == count ? " and " : ", ";
	buffer_format(out, "%s%s", before, text);
}
