/* The history: a line per result and plots on a terminal, one JSON document, comma-separated values. */
#include "harness/report/history_report.h"

#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/columns.h"
#include "harness/report/layout.h"
#include "harness/report/part.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the list --------------------------------------------------------------------------------- */

enum {
	NAME_COLUMNS = 28,
	NODE_COLUMNS = 20,
	SETTINGS_COLUMNS = 44,
	HASH_DIGITS = 8,
	MINUTE_BYTES = 16,
	SERIES_SHOWN_MAX = 12,
	VERDICT_COLUMNS = 464,
};

static bool row_is(const json_t *row, const char *member, const char *text)
{
	return strcmp(column_text(row, member), text) == 0;
}

void history_verdict_words(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *problem = column_text(row, "problem");
	const char *stage = column_text(row, "verdict.stage");
	const char *also = column_text(row, "verdict.also");
	(void)column;
	if (*problem)
		buffer_format(out, "unreadable: %s", problem);
	if (*problem || !json_is_string(column_value(row, "settings")))
		return;
	buffer_text(out, json_is_true(column_value(row, "contaminated")) ? "other load; " : "");
	buffer_text(out, row_is(row, "point_status", "unsteady") ? "unsteady; " : "");
	if (row_is(row, "point_status", "failed"))
		buffer_text(out, "failed");
	else if (!*stage || strcmp(stage, "none") == 0)
		buffer_text(out, "inconclusive");
	else
		buffer_format(out, "%s%s%s / %s", stage, *also ? " + " : "", also,
			column_text(row, "verdict.resource"));
}

static const char *history_host_of(const json_t *row)
{
	const char *host = column_text(row, "host");
	return *host ? host : column_text(row, "cpu");
}

void history_node_words(const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	buffer_text(out, history_host_of(row));
}

/* At most so many characters, none that controls. */
static void history_cut(const char *text, int most, struct buffer *out)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, text, "?");
	const char *at = plain.data ? plain.data : "";
	if (style_columns(at) <= most) {
		buffer_text(out, at);
	} else {
		for (int kept = 0; kept < most - 2 && *at; kept++) {
			const size_t size = utf8_character(at);
			buffer_add(out, at, size);
			at += size;
		}
		buffer_text(out, "..");
	}
	buffer_release(&plain);
}

static void history_path_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	history_cut(column_text(row, column->path), column->decimals, out);
}

void history_name_words(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *name = column_text(row, "name");
	const double variants = column_number(row, "variants");
	char more[16] = "";
	if (variants > 0)
		(void)snprintf(more, sizeof more, " +%.0f", variants);
	const int room =
		column && column->decimals ? column->decimals - (int)strlen(more) : INT_MAX;
	history_cut(*name ? name : column_text(row, "folder"), room, out);
	buffer_text(out, more);
}

/* Those that others stand for are left out. */
json_t *history_listed(const json_t *document)
{
	json_t *listed = json_array();
	size_t i;
	json_t *row;
	int bad = 0;
	json_array_foreach(json_object_get(document, "results"), i, row)
	{
		if (!json_is_string(json_object_get(row, "variant_of")))
			bad |= json_array_append(listed, row);
	}
	return part_list(listed, bad);
}

static void history_node_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	struct buffer words = {0};
	history_node_words(column, row, &words);
	history_cut(words.data ? words.data : "", NODE_COLUMNS, out);
	buffer_release(&words);
}

static void history_verdict_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	struct buffer words = {0};
	history_verdict_words(column, row, &words);
	history_cut(words.data ? words.data : "", VERDICT_COLUMNS, out);
	buffer_release(&words);
}

static void history_time_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *when = column_text(row, column->path);
	if (strlen(when) > MINUTE_BYTES)
		buffer_format(out, "%.10s %.5s", when, when + 11);
}

static void history_rate_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double rate = column_number(row, "throughput");
	char number[HISTORY_NUMBER_BYTES];
	(void)column;
	if (rate > 0)
		buffer_format(out, "%s%s", history_unit_format(HISTORY_RATE, rate, number),
			json_is_true(column_value(row, "emulated")) ? " e" : "");
}

