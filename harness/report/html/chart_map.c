/* Throughput over the swept keys: two of them span a map, each further one has a slider, that stands at the best point
 * to begin with; one key alone gives a line.  Keys that are zipped together are one dimension.  And the frontier: the
 * settings that no other beats with less. */
#include "harness/base/units.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/html/chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAP_POINTS_MOST = 4000, /* of a map and its sliders */
	MAP_FIELD_BYTES = 24,
	MAP_LABEL_BYTES = 160,
	MAP_ROW_PIXELS = 34,
	MAP_ROWS_PIXELS_MOST = 640,
	MAP_ROW_PIXELS_LEAST = 14,
};

static const double MAP_NEAR_BEST = 0.05;

/* --- the frontier ------------------------------------------------------------------------------- */

/* Samples/s of a point; NAN: it has no figure. */
static double frontier_rate(const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	return p && p->status != POINT_FAILED ? p->median : (double)NAN;
}

/* Whether `other` gives as much as `point` with nothing larger. */
static bool frontier_dominates(const struct report *report, size_t other, size_t point)
{
	static const double AS_MUCH = 0.98;
	return other != point &&
	       frontier_rate(report, other) >= AS_MUCH * frontier_rate(report, point) &&
	       config_grid_no_larger(&report->record->config, &report->record->grid, other, point);
}

void frontier_find(const struct report *report, bool *on)
{
	const size_t points = report->record->grid.points;
	for (size_t i = 0; i < points; i++) {
		on[i] = !isnan(frontier_rate(report, i));
		for (size_t other = 0; other < points && on[i]; other++)
			on[i] = !frontier_dominates(report, other, i);
	}
}

/* --- dimensions ---------------------------------------------------------------------------------- */

struct map {
	const struct report *report;
	size_t axes
		[CONFIG_AXES_MAX]; /* the leading axis of each dimension: across, down, then sliders */
	size_t count;
	size_t enough; /* the least setting near the best */
	bool *frontier;
	double least, most;
	json_t *rows;
};

static const struct config_axis *map_axis(const struct map *map, size_t dimension)
{
	return &map->report->record->config.axes[map->axes[dimension]];
}

/* Across goes the longer one of the first two. */
static void map_find_dimensions(struct map *map)
{
	const struct config *config = &map->report->record->config;
	for (size_t i = 0; i < config->axis_count; i++)
		if (config->axes[i].zip_with == i && config->axes[i].count > 1)
			map->axes[map->count++] = i;
	if (map->count > 1 && map_axis(map, 1)->count >= map_axis(map, 0)->count) {
		const size_t first = map->axes[0];
		map->axes[0] = map->axes[1];
		map->axes[1] = first;
	}
}

/* The keys of a dimension, or their values at a choice, zipped ones joined. */
static json_t *map_dimension_text(const struct map *map, size_t dimension, const size_t *choice)
{
	const struct config *config = &map->report->record->config;
	char text[MAP_LABEL_BYTES];
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; i < config->axis_count && used < sizeof text; i++) {
		const struct config_axis *axis = &config->axes[i];
		char name[CONFIG_NAME_BYTES];
		char value[CONFIG_VALUE_BYTES];
		if (axis->zip_with != map->axes[dimension])
			continue;
		const char *word = choice ? config_format_value(axis->key, &axis->values[*choice],
						    value, sizeof value)
					  : config_key_name(axis->key, name);
		used += (size_t)snprintf(
			text + used, sizeof text - used, "%s%s", used ? " / " : "", word);
	}
	return fields_text(text);
}

static json_t *map_dimension_texts(const struct map *map, size_t dimension)
{
	json_t *texts = json_array();
	for (size_t i = 0; i < map_axis(map, dimension)->count; i++)
		parts_append(&texts, map_dimension_text(map, dimension, &i));
	return texts;
}

static size_t map_choice_at(const struct map *map, size_t point, size_t dimension)
{
	const struct config_grid *grid = &map->report->record->grid;
	return grid->choice[point * grid->axis_count + map->axes[dimension]];
}

/* --- rows ---------------------------------------------------------------------------------------- */

static const char *map_status(const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	if (p)
		return p->status == POINT_OK ? "measured" : point_status_name(p->status);
	return "not measured";
}

/* "decode / cpu", or why it failed. */
static void map_verdict(const struct report *report, size_t point, char *out, size_t room)
{
	const struct point_summary *p = report->points[point];
	out[0] = '\0';
	if (p && p->status == POINT_FAILED)
		(void)snprintf(out, room, "failed: %s", p->error);
	else if (p && p->verdict.stage[0] && strcmp(p->verdict.stage, "none") != 0)
		(void)snprintf(out, room, "%s%s%s / %s", p->verdict.stage,
			p->verdict.also[0] ? " + " : "", p->verdict.also, p->verdict.resource);
	else if (p)
		(void)snprintf(out, room, "unknown");
}

