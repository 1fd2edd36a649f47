/* Heat maps in text.  Keys that are zipped together are one dimension, that of their first. */
#include "harness/report/heatmap.h"

#include "harness/base/units.h"
#include "harness/record/config_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	MAPS_MAX = 12,
	MAP_GAP_COLUMNS = 3,
	CELL_GAP_COLUMNS = 1,
	LABEL_BYTES = 160,
	INDENT_COLUMNS = 2,
};

struct dimensions {
	size_t axes[CONFIG_AXES_MAX]; /* rows, columns, then the others */
	size_t count;
	size_t maps; /* product of the others' sizes */
};

struct scale {
	double least, most;
	int cell_columns;
};

static const struct config_axis *heatmap_axis_of(const struct report *report, size_t axis)
{
	return &report->record->config.axes[axis];
}

static void find_dimensions(const struct report *report, struct dimensions *d)
{
	*d = (struct dimensions){.maps = 1};
	for (size_t i = 0; i < report->record->config.axis_count; i++)
		if (heatmap_axis_of(report, i)->zip_with == i &&
			heatmap_axis_of(report, i)->count > 1)
			d->axes[d->count++] = i;
	for (size_t i = 2; i < d->count; i++)
		d->maps *= heatmap_axis_of(report, d->axes[i])->count;
}

static bool has_rate(const struct point_summary *p)
{
	return p && p->status != POINT_FAILED && !isnan(p->median);
}

static double rate_at(const struct report *report, size_t point)
{
	return has_rate(report->points[point]) ? report->points[point]->median : (double)NAN;
}

/* What a cell says: a rate, "failed" and the like, or a dot where nothing was
 * measured (or is excluded).  point: that of no setting where it is excluded. */
static void cell_text(
	const struct report *report, const struct style *style, size_t point, char out[UNITS_BYTES])
{
	const bool there = point < report->record->grid.points;
	const struct point_summary *p = there ? report->points[point] : NULL;
	if (p && has_rate(p))
		(void)units_format_count(p->median, out);
	else
		(void)snprintf(out, UNITS_BYTES, "%s",
			p ? point_status_name(p->status) : style_glyph(style, "·", "."));
}

static void find_scale(const struct report *report, const struct style *style, struct scale *scale)
{
	*scale = (struct scale){.least = INFINITY, .most = 0};
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const double rate = rate_at(report, i);
		char text[UNITS_BYTES];
		cell_text(report, style, i, text);
		const int columns = style_columns(text) + (style->colour ? 2 : 3);
		scale->cell_columns = columns > scale->cell_columns ? columns : scale->cell_columns;
		scale->least = fmin(scale->least, rate); /* passes over NAN */
		scale->most = fmax(scale->most, rate);
	}
}

static size_t find_point(
	const struct report *report, const struct dimensions *d, const size_t *choice)
{
	const struct config_grid *grid = &report->record->grid;
	for (size_t point = 0; point < grid->points; point++) {
		bool same = true;
		for (size_t i = 0; i < d->count && same; i++)
			same = grid->choice[point * grid->axis_count + d->axes[i]] == choice[i];
		if (same)
			return point;
	}
	return grid->points;
}

static int shade_of(const struct scale *scale, double rate)
{
	if (scale->most <= 0)
		return 0;
	/* From half of the best rate at least, so that noise does not look like a difference. */
	const double dark = fmin(scale->least, scale->most / 2);
	const double share = (rate - dark) / (scale->most - dark);
	return (int)lround(share * (STYLE_SHADES - 1));
}

static const char *shade_begin(const struct style *style, int shade)
{
	static const char *const blocks[STYLE_SHADES] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const marks[STYLE_SHADES] = {".", ":", "-", "=", "+", "*", "%", "@"};
	return style->colour ? style_shade(style, shade)
			     : style_glyph(style, blocks[shade], marks[shade]);
}