static void history_interval_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double rate = column_number(row, "throughput");
	const double wide =
		fmax(column_number(row, "ci95_high") - rate, rate - column_number(row, "ci95_low"));
	(void)column;
	if (rate > 0 && isfinite(wide))
		buffer_format(out, "%.1f%%", 100 * wide / rate);
}

/* column->context: the metric. */
static void history_metric_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const struct history_metric *metric = column->context;
	char number[HISTORY_NUMBER_BYTES];
	buffer_text(
		out, history_unit_format(metric->unit, column_number(row, metric->name), number));
}

static enum ink ink_of_status(const struct table_column *column, const json_t *row)
{
	(void)column;
	if (row_is(row, "status", "complete"))
		return INK_PLAIN;
	return row_is(row, "status", "failed") || row_is(row, "status", "unreadable") ? INK_BAD
										      : INK_WARN;
}

static enum ink ink_of_verdict(const struct table_column *column, const json_t *row)
{
	(void)column;
	return json_is_string(column_value(row, "problem")) ? INK_BAD : INK_PLAIN;
}

/* The metric of the plot; false: none was asked for. */
static bool plotted_metric(const json_t *document, struct history_metric *metric)
{
	struct error unused = {0};
	const char *name = column_text(document, "plot.metric");
	return *name && history_metric_find(name, metric, &unused) == 0;
}

/* It has columns anyway. */
static bool is_throughput(const struct history_metric *metric)
{
	return strcmp(metric->name, "throughput") == 0;
}

/* What the columns depend on. */
struct listed {
	bool emulated, swept, many_nodes, variants;
};

static struct listed listed_of(const json_t *results)
{
	struct listed listed = {0};
	const json_t *first = json_array_get(results, 0);
	size_t i;
	const json_t *row;
	json_array_foreach(results, i, row)
	{
		listed.emulated |= json_is_true(column_value(row, "emulated"));
		listed.swept |= *column_text(row, "settings") != '\0';
		listed.variants |= column_number(row, "variants") > 0;
		listed.many_nodes |= strcmp(history_host_of(first), history_host_of(row)) != 0;
	}
	return listed;
}

/* Less than the rest; most: characters of a text. */
#define DIM_COLUMN(title, member, cell, most, kept)                                              \
	{                                                                                        \
		.head = (title), .left = true, .keep = (kept), .ink = INK_DIM, .path = (member), \
		.text_of = (cell), .decimals = (most)                                            \
	}
#define METRIC_CELL(what) .ink = INK_BOLD, .text_of = history_metric_cell, .context = (what)
#define VERDICT_CELL .left = true, .text_of = history_verdict_cell, .ink_of = ink_of_verdict
#define STATUS_CELL .left = true, .path = "status", .ink_of = ink_of_status

/* metric: a column more; NULL: none. */
static void history_render_list(const json_t *results, const struct history_metric *metric,
	const struct style *style, struct buffer *out)
{
	const struct listed listed = listed_of(results);
	const char *wide = style->utf8 ? "±95 %" : "+-95 %";
	const char *swept = listed.swept ? "at" : NULL; /* without a head: in no table */
	const struct table_column columns[] = {
		DIM_COLUMN("started (UTC)", "started", history_time_cell, 0, 1),
		{.head = "name",
			.left = true,
			.text_of = history_name_words,
			.decimals = NAME_COLUMNS},
		DIM_COLUMN("config", "config_hash", history_path_cell, HASH_DIGITS + 2, 5),
		DIM_COLUMN("node", NULL, history_node_cell, 0, listed.many_nodes ? 1 : 6),
		DIM_COLUMN("version", "version", history_path_cell, HASH_DIGITS, 7),
		{.head = "samples/s", .ink = INK_BOLD, .text_of = history_rate_cell},
		{.head = wide, .keep = 3, .ink = INK_DIM, .text_of = history_interval_cell},
		{.head = metric ? metric->name : NULL, METRIC_CELL(metric)},
		DIM_COLUMN(swept, "settings", history_path_cell, SETTINGS_COLUMNS, 4),
		{.head = "status", .keep = 2, STATUS_CELL},
		{.head = "bottleneck", .wraps = true, VERDICT_CELL},
	};
	const size_t count = sizeof columns / sizeof *columns;
	struct table table;
	columns_table(columns, count, results, &table);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	if (listed.emulated)
		layout_labelled(style, INK_DIM, "e", "the step was emulated", out);
	if (listed.variants)
		layout_labelled(style, INK_DIM, "+",
			"so many more were measured in turns with it: 'mlbench history FOLDER' lists them",
			out);
}

