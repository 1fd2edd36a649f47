/* The ladder of limits: what each stage could give beside what was achieved, and the limits in the order in which they
 * would come.  Rates lie far apart, so the axis is logarithmic and a distance is a factor. */
#include "harness/analyze/diagnose.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/chart_spec.h"
#include "harness/report/html/palette.h"
#include "harness/report/part.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_BYTES = 3 * UNITS_BYTES, ROW_PIXELS = 30 };

static const struct page_column columns[] = {
	{"group", "what", PAGE_TEXT},
	{"name", "stage", PAGE_TEXT},
	{"rate", "samples/s", PAGE_COUNT},
	{"times", "times what was achieved", PAGE_REAL},
	{"how", "how it is known", PAGE_TEXT},
};

struct ladder_rows {
	json_t *rows;
	double achieved;
	double harness; /* mlbench's own ceiling; NAN: not measured */
	size_t rungs;
	int bad;
};

static void add_row(struct ladder_rows *all, const char *group, const char *kind, const char *name,
	double rate, const char *how)
{
	struct part part = part_open();
	char number[UNITS_BYTES];
	char label[LABEL_BYTES];
	if (!isfinite(rate) || rate <= 0)
		rate = NAN;
	(void)snprintf(label, sizeof label, "%s%s", strcmp(kind, "bound") == 0 ? "≥ " : "",
		isnan(rate) ? "not known" : units_format_count(rate, number));
	part_put(&part, "group", json_string(group));
	part_put(&part, "kind", json_string(kind));
	part_put(&part, "name", fields_text(name));
	part_put(&part, "rate", fields_number(rate));
	part_put(&part, "label_at", fields_number(rate));
	part_put(&part, "times", fields_number(rate / all->achieved));
	part_put(&part, "label", json_string(label));
	part_put(&part, "how", fields_text(how));
	all->bad |= json_array_append_new(all->rows, part_close(&part));
}

static bool binds(const struct verdict *v, const char *stage)
{
	return strcmp(v->stage, stage) == 0 || strcmp(v->also, stage) == 0;
}

static void add_stage(struct ladder_rows *all, const struct point_summary *p, size_t i)
{
	const struct stage_summary *stage = &p->stages[i];
	char how[NOTE_BYTES];
	const char *kind = binds(&p->verdict, stage->name)  ? "binds"
			   : stage->capacity_is_lower_bound ? "bound"
							    : "stage";
	(void)snprintf(how, sizeof how, "in this pipeline, %u thread%s%s", stage->workers,
		stage->workers == 1 ? "" : "s",
		!isfinite(stage->capacity)       ? "; it never showed its limit"
		: stage->capacity_is_lower_bound ? "; at least so much"
						 : "");
	if (stage->capacity_is_lower_bound && strcmp(kind, "binds") == 0)
		kind = "bound";
	add_row(all, "capacity", kind, stage->name, stage->capacity, how);
}

static void add_limits(
	struct ladder_rows *all, const struct record *record, const struct point_summary *p)
{
	for (size_t i = 0; i < record->limit_count; i++) {
		const struct stage_limit *limit = &record->limits[i];
		const bool harness = strcmp(limit->stage, "harness") == 0;
		if (!report_limit_is_of(limit, p))
			continue;
		add_row(all, harness ? "mlbench itself" : "alone", "alone",
			harness ? "mlbench" : limit->stage, limit->capacity, limit->how);
		if (harness)
			all->harness = limit->capacity;
	}
}

static void add_rungs(struct ladder_rows *all, const struct diagnosis *d)
{
	for (size_t i = 0; d && d->modelled && i < d->ladder.count; i++) {
		const struct ladder_rung *rung = &d->ladder.rungs[i];
		char name[LABEL_BYTES];
		(void)snprintf(
			name, sizeof name, "%zu  %s / %s", i + 1, rung->stage, rung->resource);
		add_row(all, "next limits", "rung", name, rung->throughput,
			i == 0 ? "by replay, as it is"
			       : "by replay, with the limits before it removed");
		all->rungs++;
	}
}