static struct interval map_interval(const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	return p ? p->ci95 : (struct interval){NAN, NAN};
}

/* "knee, frontier": of a point that is several things, all. */
static json_t *map_marks(const struct map *map, size_t point)
{
	static const char *const names[] = {"best", "knee", "frontier"};
	const bool is[] = {point == map->report->best, point == map->enough, map->frontier[point]};
	char text[MAP_LABEL_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (is[i])
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
				used ? ", " : "", names[i]);
	return json_string(text);
}

/* What stands in the cell: "◆ ~1,120". */
static void map_label(const struct map *map, size_t point, char out[MAP_LABEL_BYTES])
{
	char number[UNITS_BYTES];
	const struct point_summary *p = map->report->points[point];
	const double rate = frontier_rate(map->report, point);
	const char *glyph = point == map->report->best ? "● " : point == map->enough ? "◆ " : "";
	if (isnan(rate))
		(void)snprintf(out, MAP_LABEL_BYTES, "%s", p ? point_status_name(p->status) : "");
	else
		(void)snprintf(out, MAP_LABEL_BYTES, "%s%s%s%s", glyph, p ? "" : "~",
			units_format_count(rate, number),
			p && p->status == POINT_UNSTEADY ? " ?" : "");
}

static void map_put_settings(const struct map *map, size_t point, struct part *part)
{
	char field[MAP_FIELD_BYTES];
	char value[CONFIG_VALUE_BYTES];
	for (size_t axis = 0; axis < map->report->record->config.axis_count; axis++) {
		(void)snprintf(field, sizeof field, "a%zu", axis);
		part_put(part, field,
			fields_text(report_setting(map->report, point, axis, value, sizeof value)));
	}
	char slice[MAP_LABEL_BYTES] = "";
	size_t used = 0;
	for (size_t d = 0; d < map->count; d++) {
		const size_t choice = map_choice_at(map, point, d);
		if (d >= 2 && used < sizeof slice)
			used += (size_t)snprintf(slice + used, sizeof slice - used, "%s%zu",
				d > 2 ? "/" : "", choice);
		(void)snprintf(field, sizeof field, "d%zu", d);
		if (d < 2)
			part_put(part, field, map_dimension_text(map, d, &choice));
		(void)snprintf(field, sizeof field, "c%zu", d);
		part_put(part, field, json_integer((json_int_t)choice));
	}
	part_put(part, "slice", json_string(slice));
	part_put(part, "settings", parts_settings(map->report, point));
}

static void map_add_point(struct map *map, size_t point)
{
	const struct report *report = map->report;
	const struct point_summary *p = report->points[point];
	const struct interval interval = map_interval(report, point);
	char verdict[ERROR_TEXT_BYTES + NAME_BYTES];
	char label[MAP_LABEL_BYTES];
	struct part part = part_open();
	map_verdict(report, point, verdict, sizeof verdict);
	map_label(map, point, label);
	part_put(&part, "point", json_integer((json_int_t)point));
	map_put_settings(map, point, &part);
	part_put(&part, "rate", fields_number(frontier_rate(report, point)));
	part_put(&part, "low", fields_number(interval.low));
	part_put(&part, "high", fields_number(interval.high));
	part_put(&part, "n", json_integer(p ? (json_int_t)p->repeat_count : 0));
	part_put(&part, "verdict", fields_text(verdict));
	part_put(&part, "confidence",
		p && p->status != POINT_FAILED ? fields_number(p->verdict.confidence)
					       : json_null());
	part_put(&part, "status", json_string(map_status(report, point)));
	part_put(&part, "mark", map_marks(map, point));
	part_put(&part, "label", json_string(label));
	parts_append(&map->rows, part_close(&part));
}

static void map_add_points(struct map *map)
{
	map->least = INFINITY;
	for (size_t i = 0; i < map->report->record->grid.points; i++) {
		const double rate = frontier_rate(map->report, i);
		map->least = fmin(map->least, rate); /* passes over NAN */
		map->most = fmax(map->most, rate);
		map_add_point(map, i);
	}
}

