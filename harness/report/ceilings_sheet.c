/* The data sheet: a head, then storage, cores, memory, matrix products, timing and the device. */
#include "harness/report/ceilings_sheet.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/ceilings_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_COLUMNS = 9 };

static const double PERCENT = 100;

/* --- text ---------------------------------------------------------------------------------------- */

void sheet_heading(
	const struct style *style, const char *title, const char *about, struct buffer *out)
{
	buffer_text(out, "\n");
	buffer_repeat(out, " ", SHEET_INDENT);
	style_field(style, INK_BOLD, title, LABEL_COLUMNS, out);
	style_wrap(style, about, SHEET_INDENT + LABEL_COLUMNS, SHEET_INDENT + LABEL_COLUMNS, out);
}

static void line(const struct style *style, const char *label, const char *text, struct buffer *out)
{
	buffer_repeat(out, " ", SHEET_INDENT);
	style_field(style, INK_DIM, label, LABEL_COLUMNS, out);
	style_wrap(style, text, SHEET_INDENT + LABEL_COLUMNS, SHEET_INDENT + LABEL_COLUMNS, out);
}

const char *sheet_flops(double flops, char out[UNITS_BYTES])
{
	const char *const unit[] = {"MFLOP/s", "GFLOP/s", "TFLOP/s"};
	double value = flops * 1e-6;
	size_t i = 0;
	for (; value >= 1000 && i < 2; i++)
		value /= 1000;
	(void)snprintf(out, UNITS_BYTES, "%.*f %s",
		value < 10    ? 2
		: value < 100 ? 1
			      : 0,
		value, unit[i]);
	return out;
}

const char *sheet_range(
	sheet_format *write, const struct ceiling_range *range, char out[SHEET_RANGE_BYTES])
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (isnan(range->low)) {
		out[0] = '\0';
		return out;
	}
	(void)write(range->low, low);
	(void)write(range->high, high);
	char *unit = strchr(low, ' ');
	const char *other = strchr(high, ' ');
	if (unit && other && strcmp(unit, other) == 0)
		*unit = '\0';
	(void)snprintf(out, SHEET_RANGE_BYTES, "%s - %s", low, high);
	return out;
}

void sheet_add_figure(struct table *table, const char *what, sheet_format *write, double value,
	const struct ceiling_range *range, const char *remark)
{
	char text[UNITS_BYTES];
	char spread[SHEET_RANGE_BYTES];
	if (isnan(value))
		return;
	table_add(table, INK_PLAIN, "%s", what);
	table_add(table, INK_BOLD, "%s", write(value, text));
	table_add(table, INK_DIM, "%s", sheet_range(write, range, spread));
	table_add(table, INK_DIM, "%s", remark);
}

static const struct table_column figure_columns[] = {
	{.head = "", .left = true},
	{.head = "median"},
	{.head = "min - max"},
	{.head = "", .left = true, .wraps = true},
};

void sheet_open_figures(struct table *table)
{
	table_open(table, figure_columns, sizeof figure_columns / sizeof *figure_columns);
}

void sheet_close_table(struct table *table, const struct style *style, struct buffer *out)
{
	if (table->cell_count > 0)
		table_render(table, style, SHEET_INDENT, true, out);
	table_close(table);
}

/* --- sections ------------------------------------------------------------------------------------ */

static unsigned repeats_of(const struct ceilings *ceilings)
{
	unsigned most = ceilings->clock_range.repeats;
	for (size_t i = 0; i < ceilings->read_count; i++)
		if (ceilings->reads[i].range.repeats > most)
			most = ceilings->reads[i].range.repeats;
	return most;
}

