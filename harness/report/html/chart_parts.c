/* Small JSON pieces that the charts share. */
#include "harness/report/html/chart_parts.h"

#include "harness/analyze/diagnose.h"
#include "harness/record/fields.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DASH_LENGTHS = 4, NUMBER_BYTES = 40 };

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

/* --- encodings ------------------------------------------------------------------------------------ */

json_t *parts_channel(const char *field, const char *type, const char *title)
{
	return title ? json_pack("{s:s, s:s, s:o}", "field", field, "type", type, "title",
			       parts_text(title))
		     : json_pack("{s:s, s:s}", "field", field, "type", type);
}

json_t *parts_channel_with(const char *field, const char *type, const char *title, json_t *more)
{
	json_t *channel = parts_channel(field, type, title);
	const int bad = json_object_update(channel, more);
	json_decref(more);
	if (!bad)
		return channel;
	json_decref(channel);
	return NULL;
}

json_t *parts_tips(const struct parts_tip *tips, size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++) {
		const char *type = tips[i].format ? "quantitative" : "nominal";
		json_t *tip = parts_channel(tips[i].field, type, tips[i].title);
		if (tip && tips[i].format &&
			json_object_set_new(tip, "format", json_string(tips[i].format)) != 0) {
			json_decref(tip);
			tip = NULL;
		}
		parts_append(&array, tip);
	}
	return array;
}

static const char *const colours[] = PALETTE_SERIES;
static const char *const shapes[] = {"circle", "square", "triangle-up", "diamond", "cross",
	"triangle-down", "triangle-right", "triangle-left"};
static const int dashes[][DASH_LENGTHS] = {{1, 0, 1, 0}, {6, 3, 6, 3}, {2, 2, 2, 2}, {8, 3, 2, 3},
	{12, 4, 12, 4}, {4, 2, 1, 2}, {1, 4, 1, 4}, {10, 2, 10, 2}};

const char *parts_colour(size_t series)
{
	return colours[series % PARTS_COUNT(colours)];
}

const char *parts_shape(size_t series)
{
	return shapes[series % PARTS_COUNT(shapes)];
}

json_t *parts_dash(size_t series)
{
	const int *dash = dashes[series % PARTS_COUNT(dashes)];
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

struct ranked {
	double throughput;
	size_t point;
};

static int fastest_first(const void *a, const void *b)
{
	const struct ranked *left = a;
	const struct ranked *right = b;
	if (left->throughput != right->throughput)
		return left->throughput > right->throughput ? -1 : 1;
	return left->point < right->point ? -1 : left->point > right->point;
}

static size_t rank(const struct report *report, struct ranked *ranked)
{
	size_t count = 0;
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const struct point_summary *p = report->points[i];
		if (p && p->status != POINT_FAILED && isfinite(p->median))
			ranked[count++] = (struct ranked){p->median, i};
	}
	qsort(ranked, count, sizeof *ranked, fastest_first);
	return count;
}

size_t *parts_points(const struct report *report, size_t *count, size_t *all)
{
	struct ranked *ranked = calloc(report->record->grid.points + 1, sizeof *ranked);
	size_t *points = calloc(PARTS_POINTS_MOST, sizeof *points);
	if (!ranked || !points) {
		free(ranked);
		free(points);
		return NULL;
	}
	*all = rank(report, ranked);
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

void parts_listed(struct buffer *out, size_t at, size_t count, const char *text)
{
	const char *before = at == 0 ? "" : at + 1 == count ? " and " : ", ";
	buffer_format(out, "%s%s", before, text);
}

int parts_why_not(struct chart *chart, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	(void)vsnprintf(chart->why_not, sizeof chart->why_not, format, list);
	va_end(list);
	return 0;
}

int parts_done(const struct chart *chart)
{
	return chart->spec && chart->table.rows && !chart->text.failed ? 0 : -ENOMEM;
}