#define COLOUR                                                                                   \
	"'color': {'field': 'kind', 'type': 'nominal', 'legend': null, 'scale': {"               \
	"'domain': ['binds', 'stage', 'bound', 'alone', 'rung'], 'range': ['" PALETTE_BINDS      \
	"', '" PALETTE_WORKING "', '" PALETTE_WORKING "', '" PALETTE_BLOCKED "', '" PALETTE_GOOD \
	"']}}"
#define NAME                                                                                                      \
	"'y': {'field': 'name', 'type': 'nominal', 'sort': null, 'title': null, 'axis': {"                        \
	"'ticks': false, 'domain': false, 'grid': true, 'gridDash': [1, 3], 'minExtent': 128, 'maxExtent': 128, " \
	"'labelLimit': 124, 'labelFontSize': 12, 'labelColor': 'var(--ink)'}}"
/* Its domain and title are set later, in the first layer. */
#define RATE                                                                       \
	"'x': {'field': 'rate', 'type': 'quantitative', 'title': null, 'scale': {" \
	"'type': 'log', 'nice': false}, 'axis': {'format': '~s', 'tickCount': 5, 'grid': false}}"

/* Filled: in the pipeline; a triangle: at least so much; a ring: alone.  The thin line is the room above what was
 * achieved.  $1: the rows; $2: the rate that was achieved. */
static const char panel[] =
	"{'transform': [{'filter': '$1'}], 'height': {'step': 30}, 'layer': ["
	"{'transform': [{'filter': 'datum.kind != `alone` && datum.rate'}],"
	" 'mark': {'type': 'rule', 'strokeWidth': 2, 'opacity': 0.45},"
	" 'encoding': {" RATE ", 'x2': {'datum': $2}, " NAME ", " COLOUR "}},"
	"{'data': {'values': [{}]}, 'mark': {'type': 'rule', 'color': 'var(--ink)', 'strokeWidth': 1.5},"
	" 'encoding': {'x': {'datum': $2}}},"
	"{'mark': {'type': 'point', 'size': 90, 'strokeWidth': 1.8, 'opacity': 1},"
	" 'encoding': {'x': {'field': 'rate', 'type': 'quantitative'}, " NAME ", " COLOUR ","
	"  'shape': {'field': 'kind', 'type': 'nominal', 'legend': null, 'scale': {"
	"   'domain': ['binds', 'stage', 'bound', 'alone', 'rung'],"
	"   'range': ['circle', 'circle', 'triangle-right', 'circle', 'circle']}},"
	"  'fillOpacity': {'condition': {'test': 'datum.kind == `alone`', 'value': 0}, 'value': 1},"
	"  'fill': {'field': 'kind', 'type': 'nominal', 'legend': null, 'scale': {"
	"   'domain': ['binds', 'stage', 'bound', 'alone', 'rung'],"
	"   'range': ['" PALETTE_BINDS "', '" PALETTE_WORKING "', '" PALETTE_WORKING
	"', '" PALETTE_BLOCKED "', '" PALETTE_GOOD "']}},"
	"  'tooltip': [{'field': 'name', 'title': 'stage'}, {'field': 'label', 'title': 'samples/s'},"
	"   {'field': 'times', 'title': 'times achieved', 'format': '.3r'}, {'field': 'how', 'title': 'how'}]}},"
	"{'transform': [{'filter': 'datum.kind != `alone`'}],"
	" 'mark': {'type': 'text', 'align': 'left', 'dx': 10, 'fontSize': 12},"
	" 'encoding': {'x': {'field': 'label_at', 'type': 'quantitative'}, " NAME
	", 'text': {'field': 'label'}}}"
	"]}";

