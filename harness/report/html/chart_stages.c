/* What the threads of each stage did: stacked bars of working, starved and blocked, for every point of a sweep.  A panel
 * for each stage, a column for each point, fastest first: two hundred columns are still a picture, which shows where a
 * stage's waiting gives way to work.  One point alone is drawn as a bar for each stage. */
#include "harness/base/units.h"
#include "harness/record/config_json.h"
#include "harness/report/html/chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	STAGES_LABELLED_MOST =
		24, /* points whose settings are written below their columns; in stages.vl.json, too */
	STAGES_BAR_PIXELS = 34,
};

static const double STAGES_WORTH_SAYING = 0.005; /* of the time */

static const struct page_column stages_columns[] = {
	{"point", "Point", PAGE_COUNT},
	{"settings", "Settings", PAGE_TEXT},
	{"throughput", "Samples/s", PAGE_REAL},
	{"rank", "Rank by throughput", PAGE_COUNT},
	{"stage", "Stage", PAGE_TEXT},
	{"workers", "Threads", PAGE_COUNT},
	{"working", "Working", PAGE_SHARE},
	{"starved", "Starved", PAGE_SHARE},
	{"blocked", "Blocked", PAGE_SHARE},
	{"bottleneck", "Bottleneck", PAGE_TEXT},
	{"verdict", "Verdict", PAGE_TEXT},
};

/* Stages of all points, in the order of the pipeline as the first point has them. */
struct stages {
	char names[STAGES_MAX][NAME_BYTES];
	size_t count;
	size_t drawn;              /* points that have shares */
	size_t limits[STAGES_MAX]; /* points whose bottleneck it is */
	size_t prefetch;           /* points whose bottleneck is the prefetch depth */
	size_t untold;             /* points whose verdict names none of all these */
};

static size_t stages_index(const struct stages *stages, const char *name)
{
	size_t i = 0;
	while (i < stages->count && strcmp(stages->names[i], name) != 0)
		i++;
	return i;
}

static bool stages_has_shares(const struct stage_summary *stage)
{
	return isfinite(stage->busy) && isfinite(stage->starved) && isfinite(stage->blocked);
}

static void stages_take_point(struct stages *stages, const struct point_summary *p)
{
	bool any = false;
	for (size_t i = 0; i < p->stage_count; i++) {
		if (!stages_has_shares(&p->stages[i]))
			continue;
		any = true;
		if (stages_index(stages, p->stages[i].name) == stages->count &&
			stages->count < STAGES_MAX)
			(void)snprintf(stages->names[stages->count++], NAME_BYTES, "%s",
				p->stages[i].name);
	}
	if (!any)
		return;
	stages->drawn++;
	const size_t limit = stages_index(stages, p->verdict.stage);
	if (limit < stages->count)
		stages->limits[limit]++;
	else if (stage_is(p->verdict.stage, STAGE_PREFETCH))
		stages->prefetch++;
	else
		stages->untold++;
}

static json_t *stages_verdict(const struct verdict *verdict)
{
	char text[PARTS_TEXT_BYTES];
	(void)snprintf(text, sizeof text, "%s / %s", verdict->stage[0] ? verdict->stage : "none",
		verdict->resource[0] ? verdict->resource : "unknown");
	return parts_text(text);
}

static json_t *stages_row(const struct report *report, const struct point_summary *p, size_t rank,
	const struct stage_summary *stage, size_t at, bool first)
{
	char label[PARTS_TEXT_BYTES];
	const bool bottleneck = strcmp(p->verdict.stage, stage->name) == 0;
	struct part row = part_open();
	part_put(&row, "point", json_integer(p->id));
	part_put(&row, "label", parts_text(parts_point_label(report, p->id, label, sizeof label)));
	part_put(&row, "settings", parts_settings(report, p->id));
	part_put(&row, "throughput", parts_number(p->median));
	part_put(&row, "rank", json_integer((json_int_t)rank));
	part_put(&row, "at", json_integer((json_int_t)at));
	part_put(&row, "first", json_boolean(first)); /* of its point */
	part_put(&row, "stage", parts_text(stage->name));
	part_put(&row, "workers", json_integer(stage->workers));
	part_put(&row, "working", parts_number(stage->busy));
	part_put(&row, "starved", parts_number(stage->starved));
	part_put(&row, "blocked", parts_number(stage->blocked));
	part_put(&row, "bottleneck", json_boolean(bottleneck));
	part_put(&row, "verdict", stages_verdict(&p->verdict));
	return part_close(&row);
}

static void stages_add_rows(struct chart *chart, const struct report *report,
	const struct point_summary *p, size_t rank, const struct stages *stages)
{
	bool first = true;
	for (size_t i = 0; i < p->stage_count; i++) {
		const struct stage_summary *stage = &p->stages[i];
		const size_t at = stages_index(stages, stage->name);
		if (!stages_has_shares(stage) || at == stages->count)
			continue;
		parts_append(&chart->table.rows, stages_row(report, p, rank, stage, at, first));
		first = false;
	}
}

/* --- the picture ---------------------------------------------------------------------------------- */

static void stages_axis_title(const struct report *report, size_t count, struct buffer *out)
{
	char name[CONFIG_NAME_BYTES];
	const struct config *config = &report->record->config;
	if (count > STAGES_LABELLED_MOST) {
		buffer_format(out, "%zu points (settings: tooltips)", count);
		return;
	}
	buffer_text(out, "point:  ");
	for (size_t axis = 0; axis < config->axis_count; axis++)
		buffer_format(out, "%s%s", axis ? " / " : "",
			config_key_name(config->axes[axis].key, name));
}

