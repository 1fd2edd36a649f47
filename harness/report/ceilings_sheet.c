/* The data sheet of a node: a head, then storage, cores, memory, matrix products, timing and the device. */
#include "harness/report/ceilings_sheet.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	SHEET_INDENT = 2,
	SHEET_LINE_BYTES = 400,
	SHEET_RANGE_BYTES = 2 * UNITS_BYTES + 4,
	LABEL_COLUMNS = 9,
};

typedef const char *sheet_format(double value, char out[UNITS_BYTES]);

static const double PERCENT = 100;

/* --- text ---------------------------------------------------------------------------------------- */

/* "  title    about ..." in front of a table. */
static void sheet_heading(
	const struct style *style, const char *title, const char *about, struct buffer *out)
{
	buffer_text(out, "\n");
	buffer_repeat(out, " ", SHEET_INDENT);
	style_field(style, INK_BOLD, title, LABEL_COLUMNS, out);
	style_wrap(style, about, SHEET_INDENT + LABEL_COLUMNS, SHEET_INDENT + LABEL_COLUMNS, out);
}

static void sheet_line(
	const struct style *style, const char *label, const char *text, struct buffer *out)
{
	buffer_repeat(out, " ", SHEET_INDENT);
	style_field(style, INK_DIM, label, LABEL_COLUMNS, out);
	style_wrap(style, text, SHEET_INDENT + LABEL_COLUMNS, SHEET_INDENT + LABEL_COLUMNS, out);
}

/* "812 TFLOP/s" */
static const char *sheet_flops(double flops, char out[UNITS_BYTES])
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

