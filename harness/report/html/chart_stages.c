/* What the threads of each stage did: stacked bars of working, starved and blocked, for every point of a sweep.  A panel
 * for each stage, a column for each point, fastest first: two hundred columns are still a picture, which shows where a
 * stage's waiting gives way to work.  One point alone is drawn as a bar for each stage. */
#include "harness/base/units.h"
#include "harness/record/config_json.h"
#include "harness/report/html/chart_parts.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LABELLED_MOST = 24, /* points whose settings are written below their columns */
	SPACED_MOST = 60,   /* points with room between their columns */
	STAGE_PIXELS = 74,
	RATE_PIXELS = 64,
	BAR_PIXELS = 34,
};

static const double WORTH_SAYING = 0.005; /* of the time */

static const struct page_column columns[] = {
	{"point", "Point", PAGE_COUNT},
	{"settings", "Settings", PAGE_TEXT},
	{"throughput", "Samples/s", PAGE_REAL},
	{"rank", "Rank by throughput", PAGE_COUNT},
	{"stage", "Stage", PAGE_TEXT},
	{"workers", "Threads", PAGE_COUNT},
	{"working", "Working", PAGE_SHARE},
	{"starved", "Starved", PAGE_SHARE},
	{"blocked", "Blocked", PAGE_SHARE},
	{"binds", "Binds", PAGE_TEXT},
	{"verdict", "Verdict", PAGE_TEXT},
};

/* Stages of all points, in the order of the pipeline as the first point has them. */
struct stages {
	char names[STAGES_MAX][NAME_BYTES];
	size_t count;
	size_t drawn;              /* points that have shares */
	size_t limits[STAGES_MAX]; /* points at which it binds */
	size_t prefetch;           /* points at which the depth of the prefetch binds */
	size_t untold;             /* points whose verdict names none of all these */
};

static size_t stage_index(const struct stages *stages, const char *name)
{
	size_t i = 0;
	while (i < stages->count && strcmp(stages->names[i], name) != 0)
		i++;
	return i;
}

static bool has_shares(const struct stage_summary *stage)
{
	return isfinite(stage->busy) && isfinite(stage->starved) && isfinite(stage->blocked);
}

static void take_point(struct stages *stages, const struct point_summary *p)
{
	bool any = false;
	for (size_t i = 0; i < p->stage_count; i++) {
		if (!has_shares(&p->stages[i]))
			continue;
		any = true;
		if (stage_index(stages, p->stages[i].name) == stages->count &&
			stages->count < STAGES_MAX)
			(void)snprintf(stages->names[stages->count++], NAME_BYTES, "%s",
				p->stages[i].name);
	}
	if (!any)
		return;
	stages->drawn++;
	const size_t limit = stage_index(stages, p->verdict.stage);
	if (limit < stages->count)
		stages->limits[limit]++;
	else if (stage_is(p->verdict.stage, STAGE_PREFETCH))
		stages->prefetch++;
	else
		stages->untold++;
}

static json_t *verdict_text(const struct verdict *verdict)
{
	char text[PARTS_TEXT_BYTES];
	(void)snprintf(text, sizeof text, "%s / %s", verdict->stage[0] ? verdict->stage : "none",
		verdict->resource[0] ? verdict->resource : "unknown");
	return parts_text(text);
}

static json_t *row_of(const struct report *report, const struct point_summary *p, size_t rank,
	const struct stage_summary *stage, size_t at, bool first)
{
	char label[PARTS_TEXT_BYTES];
	const bool binds = strcmp(p->verdict.stage, stage->name) == 0;
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
	part_put(&row, "binds", json_string(binds ? "binds" : ""));
	part_put(&row, "verdict", verdict_text(&p->verdict));
	return part_close(&row);
}

static void add_rows(struct chart *chart, const struct report *report,
	const struct point_summary *p, size_t rank, const struct stages *stages)
{
	bool first = true;
	for (size_t i = 0; i < p->stage_count; i++) {
		const struct stage_summary *stage = &p->stages[i];
		const size_t at = stage_index(stages, stage->name);
		if (!has_shares(stage) || at == stages->count)
			continue;
		parts_append(&chart->table.rows, row_of(report, p, rank, stage, at, first));
		first = false;
	}
}

/* --- the picture ---------------------------------------------------------------------------------- */