/* --- a series as a small plot of characters ----------------------------------------------------- */

/* Values in the order of time, a column each (or several in one where there are more than columns): a mark for the value, a bar
 * for its interval, a line for the level, a broken line where the level changes. */
enum { ROWS = 9, AXIS_COLUMNS = 12, STEP_MAX = 4, COLUMNS_MAX = STYLE_WIDTH_MOST, DAY_BYTES = 10 };

enum cell { CELL_EMPTY, CELL_CHANGE, CELL_LEVEL, CELL_BAR, CELL_VALUE };

struct canvas {
	unsigned char cells[ROWS][COLUMNS_MAX];
	int columns;
	double low, high;
};

static void history_plot_put(struct canvas *canvas, int row, int column, enum cell cell)
{
	if (row >= 0 && row < ROWS && column >= 0 && column < canvas->columns &&
		cell > canvas->cells[row][column])
		canvas->cells[row][column] = (unsigned char)cell;
}

static int canvas_row_of(const struct canvas *canvas, double value)
{
	const double share = (value - canvas->low) / (canvas->high - canvas->low);
	return (int)lround((1 - share) * (ROWS - 1));
}

static void find_range(const json_t *values, struct canvas *canvas)
{
	size_t i;
	const json_t *value;
	canvas->low = INFINITY;
	canvas->high = -INFINITY;
	json_array_foreach(values, i, value)
	{ /* fmin and fmax: without what is not known */
		const double here = column_number(value, "value");
		canvas->low = fmin(canvas->low, fmin(here, column_number(value, "low")));
		canvas->high = fmax(canvas->high, fmax(here, column_number(value, "high")));
	}
	const double least = fmax(fabs(canvas->high) * 0.02, 1e-9);
	if (canvas->high - canvas->low < least) {
		canvas->low -= least;
		canvas->high += least;
	}
}

/* Columns between two values, so that few values are no heap at the left. */
static int column_of(const struct canvas *canvas, size_t count, size_t i)
{
	const size_t room = (size_t)canvas->columns;
	if (count * STEP_MAX <= room)
		return (int)(i * STEP_MAX + STEP_MAX / 2);
	return (int)(i * (room - 1) / (count > 1 ? count - 1 : 1));
}

static void history_plot_draw_value(
	struct canvas *canvas, const json_t *value, int column, int next)
{
	const double low = column_number(value, "low");
	const double high = column_number(value, "high");
	const int level = canvas_row_of(canvas, column_number(value, "level"));
	for (int c = column; c < next; c++)
		history_plot_put(canvas, level, c, CELL_LEVEL);
	if (isfinite(low) && isfinite(high))
		for (int r = canvas_row_of(canvas, high); r <= canvas_row_of(canvas, low); r++)
			history_plot_put(canvas, r, column, CELL_BAR);
	history_plot_put(
		canvas, canvas_row_of(canvas, column_number(value, "value")), column, CELL_VALUE);
}

static void history_plot_draw_change(struct canvas *canvas, int before, int after)
{
	const int column = after - before > 1 ? (before + after + 1) / 2 : after;
	for (int r = 0; r < ROWS; r++) {
		if (canvas->cells[r][column] == CELL_LEVEL)
			canvas->cells[r][column] = CELL_EMPTY;
		history_plot_put(canvas, r, column, CELL_CHANGE);
	}
}