/* "31.2 - 33.0 GiB/s": the unit once where both have the same; "" for NAN.  Returns out. */
static const char *sheet_range(
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

static void sheet_add_figure(struct table *table, const char *what, sheet_format *write,
	double value, const struct ceiling_range *range, const char *remark)
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

/* A table of single figures: "what   median   min - max   remark" each; NAN is left out.  It is written when it is
 * closed, unless it is empty. */
static void sheet_open_figures(struct table *table)
{
	table_open(table, figure_columns, sizeof figure_columns / sizeof *figure_columns);
}

static void sheet_close_table(struct table *table, const struct style *style, struct buffer *out)
{
	if (table->cell_count > 0)
		table_render(table, style, SHEET_INDENT, true, out);
	table_close(table);
}

/* --- storage ---------------------------------------------------------------------------------- */

enum { STATES = 3, STATE_WARM = 2, STATE_COLUMNS = 3, HEAD_BYTES = 40 };

static const double SMALL_REQUEST_BYTES = 16384;

static const char *const group_heads[STATES] = {
	"cold, direct\nmin-max", "cold, buffered\nmin-max", "warm, buffered\nmin-max"};

struct scale {
	const char *unit;
	double by;
	bool requests;
};

struct view {
	const struct ceilings *ceilings;
	double request_bytes;
	struct scale scale;
	bool shown[STATES];
};

static size_t sheet_reads_state_of(const struct read_ceiling *read)
{
	return read->direct ? 0 : read->cold ? 1 : STATE_WARM;
}

static struct scale choose_scale(const struct ceilings *ceilings, double request_bytes)
{
	static const double THOUSANDS_FROM = 10000;
	static const double GIB = 1 << 30;
	static const double MIB = 1 << 20;
	double most = 0;
	for (size_t i = 0; i < ceilings->read_count; i++)
		if (ceilings->reads[i].request_bytes == request_bytes)
			most = fmax(most, ceilings->reads[i].bytes_per_s);
	if (request_bytes < SMALL_REQUEST_BYTES)
		return most / request_bytes >= THOUSANDS_FROM ? (struct scale){"k IOPS", 1e-3, true}
							      : (struct scale){"IOPS", 1, true};
	return most >= GIB ? (struct scale){"GiB/s", 1 / GIB, false}
			   : (struct scale){"MiB/s", 1 / MIB, false};
}

static const char *sheet_number(double value, char out[UNITS_BYTES])
{
	const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	(void)snprintf(out, UNITS_BYTES, "%.*f", value < 0.0995 ? 3 : digits, value);
	return out;
}

/* A warm read is done when it is submitted: it waits for those submitted with it, and nothing else. */
static bool has_latency(size_t state)
{
	return state != STATE_WARM;
}

static void sheet_reads_add_read(
	struct table *table, const struct view *view, size_t state, const struct read_ceiling *read)
{
	char text[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (!read) {
		for (int i = has_latency(state) ? 0 : 1; i < STATE_COLUMNS; i++)
			table_add(table, INK_DIM, "-");
		return;
	}
	const double by =
		view->scale.requests ? view->scale.by / read->request_bytes : view->scale.by;
	table_add(table, INK_BOLD, "%s", sheet_number(read->bytes_per_s * by, text));
	table_add(table, INK_DIM, "%s-%s", sheet_number(read->range.low * by, text),
		sheet_number(read->range.high * by, high));
	if (has_latency(state))
		table_add(table, INK_PLAIN, "%s", units_format_duration(read->latency_ns, text));
}

static const struct read_ceiling *sheet_reads_find(
	const struct view *view, size_t state, unsigned depth)
{
	for (size_t i = 0; i < view->ceilings->read_count; i++) {
		const struct read_ceiling *read = &view->ceilings->reads[i];
		if (sheet_reads_state_of(read) == state && read->depth == depth &&
			read->request_bytes == view->request_bytes)
			return read;
	}
	return NULL;
}

static unsigned next_depth(const struct view *view, unsigned after)
{
	unsigned next = 0;
	for (size_t i = 0; i < view->ceilings->read_count; i++) {
		const struct read_ceiling *read = &view->ceilings->reads[i];
		if (read->request_bytes == view->request_bytes && read->depth > after &&
			(next == 0 || read->depth < next))
			next = read->depth;
	}
	return next;
}

static void render_table(const struct view *view, const struct style *style, struct buffer *out)
{
	struct table_column columns[1 + STATES * STATE_COLUMNS] = {{.head = "in\nflight"}};
	char heads[STATES][HEAD_BYTES];
	size_t count = 1;
	for (size_t state = 0; state < STATES; state++) {
		if (!view->shown[state])
			continue;
		(void)snprintf(heads[state], sizeof heads[state], "\n%s", view->scale.unit);
		columns[count++] = (struct table_column){.head = heads[state]};
		/* The group's name stands over its middle. */
		columns[count++] = (struct table_column){.head = group_heads[state]};
		if (has_latency(state))
			columns[count++] = (struct table_column){.head = "\nlatency"};
	}
	struct table table;
	table_open(&table, columns, count);
	for (unsigned depth = next_depth(view, 0); depth; depth = next_depth(view, depth)) {
		table_add(&table, INK_PLAIN, "%u", depth);
		for (size_t state = 0; state < STATES; state++)
			if (view->shown[state])
				sheet_reads_add_read(
					&table, view, state, sheet_reads_find(view, state, depth));
	}
	table_render(&table, style, SHEET_INDENT, true, out);
	table_close(&table);
}

static void render_size(const struct ceilings *ceilings, double request_bytes,
	const struct style *style, struct buffer *out)
{
	char text[SHEET_LINE_BYTES];
	char size[UNITS_BYTES];
	struct view view = {.ceilings = ceilings,
		.request_bytes = request_bytes,
		.scale = choose_scale(ceilings, request_bytes)};
	for (size_t i = 0; i < ceilings->read_count; i++)
		if (ceilings->reads[i].request_bytes == request_bytes)
			view.shown[sheet_reads_state_of(&ceilings->reads[i])] = true;
	(void)snprintf(text, sizeof text, "%s a request%s", units_format_size(request_bytes, size),
		fabs(request_bytes - ceilings->file_bytes) < 4096 ? ", the mean file" : "");
	sheet_heading(style, "", text, out);
	render_table(&view, style, out);
}

static void ceilings_reads_render(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	struct buffer words = {0};
	char size[UNITS_BYTES];
	char first[UNITS_BYTES];
	char again[UNITS_BYTES];
	double last = 0;
	if (ceilings->read_count == 0)
		return;
	buffer_format(&words,
		"%s, by %s%s%s; a scratch file of %s at random offsets, one reading thread%s",
		ceilings->storage, ceilings->engine, ceilings->read_pages[0] ? " into " : "",
		ceilings->read_pages, units_format_size(ceilings->scratch_bytes, size),
		ceilings->reads_block ? " for each request in flight" : "");
	if (isfinite(ceilings->reread_bytes_per_s))
		buffer_format(&words,
			"; files of the data set, evicted here: %s when first read, %s when read again",
			units_format_rate(ceilings->first_read_bytes_per_s, first),
			units_format_rate(ceilings->reread_bytes_per_s, again));
	sheet_heading(style, "storage", words.data ? words.data : "", out);
	buffer_release(&words);
	for (;;) { /* sizes ascending */
		double next = INFINITY;
		for (size_t i = 0; i < ceilings->read_count; i++)
			if (ceilings->reads[i].request_bytes > last)
				next = fmin(next, ceilings->reads[i].request_bytes);
		if (isinf(next))
			break;
		render_size(ceilings, next, style, out);
		last = next;
	}
}

/* --- the device ------------------------------------------------------------------------------- */

enum { KINDS = 4 };

static const double GIB = 1 << 30;

/* --- copies ------------------------------------------------------------------------------------- */

static const struct copy_kind {
	bool to_device, pinned;
	const char *head;
} copy_kinds[KINDS] = {
	{true, true, "to GPU\npinned"},
	{true, false, "to GPU\npageable"},
	{false, true, "from GPU\npinned"},
	{false, false, "from GPU\npageable"},
};

static const struct copy_ceiling *find_copy(
	const struct device_ceiling *device, const struct copy_kind *kind, double bytes)
{
	for (size_t i = 0; i < device->copy_count; i++) {
		const struct copy_ceiling *copy = &device->copies[i];
		if (copy->to_device == kind->to_device && copy->pinned == kind->pinned &&
			copy->bytes == bytes && isfinite(copy->bytes_per_s))
			return copy;
	}
	return NULL;
}

static double next_size(const struct device_ceiling *device, double after)
{
	double next = INFINITY;
	for (size_t i = 0; i < device->copy_count; i++)
		if (device->copies[i].bytes > after)
			next = fmin(next, device->copies[i].bytes);
	return next;
}

static void sheet_device_add_copy(struct table *table, const struct copy_ceiling *copy)
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (!copy) {
		table_add(table, INK_DIM, "-");
		table_add(table, INK_DIM, "-");
		return;
	}
	table_add(table, INK_BOLD, "%s", sheet_number(copy->bytes_per_s / GIB, low));
	table_add(table, INK_DIM, "%s-%s", sheet_number(copy->range.low / GIB, low),
		sheet_number(copy->range.high / GIB, high));
}

static void render_copies(
	const struct device_ceiling *device, const struct style *style, struct buffer *out)
{
	struct table_column columns[1 + 2 * KINDS] = {{.head = "bytes"}};
	char size[UNITS_BYTES];
	struct table table;
	if (device->copy_count == 0)
		return;
	sheet_heading(style, "copies",
		"GiB/s, one after the other on one stream; pinned: by the device's clock; pageable: by the host's, "
		"around the calls and the wait for them, because the call itself copies to a staging buffer",
		out);
	for (size_t i = 0; i < KINDS; i++) {
		columns[1 + 2 * i] = (struct table_column){.head = copy_kinds[i].head};
		columns[2 + 2 * i] = (struct table_column){.head = "min-max"};
	}
	table_open(&table, columns, sizeof columns / sizeof *columns);
	for (double bytes = next_size(device, 0); isfinite(bytes);
		bytes = next_size(device, bytes)) {
		table_add(&table, INK_PLAIN, "%s", units_format_size(bytes, size));
		for (size_t i = 0; i < KINDS; i++)
			sheet_device_add_copy(&table, find_copy(device, &copy_kinds[i], bytes));
	}
	sheet_close_table(&table, style, out);
}

/* --- memory and launches -------------------------------------------------------------------------- */

static void render_figures(
	const struct device_ceiling *device, const struct style *style, struct buffer *out)
{
	struct table table;
	sheet_open_figures(&table);
	sheet_add_figure(&table, "its memory", units_format_rate, device->memory_bytes_per_s,
		&device->memory_range, "read and written by a copy of several times its L2");
	sheet_add_figure(&table, "launch", units_format_duration, device->launch_ns,
		&device->launch_range, "the host's time for an empty kernel, back to back");
	sheet_add_figure(&table, "kernel", units_format_duration, device->kernel_ns,
		&device->kernel_range, "the device's, from one empty kernel to the next");
	sheet_add_figure(&table, "kernel in a graph", units_format_duration,
		device->graph_kernel_ns, &device->graph_kernel_range, "the same, recorded");
	sheet_add_figure(&table, "round trip", units_format_duration, device->round_trip_ns,
		&device->round_trip_range, "launch, run, and the host sees the end");
	if (table.cell_count > 0)
		sheet_heading(style, "", "memory and launches", out);
	sheet_close_table(&table, style, out);
}

/* --- products ------------------------------------------------------------------------------------- */

static void sheet_device_add_gemm(struct table *table, const struct device_gemm_ceiling *gemm)
{
	char text[UNITS_BYTES];
	char spread[SHEET_RANGE_BYTES];
	table_add(table, INK_PLAIN, "%s", gemm->is_best ? "best square" : gemm->name);
	table_add(table, INK_PLAIN, "%s", gemm->precision);
	table_add(table, INK_PLAIN, "%lld x %lld x %lld", gemm->m, gemm->n, gemm->k);
	table_add(table, INK_BOLD, "%s", sheet_flops(gemm->flops, text));
	table_add(table, INK_DIM, "%s", sheet_range(sheet_flops, &gemm->range, spread));
	if (isnan(gemm->efficiency))
		table_add(table, INK_DIM, "-");
	else
		table_add(table, INK_PLAIN, "%.0f %%", PERCENT * gemm->efficiency);
}

static void sheet_device_render_gemms(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.head = "", .left = true},
		{.head = "", .left = true},
		{.head = "m x n x k", .left = true},
		{.head = "median"},
		{.head = "min - max"},
		{.head = "of best"},
	};
	char text[SHEET_LINE_BYTES];
	struct table table;
	const struct device_ceiling *device = &ceilings->device;
	if (device->gemm_count == 0)
		return;
	(void)snprintf(text, sizeof text, "cuBLASLt, random operands, short bursts%s%s%s",
		ceilings->model[0] ? "; the largest products of " : "", ceilings->model,
		ceilings->model[0] ? ", forward, at its batch" : "");
	sheet_heading(style, "products", text, out);
	table_open(&table, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < device->gemm_count; i++)
		sheet_device_add_gemm(&table, &device->gemms[i]);
	sheet_close_table(&table, style, out);
}