static void stages_draw(
	const struct report *report, const struct stages *stages, struct chart *chart)
{
	struct buffer title = {0};
	if (stages->drawn == 1) {
		chart_open(chart, "stages_one");
		chart_param(chart, "height",
			json_integer((json_int_t)stages->count * STAGES_BAR_PIXELS));
		return;
	}
	chart_open(chart, "stages");
	chart_param(chart, "points", json_integer((json_int_t)stages->drawn));
	chart_choice(chart, "order", json_string("Order"),
		json_pack("[ss]", "fastest first", "as in the sweep"), 0);
	stages_axis_title(report, stages->drawn, &title);
	chart_param(chart, "x_title", title.failed ? NULL : json_string(title.data));
	buffer_release(&title);
}

/* --- what it says ----------------------------------------------------------------------------------- */

static const struct stage_summary *stages_busiest(const struct point_summary *p)
{
	const struct stage_summary *most = NULL;
	for (size_t i = 0; i < p->stage_count; i++)
		if (stages_has_shares(&p->stages[i]) && (!most || p->stages[i].busy > most->busy))
			most = &p->stages[i];
	return most;
}

static void stages_find(const struct point_summary *p, bool swept, struct buffer *out)
{
	char text[UNITS_BYTES];
	const struct stage_summary *most = stages_busiest(p);
	if (!most)
		return;
	buffer_sentence(out, parts_stage(most->name));
	buffer_format(out, " is the busiest stage%s: %s of the time",
		swept ? " at the point of the verdict" : "", units_format_share(most->busy, text));
}

/* "its 4 threads wait for input for 3%" */
static void stages_say_point(const struct point_summary *p, struct buffer *out)
{
	char text[UNITS_BYTES];
	const struct stage_summary *most = stages_busiest(p);
	if (!most)
		return;
	const char *threads = most->workers == 1 ? "thread waits" : "threads wait";
	const bool starved = most->starved >= STAGES_WORTH_SAYING;
	const bool blocked = most->blocked >= STAGES_WORTH_SAYING;
	buffer_format(out, "%s: its %u %s", most->name, most->workers, threads);
	if (starved)
		buffer_format(out, " for input for %s of the time",
			units_format_share(most->starved, text));
	if (blocked)
		buffer_format(out, "%s for room downstream for %s of the time",
			starved ? " and" : "", units_format_share(most->blocked, text));
	buffer_text(out, starved || blocked ? "." : " for less than 0.5 % of the time.");
}

static void stages_say_bottlenecks(const struct stages *stages, struct buffer *out)
{
	size_t kinds = (stages->prefetch > 0 ? 1U : 0U) + (stages->untold > 0 ? 1U : 0U);
	size_t said = 0;
	char words[PARTS_TEXT_BYTES];
	for (size_t i = 0; i < stages->count; i++)
		kinds += stages->limits[i] > 0;
	buffer_format(out, " Bottlenecks at %zu points (▼): ", stages->drawn);
	for (size_t i = 0; i < stages->count; i++) {
		(void)snprintf(
			words, sizeof words, "%s at %zu", stages->names[i], stages->limits[i]);
		if (stages->limits[i] > 0)
			parts_listed(out, said++, kinds, words);
	}
	(void)snprintf(words, sizeof words, "the prefetch depth at %zu", stages->prefetch);
	if (stages->prefetch > 0)
		parts_listed(out, said++, kinds, words);
	(void)snprintf(words, sizeof words, "unknown at %zu", stages->untold);
	if (stages->untold > 0)
		parts_listed(out, said, kinds, words);
	buffer_text(out, ".");
}

static void stages_say(const struct chart_input *input, const struct stages *stages, size_t count,
	size_t all, struct chart *chart)
{
	const struct report *report = input->report;
	struct buffer *out = &chart->text;
	const struct point_summary *its = parts_point(input);
	char rate[UNITS_BYTES];
	if (its)
		stages_find(its, count > 1, &chart->finding);
	if (its && count > 1) {
		buffer_text(out, "The verdict is about ");
		report_settings(report, input->point, out);
		buffer_format(out, ", %s samples/s. ", units_format_count(its->median, rate));
	}
	if (its)
		stages_say_point(its, out);
	if (count > 1)
		stages_say_bottlenecks(stages, out);
	if (report->failed > 0)
		buffer_format(out, " %zu failed %s no times.", report->failed,
			report->failed == 1 ? "point has" : "points have");
	if (all > count)
		buffer_format(out,
			" Drawn are %zu of %zu points, evenly along their rank; points.csv has all.",
			count, all);
}

static int stages_build(const struct chart_input *input, const size_t *points, size_t count,
	size_t all, struct chart *chart)
{
	const struct report *report = input->report;
	struct stages stages = {0};
	for (size_t i = 0; i < count; i++)
		stages_take_point(&stages, report->points[points[i]]);
	if (count == 0)
		return chart_why_not(chart, "No point has been measured.");
	if (stages.drawn == 0)
		return chart_why_not(chart,
			"What the threads did was not recorded: the profiler was off (measure.profiler).");
	PARTS_COLUMNS(chart, stages_columns);
	chart->table.rows = json_array();
	for (size_t i = 0; i < count; i++)
		stages_add_rows(chart, report, report->points[points[i]], i + 1, &stages);
	stages_say(input, &stages, count, all, chart);
	stages_draw(report, &stages, chart);
	return chart_done(chart);
}

int chart_stages(const struct chart_input *input, struct chart *chart)
{
	size_t count = 0;
	size_t all = 0;
	size_t *points = parts_points(input->report, &count, &all);
	const int code = points ? stages_build(input, points, count, all, chart) : -ENOMEM;
	free(points);
	return code;
}
