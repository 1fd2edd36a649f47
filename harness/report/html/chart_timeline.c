/* One repetition over time, a panel for each quantity above the same axis of seconds: throughput, busy stages, cores,
 * queues, memory, and the device's clock, power and temperature.  The warm-up that was cut off is shaded, and where the
 * limit changes there is a line.  A quantity that was not recorded has no panel, and the text says why. */
#include "harness/analyze/sufficiency.h"
#include "harness/base/units.h"
#include "harness/report/html/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PANEL_PIXELS = 84,
	RATE_PIXELS = 120,
	DEVICE_SERIES = 3,
	QUEUE_PIXELS = 52,
	UNEVEN_PARTS = 20,
	RATE_BATCHES = 8, /* that a rate is taken over, at least */
	QUEUE_COLOUR = 5,
};

static const double MIB = 1024.0 * 1024.0;

/* --- values ------------------------------------------------------------------------------------------ */

static double begin_of(const struct measurement *m, size_t window)
{
	return window > 0 ? m->windows[window - 1].t : 0;
}

static double length_of(const struct measurement *m, size_t window)
{
	return m->windows[window].t - begin_of(m, window);
}

/* Windows count whole batches: a rate is taken over so many of them about a window, and over the window at least. */
static double rate_span(const struct measurement *m)
{
	const double each = m->batches > 0 ? m->measured_seconds / (double)m->batches : 0;
	return fmax(each * RATE_BATCHES, m->window_seconds);
}

static double rate_value(const struct measurement *m, size_t window, size_t which)
{
	const double middle = (begin_of(m, window) + m->windows[window].t) / 2;
	const double half = rate_span(m) / 2;
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
	const double time = length_of(m, window) * m->stages[stage].workers;
	return time > 0 ? worked / time : (double)NAN;
}