static void history_plot_draw(struct canvas *canvas, const json_t *values)
{
	const size_t count = json_array_size(values);
	size_t i;
	const json_t *value;
	json_array_foreach(values, i, value)
	{
		const int column = column_of(canvas, count, i);
		const int next = i + 1 < count ? column_of(canvas, count, i + 1) : column + 1;
		history_plot_draw_value(canvas, value, column, next);
	}
	json_array_foreach(
		values, i, value) if (i > 0 && json_is_string(column_value(value, "change")))
		history_plot_draw_change(
			canvas, column_of(canvas, count, i - 1), column_of(canvas, count, i));
}

static void history_plot_add_cell(const struct style *style, enum cell cell, struct buffer *out)
{
	static const struct {
		const char *utf8, *ascii;
		enum ink ink;
	} looks[] = {
		[CELL_EMPTY] = {" ", " ", INK_PLAIN},
		[CELL_CHANGE] = {"┊", ":", INK_BAD},
		[CELL_LEVEL] = {"─", "-", INK_DIM},
		[CELL_BAR] = {"│", "|", INK_DIM},
		[CELL_VALUE] = {"●", "o", INK_ACCENT},
	};
	const char *glyph = style_glyph(style, looks[cell].utf8, looks[cell].ascii);
	if (looks[cell].ink == INK_PLAIN)
		buffer_text(out, glyph);
	else
		buffer_format(
			out, "%s%s%s", style_ink(style, looks[cell].ink), glyph, style_end(style));
}

static void render_row(const struct canvas *canvas, const struct history_metric *metric, int row,
	const struct style *style, struct buffer *out)
{
	char label[HISTORY_NUMBER_BYTES] = "";
	if (row == 0)
		(void)history_unit_format(metric->unit, canvas->high, label);
	else if (row == ROWS / 2)
		(void)history_unit_format(metric->unit, (canvas->low + canvas->high) / 2, label);
	else if (row == ROWS - 1)
		(void)history_unit_format(metric->unit, canvas->low, label);
	buffer_repeat(out, " ", LAYOUT_INDENT);
	style_field(style, INK_DIM, label, -AXIS_COLUMNS, out);
	buffer_format(out, " %s%s%s", style_ink(style, INK_DIM),
		style_glyph(style, *label ? "┤" : "│", *label ? "+" : "|"), style_end(style));
	int last = canvas->columns;
	while (last > 0 && canvas->cells[row][last - 1] == CELL_EMPTY)
		last--;
	for (int c = 0; c < last; c++)
		history_plot_add_cell(style, (enum cell)canvas->cells[row][c], out);
	buffer_text(out, "\n");
}

/* The day of the first result and of the last one, below the axis. */
static void render_days(const struct canvas *canvas, const json_t *values,
	const struct style *style, struct buffer *out)
{
	const size_t count = json_array_size(values);
	const char *first = column_text(json_array_get(values, 0), "started");
	const char *last = column_text(json_array_get(values, count - 1), "started");
	const int gap = column_of(canvas, count, count - 1) + 1 - 2 * DAY_BYTES;
	buffer_repeat(out, " ", LAYOUT_INDENT + AXIS_COLUMNS + 2);
	buffer_format(out, "%s%.*s", style_ink(style, INK_DIM), DAY_BYTES, first);
	if (strncmp(first, last, DAY_BYTES) != 0) {
		buffer_repeat(out, " ", gap > 1 ? gap : 1);
		buffer_format(out, "%.*s", DAY_BYTES, last);
	}
	buffer_format(out, "%s\n", style_end(style));
}

static void history_plot_render(const json_t *values, const struct history_metric *metric,
	const struct style *style, struct buffer *out)
{
	struct canvas canvas = {.columns = style->width - LAYOUT_INDENT - AXIS_COLUMNS - 2};
	find_range(values, &canvas);
	history_plot_draw(&canvas, values);
	for (int row = 0; row < ROWS; row++)
		render_row(&canvas, metric, row, style, out);
	render_days(&canvas, values, style, out);
}

/* --- on a terminal ---------------------------------------------------------------------------- */

