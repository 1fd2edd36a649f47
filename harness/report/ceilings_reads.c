/* One table a request size: depths down, states of the page cache across.  Small requests are counted
 * in requests, large ones in bytes; the unit is one for a whole table, so that columns compare. */
#include "harness/report/ceilings_parts.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static size_t state_of(const struct read_ceiling *read)
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

const char *sheet_number(double value, char out[UNITS_BYTES])
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

static void add_read(
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

static const struct read_ceiling *find(const struct view *view, size_t state, unsigned depth)
{
	for (size_t i = 0; i < view->ceilings->read_count; i++) {
		const struct read_ceiling *read = &view->ceilings->reads[i];
		if (state_of(read) == state && read->depth == depth &&
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
				add_read(&table, view, state, find(view, state, depth));
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
			view.shown[state_of(&ceilings->reads[i])] = true;
	(void)snprintf(text, sizeof text, "%s a request%s", units_format_size(request_bytes, size),
		fabs(request_bytes - ceilings->file_bytes) < 4096 ? ", the mean file" : "");
	sheet_heading(style, "", text, out);
	render_table(&view, style, out);
}

void ceilings_reads_render(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out)
{
	char text[SHEET_LINE_BYTES];
	char size[UNITS_BYTES];
	double last = 0;
	if (ceilings->read_count == 0)
		return;
	(void)snprintf(text, sizeof text,
		"%s, by %s; a scratch file of %s at random offsets, one reading thread%s",
		ceilings->storage, ceilings->engine,
		units_format_size(ceilings->scratch_bytes, size),
		ceilings->reads_block ? " for each request in flight" : "");
	sheet_heading(style, "storage", text, out);
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
