/* One repetition over time, a panel for each quantity above the same axis of seconds: throughput, busy stages, cores,
 * queues, memory, and the device's clock, power and temperature.  The warm-up that was cut off is shaded, and where the
 * bottleneck changes there is a line.  A quantity that was not recorded has no panel, and the text says why. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/rates.h"
#include "harness/analyze/summary.h"
#include "harness/base/units.h"
#include "harness/report/html/chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TIMELINE_PANELS_MAX = 16,
	TIMELINE_PANEL_PIXELS = 84,
	TIMELINE_QUEUE_PIXELS = 52,
	TIMELINE_DEVICE_SERIES = 3,
	TIMELINE_UNEVEN_PARTS = 20,
	TIMELINE_RATE_BATCHES = 8, /* that a rate is taken over, at least */
	TIMELINE_QUEUE_COLOUR = 5,
};

static const double MIB = 1024.0 * 1024.0;

/* A line: its value at the end of each window. */
typedef double timeline_value(const struct measurement *m, size_t window, size_t which);

struct series {
	char field[NAME_BYTES];
	char name[NAME_BYTES * 4]; /* in the legend */
	timeline_value *value;
	size_t which;  /* stage, queue */
	size_t colour; /* and dash */
};

struct panel {
	char title[PARTS_TEXT_BYTES];
	const char *axis, *format;
	const char *column; /* of the table, after the series' name */
	enum page_format cells;
	double top;  /* of the axis; 0: as the values need */
	double line; /* a level to mark; NAN: none */
	int pixels;
	bool from_zero;
	struct series series[STAGES_MAX];
	size_t count;
};

struct timeline {
	const struct measurement *m;
	const struct diagnosis *diagnosis; /* NULL: none */
	const struct step_info *step;
	struct panel panels[TIMELINE_PANELS_MAX];
	size_t count;
	struct buffer lacks; /* sentences */
};

/* --- values ----------------------------------------------------------------------------------- */

static double timeline_begin_of(const struct measurement *m, size_t window)
{
	return window > 0 ? m->windows[window - 1].t : 0;
}

static double timeline_length_of(const struct measurement *m, size_t window)
{
	return m->windows[window].t - timeline_begin_of(m, window);
}

/* Windows count whole batches: a rate is taken over so many of them about a window, and over the window at least. */
static double timeline_rate_span(const struct measurement *m)
{
	const double each = m->batches > 0 ? m->measured_seconds / (double)m->batches : 0;
	return fmax(each * TIMELINE_RATE_BATCHES, m->window_seconds);
}

static double rate_value(const struct measurement *m, size_t window, size_t which)
{
	const double middle = (timeline_begin_of(m, window) + m->windows[window].t) / 2;
	const double half = timeline_rate_span(m) / 2;
	const double from = fmax(middle - half, 0);
	const double to = fmin(middle + half, m->windows[m->window_count - 1].t);
	(void)which;
	return to > from ? (rate_samples_at(m, to) - rate_samples_at(m, from)) / (to - from)
			 : (double)NAN;
}

static double busy_value(const struct measurement *m, size_t window, size_t stage)
{
	const double before =
		window > 0 ? m->windows[window - 1].stage_seconds[stage][THREAD_WORKING] : 0;
	const double worked = m->windows[window].stage_seconds[stage][THREAD_WORKING] - before;
	const double time = timeline_length_of(m, window) * m->stages[stage].workers;
	return time > 0 ? worked / time : (double)NAN;
}

static double cores_value(const struct measurement *m, size_t window, size_t stage)
{
	const double before = window > 0 ? m->windows[window - 1].stage_cpu[stage] : 0;
	return timeline_length_of(m, window) > 0 ? (m->windows[window].stage_cpu[stage] - before) /
							   timeline_length_of(m, window)
						 : (double)NAN;
}

static double queue_value(const struct measurement *m, size_t window, size_t queue)
{
	return (double)m->windows[window].queue_depth[queue];
}

static double resident_value(const struct measurement *m, size_t window, size_t which)
{
	const struct window *w = &m->windows[window];
	(void)which;
	return w->resident_bytes > 0 ? (double)w->resident_bytes / MIB : (double)NAN;
}