static void render_cell(const struct report *report, const struct style *style,
	const struct scale *scale, size_t point, struct buffer *out)
{
	const double value =
		point < report->record->grid.points ? rate_at(report, point) : (double)NAN;
	char text[UNITS_BYTES];
	cell_text(report, style, point, text);
	const bool rate = !isnan(value);
	const bool best = rate && point == report_best_like(report, point);
	buffer_repeat(out, " ", CELL_GAP_COLUMNS);
	if (rate)
		buffer_text(out, shade_begin(style, shade_of(scale, value)));
	else
		buffer_text(out, style->colour ? "" : " ");
	const int room = scale->cell_columns - (style->colour ? 0 : 1);
	style_field(style, INK_PLAIN, text, -(room - 1), out);
	buffer_text(out, best ? style_glyph(style, "◂", "<") : " ");
	buffer_text(out, rate ? style_end(style) : "");
}

static int widest_value(const struct report *report, size_t axis)
{
	int widest = 0;
	for (size_t i = 0; i < heatmap_axis_of(report, axis)->count; i++) {
		char text[CONFIG_VALUE_BYTES];
		const int columns =
			style_columns(config_format_value(heatmap_axis_of(report, axis)->key,
				&heatmap_axis_of(report, axis)->values[i], text, sizeof text));
		widest = columns > widest ? columns : widest;
	}
	return widest;
}

static int map_columns(
	const struct report *report, const struct dimensions *d, const struct scale *scale)
{
	return (int)heatmap_axis_of(report, d->axes[1])->count *
	       (scale->cell_columns + CELL_GAP_COLUMNS);
}

/* Choices of the dimensions beyond rows and columns for map number `map`. */
static void map_choice(
	const struct report *report, const struct dimensions *d, size_t map, size_t *choice)
{
	for (size_t i = d->count; i-- > 2;) {
		const size_t size = heatmap_axis_of(report, d->axes[i])->count;
		choice[i] = map % size;
		map /= size;
	}
}

static void map_title(
	const struct report *report, const struct dimensions *d, const size_t *choice, char *out)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 2; i < d->count && used < LABEL_BYTES; i++) {
		const struct config_axis *axis = heatmap_axis_of(report, d->axes[i]);
		char name[CONFIG_NAME_BYTES];
		char value[CONFIG_VALUE_BYTES];
		(void)config_format_value(axis->key, &axis->values[choice[i]], value, sizeof value);
		used += (size_t)snprintf(out + used, LABEL_BYTES - used, "%s%s=%s",
			i > 2 ? " " : "", config_key_name(axis->key, name), value);
	}
}

struct band {
	const struct report *report;
	const struct style *style;
	const struct dimensions *d;
	const struct scale *scale;
	size_t first, count; /* maps, side by side */
	int label_columns;
};

static void render_titles(const struct band *band, struct buffer *out)
{
	const int columns = map_columns(band->report, band->d, band->scale);
	size_t choice[CONFIG_AXES_MAX] = {0};
	char title[LABEL_BYTES];
	buffer_repeat(out, " ", INDENT_COLUMNS + band->label_columns);
	for (size_t i = 0; i < band->count; i++) {
		map_choice(band->report, band->d, band->first + i, choice);
		map_title(band->report, band->d, choice, title);
		buffer_repeat(out, " ", (i ? MAP_GAP_COLUMNS : 0) + CELL_GAP_COLUMNS);
		style_field(band->style, INK_BOLD, title, columns - CELL_GAP_COLUMNS, out);
	}
	style_end_line(out);
}

static void render_column_heads(const struct band *band, struct buffer *out)
{
	const struct config_axis *axis = heatmap_axis_of(band->report, band->d->axes[1]);
	buffer_repeat(out, " ", INDENT_COLUMNS + band->label_columns);
	for (size_t i = 0; i < band->count; i++) {
		buffer_repeat(out, " ", i ? MAP_GAP_COLUMNS : 0);
		for (size_t column = 0; column < axis->count; column++) {
			char value[CONFIG_VALUE_BYTES];
			(void)config_format_value(
				axis->key, &axis->values[column], value, sizeof value);
			style_field(band->style, INK_DIM, value,
				-(band->scale->cell_columns + CELL_GAP_COLUMNS - 1), out);
			buffer_text(out, " ");
		}
	}
	style_end_line(out);
}

