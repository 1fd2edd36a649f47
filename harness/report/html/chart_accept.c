/* The charts of an acceptance result: how far each figure is from its limit, and the series of a check over its time. */
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/report/accept_document.h"
#include "harness/report/columns.h"
#include "harness/report/html/accept_page.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LIMITS_ROWS_MAX = 40,
	LIMITS_ROW_PIXELS = 32,
	TIME_PANELS_MAX = 12,
	TIME_LINES_MAX = 64,     /* of a panel */
	TIME_LEGEND_MAX = 8,     /* above it the lines have no legend */
	TIME_POINTS_MAX = 12000, /* of a chart */
	TIME_LINE_POINTS_MAX = 400,
	TIME_EVENTS_MAX = 40,
};

static const double LIMITS_SHOWN = 1; /* of the limit, to either side */

/* --- how far from the limit ------------------------------------------------------------------- */

struct limits_ranked {
	const json_t *row;
	enum accept_verdict verdict;
	double margin;
};

static int limits_worst_first(const void *a, const void *b)
{
	const struct limits_ranked *left = a;
	const struct limits_ranked *right = b;
	if (left->verdict != right->verdict)
		return left->verdict > right->verdict ? -1 : 1;
	return left->margin < right->margin ? -1 : left->margin > right->margin;
}

/* Where a value in the finding's unit lies, as accept_margin has it, cut off where the axis ends; null of none. */
static json_t *limits_place_of(const json_t *finding, const char *member)
{
	const double margin = accept_margin_at(finding, column_number(finding, member));
	return isfinite(margin) ? parts_number(fmax(-LIMITS_SHOWN, fmin(LIMITS_SHOWN, margin)))
				: json_null();
}

/* What a bar that is cut off says at its end: "+300 % ▶"; null where it is not. */
static json_t *limits_beyond(double margin)
{
	char text[UNITS_BYTES];
	if (!(fabs(margin) > LIMITS_SHOWN))
		return json_null();
	(void)snprintf(
		text, sizeof text, margin > 0 ? "+%.0f %% ▶" : "◀ −%.0f %%", 100 * fabs(margin));
	return json_string(text);
}

static json_t *limits_row(const json_t *figure, const json_t *labels)
{
	const json_t *finding = json_object_get(figure, "finding");
	const char *place = column_text(figure, "place");
	char measured[ACCEPT_VALUE_BYTES];
	struct buffer subject = {0};
	struct buffer label = {0};
	struct part row = part_open();
	/* Two lines: what it is, which no other row has, and what was measured. */
	accept_add_subject(&subject, finding);
	utf8_add_plain(&label, subject.data ? subject.data : "", "?");
	buffer_release(&subject);
	if (label.data && json_object_get(labels, label.data)) {
		buffer_text(&label, " (");
		utf8_add_plain(&label, column_text(figure, "check"), "?");
		buffer_text(&label, ")");
	}
	part_put(&row, "name", label.failed ? NULL : parts_text(label.data ? label.data : ""));
	buffer_text(&label, "\n");
	utf8_add_plain(&label, accept_value(finding, "measured", measured), "?");
	part_put(&row, "label", label.failed ? NULL : parts_text(label.data));
	buffer_release(&label);
	part_put(&row, "check", parts_text(column_text(figure, "check")));
	part_put(&row, "figure", parts_text(column_text(figure, "figure")));
	part_put(&row, "place", parts_text(place));
	part_put(&row, "verdict", json_string(column_text(figure, "verdict")));
	part_put(&row, "measured", parts_text(accept_value(finding, "measured", measured)));
	part_put(&row, "asked", parts_text(column_text(finding, "asked")));
	part_put(&row, "margin", parts_number(accept_margin(finding)));
	part_put(&row, "beyond", limits_beyond(accept_margin(finding)));
	part_put(&row, "shown", limits_place_of(finding, "measured"));
	part_put(&row, "low", limits_place_of(finding, "low"));
	part_put(&row, "high", limits_place_of(finding, "high"));
	return part_close(&row);
}