/* --- the device ------------------------------------------------------------------------------------ */

static void render_who(
	const struct device_ceiling *device, const struct style *style, struct buffer *out)
{
	char text[2 * SHEET_LINE_BYTES];
	char memory[UNITS_BYTES];
	char cache[UNITS_BYTES];
	char took[UNITS_BYTES];
	(void)snprintf(text, sizeof text,
		"%s%s (device %u of %u), compute capability %s, %s of memory, L2 of %s; %s; probed in %s",
		device->test_double ? "TEST DOUBLE, no figure means anything: " : "", device->name,
		device->index, device->count, device->capability,
		units_format_size(device->memory_bytes, memory),
		units_format_size(device->cache_bytes, cache), device->versions,
		units_format_duration(device->seconds * 1e9, took));
	sheet_heading(style, "device", text, out);
}

static void ceilings_device_render(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	if (!ceilings->has_device)
		return;
	render_who(&ceilings->device, style, out);
	render_copies(&ceilings->device, style, out);
	render_figures(&ceilings->device, style, out);
	sheet_device_render_gemms(ceilings, style, out);
}

/* --- sections --------------------------------------------------------------------------------- */

static unsigned sheet_repeats_of(const struct ceilings *ceilings)
{
	unsigned most = ceilings->clock_range.repeats;
	for (size_t i = 0; i < ceilings->read_count; i++)
		if (ceilings->reads[i].range.repeats > most)
			most = ceilings->reads[i].range.repeats;
	return most;
}