void history_change_words(const json_t *series, size_t change, const struct history_metric *metric,
	struct buffer *out)
{
	const json_t *c = json_array_get(json_object_get(series, "changes"), change);
	const json_t *value =
		json_array_get(json_object_get(series, "values"), (size_t)column_number(c, "at"));
	const double p = column_number(c, "p");
	const char *facts = column_text(c, "changed_facts");
	char before[HISTORY_NUMBER_BYTES];
	char after[HISTORY_NUMBER_BYTES];
	buffer_format(out, "from %s on: %s -> %s (%s), p %s %s", column_text(c, "started"),
		history_unit_format(metric->unit, column_number(c, "before"), before),
		history_unit_format(metric->unit, column_number(c, "after"), after),
		column_text(value, "change"), p <= LEVEL_P_LEAST ? "<=" : "=", UNITS_PLAIN(p, 3));
	buffer_format(out, "%s%s", *facts ? "; also changed: " : "", facts);
}

static void history_add_change(const json_t *series, size_t i, const struct history_metric *metric,
	const struct style *style, struct buffer *out)
{
	const json_t *change = json_array_get(json_object_get(series, "changes"), i);
	const double gain =
		metric->better * (column_number(change, "after") - column_number(change, "before"));
	struct buffer words = {0};
	struct buffer plain = {0};
	history_change_words(series, i, metric, &words);
	utf8_add_plain(&plain, words.data ? words.data : "", "?");
	buffer_release(&words);
	layout_labelled_buffer(style,
		metric->better == 0 ? INK_WARN
		: gain < 0          ? INK_BAD
				    : INK_GOOD,
		"change", &plain, out);
}

static void render_title(const json_t *series, const struct history_metric *metric,
	const struct style *style, struct buffer *out)
{
	struct buffer raw = {0};
	struct buffer title = {0};
	const char *unit = history_unit_name(metric->unit);
	const char *name = column_text(series, "name");
	const char *settings = column_text(series, "settings");
	const char *hash = column_text(series, "config_hash");
	const char *node = history_host_of(series);
	const bool unnamed = !*column_text(series, "host");
	buffer_format(&raw, "%s%s%s%s of %s", metric->name, *unit ? " (" : "", unit,
		*unit ? ")" : "", *name ? name : "-");
	if (*settings)
		buffer_format(&raw, " at %s", settings);
	buffer_format(&raw, ", config %.*s, node %s%s%s%s", HASH_DIGITS, *hash ? hash : "-",
		*node ? node : "-", unnamed ? " " : "", unnamed ? column_text(series, "node") : "",
		json_is_true(column_value(series, "emulated")) ? ", emulated step" : "");
	utf8_add_plain(&title, raw.data ? raw.data : "", "?");
	layout_heading(style, title.data ? title.data : "", out);
	buffer_release(&title);
	buffer_release(&raw);
}

static void render_series(const json_t *plot, const json_t *series,
	const struct history_metric *metric, const struct style *style, struct buffer *out)
{
	const json_t *values = json_object_get(series, "values");
	const size_t count = json_array_size(values);
	const size_t changes = json_array_size(json_object_get(series, "changes"));
	const double left_out = column_number(series, "left_out");
	char level[HISTORY_NUMBER_BYTES];
	struct buffer text = {0};
	render_title(series, metric, style, out);
	if (count > 1)
		history_plot_render(values, metric, style, out);
	for (size_t i = 0; i < changes; i++)
		history_add_change(series, i, metric, style, out);
	if (left_out > 0)
		buffer_format(
			&text, "the last %zu of %.0f results; ", count, (double)count + left_out);
	(void)history_unit_format(
		metric->unit, column_number(json_array_get(values, count - 1), "level"), level);
	if (count < LEVEL_VALUES_MIN)
		buffer_format(&text, "%zu result%s, level %s: finding changes takes %d", count,
			count == 1 ? "" : "s", level, LEVEL_VALUES_MIN);
	else if (changes == 0)
		buffer_format(&text, "%zu results, no change of level at %s %% significance", count,
			UNITS_PLAIN(100 * column_number(plot, "significance"), 3));
	layout_labelled_buffer(style, INK_DIM, "series", &text, out);
}