static json_t *state_channel(const char *from)
{
	json_t *scale = json_pack("{s:[sss], s:[sss]}", "domain", "working", "starved", "blocked",
		"range", PALETTE_WORKING, PALETTE_STARVED, PALETTE_BLOCKED);
	json_t *look = json_pack("{s:s, s:s, s:s, s:s}", "orient", "top", "direction", "horizontal",
		"title", from, "titleOrient", "left");
	return parts_channel_with(
		"state", "nominal", NULL, json_pack("{s:o, s:o}", "scale", scale, "legend", look));
}

/* working first, then starved, then blocked: told apart by place as well as by colour. */
static json_t *fold(void)
{
	return json_pack("[{s:[sss], s:[ss]}, {s:s, s:s}]", "fold", "working", "starved", "blocked",
		"as", "state", "share", "calculate",
		"datum.state == 'working' ? 0 : datum.state == 'starved' ? 1 : 2", "as", "place");
}

static json_t *state_tips(void)
{
	static const struct parts_tip tips[] = {
		{"label", "point", NULL},
		{"settings", "settings", NULL},
		{"throughput", "samples/s", ",.4~r"},
		{"stage", "stage", NULL},
		{"workers", "threads", "d"},
		{"working", "working", ".1%"},
		{"starved", "starved", ".1%"},
		{"blocked", "blocked", ".1%"},
		{"verdict", "verdict", NULL},
	};
	return parts_tips(tips, PARTS_COUNT(tips));
}

static json_t *share_channel(const char *title, bool room)
{
	json_t *scale = room ? json_pack("{s:[if]}", "domain", 0, 1.22)
			     : json_pack("{s:[ii]}", "domain", 0, 1);
	return parts_channel_with("share", "quantitative", title,
		json_pack("{s:o, s:s, s:{s:s, s:[ffi], s:i, s:i}}", "scale", scale, "stack", "zero",
			"axis", "format", ".0%", "values", 0.0, 0.5, 1, "minExtent",
			room ? PARTS_AXIS_PIXELS : 0, "maxExtent", PARTS_AXIS_PIXELS * 2));
}

static json_t *place_channel(size_t count, bool labels, const char *title)
{
	json_t *sort = json_pack("{s:s, s:s}", "field", "along", "op", "min");
	json_t *scale = json_pack(
		"{s:s, s:f}", "type", "band", "paddingInner", count > SPACED_MOST ? 0.0 : 0.12);
	json_t *axis = labels ? json_pack("{s:i, s:i, s:b, s:b}", "labelAngle", -50, "labelLimit",
					130, "ticks", 0, "grid", 0)
			      : json_pack("{s:b, s:b, s:b}", "labels", 0, "ticks", 0, "grid", 0);
	json_t *channel = parts_channel_with("label", "nominal", NULL,
		json_pack("{s:o, s:o, s:o}", "sort", sort, "axis", axis, "scale", scale));
	if (channel &&
		json_object_set_new(channel, "title", title ? json_string(title) : json_null())) {
		json_decref(channel);
		return NULL;
	}
	return channel;
}

/* A mark above the columns of the points at which this stage binds. */
static json_t *limit_layer(size_t count)
{
	json_t *mark = json_pack("{s:s, s:s, s:b, s:f, s:i, s:s}", "type", "point", "shape",
		"triangle-down", "filled", 1, "opacity", 1.0, "size",
		count > LABELLED_MOST ? 18 : 60, "color", PALETTE_BINDS);
	return json_pack("{s:[{s:s}], s:o, s:{s:{s:f}, s:o}}", "transform", "filter",
		"datum.binds == 'binds'", "mark", mark, "encoding", "y", "datum", 1.12, "tooltip",
		state_tips());
}

static json_t *panel_title(const char *text)
{
	return json_pack("{s:o, s:s, s:i, s:s, s:i}", "text", parts_text(text), "anchor", "start",
		"fontSize", 12, "fontWeight", "normal", "offset", 2);
}