static void render_band_row(const struct band *band, size_t row, struct buffer *out)
{
	const struct config_axis *rows = heatmap_axis_of(band->report, band->d->axes[0]);
	const struct config_axis *columns = heatmap_axis_of(band->report, band->d->axes[1]);
	char value[CONFIG_VALUE_BYTES];
	size_t choice[CONFIG_AXES_MAX] = {row};
	buffer_repeat(out, " ", INDENT_COLUMNS);
	(void)config_format_value(rows->key, &rows->values[row], value, sizeof value);
	style_field(band->style, INK_DIM, value, -band->label_columns, out);
	for (size_t i = 0; i < band->count; i++) {
		map_choice(band->report, band->d, band->first + i, choice);
		buffer_repeat(out, " ", i ? MAP_GAP_COLUMNS : 0);
		for (choice[1] = 0; choice[1] < columns->count; choice[1]++)
			render_cell(band->report, band->style, band->scale,
				find_point(band->report, band->d, choice), out);
	}
	style_end_line(out);
}

static void render_band(const struct band *band, struct buffer *out)
{
	if (band->d->count > 2)
		render_titles(band, out);
	render_column_heads(band, out);
	for (size_t row = 0; row < heatmap_axis_of(band->report, band->d->axes[0])->count; row++)
		render_band_row(band, row, out);
}

static void render_heading(const struct band *band, struct buffer *out)
{
	char rows[CONFIG_NAME_BYTES];
	char columns[CONFIG_NAME_BYTES];
	char least[UNITS_BYTES];
	char most[UNITS_BYTES];
	static const char unit[] = "samples/s ";
	struct buffer text = {0};
	buffer_format(&text, "over %s (down) and %s (across)",
		config_key_name(heatmap_axis_of(band->report, band->d->axes[0])->key, rows),
		config_key_name(heatmap_axis_of(band->report, band->d->axes[1])->key, columns));
	if (band->scale->most > 0)
		buffer_format(&text, ", %s to %s", units_format_count(band->scale->least, least),
			units_format_count(band->scale->most, most));
	buffer_format(
		out, "%s%s%s", style_ink(band->style, INK_BOLD), unit, style_end(band->style));
	style_wrap(band->style, text.data ? text.data : "", INDENT_COLUMNS, sizeof unit - 1, out);
	buffer_release(&text);
}

/* Down goes what has more values when the map would be too wide otherwise. */
static bool fit(const struct report *report, const struct style *style, const struct scale *scale,
	struct dimensions *d, int *label_columns)
{
	for (int turn = 0; turn < 2; turn++) {
		*label_columns = widest_value(report, d->axes[0]);
		if (INDENT_COLUMNS + *label_columns + map_columns(report, d, scale) <= style->width)
			return true;
		const size_t rows = d->axes[0];
		d->axes[0] = d->axes[1];
		d->axes[1] = rows;
	}
	return false;
}

/* Cells as wide as the longest title above a map needs. */
static void widen_for_titles(
	const struct report *report, const struct dimensions *d, struct scale *scale)
{
	const int columns = (int)heatmap_axis_of(report, d->axes[1])->count;
	size_t choice[CONFIG_AXES_MAX] = {0};
	for (size_t map = 0; map < d->maps && map < MAPS_MAX; map++) {
		char title[LABEL_BYTES];
		map_choice(report, d, map, choice);
		map_title(report, d, choice, title);
		const int least = (style_columns(title) + columns) / columns;
		if (scale->cell_columns < least)
			scale->cell_columns = least;
	}
}

bool heatmap_render(const struct report *report, const struct style *style, struct buffer *out)
{
	struct dimensions d;
	struct scale scale;
	find_dimensions(report, &d);
	if (d.count < 2)
		return false;
	find_scale(report, style, &scale);
	widen_for_titles(report, &d, &scale);
	struct band band = {.report = report, .style = style, .d = &d, .scale = &scale};
	if (!fit(report, style, &scale, &d, &band.label_columns))
		return false;
	const int columns = map_columns(report, &d, &scale) + MAP_GAP_COLUMNS;
	const int room = style->width - INDENT_COLUMNS - band.label_columns + MAP_GAP_COLUMNS;
	const size_t beside = room / columns > 1 ? (size_t)(room / columns) : 1;
	const size_t maps = d.maps < MAPS_MAX ? d.maps : MAPS_MAX;
	render_heading(&band, out);
	for (; band.first < maps; band.first += beside) {
		band.count = maps - band.first < beside ? maps - band.first : beside;
		render_band(&band, out);
	}
	if (maps < d.maps)
		buffer_format(out, "  and %zu more maps: see points.csv\n", d.maps - maps);
	return true;
}