static void render_head(
	const struct ceilings *ceilings, double now, const struct style *style, struct buffer *out)
{
	char text[SHEET_LINE_BYTES];
	char when[CLOCK_UTC_BYTES] = "at an unknown time";
	char age[SHEET_LINE_BYTES / 4];
	char took[UNITS_BYTES];
	buffer_format(out, "%sceilings of this node%s  %s\n", style_ink(style, INK_BOLD),
		style_end(style), ceilings->host);
	(void)snprintf(text, sizeof text, "%s, %u core%s usable, Linux %s", ceilings->cpu,
		ceilings->cores, ceilings->cores == 1 ? "" : "s", ceilings->kernel);
	line(style, "node", text, out);
	if (isfinite(ceilings->measured_at))
		clock_format_utc(ceilings->measured_at, when);
	(void)snprintf(text, sizeof text,
		"%s, %s, in %s%s%s; medians of %u interleaved repeats, with the least and the largest",
		ceilings_age(ceilings, now, "ago", age, sizeof age), when,
		units_format_duration(ceilings->seconds * (double)NS_PER_S, took),
		ceilings->quick ? ", quick" : "", ceilings->interrupted ? ", interrupted" : "",
		repeats_of(ceilings));
	line(style, "probe", text, out);
}

static void render_decode(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.head = "cores"},
		{.head = "samples/s"},
		{.head = "min - max"},
		{.head = "per core"},
		{.head = "scaling"},
		{.head = "", .bar = true},
	};
	struct table table;
	char number[UNITS_BYTES];
	char spread[SHEET_RANGE_BYTES];
	if (ceilings->decode_count == 0)
		return;
	sheet_heading(style, "decode", ceilings->decode_what, out);
	table_open(&table, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < ceilings->decode_count; i++) {
		const struct core_ceiling *entry = &ceilings->decode[i];
		const double each = entry->samples_per_s / entry->cores;
		table_add(&table, INK_PLAIN, "%u", entry->cores);
		table_add(&table, INK_BOLD, "%s", units_format_count(entry->samples_per_s, number));
		table_add(&table, INK_DIM, "%s",
			sheet_range(units_format_count, &entry->range, spread));
		table_add(&table, INK_PLAIN, "%s", units_format_count(each, number));
		table_add(&table, INK_PLAIN, "%.2f", each / ceilings->decode_one_core);
		table_add(&table, INK_ACCENT, "%.4f",
			entry->samples_per_s / (ceilings->cores * ceilings->decode_one_core));
	}
	sheet_close_table(&table, style, out);
}

static void render_memory(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	char text[SHEET_LINE_BYTES];
	char array[UNITS_BYTES];
	char caches[UNITS_BYTES];
	struct table table;
	if (isnan(ceilings->memory_bytes_per_s_one) && isnan(ceilings->memory_bytes_per_s_all))
		return;
	(void)snprintf(text, sizeof text,
		"triad a = b + s c: 3 streams counted, non-temporal stores; arrays of %s, "
		"last-level caches of %s",
		units_format_size(ceilings->memory_array_bytes, array),
		isnan(ceilings->cache_bytes) ? "unknown size"
					     : units_format_size(ceilings->cache_bytes, caches));
	sheet_heading(style, "memory", text, out);
	sheet_open_figures(&table);
	(void)snprintf(text, sizeof text, "triad, %u core%s", ceilings->cores,
		ceilings->cores == 1 ? "" : "s");
	sheet_add_figure(&table, "triad, 1 core", units_format_rate,
		ceilings->memory_bytes_per_s_one, &ceilings->memory_range_one, "");
	sheet_add_figure(&table, text, units_format_rate, ceilings->memory_bytes_per_s_all,
		&ceilings->memory_range_all, "");
	sheet_add_figure(&table, "memcpy, 1 core", units_format_rate, ceilings->copy_bytes_per_s,
		&ceilings->copy_range, "bytes copied: each is read once and written once");
	sheet_close_table(&table, style, out);
}

