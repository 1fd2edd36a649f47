/* Throughput over the swept keys: two of them span a map, each further one has a slider, that stands at the best point
 * to begin with; one key alone gives a line.  Keys that are zipped together are one dimension. */
#include "harness/analyze/limit_kind.h"
#include "harness/base/units.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/chart_spec.h"
#include "harness/report/html/frontier.h"
#include "harness/report/html/palette.h"
#include "harness/report/part.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	POINTS_MOST = 4000, /* of a map and its sliders */
	FIXED_COLUMNS = 7,
	FIELD_BYTES = 24,
	LABEL_BYTES = 160,
	ROW_PIXELS = 34,
	ROWS_PIXELS_MOST = 640,
	ROW_PIXELS_LEAST = 14,
	STATUS_NAMES = 4,
};

static const double NEAR_BEST_SHARE = 0.05;

struct map {
	const struct report *report;
	size_t axes
		[CONFIG_AXES_MAX]; /* the leading axis of each dimension: across, down, then sliders */
	size_t count;
	size_t enough; /* the least setting near the best */
	bool *frontier;
	double least, most;
	json_t *rows;
	int bad;
};

static const struct config_axis *axis_of(const struct map *map, size_t dimension)
{
	return &map->report->record->config.axes[map->axes[dimension]];
}

/* Across goes the longer one of the first two. */
static void find_dimensions(struct map *map)
{
	const struct config *config = &map->report->record->config;
	for (size_t i = 0; i < config->axis_count; i++)
		if (config->axes[i].zip_with == i && config->axes[i].count > 1)
			map->axes[map->count++] = i;
	if (map->count > 1 && axis_of(map, 1)->count >= axis_of(map, 0)->count) {
		const size_t first = map->axes[0];
		map->axes[0] = map->axes[1];
		map->axes[1] = first;
	}
}

