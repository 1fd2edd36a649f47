/* The device's part of the data sheet: who it is, copies to and from it by size, its memory and launches, and its matrix
 * products by precision. */
#include "harness/report/ceilings_parts.h"

#include <math.h>
#include <stdio.h>

enum { KINDS = 4 };

static const double PERCENT = 100;
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

static void add_copy(struct table *table, const struct copy_ceiling *copy)
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
			add_copy(&table, find_copy(device, &copy_kinds[i], bytes));
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

static void add_gemm(struct table *table, const struct device_gemm_ceiling *gemm)
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

static void render_gemms(
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
		add_gemm(&table, &device->gemms[i]);
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

void ceilings_device_render(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	if (!ceilings->has_device)
		return;
	render_who(&ceilings->device, style, out);
	render_copies(&ceilings->device, style, out);
	render_figures(&ceilings->device, style, out);
	render_gemms(ceilings, style, out);
}