static void add_gemm(struct table *table, const struct gemm_ceiling *gemm)
{
	char number[UNITS_BYTES];
	char spread[SHEET_RANGE_BYTES];
	table_add(table, INK_PLAIN, "%s", gemm->is_best ? "best square" : gemm->name);
	table_add(table, INK_PLAIN, "%lld x %lld x %lld", gemm->m, gemm->n, gemm->k);
	table_add(table, INK_PLAIN, "%u", gemm->threads);
	table_add(table, INK_BOLD, "%s", sheet_flops(gemm->flops, number));
	table_add(table, INK_DIM, "%s", sheet_range(sheet_flops, &gemm->range, spread));
	if (isnan(gemm->efficiency))
		table_add(table, INK_DIM, "-");
	else
		table_add(table, INK_PLAIN, "%.0f %%", PERCENT * gemm->efficiency);
	if (isnan(gemm->share))
		table_add(table, INK_DIM, "%s", "");
	else
		table_add(table, INK_DIM, "%.1f %%", PERCENT * gemm->share);
}

static void render_gemms(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.head = "", .left = true},
		{.head = "m x n x k", .left = true},
		{.head = "threads"},
		{.head = "median"},
		{.head = "min - max"},
		{.head = "of best"},
		{.head = "of the\nmodel"},
	};
	char text[SHEET_LINE_BYTES];
	struct table table;
	if (ceilings->gemm_count == 0)
		return;
	(void)snprintf(text, sizeof text, "sgemm of OpenBLAS%s%s", ceilings->model[0] ? "; " : "",
		ceilings->model);
	const size_t used = strlen(text);
	if (ceilings->model[0])
		(void)snprintf(text + used, sizeof text - used,
			" at batch %u: its largest products, forward", ceilings->batch);
	sheet_heading(style, "gemm", text, out);
	table_open(&table, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < ceilings->gemm_count; i++)
		add_gemm(&table, &ceilings->gemms[i]);
	sheet_close_table(&table, style, out);
}

static void render_timing(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	struct table table;
	char remark[SHEET_LINE_BYTES] = "";
	char p99[UNITS_BYTES];
	sheet_open_figures(&table);
	sheet_add_figure(&table, "lock hand-off", units_format_duration, ceilings->lock_handoff_ns,
		&ceilings->lock_range, "a mutex, to a thread that sleeps on it");
	sheet_add_figure(&table, "CLOCK_MONOTONIC", units_format_duration, ceilings->clock_read_ns,
		&ceilings->clock_range, "a read");
	sheet_add_figure(&table, "thread CPU clock", units_format_duration,
		ceilings->cpu_clock_read_ns, &ceilings->cpu_clock_range, "a read");
	if (isfinite(ceilings->oversleep_p99_ns))
		(void)snprintf(remark, sizeof remark,
			"mean of an absolute sleep beyond its end; 99 %% at most %s",
			units_format_duration(ceilings->oversleep_p99_ns, p99));
	sheet_add_figure(&table, "oversleep", units_format_duration, ceilings->oversleep_ns,
		&ceilings->oversleep_range, remark);
	if (table.cell_count > 0)
		sheet_heading(style, "timing", "locks, clocks, sleep", out);
	sheet_close_table(&table, style, out);
}

static void render_lines(const char *label, const char (*lines)[NOTE_BYTES], size_t count,
	const struct style *style, struct buffer *out)
{
	if (count > 0)
		buffer_text(out, "\n");
	for (size_t i = 0; i < count; i++)
		line(style, i ? "" : label, lines[i], out);
}

void ceilings_sheet(
	const struct ceilings *ceilings, double now, const struct style *style, struct buffer *out)
{
	render_head(ceilings, now, style, out);
	ceilings_reads_render(ceilings, style, out);
	render_decode(ceilings, style, out);
	render_memory(ceilings, style, out);
	render_gemms(ceilings, style, out);
	render_timing(ceilings, style, out);
	ceilings_device_render(ceilings, style, out);
	render_lines("missing", ceilings->missing, ceilings->missing_count, style, out);
	render_lines("notes", ceilings->notes, ceilings->note_count, style, out);
}