static json_t *stage_panel(
	const struct stages *stages, size_t at, size_t count, const char *axis_title)
{
	char filter[PARTS_TEXT_BYTES];
	const bool last = at + 1 == stages->count;
	(void)snprintf(filter, sizeof filter, "datum.at == %zu", at);
	/* Thousands of marks: what each would say to a screen reader is in the table. */
	json_t *bars = json_pack("{s:o, s:{s:s, s:b}, s:{s:o, s:o, s:{s:s, s:s}, s:o}}",
		"transform", fold(), "mark", "type", "bar", "aria", 0, "encoding", "y",
		share_channel("of its time", true), "color", state_channel("from the bottom:"),
		"order", "field", "place", "type", "quantitative", "tooltip", state_tips());
	return json_pack("{s:o, s:i, s:[{s:s}], s:{s:o}, s:[oo]}", "title",
		panel_title(stages->names[at]), "height", STAGE_PIXELS, "transform", "filter",
		filter, "encoding", "x",
		place_channel(count, last && count <= LABELLED_MOST, last ? axis_title : NULL),
		"layer", bars, limit_layer(count));
}

static json_t *rate_panel(size_t count)
{
	json_t *mark = json_pack("{s:s, s:b, s:f, s:i, s:s}", "type", "point", "filled", 1,
		"opacity", 1.0, "size", count > LABELLED_MOST ? 14 : 50, "color", PALETTE_GOOD);
	json_t *y = parts_channel_with("throughput", "quantitative", "samples/s",
		json_pack("{s:{s:b}, s:{s:s, s:i, s:i, s:i}}", "scale", "zero", 1, "axis", "format",
			"~s", "tickCount", 3, "minExtent", PARTS_AXIS_PIXELS, "maxExtent",
			PARTS_AXIS_PIXELS * 2));
	return json_pack("{s:o, s:i, s:[{s:s}], s:o, s:{s:o, s:o, s:o}}", "title",
		panel_title("Throughput"), "height", RATE_PIXELS, "transform", "filter",
		"datum.first", "mark", mark, "encoding", "x", place_channel(count, false, NULL),
		"y", y, "tooltip", state_tips());
}

static void axis_title_of(const struct report *report, size_t count, struct buffer *out)
{
	char name[CONFIG_NAME_BYTES];
	const struct config *config = &report->record->config;
	if (count > LABELLED_MOST) {
		buffer_format(out, "%zu points (settings: tooltips)", count);
		return;
	}
	buffer_text(out, "point:  ");
	for (size_t axis = 0; axis < config->axis_count; axis++)
		buffer_format(out, "%s%s", axis ? " / " : "",
			config_key_name(config->axes[axis].key, name));
}

static json_t *many_points(const struct report *report, const struct stages *stages, size_t count)
{
	struct buffer title = {0};
	json_t *panels = json_array();
	axis_title_of(report, count, &title);
	parts_append(&panels, title.failed ? NULL : rate_panel(count));
	for (size_t at = 0; at < stages->count && !title.failed; at++)
		parts_append(&panels, stage_panel(stages, at, count, title.data));
	buffer_release(&title);
	json_t *order = json_pack("{s:s, s:s, s:[ss]}", "param", "order", "label", "Order",
		"values", "fastest first", "as in the sweep");
	return json_pack(
		"{s:{s:[o]}, s:[{s:s, s:i}], s:{s:s}, s:[{s:s, s:s}], s:i, s:{s:{s:s}}, s:o}",
		"usermeta", "choices", order, "params", "name", "order", "value", 0, "data", "name",
		"rows", "transform", "calculate", "order == 1 ? datum.point : datum.rank", "as",
		"along", "spacing", 6, "resolve", "scale", "x", "independent", "vconcat", panels);
}

static json_t *one_point(const struct stages *stages)
{
	json_t *y = parts_channel_with("stage", "nominal", NULL,
		json_pack("{s:n, s:n, s:{s:i}}", "sort", "title", "axis", "labelLimit", 160));
	json_t *x = share_channel("share of its threads' time", false);
	return json_pack("{s:{s:s}, s:i, s:o, s:{s:s, s:f}, s:{s:o, s:o, s:o, s:{s:s, s:s}, s:o}}",
		"data", "name", "rows", "height", (int)stages->count * BAR_PIXELS, "transform",
		fold(), "mark", "type", "bar", "cornerRadius", 1.0, "encoding", "x", x, "y", y,
		"color", state_channel("from the left:"), "order", "field", "place", "type",
		"quantitative", "tooltip", state_tips());
}

/* --- what it says ----------------------------------------------------------------------------------- */

static const struct stage_summary *busiest(const struct point_summary *p)
{
	const struct stage_summary *most = NULL;
	for (size_t i = 0; i < p->stage_count; i++)
		if (has_shares(&p->stages[i]) && (!most || p->stages[i].busy > most->busy))
			most = &p->stages[i];
	return most;
}