static double cores_value(const struct measurement *m, size_t window, size_t stage)
{
	const double before = window > 0 ? m->windows[window - 1].stage_cpu[stage] : 0;
	return length_of(m, window) > 0
		       ? (m->windows[window].stage_cpu[stage] - before) / length_of(m, window)
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

/* --- what there is ------------------------------------------------------------------------------------- */

static bool is_known(const struct measurement *m, value_of *value, size_t which)
{
	for (size_t i = 0; i < m->window_count; i++)
		if (isfinite(value(m, i, which)))
			return true;
	return false;
}

static struct panel *add_panel(struct timeline *t, const char *title, const char *axis,
	const char *format, enum page_format cells)
{
	struct panel *panel = &t->panels[t->count++];
	*panel = (struct panel){.axis = axis,
		.format = format,
		.cells = cells,
		.column = axis,
		.line = NAN,
		.pixels = PANEL_PIXELS,
		.from_zero = true};
	(void)snprintf(panel->title, sizeof panel->title, "%s", title);
	return panel;
}

static void add_series(struct timeline *t, struct panel *panel, value_of *value, size_t which,
	size_t colour, const char *name)
{
	if (panel->count == PARTS_COUNT(panel->series) || !is_known(t->m, value, which))
		return;
	struct series *series = &panel->series[panel->count++];
	*series = (struct series){.value = value, .which = which, .colour = colour};
	(void)snprintf(series->name, sizeof series->name, "%s", name);
	(void)snprintf(series->field, sizeof series->field, "v%d_%zu", (int)t->count, panel->count);
}

/* A panel without a line is none. */
static void keep_panel(struct timeline *t, const char *lack)
{
	if (t->panels[t->count - 1].count > 0)
		return;
	t->count--;
	if (lack)
		buffer_format(&t->lacks, " Not available: %s.", lack);
}

/* The note that speaks of a subject, or the usual reason. */
static const char *reason(const struct measurement *m, const char *subject, const char *usual)
{
	for (size_t i = 0; i < m->note_count; i++)
		if (strstr(m->notes[i], subject))
			return m->notes[i];
	return usual;
}

static void lack(char out[PARTS_TEXT_BYTES], const char *what, const char *why)
{
	(void)snprintf(out, PARTS_TEXT_BYTES, "%s (%s)", what, why);
}

static void add_rate(struct timeline *t)
{
	struct panel *panel = add_panel(t, "Throughput", "samples/s", "~s", PAGE_REAL);
	add_series(t, panel, rate_value, 0, 2, "throughput");
	keep_panel(t, "throughput by window");
}

/* The device's own time where it is a device's. */
static void add_stages(struct timeline *t)
{
	const struct measurement *m = t->m;
	struct panel *panel = add_panel(t, "Busy stages", "share of time", ".0%", PAGE_SHARE);
	panel->top = 1;
	panel->column = "busy";
	for (size_t i = 0; i < m->stage_count; i++) {
		char name[NAME_BYTES * 2];
		(void)snprintf(name, sizeof name, "%s%s", m->stages[i].name,
			m->stages[i].device ? " (its device)" : "");
		add_series(t, panel, busy_value, i, i, name);
	}
	keep_panel(t, "how busy the stages were");
}

static void add_cores(struct timeline *t)
{
	const struct measurement *m = t->m;
	char words[PARTS_TEXT_BYTES];
	struct panel *panel = add_panel(t, "CPU", "cores busy", "~g", PAGE_REAL);
	panel->column = "cores busy";
	for (size_t i = 0; i < m->stage_count; i++)
		add_series(t, panel, cores_value, i, i, m->stages[i].name);
	lack(words, "CPU time", reason(m, "no schedstat", "the kernel's accounting gave none"));
	keep_panel(t, words);
}

/* A panel each: one holds tens of files, the next a batch or two.  More than its capacity waits where batches of the
 * workers are done before the step takes the first. */
static void add_queues(struct timeline *t)
{
	const struct measurement *m = t->m;
	for (size_t i = 0; i < m->queue_count; i++) {
		char title[PARTS_TEXT_BYTES];
		(void)snprintf(title, sizeof title, "Queue: %s (dashed: its capacity, %u)",
			m->queues[i].name, m->queues[i].capacity);
		struct panel *panel = add_panel(t, title, "waiting", "~s", PAGE_COUNT);
		panel->pixels = QUEUE_PIXELS;
		panel->line = m->queues[i].capacity;
		add_series(t, panel, queue_value, i, QUEUE_COLOUR, m->queues[i].name);
		keep_panel(t, "queue depths");
	}
}

static void add_memory(struct timeline *t)
{
	struct panel *panel = add_panel(t, "Memory", "MiB", "~s", PAGE_REAL);
	add_series(t, panel, resident_value, 0, 0, "resident");
	add_series(t, panel, anonymous_value, 0, 1, "of it anonymous");
	add_series(t, panel, heap_value, 0, 2, "heap in use");
	keep_panel(t, "memory");
}

static void add_device(struct timeline *t)
{
	static const struct {
		const char *title, *axis;
	} parts[DEVICE_SERIES] = {
		{"Device clock", "MHz"}, {"Device power", "W"}, {"Device temperature", "°C"}};
	const struct measurement *m = t->m;
	char words[PARTS_TEXT_BYTES];
	const bool emulated = m->device_count > 0 && m->devices[0].emulated;
	const bool none = m->device_count == 0;
	for (size_t i = 0; i < DEVICE_SERIES && !none; i++) {
		struct panel *panel = add_panel(t, parts[i].title, parts[i].axis, "~s", PAGE_REAL);
		panel->from_zero = i == 1;
		add_series(t, panel, device_value, i, 3 + i, m->devices[0].name);
		lack(words, parts[i].title,
			emulated ? "the device is emulated"
				 : reason(m, "NVML", "the driver gave none"));
		keep_panel(t, words);
	}
	if (none)
		buffer_format(&t->lacks, " There are no clocks, no power and no temperature: %s.",
			t->step->emulated ? "the step is emulated" : "no device computed the step");
}

/* --- the table ---------------------------------------------------------------------------------------- */

static json_t *row_of(const struct timeline *t, size_t window)
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

static int table_of(const struct timeline *t, struct page_table *table)
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
		parts_append(&table->rows, row_of(t, i));
	return parts_columns_make(&columns, table);
}