static double anonymous_value(const struct measurement *m, size_t window, size_t which)
{
	const struct window *w = &m->windows[window];
	(void)which;
	return w->resident_bytes > w->file_bytes ? (double)(w->resident_bytes - w->file_bytes) / MIB
						 : (double)NAN;
}

static double heap_value(const struct measurement *m, size_t window, size_t which)
{
	(void)which;
	return m->windows[window].heap_used_bytes / MIB;
}

static double device_value(const struct measurement *m, size_t window, size_t which)
{
	const struct window *w = &m->windows[window];
	return (double)(which == 0   ? w->device_clock_mhz
			: which == 1 ? w->device_power_w
				     : w->device_temperature_c);
}

/* --- what there is ---------------------------------------------------------------------------- */

static bool timeline_is_known(const struct measurement *m, timeline_value *value, size_t which)
{
	for (size_t i = 0; i < m->window_count; i++)
		if (isfinite(value(m, i, which)))
			return true;
	return false;
}

static struct panel *timeline_add_panel(struct timeline *t, const char *title, const char *axis,
	const char *format, enum page_format cells)
{
	struct panel *panel = &t->panels[t->count++];
	*panel = (struct panel){.axis = axis,
		.format = format,
		.cells = cells,
		.column = axis,
		.line = NAN,
		.pixels = TIMELINE_PANEL_PIXELS,
		.from_zero = true};
	(void)snprintf(panel->title, sizeof panel->title, "%s", title);
	return panel;
}

static void timeline_add_series(struct timeline *t, struct panel *panel, timeline_value *value,
	size_t which, size_t colour, const char *name)
{
	if (panel->count == PARTS_COUNT(panel->series) || !timeline_is_known(t->m, value, which))
		return;
	struct series *series = &panel->series[panel->count++];
	*series = (struct series){.value = value, .which = which, .colour = colour};
	(void)snprintf(series->name, sizeof series->name, "%s", name);
	(void)snprintf(series->field, sizeof series->field, "v%d_%zu", (int)t->count, panel->count);
}

/* A panel without a line is none. */
static void timeline_keep_panel(struct timeline *t, const char *lack)
{
	if (t->panels[t->count - 1].count > 0)
		return;
	t->count--;
	if (lack)
		buffer_format(&t->lacks, " Not available: %s.", lack);
}

/* The note that speaks of a subject, or the usual reason. */
static const char *timeline_reason(
	const struct measurement *m, const char *subject, const char *usual)
{
	for (size_t i = 0; i < m->note_count; i++)
		if (strstr(m->notes[i], subject))
			return m->notes[i];
	return usual;
}

static void timeline_lack(char out[PARTS_TEXT_BYTES], const char *what, const char *why)
{
	(void)snprintf(out, PARTS_TEXT_BYTES, "%s (%s)", what, why);
}

static void timeline_add_rate(struct timeline *t)
{
	struct panel *panel = timeline_add_panel(t, "Throughput", "samples/s", "~s", PAGE_REAL);
	timeline_add_series(t, panel, rate_value, 0, 2, "throughput");
	timeline_keep_panel(t, "throughput by window");
}

/* The device's own time where it is a device's. */
static void timeline_add_stages(struct timeline *t)
{
	const struct measurement *m = t->m;
	struct panel *panel =
		timeline_add_panel(t, "Busy stages", "share of time", ".0%", PAGE_SHARE);
	panel->top = 1;
	panel->column = "busy";
	for (size_t i = 0; i < m->stage_count; i++) {
		char name[NAME_BYTES * 2];
		(void)snprintf(name, sizeof name, "%s%s", m->stages[i].name,
			m->stages[i].device ? " (its device)" : "");
		timeline_add_series(t, panel, busy_value, i, i, name);
	}
	timeline_keep_panel(t, "how busy the stages were");
}

static void timeline_add_cores(struct timeline *t)
{
	const struct measurement *m = t->m;
	char words[PARTS_TEXT_BYTES];
	struct panel *panel = timeline_add_panel(t, "CPU", "cores busy", "~g", PAGE_REAL);
	panel->column = "cores busy";
	for (size_t i = 0; i < m->stage_count; i++)
		timeline_add_series(t, panel, cores_value, i, i, m->stages[i].name);
	timeline_lack(words, "CPU time",
		timeline_reason(m, "no schedstat", "the kernel's accounting gave none"));
	timeline_keep_panel(t, words);
}

