/* Stages and queues of a point. */
#include "harness/report/stage_table.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>

enum { STAGE_COLUMNS = 11, CAPACITY_BYTES = UNITS_BYTES + 2 };

static const char *stage_table_quantile(
	const struct histogram *h, double share, char out[UNITS_BYTES])
{
	const double ns = h->count > 0 ? (double)histogram_quantile(h, share) : (double)NAN;
	return units_or_dash(units_format_duration, ns, out);
}

/* The greater-sign: it never showed its limit, which is at least this. */
static const char *stage_table_capacity(const struct stage_summary *stage, char out[CAPACITY_BYTES])
{
	char number[UNITS_BYTES];
	if (isnan(stage->capacity))
		(void)snprintf(out, CAPACITY_BYTES, "-");
	else
		(void)snprintf(out, CAPACITY_BYTES, "%s%s",
			stage->capacity_is_lower_bound ? ">" : "",
			units_format_count(stage->capacity, number));
	return out;
}

static void stage_table_add_stage(const struct stage_summary *stage, struct table *table)
{
	char text[CAPACITY_BYTES];
	const bool busiest = stage->busy >= 0.95;
	table_add(table, busiest ? INK_BOLD : INK_PLAIN, "%s", stage->name);
	table_add(table, INK_PLAIN, "%u", stage->workers);
	table_add(table, busiest ? INK_WARN : INK_ACCENT, "%.4f",
		isnan(stage->busy) ? 0 : stage->busy);
	table_add(table, INK_PLAIN, "%s", units_or_dash(units_format_share, stage->busy, text));
	table_add(table, INK_PLAIN, "%s", units_or_dash(units_format_share, stage->starved, text));
	table_add(table, INK_PLAIN, "%s", units_or_dash(units_format_share, stage->blocked, text));
	table_add(table, INK_PLAIN, "%s", stage_table_capacity(stage, text));
	table_add(table, INK_PLAIN, "%s", units_or_dash(units_format_share, stage->cpu, text));
	table_add(table, INK_DIM, "%s", stage->per_batch ? "batch" : "sample");
	table_add(table, INK_PLAIN, "%s", stage_table_quantile(&stage->service, 0.5, text));
	table_add(table, INK_PLAIN, "%s", stage_table_quantile(&stage->service, 0.99, text));
}

static void append_queue(const struct queue_measurement *queue, struct buffer *text)
{
	char empty[UNITS_BYTES];
	char full[UNITS_BYTES];
	buffer_format(text, "%s %.1f of %u (empty %s, full %s)", queue->name, queue->mean_depth,
		queue->capacity, units_or_dash(units_format_share, queue->empty_share, empty),
		units_or_dash(units_format_share, queue->full_share, full));
}

static void append_share(struct buffer *text, double value, const char *of)
{
	char number[UNITS_BYTES];
	if (!isnan(value))
		buffer_format(text, ", %s %s", units_format_share(value, number), of);
}

/* Where the working time went; what hardly worked, or works on a device, is left out. */
static void append_split(const struct stage_summary *stage, struct buffer *text)
{
	char number[UNITS_BYTES];
	if (isnan(stage->cpu))
		return;
	const double waits = (isnan(stage->io_wait) ? 0 : stage->io_wait) +
			     (isnan(stage->lock_wait) ? 0 : stage->lock_wait);
	const double rest = 1 - stage->cpu - stage->run_queue - waits;
	buffer_format(text, "%s%s %s on a core", text->size > 0 ? "; " : "at work: ", stage->name,
		units_format_share(stage->cpu, number));
	append_share(text, stage->run_queue, "waiting for one");
	append_share(text, stage->io_wait, "for I/O");
	append_share(text, stage->lock_wait, "for a lock");
	append_share(text, rest > 0 ? rest : 0, "for something else");
}

static void append_limit(struct buffer *text, const char *group, const char *limit, double used)
{
	char share[UNITS_BYTES];
	buffer_format(text, "; cgroup %s may read %s", group, limit);
	if (!isnan(used))
		buffer_format(text, ", %s used", units_format_share(used, share));
}