/* The keys of a dimension, or their values at a choice, zipped ones joined. */
static json_t *dimension_text(const struct map *map, size_t dimension, const size_t *choice)
{
	const struct config *config = &map->report->record->config;
	char text[LABEL_BYTES];
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

static json_t *dimension_texts(const struct map *map, size_t dimension)
{
	json_t *texts = json_array();
	int bad = texts ? 0 : -ENOMEM;
	for (size_t i = 0; i < axis_of(map, dimension)->count; i++)
		bad |= json_array_append_new(texts, dimension_text(map, dimension, &i));
	if (!bad)
		return texts;
	json_decref(texts);
	return NULL;
}

static size_t choice_of(const struct map *map, size_t point, size_t dimension)
{
	const struct config_grid *grid = &map->report->record->grid;
	return grid->choice[point * grid->axis_count + map->axes[dimension]];
}

/* --- rows ---------------------------------------------------------------------------------------- */

static const char *status_of(const struct report *report, size_t point)
{
	static const char *const names[STATUS_NAMES] = {
		"measured", "unsteady", "failed", "interrupted"};
	if (report->points[point])
		return names[report->points[point]->status];
	return report_forecast(report, point) ? "predicted" : "not measured";
}

/* "decode / cpu", why it failed, or what predicted it. */
static void verdict_of(const struct report *report, size_t point, char *out, size_t room)
{
	const struct point_summary *p = report->points[point];
	const struct forecast *forecast = report_forecast(report, point);
	out[0] = '\0';
	if (forecast)
		(void)snprintf(
			out, room, "predicted from %zu measured points", forecast->from_count);
	else if (p && p->status == POINT_FAILED)
		(void)snprintf(out, room, "failed: %s", p->error);
	else if (p && p->verdict.stage[0] && strcmp(p->verdict.stage, "none") != 0)
		(void)snprintf(out, room, "%s%s%s / %s", p->verdict.stage,
			p->verdict.also[0] ? " + " : "", p->verdict.also, p->verdict.resource);
	else if (p)
		(void)snprintf(out, room, "cannot tell");
}

static struct interval interval_of(const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	const struct forecast *forecast = report_forecast(report, point);
	if (forecast)
		return forecast->interval;
	return p && p->repeat_count > 1 ? p->ci95 : (struct interval){NAN, NAN};
}

/* "knee, frontier": of a point that is several things, all. */
static json_t *marks_of(const struct map *map, size_t point)
{
	static const char *const names[] = {"best", "knee", "frontier"};
	const bool is[] = {point == map->report->best, point == map->enough, map->frontier[point]};
	char text[LABEL_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (is[i])
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
				used ? ", " : "", names[i]);
	return json_string(text);
}

/* What stands in the cell: "◆ ~1,120". */
static void label_of(const struct map *map, size_t point, char out[LABEL_BYTES])
{
	char number[UNITS_BYTES];
	const struct point_summary *p = map->report->points[point];
	const double rate = frontier_rate(map->report, point);
	const char *glyph = point == map->report->best ? "● " : point == map->enough ? "◆ " : "";
	if (isnan(rate))
		(void)snprintf(out, LABEL_BYTES, "%s", p ? "failed" : "");
	else
		(void)snprintf(out, LABEL_BYTES, "%s%s%s%s", glyph, p ? "" : "~",
			units_format_count(rate, number),
			p && p->status == POINT_UNSTEADY ? " ?" : "");
}

static void put_settings(const struct map *map, size_t point, struct part *part)
{
	char field[FIELD_BYTES];
	char value[CONFIG_VALUE_BYTES];
	for (size_t axis = 0; axis < map->report->record->config.axis_count; axis++) {
		(void)snprintf(field, sizeof field, "a%zu", axis);
		part_put(part, field,
			fields_text(report_setting(map->report, point, axis, value, sizeof value)));
	}
	for (size_t d = 0; d < map->count; d++) {
		const size_t choice = choice_of(map, point, d);
		(void)snprintf(field, sizeof field, "%s%zu", d < 2 ? "d" : "c", d);
		part_put(part, field,
			d < 2 ? dimension_text(map, d, &choice) : json_integer((json_int_t)choice));
	}
}

static void add_point(struct map *map, size_t point)
{
	const struct report *report = map->report;
	const struct point_summary *p = report->points[point];
	const struct interval interval = interval_of(report, point);
	char verdict[ERROR_TEXT_BYTES + NAME_BYTES];
	char label[LABEL_BYTES];
	struct part part = part_open();
	verdict_of(report, point, verdict, sizeof verdict);
	label_of(map, point, label);
	part_put(&part, "point", json_integer((json_int_t)point));
	put_settings(map, point, &part);
	part_put(&part, "rate", fields_number(frontier_rate(report, point)));
	part_put(&part, "low", fields_number(interval.low));
	part_put(&part, "high", fields_number(interval.high));
	part_put(&part, "verdict", fields_text(verdict));
	part_put(&part, "confidence",
		p && p->status != POINT_FAILED ? fields_number(p->verdict.confidence)
					       : json_null());
	part_put(&part, "status", json_string(status_of(report, point)));
	part_put(&part, "mark", marks_of(map, point));
	part_put(&part, "label", json_string(label));
	map->bad |= json_array_append_new(map->rows, part_close(&part));
}

static void add_points(struct map *map)
{
	map->least = INFINITY;
	for (size_t i = 0; i < map->report->record->grid.points; i++) {
		const double rate = frontier_rate(map->report, i);
		map->least = fmin(map->least, rate); /* passes over NAN */
		map->most = fmax(map->most, rate);
		add_point(map, i);
	}
}

/* --- the table's columns ------------------------------------------------------------------------- */

static char *put_string(char **at, const char *text, size_t room)
{
	char *kept = *at;
	(void)snprintf(kept, room, "%s", text);
	*at += room;
	return kept;
}

static int make_columns(const struct map *map, struct page_table *table)
{
	static const struct page_column fixed[FIXED_COLUMNS] = {
		{"rate", "samples/s", PAGE_COUNT},
		{"low", "from", PAGE_COUNT},
		{"high", "to", PAGE_COUNT},
		{"verdict", "limited by", PAGE_TEXT},
		{"confidence", "confidence", PAGE_FRACTION},
		{"status", "known by", PAGE_TEXT},
		{"mark", "mark", PAGE_TEXT},
	};
	const struct config *config = &map->report->record->config;
	const size_t count = 1 + config->axis_count + FIXED_COLUMNS;
	struct page_column *columns = calloc(1,
		count * sizeof *columns + config->axis_count * (FIELD_BYTES + CONFIG_NAME_BYTES));
	if (!columns)
		return -ENOMEM;
	char *texts = (char *)(columns + count);
	columns[0] = (struct page_column){"point", "point", PAGE_COUNT};
	for (size_t axis = 0; axis < config->axis_count; axis++) {
		char field[FIELD_BYTES];
		char name[CONFIG_NAME_BYTES];
		(void)snprintf(field, sizeof field, "a%zu", axis);
		columns[1 + axis].field = put_string(&texts, field, FIELD_BYTES);
		columns[1 + axis].head = put_string(
			&texts, config_key_name(config->axes[axis].key, name), CONFIG_NAME_BYTES);
	}
	memcpy(columns + 1 + config->axis_count, fixed, sizeof fixed);
	table->columns = table->made_columns = columns;
	table->column_count = count;
	return 0;
}

/* --- specifications ------------------------------------------------------------------------------ */

#define TOOLTIP                                                                                           \
	"'tooltip': [{'field': 'rate', 'type': 'quantitative', 'title': 'samples/s', 'format': ',.5~r'}," \
	"{'field': 'low', 'type': 'quantitative', 'title': 'from', 'format': ',.4~r'},"                   \
	"{'field': 'high', 'type': 'quantitative', 'title': 'to', 'format': ',.4~r'},"                    \
	"{'field': 'verdict', 'title': 'limited by'},"                                                    \
	"{'field': 'confidence', 'type': 'quantitative', 'title': 'confidence', 'format': '.2f'},"        \
	"{'field': 'status', 'title': 'this point is'}, {'field': 'mark', 'title': 'mark'}]"

/* $1: the middle of the colours, above which ink is dark; $2: columns. */
static const char map_spec[] =
	"{'data': {'name': 'rows'}, 'params': [], 'transform': [], 'encoding': {"
	"'x': {'field': 'd0', 'type': 'ordinal', 'axis': {'labelAngle': 0, 'domain': false, 'ticks': false, 'labelOverlap': true}},"
	"'y': {'field': 'd1', 'type': 'ordinal', 'axis': {'domain': false, 'ticks': false, 'labelPadding': 6,"
	" 'titleAngle': 0, 'titleAlign': 'left', 'titleBaseline': 'bottom', 'titleX': 0, 'titleY': -7}}},"
	"'layer': ["
	"{'transform': [{'filter': 'datum.rate > 0'}], 'mark': {'type': 'rect', 'stroke': 'var(--ground)', 'strokeWidth': 1},"
	" 'encoding': {'color': {'field': 'rate', 'type': 'quantitative', 'title': 'samples/s',"
	"  'scale': {'scheme': '" PALETTE_QUANTITY
	"'}, 'legend': {'format': '~s', 'offset': 32, 'gradientLength': 200, 'gradientThickness': 10}},"
	"  'opacity': {'condition': {'test': 'datum.status == `predicted`', 'value': 0.72}, 'value': 1}}},"
	"{'transform': [{'filter': '!(datum.rate > 0)'}], 'mark': {'type': 'rect', 'fill': 'var(--tint)', 'stroke': 'var(--ground)'}},"
	"{'transform': [{'filter': 'datum.status == `predicted`'}], 'mark': {'type': 'rect', 'filled': false, 'stroke': 'var(--ground)',"
	"  'strokeDash': [3, 3], 'strokeWidth': 2.5}},"
	"{'transform': [{'filter': 'indexof(datum.mark, `frontier`) >= 0'}], 'mark': {'type': 'rect', 'filled': false, 'stroke': 'var(--ink)',"
	"  'strokeWidth': 2.5, 'cornerRadius': 2}},"
	"{'mark': {'type': 'text', 'fontSize': 12}, 'encoding': {"
	"  'text': {'field': 'shown', 'type': 'nominal'},"
	"  'color': {'condition': [{'test': '!(datum.rate > 0)', 'value': 'var(--soft)'}, {'test': 'datum.rate > $1', 'value': '#111'}],"
	"   'value': '#fff'}}, 'transform': [{'calculate': 'width / $2 > 50 ? datum.label : slice(datum.label, 0, "
	"indexof(datum.label, ` `) > 0 ? 1 : 0)', 'as': 'shown'}]},"
	/* Above all else, so that the whole cell has the tooltip. */
	"{'mark': {'type': 'rect', 'fillOpacity': 0}, 'encoding': {" TOOLTIP "}}"
	"]}";

static const char line_spec[] =
	"{'data': {'name': 'rows'}, 'height': 280, 'transform': [{'filter': 'datum.rate > 0'}], 'encoding': {"
	"'x': {'field': 'd0', 'type': 'ordinal', 'axis': {'labelAngle': 0, 'grid': false, 'labelOverlap': true}}},"
	"'layer': ["
	"{'mark': {'type': 'line', 'strokeWidth': 1.5}, 'encoding': {'y': {'field': 'rate', 'type': 'quantitative',"
	"  'title': 'samples/s', 'axis': {'format': '~s'}}}},"
	"{'mark': {'type': 'rule', 'strokeWidth': 2, 'color': '" PALETTE_WORKING "'}, 'encoding': {"
	"  'y': {'field': 'low', 'type': 'quantitative'}, 'y2': {'field': 'high'}}},"
	"{'mark': {'type': 'point', 'size': 80, 'opacity': 1, 'strokeWidth': 2}, 'encoding': {"
	"  'y': {'field': 'rate', 'type': 'quantitative'},"
	"  'fill': {'condition': {'test': 'datum.status == `predicted`', 'value': 'var(--ground)'}, 'value': '" PALETTE_WORKING
	"'}, " TOOLTIP "}},"
	"{'mark': {'type': 'text', 'dy': -14, 'fontSize': 12}, 'encoding': {"
	"  'y': {'field': 'rate', 'type': 'quantitative'}, 'text': {'field': 'label'}}}"
	"]}";

/* The settings, at the head of every tooltip. */
static int add_tips(const struct map *map, const json_t *spec)
{
	const struct config *config = &map->report->record->config;
	const json_t *layer;
	size_t at;
	int bad = 0;
	json_array_foreach(json_object_get(spec, "layer"), at, layer)
	{
		json_t *tips = json_object_get(json_object_get(layer, "encoding"), "tooltip");
		for (size_t axis = config->axis_count; tips && axis-- > 0;) {
			char field[FIELD_BYTES];
			char name[CONFIG_NAME_BYTES];
			(void)snprintf(field, sizeof field, "a%zu", axis);
			bad |= json_array_insert_new(tips, 0,
				json_pack("{s:s, s:s}", "field", field, "title",
					config_key_name(config->axes[axis].key, name)));
		}
	}
	return bad;
}

static int add_slider(const struct map *map, size_t dimension, json_t *spec, json_t *choices)
{
	char name[FIELD_BYTES];
	char filter[LABEL_BYTES];
	const size_t points = map->report->record->grid.points;
	const size_t start =
		map->report->best < points ? choice_of(map, map->report->best, dimension) : 0;
	(void)snprintf(name, sizeof name, "k%zu", dimension);
	(void)snprintf(filter, sizeof filter, "datum.c%zu == %s", dimension, name);
	int bad = json_array_append_new(json_object_get(spec, "params"),
		json_pack("{s:s, s:I}", "name", name, "value", (json_int_t)start));
	bad |= json_array_append_new(
		json_object_get(spec, "transform"), json_pack("{s:s}", "filter", filter));
	return bad | json_array_append_new(choices,
			     json_pack("{s:s, s:o, s:o, s:I}", "param", name, "label",
				     dimension_text(map, dimension, NULL), "values",
				     dimension_texts(map, dimension), "start", (json_int_t)start));
}

/* Colours from half of the best at least, so that noise does not look like a difference. */
static json_t *make_map(const struct map *map)
{
	char middle[UNITS_BYTES];
	char columns[UNITS_BYTES];
	const double dark = fmin(map->least, map->most / 2);
	const size_t rows = axis_of(map, 1)->count;
	const size_t fitting = ROWS_PIXELS_MOST / (rows ? rows : 1);
	const size_t height = fitting > ROW_PIXELS         ? ROW_PIXELS
			      : fitting < ROW_PIXELS_LEAST ? ROW_PIXELS_LEAST
							   : fitting;
	(void)snprintf(middle, sizeof middle, "%.6g", dark + 0.55 * (map->most - dark));
	(void)snprintf(columns, sizeof columns, "%zu", axis_of(map, 0)->count);
	const char *const values[] = {middle, columns};
	json_t *spec = chart_spec_with(map_spec, values, sizeof values / sizeof values[0]);
	json_t *choices = json_array();
	int bad = add_tips(map, spec);
	for (size_t d = 2; d < map->count && spec; d++)
		bad |= add_slider(map, d, spec, choices);
	bad |= chart_spec_set(spec, "usermeta", json_pack("{s:o}", "choices", choices));
	bad |= chart_spec_set(spec, "height", json_integer((json_int_t)rows * (json_int_t)height));
	bad |= chart_spec_set(spec, "encoding.x.title", dimension_text(map, 0, NULL));
	bad |= chart_spec_set(spec, "encoding.x.sort", dimension_texts(map, 0));
	bad |= chart_spec_set(spec, "encoding.y.title", dimension_text(map, 1, NULL));
	bad |= chart_spec_set(spec, "encoding.y.sort", dimension_texts(map, 1));
	bad |= chart_spec_set(
		spec, "layer.0.encoding.color.scale.domain", json_pack("[f,f]", dark, map->most));
	if (!bad)
		return spec;
	json_decref(spec);
	return NULL;
}

static json_t *make_line(const struct map *map)
{
	json_t *spec = chart_spec(line_spec);
	int bad = add_tips(map, spec);
	bad |= chart_spec_set(spec, "encoding.x.title", dimension_text(map, 0, NULL));
	bad |= chart_spec_set(spec, "encoding.x.sort", dimension_texts(map, 0));
	if (!bad)
		return spec;
	json_decref(spec);
	return NULL;
}

/* --- words ---------------------------------------------------------------------------------------- */

static void write_text(const struct map *map, struct buffer *out)
{
	const struct report *report = map->report;
	buffer_text(out, "Throughput of every setting, in samples/s. ● is the best");
	if (map->enough < report->record->grid.points && map->enough != report->best)
		buffer_text(out, ", ◆ the knee: the least setting within 5 % of it");
	else
		buffer_text(out, " and the knee: no lesser setting is within 5 % of it");
	buffer_format(out, ". %s marks the frontier: nothing with less gives as much, within 2 %%.",
		map->count > 1 ? "An outline" : "“frontier” in the table");
	if (report->predicted > 0)
		buffer_format(out,
			" %zu settings were measured; %zu %s predicted (~, %s), with the 90 %% interval in the table.",
			report->good + report->unsteady, report->predicted,
			report->predicted == 1 ? "is" : "are",
			map->count > 1 ? "dashed and paler" : "hollow");
	if (report->unsteady > 0)
		buffer_text(out, " A question mark: not steady.");
}

static int build_map(struct map *map, struct chart *chart)
{
	const size_t points = map->report->record->grid.points;
	map->frontier = calloc(points, sizeof *map->frontier);
	map->rows = chart->table.rows = json_array();
	if (!map->frontier || !map->rows)
		return -ENOMEM;
	frontier_find(map->report, map->frontier);
	map->enough = report_smallest_within(map->report, NEAR_BEST_SHARE);
	add_points(map);
	write_text(map, &chart->text);
	if (!(map->most > 0))
		(void)snprintf(chart->why_not, sizeof chart->why_not,
			"No point has a throughput yet: there is nothing to compare.");
	else
		chart->spec = map->count > 1 ? make_map(map) : make_line(map);
	if (make_columns(map, &chart->table) || map->bad || (map->most > 0 && !chart->spec))
		return -ENOMEM;
	return 0;
}

static int build(const struct chart_input *input, struct chart *chart)
{
	struct map map = {.report = input->report};
	const size_t points = input->report->record->grid.points;
	find_dimensions(&map);
	if (map.count == 0)
		(void)snprintf(chart->why_not, sizeof chart->why_not,
			"Nothing was swept: this is one setting. 'mlbench sweep' with two keys or more draws a map here.");
	else if (points > POINTS_MOST)
		(void)snprintf(chart->why_not, sizeof chart->why_not,
			"%zu points are too many for a map in a page (%d at most): points.csv has them all.",
			points, POINTS_MOST);
	else {
		const int code = build_map(&map, chart);
		free(map.frontier);
		return code;
	}
	return 0;
}

const struct chart_kind chart_heatmap = {
	.id = "map",
	.title = "Throughput over the swept keys",
	.build = build,
};