/* A panel each: one holds tens of files, the next a batch or two.  More than its capacity waits where batches of the
 * workers are done before the step takes the first. */
static void timeline_add_queues(struct timeline *t)
{
	const struct measurement *m = t->m;
	for (size_t i = 0; i < m->queue_count; i++) {
		char title[PARTS_TEXT_BYTES];
		(void)snprintf(title, sizeof title, "Queue: %s (dashed: its capacity, %u)",
			m->queues[i].name, m->queues[i].capacity);
		struct panel *panel = timeline_add_panel(t, title, "waiting", "~s", PAGE_COUNT);
		panel->pixels = TIMELINE_QUEUE_PIXELS;
		panel->line = m->queues[i].capacity;
		timeline_add_series(
			t, panel, queue_value, i, TIMELINE_QUEUE_COLOUR, m->queues[i].name);
		timeline_keep_panel(t, "queue depths");
	}
}

static void timeline_add_memory(struct timeline *t)
{
	struct panel *panel = timeline_add_panel(t, "Memory", "MiB", "~s", PAGE_REAL);
	timeline_add_series(t, panel, resident_value, 0, 0, "resident");
	timeline_add_series(t, panel, anonymous_value, 0, 1, "of it anonymous");
	timeline_add_series(t, panel, heap_value, 0, 2, "heap in use");
	timeline_keep_panel(t, "memory");
}

static void timeline_add_device(struct timeline *t)
{
	static const struct {
		const char *title, *axis;
	} parts[TIMELINE_DEVICE_SERIES] = {
		{"Device clock", "MHz"}, {"Device power", "W"}, {"Device temperature", "°C"}};
	const struct measurement *m = t->m;
	char words[PARTS_TEXT_BYTES];
	const bool emulated = m->device_count > 0 && m->devices[0].emulated;
	const bool none = m->device_count == 0;
	for (size_t i = 0; i < TIMELINE_DEVICE_SERIES && !none; i++) {
		struct panel *panel =
			timeline_add_panel(t, parts[i].title, parts[i].axis, "~s", PAGE_REAL);
		panel->from_zero = i == 1;
		timeline_add_series(t, panel, device_value, i, 3 + i, m->devices[0].name);
		timeline_lack(words, parts[i].title,
			emulated ? "the device is emulated"
				 : timeline_reason(m, "NVML", "the driver gave none"));
		timeline_keep_panel(t, words);
	}
	if (none)
		buffer_format(&t->lacks, " Clocks, power and temperature are missing: %s.",
			t->step->emulated ? "the step is emulated" : "no device computed the step");
}

/* --- the table -------------------------------------------------------------------------------- */

static json_t *timeline_row(const struct timeline *t, size_t window)
{
	struct part row = part_open();
	part_put(&row, "t", parts_number(t->m->windows[window].t));
	part_put(&row, "phase",
		json_string(t->m->windows[window].t <= t->m->cut_seconds ? "warm-up" : "measured"));
	for (size_t i = 0; i < t->count; i++)
		for (size_t k = 0; k < t->panels[i].count; k++) {
			const struct series *series = &t->panels[i].series[k];
			part_put(&row, series->field,
				parts_number(series->value(t->m, window, series->which)));
		}
	return part_close(&row);
}

static int timeline_table(const struct timeline *t, struct page_table *table)
{
	struct parts_columns columns = {0};
	parts_column(&columns, "t", "Until, s", PAGE_REAL);
	parts_column(&columns, "phase", "Part", PAGE_TEXT);
	for (size_t i = 0; i < t->count; i++)
		for (size_t k = 0; k < t->panels[i].count; k++) {
			char head[PARTS_TEXT_BYTES];
			const struct panel *panel = &t->panels[i];
			(void)snprintf(
				head, sizeof head, "%s, %s", panel->series[k].name, panel->column);
			parts_column(&columns, panel->series[k].field, head, panel->cells);
		}
	table->rows = json_array();
	for (size_t i = 0; i < t->m->window_count; i++)
		parts_append(&table->rows, timeline_row(t, i));
	return parts_columns_make(&columns, table);
}

/* --- the picture ------------------------------------------------------------------------------ */