/* "its 4 threads work for 97% of the time and wait for input for 3%" */
static void say_point(const struct point_summary *p, struct buffer *out)
{
	char text[UNITS_BYTES];
	const struct stage_summary *most = busiest(p);
	if (!most)
		return;
	const bool one = most->workers == 1;
	const bool starved = most->starved >= WORTH_SAYING;
	const bool blocked = most->blocked >= WORTH_SAYING;
	buffer_format(out, "%s is busiest: its %u %s for %s of the time", most->name, most->workers,
		one ? "thread works" : "threads work", units_format_share(most->busy, text));
	if (starved)
		buffer_format(out, "%s for input for %s", one ? ", waits" : ", wait",
			units_format_share(most->starved, text));
	if (blocked)
		buffer_format(out, "%s for room behind it for %s", one ? ", waits" : ", wait",
			units_format_share(most->blocked, text));
	buffer_text(out, starved || blocked ? "."
			 : one              ? " and hardly ever waits."
					    : " and hardly ever wait.");
}

static void say_limits(const struct stages *stages, struct buffer *out)
{
	size_t kinds = (stages->prefetch > 0 ? 1U : 0U) + (stages->untold > 0 ? 1U : 0U);
	size_t said = 0;
	char words[PARTS_TEXT_BYTES];
	for (size_t i = 0; i < stages->count; i++)
		kinds += stages->limits[i] > 0;
	buffer_format(out, " Of %zu points, ", stages->drawn);
	for (size_t i = 0; i < stages->count; i++) {
		(void)snprintf(words, sizeof words, "%s binds at %zu (triangles)", stages->names[i],
			stages->limits[i]);
		if (stages->limits[i] > 0)
			parts_listed(out, said++, kinds, words);
	}
	(void)snprintf(words, sizeof words, "the prefetch depth at %zu", stages->prefetch);
	if (stages->prefetch > 0)
		parts_listed(out, said++, kinds, words);
	(void)snprintf(words, sizeof words, "it cannot be told at %zu", stages->untold);
	if (stages->untold > 0)
		parts_listed(out, said, kinds, words);
	buffer_text(out, ".");
}

static void say(const struct report *report, const struct stages *stages, const size_t *points,
	size_t count, size_t all, struct chart *chart)
{
	struct buffer *out = &chart->text;
	const struct point_summary *best = report->points[points[0]];
	char rate[UNITS_BYTES];
	if (count > 1) {
		buffer_text(out, "At the fastest point (");
		report_settings(report, points[0], out);
		buffer_format(out, ", %s samples/s) ", units_format_count(best->median, rate));
	}
	say_point(best, out);
	if (count > 1)
		say_limits(stages, out);
	if (report->failed > 0)
		buffer_format(out, " %zu failed %s no times.", report->failed,
			report->failed == 1 ? "point has" : "points have");
	if (all > count)
		buffer_format(out,
			" Drawn are %zu of %zu points, evenly along their rank; points.csv has all.",
			count, all);
}

static int build_from(const struct report *report, const size_t *points, size_t count, size_t all,
	struct chart *chart)
{
	struct stages stages = {0};
	for (size_t i = 0; i < count; i++)
		take_point(&stages, report->points[points[i]]);
	if (count == 0)
		return parts_why_not(chart, "No point has been measured.");
	if (stages.drawn == 0)
		return parts_why_not(chart,
			"What the threads did was not recorded: the profiler was off (measure.profiler).");
	PARTS_COLUMNS(chart, columns);
	chart->table.rows = json_array();
	for (size_t i = 0; i < count; i++)
		add_rows(chart, report, report->points[points[i]], i + 1, &stages);
	say(report, &stages, points, count, all, chart);
	chart->spec =
		stages.drawn > 1 ? many_points(report, &stages, stages.drawn) : one_point(&stages);
	return parts_done(chart);
}

static int build(const struct chart_input *input, struct chart *chart)
{
	size_t count = 0;
	size_t all = 0;
	size_t *points = parts_points(input->report, &count, &all);
	const int code = points ? build_from(input->report, points, count, all, chart) : -ENOMEM;
	free(points);
	return code;
}

const struct chart_kind chart_stages = {"stages", "Time per stage", build};