/* Those that have a distance, in the order of what to look at. */
static size_t limits_rank(const json_t *figures, struct limits_ranked *ranked)
{
	size_t count = 0;
	size_t i;
	const json_t *row;
	json_array_foreach(figures, i, row)
	{
		const double margin = accept_margin(json_object_get(row, "finding"));
		if (isfinite(margin))
			ranked[count++] =
				(struct limits_ranked){row, accept_verdict_in(row), margin};
	}
	qsort(ranked, count, sizeof *ranked, limits_worst_first);
	return count;
}

static int limits_fill(const struct limits_ranked *ranked, size_t count, struct chart *chart)
{
	json_t *labels = json_object();
	size_t outside = 0;
	int bad = !labels;
	chart->table.rows = json_array();
	for (size_t i = 0; i < count; i++) {
		outside += ranked[i].margin < 0;
		if (i >= LIMITS_ROWS_MAX)
			continue;
		json_t *row = limits_row(ranked[i].row, labels);
		bad |= json_object_set_new(labels, column_text(row, "name"), json_true());
		parts_append(&chart->table.rows, row);
	}
	json_decref(labels);
	buffer_format(&chart->finding, "%zu of %zu figures %s outside %s", outside, count,
		outside == 1 ? "is" : "are", outside == 1 ? "its limit" : "their limits");
	if (outside == 0) {
		buffer_release(&chart->finding);
		buffer_format(&chart->finding, "%s figure%s with a limit %s inside it",
			count == 1 ? "The" : "All", count == 1 ? "" : "s",
			count == 1 ? "is" : "are");
	}
	if (count > LIMITS_ROWS_MAX)
		buffer_format(&chart->text, "The first %d of %zu; the table of findings has all.",
			LIMITS_ROWS_MAX, count);
	return bad ? -ENOMEM : 0;
}

static const struct chart_ink limits_inks[] = {{"FAIL", PALETTE_BINDS, NULL},
	{"ERROR", PALETTE_OTHER, NULL}, {"WARN", PALETTE_STARVED, NULL},
	{"PASS", PALETTE_GOOD, NULL}};

int accept_chart_limits(const json_t *figures, struct chart *chart)
{
	static const struct page_column columns[] = {
		{"verdict", "verdict", PAGE_TEXT},
		{"check", "check", PAGE_TEXT},
		{"figure", "figure", PAGE_TEXT},
		{"place", "place", PAGE_TEXT},
		{"measured", "measured", PAGE_TEXT},
		{"asked", "asked", PAGE_TEXT},
		{"margin", "distance to the limit", PAGE_SHARE},
	};
	struct limits_ranked *ranked = calloc(json_array_size(figures) + 1, sizeof *ranked);
	if (!ranked)
		return -ENOMEM;
	const size_t count = limits_rank(figures, ranked);
	(void)snprintf(chart->id, sizeof chart->id, "limits");
	(void)snprintf(chart->title, sizeof chart->title, "Distance to the limits");
	PARTS_COLUMNS(chart, columns);
	int code = 0;
	if (count == 0) {
		code = chart_why_not(chart, "No figure of this plan is a number with a limit.");
	} else {
		code = limits_fill(ranked, count, chart);
		const size_t rows = json_array_size(chart->table.rows);
		chart_open(chart, "accept_limits");
		chart_param(chart, "height", json_integer(LIMITS_ROW_PIXELS * (json_int_t)rows));
		chart_legend(chart, "verdict", NULL, limits_inks, PARTS_COUNT(limits_inks));
		code = code ? code : chart_done(chart);
	}
	free(ranked);
	return code;
}

/* --- over time -------------------------------------------------------------------------------- */

struct time_lines {
	const json_t *panels[TIME_PANELS_MAX];              /* the first series of each name */
	size_t places[TIME_PANELS_MAX];                     /* lines of each */
	double low[TIME_PANELS_MAX], high[TIME_PANELS_MAX]; /* values of each */
	size_t panel_count, line_count;
	double begin_s, end_s;
};

/* Of the larger value, that an axis spans at least: noise does not look like a fall. */
static const double TIME_SPAN_LEAST = 0.2;

static size_t time_panel(struct time_lines *lines, const json_t *series)
{
	size_t at = 0;
	while (at < lines->panel_count && strcmp(column_text(lines->panels[at], "series"),
						  column_text(series, "series")) != 0)
		at++;
	if (at == lines->panel_count && at < TIME_PANELS_MAX) {
		lines->panels[lines->panel_count++] = series;
		lines->low[at] = (double)INFINITY;
		lines->high[at] = -(double)INFINITY;
	}
	return at;
}