/* Whether phases are of several repetitions, which is more than one timeline shows. */
static bool timeline_spans(const struct diagnosis *d)
{
	return d->phases[0].first_repetition != d->phases[d->phase_count - 1].first_repetition;
}

/* Where one phase ends and the next begins. */
static json_t *timeline_phases(const struct diagnosis *d, bool named)
{
	json_t *values = json_array();
	for (size_t i = 1; d && i < d->phase_count && !timeline_spans(d); i++) {
		char words[PARTS_TEXT_BYTES];
		const struct phase *phase = &d->phases[i];
		(void)snprintf(words, sizeof words, "phase %zu: %s / %s", i + 1,
			phase->stage[0] ? phase->stage : "none",
			phase->resource[0] ? phase->resource : "unknown");
		parts_append(
			&values, json_pack("{s:o, s:o, s:b}", "t", parts_number(phase->begin_s),
					 "phase", parts_text(words), "named", named));
	}
	return values;
}

/* The series' columns under the names that the legend has, with their looks. */
static void timeline_draw_lines(const struct panel *panel, json_t *drawn, struct chart *chart)
{
	json_t *series = json_object();
	json_t *names = json_array();
	json_t *colours = json_array();
	json_t *dashes = json_array();
	int bad = 0;
	for (size_t i = 0; i < panel->count; i++) {
		bad |= json_object_set_new(
			series, panel->series[i].field, parts_text(panel->series[i].name));
		parts_append(&names, parts_text(panel->series[i].name));
		parts_append(&colours, parts_colour(panel->series[i].colour));
		parts_append(&dashes, parts_dash(i));
	}
	chart_param(chart, "series", names);
	chart_param(chart, "series_colours", colours);
	chart_param(chart, "series_dashes", dashes);
	bad |= json_object_set_new(drawn, "series", series);
	bad |= json_object_set_new(
		drawn, "format", json_string(panel->cells == PAGE_SHARE ? ".1%" : ",.4~r"));
	if (panel->count == 1)
		bad |= json_object_set_new(drawn, "legend", json_false());
	if (bad)
		chart->failed = true;
}

/* Phases are named in the first panel. */
static void timeline_draw_panel(const struct timeline *t, size_t at, struct chart *chart)
{
	const struct panel *panel = &t->panels[at];
	json_t *drawn = chart_panel(chart);
	chart_param(chart, "panel_title", parts_text(panel->title));
	chart_param(chart, "height", json_integer(panel->pixels));
	chart_param(chart, "y_title", json_string(panel->axis));
	chart_param(chart, "y_format", json_string(panel->format));
	chart_param(chart, "zero", json_boolean(panel->from_zero));
	chart_param(chart, "top", panel->top > 0 ? json_real(panel->top) : json_null());
	timeline_draw_lines(panel, drawn, chart);
	if (isfinite(panel->line))
		chart_data(
			chart, "levels", json_pack("[{s:o}]", "value", parts_number(panel->line)));
	chart_data(chart, "phases", timeline_phases(t->diagnosis, at == 0));
	if (at + 1 < t->count)
		(void)json_object_set_new(drawn, "axis", json_false());
}

/* A panel for each quantity. */
static void timeline_draw(const struct timeline *t, struct chart *chart)
{
	const struct measurement *m = t->m;
	const double end = fmax(m->wall_seconds, m->windows[m->window_count - 1].t);
	chart_open(chart, "timeline");
	chart_param(chart, "end", parts_number(end));
	if (m->cut_seconds > 0)
		chart_data(chart, "warmup",
			json_pack("[{s:i, s:o}]", "t", 0, "end", parts_number(m->cut_seconds)));
	for (size_t i = 0; i < t->count; i++)
		timeline_draw_panel(t, i, chart);
}

/* --- what it says ----------------------------------------------------------------------------- */

/* Deviation over mean of the rates in equal parts of the measured time, of so many batches at least; NAN: fewer than
 * three parts. */
static double timeline_unevenness(const struct measurement *m, size_t *parts)
{
	double rates[TIMELINE_UNEVEN_PARTS];
	const double end = m->cut_seconds + m->measured_seconds;
	*parts = rate_parts(m, m->cut_seconds, end, TIMELINE_RATE_BATCHES, TIMELINE_UNEVEN_PARTS);
	if (*parts < 3)
		return NAN;
	rate_series(m, m->cut_seconds, end, *parts, rates);
	return statistics_deviation(rates, *parts) / statistics_mean(rates, *parts);
}

