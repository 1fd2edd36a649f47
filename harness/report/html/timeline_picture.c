/* The panels of a timeline as a specification: lines told apart by dash as well as colour, the warm-up shaded, lines where
 * the limit changes, and what was at the pointer. */
#include "harness/report/html/palette.h"
#include "harness/report/html/timeline.h"

#include <math.h>
#include <stdio.h>

static double last_time(const struct measurement *m)
{
	return fmax(m->wall_seconds, m->windows[m->window_count - 1].t);
}

static json_t *time_channel(const struct measurement *m, bool last)
{
	json_t *axis = last ? json_pack("{s:b, s:b}", "grid", 1, "labelBound", 1)
			    : json_pack("{s:b, s:b, s:b}", "labels", 0, "ticks", 0, "grid", 1);
	return json_pack("{s:s, s:s, s:o, s:{s:[io], s:b}, s:o}", "field", "t", "type",
		"quantitative", "title",
		last ? json_string("seconds since the repetition began") : json_null(), "scale",
		"domain", 0, parts_number(last_time(m)), "nice", 0, "axis", axis);
}

static json_t *warmup_layer(const struct measurement *m)
{
	return json_pack("{s:{s:[{s:i, s:o}]}, s:{s:s, s:s, s:f, s:s}, s:{s:{s:s, s:s}, s:{s:s}}}",
		"data", "values", "t", 0, "end", parts_number(m->cut_seconds), "mark", "type",
		"rect", "color", PALETTE_BLOCKED, "opacity", 0.22, "tooltip",
		"warm-up: not measured", "encoding", "x", "field", "t", "type", "quantitative",
		"x2", "field", "end");
}

/* Where one phase ends and the next begins. */
static json_t *phase_values(const struct diagnosis *d)
{
	json_t *values = json_array();
	for (size_t i = 1; i < d->phase_count; i++) {
		char words[PARTS_TEXT_BYTES];
		const struct phase *phase = &d->phases[i];
		(void)snprintf(words, sizeof words, "phase %zu: %s / %s", i + 1,
			phase->stage[0] ? phase->stage : "none",
			phase->resource[0] ? phase->resource : "unknown");
		parts_append(&values, json_pack("{s:o, s:o}", "t", parts_number(phase->begin_s),
					      "phase", parts_text(words)));
	}
	return values;
}

static json_t *phase_layer(const struct diagnosis *d, bool named)
{
	json_t *line = json_pack("{s:{s:s, s:[ii], s:f}, s:{s:{s:s, s:s}}}", "mark", "type", "rule",
		"strokeDash", 3, 3, "strokeWidth", 1.5, "encoding", "tooltip", "field", "phase",
		"type", "nominal");
	json_t *text = json_pack("{s:{s:s, s:s, s:s, s:i, s:i, s:i}, s:{s:{s:s, s:s}, s:{s:i}}}",
		"mark", "type", "text", "align", "left", "baseline", "top", "dx", 4, "dy", 3,
		"fontSize", 11, "encoding", "text", "field", "phase", "type", "nominal", "y",
		"value", 0);
	json_t *layers = json_array();
	parts_append(&layers, line);
	if (named)
		parts_append(&layers, text);
	else
		json_decref(text);
	return json_pack("{s:{s:o}, s:{s:{s:s, s:s}}, s:o}", "data", "values", phase_values(d),
		"encoding", "x", "field", "t", "type", "quantitative", "layer", layers);
}

static json_t *names_of(const struct panel *panel)
{
	json_t *names = json_array();
	for (size_t i = 0; i < panel->count; i++)
		parts_append(&names, parts_text(panel->series[i].name));
	return names;
}

static json_t *looks(const struct panel *panel, bool dash)
{
	json_t *range = json_array();
	for (size_t i = 0; i < panel->count; i++)
		parts_append(&range,
			dash ? parts_dash(i) : json_string(parts_colour(panel->series[i].colour)));
	return json_pack("{s:o, s:o}", "domain", names_of(panel), "range", range);
}

static json_t *legend_of(const struct panel *panel)
{
	return panel->count > 1 ? json_pack("{s:s, s:s, s:n, s:s, s:i, s:i}", "orient", "top",
					  "direction", "horizontal", "title", "symbolType",
					  "stroke", "symbolSize", 250, "offset", 2)
				: json_null();
}

/* The series' columns as one, under the names that the legend has. */
static json_t *fold_of(const struct panel *panel)
{
	json_t *fields = json_array();
	json_t *names = json_array();
	for (size_t i = 0; i < panel->count; i++) {
		parts_append(&fields, json_string(panel->series[i].field));
		parts_append(&names, json_pack("{s:s, s:o}", "key", panel->series[i].field,
					     "series", parts_text(panel->series[i].name)));
	}
	return json_pack("[{s:o, s:[ss]}, {s:s, s:{s:{s:o}, s:s, s:[s]}}]", "fold", fields, "as",
		"key", "value", "lookup", "key", "from", "data", "values", names, "key", "key",
		"fields", "series");
}