static void render_plot(const json_t *plot, const struct history_metric *metric,
	const struct style *style, struct buffer *out)
{
	const json_t *series = json_object_get(plot, "series");
	const size_t count = json_array_size(series);
	if (count == 0)
		layout_labelled(style, INK_WARN, "plot", "no result has this metric", out);
	for (size_t i = 0; i < count && i < SERIES_SHOWN_MAX; i++)
		render_series(plot, json_array_get(series, i), metric, style, out);
	if (count > SERIES_SHOWN_MAX)
		buffer_format(out, "\n  and %zu more series: choose with --where, or see --json\n",
			count - SERIES_SHOWN_MAX);
}

void history_text(const json_t *document, const struct style *style, struct buffer *out)
{
	json_t *results = history_listed(document);
	const size_t count = json_array_size(results);
	const char *conditions = column_text(document, "where");
	const double unreadable = column_number(document, "unreadable");
	struct history_metric metric;
	struct buffer text = {0};
	const bool plotted = plotted_metric(document, &metric);
	if (count > 0)
		history_render_list(
			results, plotted && !is_throughput(&metric) ? &metric : NULL, style, out);
	buffer_format(&text, "%zu of %.0f results in ",
		json_array_size(json_object_get(document, "results")),
		column_number(document, "total"));
	utf8_add_plain(&text, column_text(document, "root"), "?");
	if (*conditions) {
		buffer_text(&text, " with ");
		utf8_add_plain(&text, conditions, "?");
	}
	if (unreadable > 0)
		buffer_format(&text, "; %.0f cannot be read", unreadable);
	layout_labelled_buffer(style, INK_DIM, "history", &text, out);
	if (plotted && count > 0)
		render_plot(json_object_get(document, "plot"), &metric, style, out);
	out->failed = out->failed || !results;
	json_decref(results);
}

/* --- JSON and CSV ----------------------------------------------------------------------------- */

static void history_put_text(struct part *part, const char *name, const char *text)
{
	part_put(part, name, text ? fields_text(text) : json_null());
}

static const char *time_text(double seconds, char out[CLOCK_UTC_BYTES])
{
	if (!isfinite(seconds))
		return NULL;
	clock_format_utc(seconds, out);
	return out;
}

static json_t *history_value_of(const struct history_series *series, size_t i, bool has_interval)
{
	const struct history_row *row = series->rows[i];
	char when[CLOCK_UTC_BYTES];
	char size[HISTORY_NUMBER_BYTES];
	const char *change = NULL;
	for (size_t c = 0; c < series->change_count; c++)
		if (series->changes[c].at == i)
			change = history_change_size(series, c, size);
	struct part value = part_open();
	history_put_text(&value, "started", time_text(row->started, when));
	history_put_text(&value, "folder", row->folder);
	history_put_text(
		&value, "version", json_string_value(json_object_get(row->json, "version")));
	part_put(&value, "value", fields_number(row->value));
	part_put(&value, "low", fields_number(has_interval ? row->low : (double)NAN));
	part_put(&value, "high", fields_number(has_interval ? row->high : (double)NAN));
	part_put(&value, "level", fields_number(history_series_level(series, i)));
	history_put_text(&value, "change", change);
	return part_close(&value);
}

static json_t *change_of(const struct history_series *series, size_t i)
{
	const struct level_change *change = &series->changes[i];
	char when[CLOCK_UTC_BYTES];
	struct buffer facts = {0};
	struct part object = part_open();
	history_change_facts(series, i, &facts);
	part_put(&object, "at", json_integer((json_int_t)change->at));
	history_put_text(&object, "started", time_text(series->rows[change->at]->started, when));
	history_put_text(&object, "folder", series->rows[change->at]->folder);
	part_put(&object, "before", fields_number(change->before));
	part_put(&object, "after", fields_number(change->after));
	part_put(&object, "ratio",
		fields_number(series->scale == LEVEL_RATIO ? change->after / change->before
							   : (double)NAN));
	part_put(&object, "p", fields_number(change->p));
	history_put_text(&object, "changed_facts", facts.data ? facts.data : "");
	buffer_release(&facts);
	return part_close(&object);
}