static void sheet_render_head(
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
	sheet_line(style, "node", text, out);
	if (isfinite(ceilings->measured_at))
		clock_format_utc(ceilings->measured_at, when);
	(void)snprintf(text, sizeof text,
		"%s, %s, in %s%s%s; medians of %u interleaved repetitions, with minimum and "
		"maximum",
		ceilings_age(ceilings, now, "ago", age, sizeof age), when,
		units_format_duration(ceilings->seconds * (double)NS_PER_S, took),
		ceilings->quick ? ", quick" : "", ceilings->interrupted ? ", interrupted" : "",
		sheet_repeats_of(ceilings));
	sheet_line(style, "probe", text, out);
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

static void sheet_render_memory(
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

static void sheet_add_gemm(struct table *table, const struct gemm_ceiling *gemm)
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

static void sheet_render_gemms(
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
		sheet_add_gemm(&table, &ceilings->gemms[i]);
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
		sheet_line(style, i ? "" : label, lines[i], out);
}

void ceilings_sheet(
	const struct ceilings *ceilings, double now, const struct style *style, struct buffer *out)
{
	sheet_render_head(ceilings, now, style, out);
	ceilings_reads_render(ceilings, style, out);
	render_decode(ceilings, style, out);
	sheet_render_memory(ceilings, style, out);
	sheet_render_gemms(ceilings, style, out);
	render_timing(ceilings, style, out);
	ceilings_device_render(ceilings, style, out);
	render_lines("missing", ceilings->missing, ceilings->missing_count, style, out);
	render_lines("notes", ceilings->notes, ceilings->note_count, style, out);
}