/* What the kernel counted on the disk, and what control groups let through. */
static void append_store(const struct store_measurement *store, struct buffer *text)
{
	char number[UNITS_BYTES];
	char limit[UNITS_BYTES + sizeof " requests/s"];
	if (store->device[0] && store->reads_per_s >= 0)
		buffer_format(text, "; disk %s %s reads/s", store->device,
			units_format_count(store->reads_per_s, number));
	if (store->device[0] && store->read_ns > 0) {
		buffer_format(text, ", %s", units_format_rate(store->bytes_per_s, number));
		buffer_format(text, ", %s each", units_format_duration(store->read_ns, number));
		buffer_format(text, ", busy %s",
			units_or_dash(units_format_share, store->busy_share, number));
	}
	if (store->bytes_limit > 0)
		append_limit(text, store->bytes_group, units_format_rate(store->bytes_limit, limit),
			store->bytes_used / store->bytes_limit);
	if (store->requests_limit > 0) {
		(void)snprintf(limit, sizeof limit, "%s requests/s",
			units_format_count(store->requests_limit, number));
		append_limit(text, store->requests_group, limit,
			store->requests_used / store->requests_limit);
	}
}

static void append_totals(const struct point_summary *point, struct buffer *text)
{
	char number[UNITS_BYTES];
	buffer_format(text, "accounted %s of all thread time",
		units_or_dash(units_format_share, point->accounted, number));
	if (point->rss_peak_bytes > 0)
		buffer_format(text, "; resident %s at most",
			units_format_size((double)point->rss_peak_bytes, number));
	if (point->pool_bytes > 0)
		buffer_format(
			text, ", pools %s", units_format_size((double)point->pool_bytes, number));
	if (!isnan(point->bytes_read_per_s))
		buffer_format(
			text, "; read %s", units_format_rate(point->bytes_read_per_s, number));
	if (!isnan(point->page_cache_share))
		buffer_format(text, ", %s of it from the page cache",
			units_or_dash(units_format_share, point->page_cache_share, number));
	append_store(&point->store, text);
}

static void render_line(
	const struct style *style, int indent, const struct buffer *text, struct buffer *out)
{
	buffer_repeat(out, " ", indent);
	buffer_text(out, style_ink(style, INK_DIM));
	style_wrap(style, text->data ? text->data : "", indent, indent, out);
	out->size -= out->size > 0; /* the ink ends before the newline */
	buffer_format(out, "%s\n", style_end(style));
}

void stage_table_open(struct table *table, const struct point_summary *point)
{
	static const struct table_column columns[STAGE_COLUMNS] = {
		{.head = "stage", .left = true},
		{.head = "threads"},
		{.head = "", .bar = true, .keep = 4},
		{.head = "busy"},
		{.head = "starved"},
		{.head = "blocked"},
		{.head = "capacity/s"},
		{.head = "on CPU", .keep = 3},
		{.head = "time of a", .left = true, .keep = 5},
		{.head = "p50", .keep = 1},
		{.head = "p99", .keep = 2},
	};
	table_open(table, columns, STAGE_COLUMNS);
	for (size_t i = 0; i < point->stage_count; i++)
		stage_table_add_stage(&point->stages[i], table);
}

void stage_table_render(const struct point_summary *point, const struct style *style, int indent,
	struct buffer *out)
{
	struct table table;
	stage_table_open(&table, point);
	table_render(&table, style, indent, true, out);
	table_close(&table);
	struct buffer text = {0};
	buffer_text(&text, point->queue_count ? "queues: " : "");
	for (size_t i = 0; i < point->queue_count; i++) {
		buffer_text(&text, i ? ", " : "");
		append_queue(&point->queues[i], &text);
	}
	if (point->queue_count)
		render_line(style, indent, &text, out);
	buffer_release(&text);
	for (size_t i = 0; i < point->stage_count; i++)
		append_split(&point->stages[i], &text);
	if (text.size > 0)
		render_line(style, indent, &text, out);
	buffer_release(&text);
	append_totals(point, &text);
	render_line(style, indent, &text, out);
	buffer_release(&text);
}