static double time_of(const json_t *points, size_t i)
{
	return json_number_value(json_array_get(json_array_get(points, i), 0));
}

/* NAN: it was not known then. */
static double time_value_of(const json_t *points, size_t i)
{
	const json_t *value = json_array_get(json_array_get(points, i), 1);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void time_add_point(struct chart *chart, const json_t *series, size_t panel, size_t i)
{
	const json_t *points = json_object_get(series, "points");
	const enum figure_unit unit = accept_unit(series);
	char value[FIGURE_VALUE_BYTES];
	struct part row = part_open();
	part_put(&row, "panel", json_integer((json_int_t)panel));
	part_put(&row, "series", parts_text(column_text(series, "series")));
	part_put(&row, "place", parts_text(column_text(series, "place")));
	const double is = time_value_of(points, i);
	part_put(&row, "t", parts_number(time_of(points, i)));
	part_put(&row, "value", parts_number(is));
	part_put(&row, "text",
		isfinite(is) ? json_string(figure_value_text(unit, is, value)) : json_null());
	parts_append(&chart->table.rows, part_close(&row));
}

/* At most `most` points: of each part of the time its lowest and its highest, so that no dip is lost. */
static void time_add_line(struct chart *chart, const json_t *series, size_t panel, size_t most)
{
	const json_t *points = json_object_get(series, "points");
	const size_t count = json_array_size(points);
	const size_t parts = count <= most ? count : most / 2;
	for (size_t part = 0; part < parts; part++) {
		const size_t from = part * count / parts;
		const size_t to = (part + 1) * count / parts;
		size_t low = from;
		size_t high = from;
		for (size_t i = from; i < to; i++) {
			const double is = time_value_of(points, i);
			low = is < time_value_of(points, low) || isnan(time_value_of(points, low))
				      ? i
				      : low;
			high = is > time_value_of(points, high) ||
					       isnan(time_value_of(points, high))
				       ? i
				       : high;
		}
		time_add_point(chart, series, panel, low < high ? low : high);
		if (low != high)
			time_add_point(chart, series, panel, low < high ? high : low);
	}
}

/* What is shown: the panels, and how many lines there are in them. */
static void time_survey(const json_t *measured, struct time_lines *lines)
{
	size_t i;
	const json_t *series;
	lines->end_s = 0;
	lines->begin_s = (double)INFINITY;
	json_array_foreach(json_object_get(measured, "series"), i, series)
	{
		const json_t *points = json_object_get(series, "points");
		const size_t count = json_array_size(points);
		const size_t panel = time_panel(lines, series);
		if (panel >= TIME_PANELS_MAX || lines->places[panel] >= TIME_LINES_MAX)
			continue;
		lines->places[panel]++;
		lines->line_count++;
		for (size_t at = 0; at < count; at++) {
			lines->begin_s = fmin(lines->begin_s, time_of(points, at));
			lines->end_s = fmax(lines->end_s, time_of(points, at));
			lines->low[panel] = fmin(lines->low[panel], time_value_of(points, at));
			lines->high[panel] = fmax(lines->high[panel], time_value_of(points, at));
		}
	}
}

static void time_add_lines(const json_t *measured, struct time_lines *lines, struct chart *chart)
{
	size_t added[TIME_PANELS_MAX] = {0};
	size_t most = TIME_POINTS_MAX / (lines->line_count > 0 ? lines->line_count : 1);
	size_t i;
	const json_t *series;
	most = most > TIME_LINE_POINTS_MAX ? TIME_LINE_POINTS_MAX : most < 2 ? 2 : most;
	json_array_foreach(json_object_get(measured, "series"), i, series)
	{
		const size_t panel = time_panel(lines, series);
		if (panel < TIME_PANELS_MAX && added[panel]++ < TIME_LINES_MAX)
			time_add_line(chart, series, panel, most);
	}
}

/* The ends of a panel's axis, or zero and what its values need. */
static void time_set_scale(double low, double high, struct chart *chart)
{
	const double least = TIME_SPAN_LEAST * fmax(fabs(low), fabs(high));
	const double missing = fmax(0, least - (high - low)) / 2;
	const bool zero = !isfinite(low) || !(least > 0);
	const double from = low < 0 ? low - missing : fmax(0, low - missing);
	chart_param(chart, "zero", json_boolean(zero));
	chart_param(chart, "low", zero ? json_null() : json_real(from));
	chart_param(chart, "high", zero ? json_null() : json_real(high + missing));
}

static void time_draw_panel(const struct time_lines *lines, size_t at, struct chart *chart)
{
	static const char *const formats[] = {[FIGURE_SHARE] = ".0%"};
	const json_t *series = lines->panels[at];
	const enum figure_unit unit = accept_unit(series);
	const char *format = unit < PARTS_COUNT(formats) && formats[unit] ? formats[unit] : "~s";
	json_t *panel = chart_panel(chart);
	chart_param(chart, "panel", json_integer((json_int_t)at));
	chart_param(chart, "panel_title", parts_text(column_text(series, "series")));
	chart_param(chart, "y_title", json_string(figure_unit_name(unit)));
	chart_param(chart, "y_format", json_string(format));
	time_set_scale(lines->low[at], lines->high[at], chart);
	if (at + 1 < lines->panel_count)
		(void)json_object_set_new(panel, "axis", json_false());
	if (lines->places[at] == 1 || lines->places[at] > TIME_LEGEND_MAX)
		(void)json_object_set_new(panel, "legend", json_false());
}

/* Rules in every panel. */
static void time_add_events(const json_t *measured, struct chart *chart)
{
	json_t *events = json_array();
	size_t i;
	const json_t *event;
	const json_t *all = json_object_get(measured, "events");
	json_array_foreach(all, i, event)
	{
		if (i >= TIME_EVENTS_MAX)
			break;
		json_t *row =
			json_pack("{s:o, s:o}", "t", parts_number(column_number(event, "at_s")),
				"text", parts_text(column_text(event, "text")));
		parts_append(&events, row);
	}
	if (json_array_size(all) > TIME_EVENTS_MAX)
		buffer_format(&chart->text, "The first %d of %zu events are drawn. ",
			TIME_EVENTS_MAX, json_array_size(all));
	chart_data(chart, "events", events);
}

static void time_draw(const json_t *measured, const struct time_lines *lines, struct chart *chart)
{
	chart_open(chart, "accept_time");
	chart_param(chart, "begin", json_real(lines->begin_s));
	chart_param(chart, "end", json_real(lines->end_s));
	time_add_events(measured, chart);
	for (size_t i = 0; i < lines->panel_count; i++)
		time_draw_panel(lines, i, chart);
}

int accept_chart_time(const json_t *measured, struct chart *chart)
{
	static const struct page_column columns[] = {
		{"series", "series", PAGE_TEXT},
		{"place", "place", PAGE_TEXT},
		{"t", "at, s", PAGE_REAL},
		{"text", "value", PAGE_TEXT},
	};
	struct time_lines lines = {0};
	struct buffer title = {0};
	const size_t events = json_array_size(json_object_get(measured, "events"));
	time_survey(measured, &lines);
	buffer_format(&title, "%s over its time", column_text(measured, "check"));
	(void)snprintf(chart->title, sizeof chart->title, "%s", title.data ? title.data : "");
	buffer_release(&title);
	buffer_format(&chart->finding, "%s: ", column_text(measured, "check"));
	if (events > 0)
		buffer_format(&chart->finding, "%zu event%s, the first after %.0f s: ", events,
			events == 1 ? "" : "s",
			column_number(
				json_array_get(json_object_get(measured, "events"), 0), "at_s"));
	buffer_text(&chart->finding,
		events > 0 ? column_text(
				     json_array_get(json_object_get(measured, "events"), 0), "text")
			   : "no event");
	PARTS_COLUMNS(chart, columns);
	chart->table.rows = json_array();
	if (!(lines.end_s > lines.begin_s))
		return chart_why_not(chart, "No series of this check has two moments.");
	time_add_lines(measured, &lines, chart);
	time_draw(measured, &lines, chart);
	return chart_done(chart);
}
