/* Values in the order of time, a column each (or several in one where there are more than columns): a mark for the value, a bar
 * for its interval, a line for the level, a broken line where the level changes. */
#include "harness/report/history_plot.h"

#include "harness/base/clock.h"
#include "harness/report/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int row_of(const struct canvas *canvas, double value)
{
	const double share = (value - canvas->low) / (canvas->high - canvas->low);
	return (int)lround((1 - share) * (ROWS - 1));
}

static bool has_interval(const struct history_row *row, const struct history_metric *metric)
{
	return metric->has_interval && isfinite(row->low) && isfinite(row->high);
}

static void find_range(const struct history_series *series, const struct history_metric *metric,
	struct canvas *canvas)
{
	canvas->low = INFINITY;
	canvas->high = -INFINITY;
	for (size_t i = 0; i < series->count; i++) {
		const struct history_row *row = series->rows[i];
		const bool wide = has_interval(row, metric);
		canvas->low = fmin(canvas->low, wide ? row->low : row->value);
		canvas->high = fmax(canvas->high, wide ? row->high : row->value);
	}
	const double least = fmax(fabs(canvas->high) * 0.02, 1e-9);
	if (canvas->high - canvas->low < least) {
		canvas->low -= least;
		canvas->high += least;
	}
}

/* Columns between two values, so that few values are no heap at the left. */
static int column_of(const struct canvas *canvas, const struct history_series *series, size_t i)
{
	const size_t count = series->count;
	const size_t room = (size_t)canvas->columns;
	if (count * STEP_MAX <= room)
		return (int)(i * STEP_MAX + STEP_MAX / 2);
	return (int)(i * (room - 1) / (count > 1 ? count - 1 : 1));
}

static void history_plot_draw(const struct history_series *series,
	const struct history_metric *metric, struct canvas *canvas)
{
	for (size_t i = 0; i < series->count; i++) {
		const struct history_row *row = series->rows[i];
		const int column = column_of(canvas, series, i);
		const int next =
			i + 1 < series->count ? column_of(canvas, series, i + 1) : column + 1;
		const int level = row_of(canvas, history_series_level(series, i));
		for (int c = column; c < next; c++)
			history_plot_put(canvas, level, c, CELL_LEVEL);
		if (has_interval(row, metric))
			for (int r = row_of(canvas, row->high); r <= row_of(canvas, row->low); r++)
				history_plot_put(canvas, r, column, CELL_BAR);
		history_plot_put(canvas, row_of(canvas, row->value), column, CELL_VALUE);
	}
	for (size_t c = 0; c < series->change_count; c++) {
		const int before = column_of(canvas, series, series->changes[c].at - 1);
		const int after = column_of(canvas, series, series->changes[c].at);
		const int column = after - before > 1 ? (before + after + 1) / 2 : after;
		for (int r = 0; r < ROWS; r++) {
			if (canvas->cells[r][column] == CELL_LEVEL)
				canvas->cells[r][column] = CELL_EMPTY;
			history_plot_put(canvas, r, column, CELL_CHANGE);
		}
	}
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
static void render_days(const struct history_series *series, const struct canvas *canvas,
	const struct style *style, struct buffer *out)
{
	char first[CLOCK_UTC_BYTES];
	char last[CLOCK_UTC_BYTES];
	clock_format_utc(series->rows[0]->started, first);
	clock_format_utc(series->rows[series->count - 1]->started, last);
	first[DAY_BYTES] = last[DAY_BYTES] = '\0';
	const int end = column_of(canvas, series, series->count - 1) + 1;
	const int gap = end - 2 * DAY_BYTES;
	buffer_repeat(out, " ", LAYOUT_INDENT + AXIS_COLUMNS + 2);
	buffer_format(out, "%s%s", style_ink(style, INK_DIM), first);
	if (strcmp(first, last) != 0) {
		buffer_repeat(out, " ", gap > 1 ? gap : 1);
		buffer_text(out, last);
	}
	buffer_format(out, "%s\n", style_end(style));
}

void history_plot_render(const struct history_series *series, const struct history_metric *metric,
	const struct style *style, struct buffer *out)
{
	struct canvas canvas = {.columns = style->width - LAYOUT_INDENT - AXIS_COLUMNS - 2};
	find_range(series, metric, &canvas);
	history_plot_draw(series, metric, &canvas);
	for (int row = 0; row < ROWS; row++)
		render_row(&canvas, metric, row, style, out);
	render_days(series, &canvas, style, out);
}