static json_t *look_channel(const struct panel *panel, bool dash)
{
	return parts_channel_with("series", "nominal", NULL,
		json_pack("{s:o, s:o}", "scale", looks(panel, dash), "legend", legend_of(panel)));
}

static json_t *value_channel(const struct panel *panel)
{
	json_t *scale = panel->top > 0 ? json_pack("{s:[if]}", "domain", 0, panel->top)
				       : json_pack("{s:b}", "zero", panel->from_zero);
	return parts_channel_with("value", "quantitative", panel->axis,
		json_pack("{s:o, s:{s:s, s:i, s:i, s:i}}", "scale", scale, "axis", "format",
			panel->format, "tickCount", 3, "minExtent", PARTS_AXIS_PIXELS, "maxExtent",
			PARTS_AXIS_PIXELS * 2));
}

static json_t *lines_layer(const struct panel *panel)
{
	return json_pack("{s:o, s:{s:s, s:f}, s:{s:o, s:o, s:o}}", "transform", fold_of(panel),
		"mark", "type", "line", "strokeWidth", 1.7, "encoding", "y", value_channel(panel),
		"color", look_channel(panel, false), "strokeDash", look_channel(panel, true));
}

static json_t *level_layer(const struct panel *panel)
{
	return json_pack("{s:{s:[{s:f}]}, s:{s:s, s:[ii], s:f}, s:{s:n, s:{s:s, s:s}}}", "data",
		"values", "level", panel->line, "mark", "type", "rule", "strokeDash", 4, 4,
		"opacity", 0.7, "encoding", "x", "y", "field", "level", "type", "quantitative");
}

/* A line at the window nearest to the pointer, with what it was. */
static json_t *pointer_layer(const struct timeline *t, size_t at)
{
	const struct panel *panel = &t->panels[at];
	char name[NAME_BYTES];
	struct parts_tip tips[PARTS_COUNT(panel->series) + 1] = {{"t", "seconds", ".3~f"}};
	for (size_t i = 0; i < panel->count; i++)
		tips[i + 1] = (struct parts_tip){panel->series[i].field, panel->series[i].name,
			panel->cells == PAGE_SHARE ? ".1%" : ",.4~r"};
	(void)snprintf(name, sizeof name, "at%u", (unsigned)at % TIMELINE_PANELS_MAX);
	json_t *param = json_pack("{s:s, s:{s:s, s:b, s:s, s:s, s:[s]}}", "name", name, "select",
		"type", "point", "nearest", 1, "on", "pointerover", "clear", "pointerout",
		"encodings", "x");
	json_t *opacity = json_pack("{s:{s:s, s:b, s:f}, s:i}", "condition", "param", name, "empty",
		0, "value", 0.5, "value", 0);
	return json_pack("{s:s, s:[o], s:{s:o, s:o}}", "mark", "rule", "params", param, "encoding",
		"opacity", opacity, "tooltip", parts_tips(tips, panel->count + 1));
}

static json_t *panel_json(const struct timeline *t, size_t at)
{
	const struct panel *panel = &t->panels[at];
	json_t *layers = json_array();
	if (t->m->cut_seconds > 0)
		parts_append(&layers, warmup_layer(t->m));
	parts_append(&layers, lines_layer(panel));
	if (isfinite(panel->line))
		parts_append(&layers, level_layer(panel));
	if (t->diagnosis && t->diagnosis->phase_count > 1)
		parts_append(&layers, phase_layer(t->diagnosis, at == 0));
	parts_append(&layers, pointer_layer(t, at));
	return json_pack("{s:{s:o, s:s, s:i, s:s, s:i}, s:i, s:{s:o}, s:o}", "title", "text",
		parts_text(panel->title), "anchor", "start", "fontSize", 12, "fontWeight", "normal",
		"offset", 2, "height", panel->pixels, "encoding", "x",
		time_channel(t->m, at + 1 == t->count), "layer", layers);
}

json_t *timeline_picture(const struct timeline *t)
{
	json_t *panels = json_array();
	for (size_t i = 0; i < t->count; i++)
		parts_append(&panels, panel_json(t, i));
	return json_pack("{s:{s:s}, s:i, s:o, s:{s:{s:s, s:s}, s:{s:s, s:s}}}", "data", "name",
		"rows", "spacing", 4, "vconcat", panels, "resolve", "scale", "color", "independent",
		"strokeDash", "independent", "legend", "color", "independent", "strokeDash",
		"independent");
}