/* A line across the panel with its name above: $1 the rate, $2 the words, $3 on which side of it they stand. */
static const char line[] =
	"{'data': {'values': [{}]}, 'mark': {'type': 'text', 'baseline': 'bottom', 'align': '$3', 'dx': $4, 'dy': -4,"
	" 'fontSize': 12, 'text': '$2'}, 'encoding': {'x': {'datum': $1}, 'y': {'value': 0}}}";
static const char need[] =
	"{'data': {'values': [{}]}, 'mark': {'type': 'rule', 'color': 'var(--ink)', 'strokeDash': [4, 3]},"
	" 'encoding': {'x': {'datum': $1}}}";

static double step_takes(const struct point_summary *p)
{
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_STEP))
			return p->stages[i].capacity;
	return NAN;
}

/* The largest over the least, of all that is drawn. */
static double span_of(const struct ladder_rows *all, double *low, double *high)
{
	double least = all->achieved;
	double most = all->achieved;
	const json_t *row;
	size_t at;
	json_array_foreach(all->rows, at, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "name")), "mlbench") == 0)
			continue; /* far away: said in words */
		const double rate = fields_real(json_object_get(row, "rate"));
		least = fmin(least, rate); /* passes over NAN */
		most = fmax(most, rate);
	}
	*low = least;
	*high = most;
	return fmax(most / least, 2);
}

/* From a little below the least to room for a label right of the largest. */
static json_t *domain_of(const struct ladder_rows *all)
{
	static const double BELOW = 0.06;
	static const double ABOVE = 0.2;
	double least;
	double most;
	const double span = span_of(all, &least, &most);
	return json_pack("[f,f]", least / pow(span, BELOW), most * pow(span, ABOVE));
}

static const json_t *find_alone(const struct ladder_rows *all, const char *name)
{
	const json_t *row;
	size_t at;
	json_array_foreach(all->rows, at,
		row) if (strcmp(json_string_value(json_object_get(row, "kind")), "alone") == 0 &&
			 strcmp(json_string_value(json_object_get(row, "name")), name) ==
				 0) return row;
	return NULL;
}

/* A ring that is close to the right of a stage's dot has the label to the right of itself. */
static void place_labels(struct ladder_rows *all)
{
	static const double CLOSE = 0.06; /* of the width */
	double least;
	double most;
	const double span = span_of(all, &least, &most);
	json_t *row;
	size_t at;
	json_array_foreach(all->rows, at, row)
	{
		const json_t *alone =
			find_alone(all, json_string_value(json_object_get(row, "name")));
		const double rate = fields_real(json_object_get(row, "rate"));
		const double ring = fields_real(json_object_get(alone, "rate"));
		if (ring > rate && log(ring / rate) < CLOSE * log(span))
			all->bad |= json_object_set_new(row, "label_at", fields_number(ring));
	}
}

static json_t *panel_of(const struct ladder_rows *all, const char *filter, const char *title)
{
	char achieved[UNITS_BYTES];
	(void)snprintf(achieved, sizeof achieved, "%.6g", all->achieved);
	const char *const values[] = {filter, achieved};
	json_t *spec = chart_spec_with(panel, values, sizeof values / sizeof values[0]);
	int bad = chart_spec_set(spec, "layer.0.encoding.x.scale.domain", domain_of(all));
	bad |= chart_spec_set(spec, "layer.0.encoding.x.title", json_string(title));
	if (!bad)
		return spec;
	json_decref(spec);
	return NULL;
}

static int add_line(json_t *spec, double rate, const char *words, bool left)
{
	char at[UNITS_BYTES];
	char number[UNITS_BYTES];
	char text[LABEL_BYTES];
	(void)snprintf(at, sizeof at, "%.6g", rate);
	(void)snprintf(text, sizeof text, "%s %s", words, units_format_count(rate, number));
	const char *const values[] = {at, text, left ? "right" : "left", left ? "-4" : "4"};
	return json_array_append_new(json_object_get(spec, "layer"),
		chart_spec_with(line, values, sizeof values / sizeof values[0]));
}