/* --- what it says ---------------------------------------------------------------------------------------- */

/* Deviation over mean of the rates in equal parts of the measured time, of so many batches at least; NAN: fewer than
 * three parts. */
static double unevenness(const struct measurement *m, size_t *parts)
{
	double rates[UNEVEN_PARTS];
	const double end = m->cut_seconds + m->measured_seconds;
	*parts = rate_parts(m, m->cut_seconds, end, RATE_BATCHES, UNEVEN_PARTS);
	if (*parts < 3)
		return NAN;
	rate_series(m, m->cut_seconds, end, *parts, rates);
	return statistics_deviation(rates, *parts) / statistics_mean(rates, *parts);
}

static void say_phases(const struct diagnosis *d, struct buffer *out)
{
	char rate[UNITS_BYTES];
	buffer_format(out,
		" The limit changes (when, is taken from the first repetition that shows it): ");
	for (size_t i = 0; i < d->phase_count; i++) {
		char words[PARTS_TEXT_BYTES];
		const struct phase *phase = &d->phases[i];
		(void)snprintf(words, sizeof words, "%s / %s from %.3g s (%s samples/s)",
			phase->stage[0] ? phase->stage : "none",
			phase->resource[0] ? phase->resource : "unknown", phase->begin_s,
			units_format_count(phase->throughput, rate));
		parts_listed(out, i, d->phase_count, words);
	}
	buffer_text(out, ".");
}

static void say_queues(const struct measurement *m, struct buffer *out)
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

static void say(const struct timeline *t, struct buffer *out)
{
	const struct measurement *m = t->m;
	char rate[UNITS_BYTES];
	char share[UNITS_BYTES];
	size_t parts;
	const double uneven = unevenness(m, &parts);
	buffer_format(out,
		"Repetition %u of point %u: %s samples/s over the %.3g s that are measured",
		m->repeat, m->point, units_format_count(m->throughput, rate), m->measured_seconds);
	if (isfinite(uneven))
		buffer_format(out, ", with a deviation of %s between %zu equal parts of it",
			units_format_share(uneven, share), parts);
	if (m->cut_seconds > 0)
		buffer_format(out, "; the first %.3g s are warm-up (shaded) and count for nothing",
			m->cut_seconds);
	buffer_text(out, ".");
	if (t->diagnosis && t->diagnosis->phase_count > 1)
		say_phases(t->diagnosis, out);
	say_queues(m, out);
	if (t->lacks.data)
		buffer_text(out, t->lacks.data);
}

static int draw(struct timeline *t, struct chart *chart)
{
	add_rate(t);
	add_stages(t);
	add_queues(t);
	add_cores(t);
	add_memory(t);
	add_device(t);
	if (t->count == 0)
		return parts_why_not(chart, "No quantity was recorded over time.");
	say(t, &chart->text);
	const int code = table_of(t, &chart->table);
	chart->spec = timeline_picture(t);
	return code || t->lacks.failed ? -ENOMEM : parts_done(chart);
}

static int build(const struct chart_input *input, struct chart *chart)
{
	const struct measurement *m = input->m;
	if (!m)
		return parts_why_not(chart, "No repetition has been measured.");
	if (m->window_count == 0)
		return parts_why_not(chart, "Nothing was recorded over time: %s.",
			reason(m, "profiler", "the repetition has no windows"));
	struct timeline *t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->m = m;
	t->diagnosis = parts_diagnosis(input);
	t->step = &input->report->record->step;
	const int code = draw(t, chart);
	buffer_release(&t->lacks);
	free(t);
	return code;
}

const struct chart_kind chart_timeline = {"timeline", "Over time", build};