static json_t *history_series_of(const struct history_series *series, bool has_interval)
{
	const struct history_row *row = series->rows[0];
	json_t *values = json_array();
	json_t *changes = json_array();
	struct part object = part_open();
	for (size_t i = 0; i < series->count; i++)
		object.bad |=
			json_array_append_new(values, history_value_of(series, i, has_interval));
	for (size_t i = 0; i < series->change_count; i++)
		object.bad |= json_array_append_new(changes, change_of(series, i));
	history_put_text(&object, "name", row->name);
	history_put_text(&object, "config_hash", row->hash);
	history_put_text(&object, "node", row->node);
	history_put_text(&object, "host", row->host);
	history_put_text(&object, "cpu", row->cpu);
	history_put_text(&object, "settings", row->settings);
	part_put(&object, "emulated", json_boolean(row->emulated));
	part_put(&object, "left_out", json_integer((json_int_t)series->left_out));
	part_put(&object, "values", values);
	part_put(&object, "changes", changes);
	return part_close(&object);
}

static json_t *plot_of(const struct history_plot *plot)
{
	json_t *series = json_array();
	struct part object = part_open();
	for (size_t i = 0; i < plot->count; i++)
		object.bad |= json_array_append_new(
			series, history_series_of(&plot->series[i], plot->metric.has_interval));
	history_put_text(&object, "metric", plot->metric.name);
	history_put_text(&object, "unit", history_unit_name(plot->metric.unit));
	part_put(&object, "significance", json_real(plot->significance));
	part_put(&object, "series", series);
	return part_close(&object);
}

json_t *history_json(const struct history_report *report)
{
	const struct history *history = report->history;
	json_t *results = json_array();
	struct part object = part_open();
	for (size_t i = 0; i < history->count; i++)
		if (history->rows[i].best)
			object.bad |= json_array_append(results, history->rows[i].json);
	part_put(&object, "schema", json_string("mlbench.history/1"));
	history_put_text(&object, "root", history->root);
	part_put(&object, "total", json_integer((json_int_t)history->total));
	part_put(&object, "unreadable", json_integer((json_int_t)history->unreadable));
	history_put_text(&object, "where", report->conditions);
	part_put(&object, "results", results);
	part_put(&object, "plot", report->plot ? plot_of(report->plot) : json_null());
	return part_close(&object);
}

void history_csv(const json_t *document, struct buffer *out)
{
	static const struct table_column fixed[] = {
		{.csv = "started", .path = "started"},
		{.csv = "folder", .path = "folder"},
		{.csv = "status", .path = "status"},
		{.csv = "name", .path = "name"},
		{.csv = "config_hash", .path = "config_hash"},
		{.csv = "node", .path = "node"},
		{.csv = "host", .path = "host"},
		{.csv = "cpu", .path = "cpu"},
		{.csv = "version", .path = "version"},
		{.csv = "step_backend", .path = "step_backend"},
		{.csv = "emulated", .path = "emulated"},
		{.csv = "settings", .path = "settings"},
		{.csv = "point_status", .path = "point_status"},
		{.csv = "verdict_stage", .path = "verdict.stage"},
		{.csv = "verdict_also", .path = "verdict.also"},
		{.csv = "verdict_resource", .path = "verdict.resource"},
		{.csv = "problem", .path = "problem"},
		{.csv = "samples_per_s", .path = "throughput"},
		{.csv = "ci95_low", .path = "ci95_low"},
		{.csv = "ci95_high", .path = "ci95_high"},
		{.csv = "verdict_confidence", .path = "verdict.confidence"},
		{.csv = "variant_of", .path = "variant_of"},
	};
	enum { FIXED = sizeof fixed / sizeof *fixed };
	struct history_metric metric;
	const bool more = plotted_metric(document, &metric) && !is_throughput(&metric);
	struct table_column columns[FIXED + 1];
	memcpy(columns, fixed, sizeof fixed);
	columns[FIXED] = (struct table_column){.csv = metric.name, .path = metric.name};
	columns_csv(columns, more ? FIXED + 1 : FIXED, json_object_get(document, "results"), out);
}