static int add_lines(json_t *spec, const struct point_summary *p)
{
	const double takes = step_takes(p);
	char at[UNITS_BYTES];
	const bool apart = takes > p->median;
	int bad = add_line(spec, p->median, "achieved", apart);
	if (!isfinite(takes) || !apart)
		return bad;
	(void)snprintf(at, sizeof at, "%.6g", takes);
	const char *const values[] = {at};
	bad |= json_array_append_new(
		json_object_get(spec, "layer"), chart_spec_with(need, values, 1));
	return bad | add_line(spec, takes, "the step takes", false);
}

static json_t *spec_of(struct ladder_rows *all, const struct point_summary *p)
{
	place_labels(all);
	json_t *spec = chart_spec("{'data': {'name': 'rows'}, 'spacing': 28, 'vconcat': []}");
	json_t *panels = json_object_get(spec, "vconcat");
	json_t *first = panel_of(all, "datum.group == 'capacity' || datum.group == 'alone'",
		all->rungs ? "" : "samples/s, each distance a factor");
	int bad = first ? add_lines(first, p) : -ENOMEM;
	bad |= json_array_append_new(panels, first);
	if (all->rungs)
		bad |= json_array_append_new(panels, panel_of(all, "datum.group == 'next limits'",
							     "samples/s, each distance a factor"));
	if (!bad)
		return spec;
	json_decref(spec);
	return NULL;
}

static void write_text(const struct report *report, const struct ladder_rows *all,
	const struct point_summary *p, struct buffer *out)
{
	char number[UNITS_BYTES];
	char times[UNITS_BYTES];
	buffer_text(out,
		"How much each stage could give here (dots), beside what was achieved (line). The thin "
		"line is a stage's room; where there is none, it binds.");
	for (size_t i = 0; i < p->stage_count; i++)
		if (p->stages[i].capacity_is_lower_bound) {
			buffer_text(out,
				" A triangle (≥) means at least so much: that stage never showed its limit.");
			break;
		}
	if (json_array_size(all->rows) > p->stage_count + all->rungs)
		buffer_text(out, " Rings: the stage alone on this node.");
	report_exceeded_text(report, p, " ", out);
	if (isfinite(all->harness))
		buffer_format(out,
			" mlbench itself could move %s samples/s, %s times what was achieved.",
			units_format_count(all->harness, number),
			units_format_count(all->harness / all->achieved, times));
	if (all->rungs)
		buffer_text(out,
			" Below, by replay of what was recorded: the limits in the order in which they come, each with "
			"those before it removed.");
}

static int build(const struct chart_input *input, struct chart *chart)
{
	const struct report *report = input->report;
	struct ladder_rows all = {.rows = json_array(), .harness = NAN};
	const struct point_summary *p =
		input->point < report->record->grid.points ? report->points[input->point] : NULL;
	chart->table = (struct page_table){.columns = columns,
		.column_count = sizeof columns / sizeof columns[0],
		.rows = all.rows};
	if (!p || !isfinite(p->median) || p->median <= 0) {
		(void)snprintf(chart->why_not, sizeof chart->why_not,
			"Nothing was measured that stages could be compared with.");
		return all.rows ? 0 : -ENOMEM;
	}
	all.achieved = p->median;
	for (size_t i = 0; i < p->stage_count; i++)
		add_stage(&all, p, i);
	add_limits(&all, report->record, p);
	add_rungs(&all, report->diagnoses ? report->diagnoses[input->point] : NULL);
	write_text(report, &all, p, &chart->text);
	chart->spec = spec_of(&all, p);
	return all.bad || !chart->spec ? -ENOMEM : 0;
}

const struct chart_kind chart_ladder = {
	.id = "ladder",
	.title = "The ladder of limits",
	.build = build,
};