/* Swept keys, then what is known of their settings. */
static int map_table_columns(const struct config *config, struct page_table *table)
{
	static const struct page_column fixed[] = {
		{"rate", "samples/s", PAGE_COUNT},
		{"low", "from", PAGE_COUNT},
		{"high", "to", PAGE_COUNT},
		{"n", "repetitions", PAGE_COUNT},
		{"verdict", "bottleneck", PAGE_TEXT},
		{"confidence", "confidence", PAGE_FRACTION},
		{"status", "known by", PAGE_TEXT},
		{"mark", "mark", PAGE_TEXT},
	};
	struct parts_columns columns = {0};
	parts_column(&columns, "point", "point", PAGE_COUNT);
	for (size_t axis = 0; axis < config->axis_count; axis++) {
		char field[MAP_FIELD_BYTES];
		char name[CONFIG_NAME_BYTES];
		(void)snprintf(field, sizeof field, "a%zu", axis);
		parts_column(
			&columns, field, config_key_name(config->axes[axis].key, name), PAGE_TEXT);
	}
	for (size_t i = 0; i < PARTS_COUNT(fixed); i++)
		parts_column(&columns, fixed[i].field, fixed[i].head, fixed[i].format);
	return parts_columns_make(&columns, table);
}

/* --- the picture ---------------------------------------------------------------------------------- */

static void map_add_slider(const struct map *map, size_t dimension, struct chart *chart)
{
	char name[MAP_FIELD_BYTES];
	const size_t best = map->report->best;
	(void)snprintf(name, sizeof name, "k%zu", dimension);
	chart_choice(chart, name, map_dimension_text(map, dimension, NULL),
		map_dimension_texts(map, dimension),
		best < map->report->record->grid.points ? map_choice_at(map, best, dimension) : 0);
}

/* Colours from half of the best at least, so that noise does not look like a difference. */
static void map_draw(const struct map *map, struct chart *chart)
{
	const bool wide = map->count > 1;
	chart_open(chart, wide ? "map" : "map_line");
	chart_param(chart, "x_title", map_dimension_text(map, 0, NULL));
	if (!wide)
		return;
	const size_t rows = map_axis(map, 1)->count;
	const size_t fitting = MAP_ROWS_PIXELS_MOST / rows;
	const size_t pixels = fitting > MAP_ROW_PIXELS         ? MAP_ROW_PIXELS
			      : fitting < MAP_ROW_PIXELS_LEAST ? MAP_ROW_PIXELS_LEAST
							       : fitting;
	chart_param(chart, "y_title", map_dimension_text(map, 1, NULL));
	chart_param(chart, "height", json_integer((json_int_t)(rows * pixels)));
	chart_param(chart, "least", parts_number(fmin(map->least, map->most / 2)));
	chart_param(chart, "most", parts_number(map->most));
	chart_param(chart, "columns", json_integer((json_int_t)map_axis(map, 0)->count));
	for (size_t d = 2; d < map->count; d++)
		map_add_slider(map, d, chart);
}

/* --- what it says --------------------------------------------------------------------------------- */

static void map_find(const struct map *map, struct buffer *out)
{
	const struct report *report = map->report;
	const size_t points = report->record->grid.points;
	const bool less = map->enough < points && map->enough != report->best;
	char number[UNITS_BYTES];
	if (report->best == points)
		return;
	report_settings(report, less ? map->enough : report->best, out);
	buffer_format(out,
		less ? " gives %s samples/s, within 5 %% of the best, with fewer resources"
		     : " is best: %s samples/s, and no smaller setting comes within 5 %%",
		units_format_count(
			frontier_rate(report, less ? map->enough : report->best), number));
}

static void map_say(const struct map *map, struct buffer *out)
{
	const struct report *report = map->report;
	if (report->unsteady > 0)
		buffer_text(out, "A question mark: unsteady.");
}

static int map_build(struct map *map, struct chart *chart)
{
	map->frontier = calloc(map->report->record->grid.points, sizeof *map->frontier);
	map->rows = json_array();
	chart->table.rows = map->rows;
	if (!map->frontier || !map->rows)
		return -ENOMEM;
	frontier_find(map->report, map->frontier);
	map->enough = report_smallest_within(map->report, MAP_NEAR_BEST);
	map_add_points(map);
	chart->table.rows = map->rows;
	if (map_table_columns(&map->report->record->config, &chart->table))
		return -ENOMEM;
	if (!(map->most > 0))
		return chart_why_not(chart, "No point has a throughput yet.");
	map_find(map, &chart->finding);
	map_say(map, &chart->text);
	map_draw(map, chart);
	return chart_done(chart);
}

int chart_map(const struct chart_input *input, struct chart *chart)
{
	struct map map = {.report = input->report};
	const size_t points = input->report->record->grid.points;
	map_find_dimensions(&map);
	if (map.count == 0)
		return chart_why_not(chart,
			"Nothing was swept: this is one setting. 'mlbench sweep' with two keys or more draws a map here.");
	if (points > MAP_POINTS_MOST)
		return chart_why_not(chart,
			"%zu points are too many for a map in a page (%d at most): points.csv has them all.",
			points, MAP_POINTS_MOST);
	const int code = map_build(&map, chart);
	free(map.frontier);
	return code;
}