static void timeline_say_phases(const struct diagnosis *d, struct buffer *out)
{
	char rate[UNITS_BYTES];
	buffer_format(out, " Bottlenecks (times are from the %s): ",
		timeline_spans(d) ? "beginning of the first repetition"
				  : "first repetition that shows them");
	for (size_t i = 0; i < d->phase_count; i++) {
		char words[PARTS_TEXT_BYTES];
		const struct phase *phase = &d->phases[i];
		(void)snprintf(words, sizeof words, "%s / %s from %s s (%s samples/s)",
			phase->stage[0] ? phase->stage : "none",
			phase->resource[0] ? phase->resource : "unknown",
			UNITS_PLAIN(phase->begin_s, 3),
			units_format_count(phase->throughput, rate));
		parts_listed(out, i, d->phase_count, words);
	}
	buffer_text(out, ".");
}

static void timeline_say_queues(const struct measurement *m, struct buffer *out)
{
	char empty[UNITS_BYTES];
	char full[UNITS_BYTES];
	const struct queue_measurement *queue = NULL;
	for (size_t i = 0; i < m->queue_count; i++)
		if (isfinite(m->queues[i].empty_share) && isfinite(m->queues[i].full_share))
			queue = &m->queues[i];
	if (queue)
		buffer_format(out,
			" The last queue before the step (%s) was empty %s and full %s of the time.",
			queue->name, units_format_share(queue->empty_share, empty),
			units_format_share(queue->full_share, full));
}

static void timeline_say(const struct timeline *t, struct chart *chart)
{
	const struct measurement *m = t->m;
	struct buffer *out = &chart->text;
	char rate[UNITS_BYTES];
	char share[UNITS_BYTES];
	size_t parts;
	const double uneven = timeline_unevenness(m, &parts);
	if (t->diagnosis && t->diagnosis->phase_count > 1)
		buffer_format(&chart->finding, "The bottleneck changes during the run");
	else if (isfinite(uneven))
		buffer_format(&chart->finding, "Throughput varies by %s over the measured time",
			units_format_share(uneven, share));
	buffer_format(out,
		"Repetition %u of point %u: %s samples/s over the %s s that are measured",
		m->repeat, m->point, units_format_count(m->throughput, rate),
		UNITS_PLAIN(m->measured_seconds, 3));
	if (isfinite(uneven))
		buffer_format(out, ", standard deviation %s between %zu equal parts of it",
			units_format_share(uneven, share), parts);
	if (m->cut_seconds > 0)
		buffer_format(out, "; the first %s s are warm-up (excluded)",
			UNITS_PLAIN(m->cut_seconds, 3));
	buffer_text(out, ".");
	if (t->diagnosis && t->diagnosis->phase_count > 1)
		timeline_say_phases(t->diagnosis, out);
	timeline_say_queues(m, out);
	if (t->lacks.data)
		buffer_text(out, t->lacks.data);
}

static int timeline_build(struct timeline *t, struct chart *chart)
{
	timeline_add_rate(t);
	timeline_add_stages(t);
	timeline_add_queues(t);
	timeline_add_cores(t);
	timeline_add_memory(t);
	timeline_add_device(t);
	if (t->count == 0)
		return chart_why_not(chart, "No quantity was recorded over time.");
	timeline_say(t, chart);
	const int code = timeline_table(t, &chart->table);
	timeline_draw(t, chart);
	return code || t->lacks.failed ? -ENOMEM : chart_done(chart);
}

int chart_timeline(const struct chart_input *input, struct chart *chart)
{
	const struct measurement *m = input->m;
	if (!m)
		return chart_why_not(chart, "No repetition has been measured.");
	if (m->window_count == 0)
		return chart_why_not(chart, "Nothing was recorded over time: %s.",
			timeline_reason(m, "profiler", "the repetition has no windows"));
	struct timeline *t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->m = m;
	t->diagnosis = parts_diagnosis(input);
	t->step = &input->report->record->step;
	const int code = timeline_build(t, chart);
	buffer_release(&t->lacks);
	free(t);
	return code;
}
