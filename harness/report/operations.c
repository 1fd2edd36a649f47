/* Key averages: rows, how a trace.json or the states of stages become rows, and how rows are printed. */
#include "harness/report/operations.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/medium.h"
#include "harness/report/timeline_report.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { TIMES_LEAST = 64 };

void operations_release(struct operations *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->list[i].times);
	free(o->list);
	*o = (struct operations){0};
}

static bool is_row(const struct operation *row, const char *name, const char *stage,
	enum operation_place place)
{
	return row->place == place && strncmp(row->name, name, sizeof row->name - 1) == 0 &&
	       strncmp(row->stage, stage, sizeof row->stage - 1) == 0;
}

struct operation *operations_row(
	struct operations *o, const char *name, const char *stage, enum operation_place place)
{
	for (size_t i = 0; i < o->count; i++)
		if (is_row(&o->list[i], name, stage, place))
			return &o->list[i];
	if (!o->list)
		o->list = calloc(OPERATIONS_MAX, sizeof *o->list);
	if (!o->list || o->count == OPERATIONS_MAX)
		return NULL;
	struct operation *row = &o->list[o->count];
	*row = (struct operation){.place = place, .share = NAN, .cpu_ns = NAN};
	row->self_ns = place == OPERATION_ASYNC ? (double)NAN : 0;
	(void)snprintf(row->name, sizeof row->name, "%s", name);
	(void)snprintf(row->stage, sizeof row->stage, "%s", stage);
	row->mean_ns = NAN;
	row->p99_ns = NAN;
	row->max_ns = NAN;
	o->count++;
	return row;
}

int operation_add(struct operation *row, double ns, bool whole)
{
	row->calls++;
	row->total_ns += ns;
	if (!whole)
		return 0;
	if (row->time_count == row->time_room) {
		const size_t room = row->time_room > 0 ? 2 * row->time_room : TIMES_LEAST;
		double *times = realloc(row->times, room * sizeof *times);
		if (!times)
			return -ENOMEM;
		row->times = times;
		row->time_room = room;
	}
	row->times[row->time_count++] = ns;
	return 0;
}

static void settle_times(struct operation *row)
{
	double sum = 0;
	if (row->time_count == 0)
		return;
	sort_doubles(row->times, row->time_count);
	for (size_t i = 0; i < row->time_count; i++)
		sum += row->times[i];
	row->mean_ns = sum / (double)row->time_count;
	/* The least value that 99 % of them do not exceed. */
	row->p99_ns = row->times[(row->time_count * 99 + 99) / 100 - 1];
	row->max_ns = row->times[row->time_count - 1];
}

void operations_settle(struct operations *o)
{
	for (size_t i = 0; i < o->count; i++) {
		struct operation *row = &o->list[i];
		const double whole = row->place == OPERATION_DEVICE ? o->device_ns : o->thread_ns;
		/* Sums of times that are whole nanoseconds. */
		row->self_ns = round(row->self_ns);
		if (row->self_ns <= 0)
			row->self_ns = 0;
		row->share = whole > 0 ? row->self_ns / whole : (double)NAN;
		settle_times(row);
	}
}

/* --- order ------------------------------------------------------------------------------------ */

const struct operation_column operation_columns[] = {
	{"self", "time in the operation itself, without what is inside it"},
	{"share", "self over the time of all threads, or of all devices"},
	{"total", "time in it with all that is inside it"},
	{"calls", "how often, those at the edge of a window included"},
	{"mean", "time of one that is whole"},
	{"p99", "time that 99 % of them do not exceed"},
	{"max", "time of the longest"},
	{"cpu", "CPU time, where the kernel's accounting of a stage is all there is"},
	{"operation", "its name"},
	{"stage", "the stage whose thread or device it runs on"},
	{NULL, NULL},
};

enum column {
	BY_SELF,
	BY_SHARE,
	BY_TOTAL,
	BY_CALLS,
	BY_MEAN,
	BY_P99,
	BY_MAX,
	BY_CPU,
	BY_NAME,
	BY_STAGE
};

static double operations_value_of(const struct operation *row, enum column column)
{
	switch (column) {
	case BY_SELF:
		return row->self_ns;
	case BY_SHARE:
		return row->share;
	case BY_TOTAL:
		return row->total_ns;
	case BY_CALLS:
		return (double)row->calls;
	case BY_MEAN:
		return row->mean_ns;
	case BY_P99:
		return row->p99_ns;
	case BY_MAX:
		return row->max_ns;
	case BY_CPU:
		return row->cpu_ns;
	case BY_NAME:
	case BY_STAGE:
		break;
	}
	return NAN;
}

/* What has no value comes last; NAN is below everything. */
static int compare_values(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return a > b ? -1 : a < b;
}

static int operations_compare(const void *a, const void *b, void *context)
{
	const struct operation *x = a;
	const struct operation *y = b;
	const enum column column = *(const enum column *)context;
	int order = 0;
	if (column == BY_STAGE)
		order = strcmp(x->stage, y->stage);
	else if (column != BY_NAME)
		order = compare_values(
			operations_value_of(x, column), operations_value_of(y, column));
	if (!order && column == BY_SELF)
		order = compare_values(x->total_ns, y->total_ns);
	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->stage, y->stage);
}

static int operations_find_column(const char *name, enum column *column, struct error *err)
{
	const char *names[sizeof operation_columns / sizeof operation_columns[0]];
	size_t count = 0;
	for (; operation_columns[count].name; count++) {
		names[count] = operation_columns[count].name;
		if (strcmp(names[count], name) == 0) {
			*column = (enum column)count;
			return 0;
		}
	}
	struct buffer list = {0};
	for (size_t i = 0; i < count; i++)
		buffer_format(&list, "%s%s", i ? ", " : "", names[i]);
	const char *nearest = suggest_nearest(name, names, count);
	const int code =
		error_set(err, -EINVAL, "no column '%.48s' to sort by; choose from: %s%s%s%s", name,
			list.data ? list.data : "", nearest ? " (did you mean '" : "",
			nearest ? nearest : "", nearest ? "'?)" : "");
	buffer_release(&list);
	return code;
}

int operations_sort(struct operations *o, const char *name, struct error *err)
{
	enum column column = BY_SELF;
	const int code = name ? operations_find_column(name, &column, err) : 0;
	if (!code && o->count > 0)
		qsort_r(o->list, o->count, sizeof *o->list, operations_compare, &column);
	return code;
}

/* --- from the stages -------------------------------------------------------------------------- */

static int operations_add_state(
	struct operations *o, const struct stage_measurement *stage, int state)
{
	const double ns = stage->seconds[state] * 1e9;
	if (ns <= 0)
		return 0;
	struct operation *row =
		operations_row(o, thread_state_names[state], stage->name, OPERATION_THREAD);
	if (!row)
		return -ENOMEM;
	row->self_ns = ns;
	row->total_ns = ns;
	o->thread_ns += ns;
	if (state != THREAD_WORKING)
		return 0;
	row->calls = stage->items;
	row->cpu_ns = stage->cpu_seconds * 1e9;
	if (stage->service.count == 0)
		return 0;
	row->mean_ns = histogram_mean(&stage->service);
	row->p99_ns = histogram_quantile(&stage->service, 0.99);
	row->max_ns = (double)stage->service.max_ns;
	return 0;
}

static int operations_add_device(struct operations *o, const char *name, double seconds)
{
	if (!(seconds > 0))
		return 0;
	struct operation *row = operations_row(o, name, "device", OPERATION_DEVICE);
	if (!row)
		return -ENOMEM;
	row->self_ns += seconds * 1e9;
	row->total_ns += seconds * 1e9;
	return 0;
}

static int operations_add_devices(struct operations *o, const struct measurement *m)
{
	int code = 0;
	for (size_t i = 0; i < m->device_count && !code; i++) {
		const struct device_measurement *d = &m->devices[i];
		code = operations_add_device(o, "device step", d->step_seconds);
		if (!code)
			code = operations_add_device(o, "device upload", d->upload_seconds);
		if (!code)
			code = operations_add_device(o, "exchange gradients", d->sync_seconds);
		o->emulated = o->emulated || d->emulated;
	}
	o->device_ns = (double)m->device_count * m->measured_seconds * 1e9;
	return code;
}

int operations_of_stages(
	struct operations *o, const struct measurement *m, const char *name, struct error *err)
{
	int code = 0;
	*o = (struct operations){.seconds = m->measured_seconds};
	(void)snprintf(o->title, sizeof o->title, "%.128s, point %u, repetition %u", name, m->point,
		m->repeat);
	for (size_t i = 0; i < m->stage_count && !code; i++)
		for (int state = 0; state < THREAD_STATES && !code; state++)
			code = operations_add_state(o, &m->stages[i], state);
	if (!code)
		code = operations_add_devices(o, m);
	operations_settle(o);
	if (!code && o->count == 0)
		return error_set(err, -ENODATA,
			"point %u has no times of its stages (measure.profiler is off)", m->point);
	return code ? error_set(err, code, "out of memory") : 0;
}

/* --- from a trace.json, a line at a time, so that its size does not matter -------------------- */

enum {
	PIECE_BYTES = 64 * 1024,
	LINE_BYTES_MAX = 8 << 20, /* the first line names each thread and window */
	DEPTH_MAX = 64,
};

/* A slice that is open while those inside it are read. */
struct open_slice {
	struct operation *row;
	double begin_us;
	bool clipped;
};

struct reading {
	struct operations *out;
	const char *path;
	gzFile file;
	struct buffer line; /* without its newline */
	size_t number;      /* of the line */
	struct error *err;
	int64_t pid, tid; /* of the slices in `open` */
	struct open_slice open[DEPTH_MAX];
	size_t depth;
	struct open_slice async[DEPTH_MAX]; /* of the id that is being read */
	size_t async_depth;
	bool ended;
};

static int trace_refuse(const struct reading *r, const char *why)
{
	return error_set(r->err, -EINVAL, "'%s' line %zu: %s", r->path, r->number, why);
}

static int refuse_torn(const struct reading *r)
{
	int code;
	const char *why = gzerror(r->file, &code);
	if (code < 0 && code != Z_BUF_ERROR && *why)
		return error_set(r->err, -EINVAL, "'%s' is damaged after line %zu: %s", r->path,
			r->number, why);
	return error_set(
		r->err, -EINVAL, "'%s' is incomplete: it ends after line %zu", r->path, r->number);
}

/* 1: a line; 0: the end; or a negative errno. */
static int trace_next_line(struct reading *r)
{
	char piece[PIECE_BYTES];
	r->line.size = 0;
	for (;;) {
		if (!gzgets(r->file, piece, sizeof piece))
			return r->line.size > 0 ? refuse_torn(r) : 0;
		buffer_text(&r->line, piece);
		if (r->line.failed)
			return error_set(r->err, -ENOMEM, "out of memory");
		if (r->line.size > 0 && r->line.data[r->line.size - 1] == '\n')
			break;
		if (r->line.size > LINE_BYTES_MAX)
			return error_set(r->err, -EINVAL,
				"'%s' is not a timeline of mlbench: its lines never end", r->path);
	}
	r->number++;
	r->line.data[--r->line.size] = '\0';
	return 1;
}

/* --- the head --------------------------------------------------------------------------------- */

static double trace_number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static const char *trace_text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* Times of all threads in the windows, as their clocks have it. */
static size_t trace_add_threads(struct reading *r, const json_t *other)
{
	size_t i;
	json_t *thread;
	json_array_foreach(json_object_get(other, "threads"), i, thread)
	{
		const char *key;
		json_t *value;
		json_object_foreach(json_object_get(thread, "accounted_us"), key, value)
			r->out->thread_ns += json_number_value(value) * (double)NS_PER_US;
	}
	return json_array_size(json_object_get(other, "threads"));
}

/* Of each rank that is in the file, or of the only one. */
static size_t trace_add_ranks(struct reading *r, const json_t *other, size_t *ranks)
{
	size_t i;
	json_t *part;
	size_t threads = 0;
	*ranks = 0;
	json_array_foreach(json_object_get(other, "ranks"), i, part)
	{
		threads += trace_add_threads(r, part);
		*ranks += !json_object_get(part, "missing");
	}
	if (*ranks > 0)
		return threads;
	*ranks = 1;
	return trace_add_threads(r, other);
}

static double add_windows(struct reading *r, const json_t *other)
{
	double steps = 0;
	size_t i;
	json_t *window;
	json_array_foreach(json_object_get(other, "windows"), i, window)
	{
		r->out->seconds +=
			(trace_number_of(window, "end_us") - trace_number_of(window, "begin_us")) /
			1e6;
		steps += trace_number_of(window, "steps");
	}
	return steps;
}

static void trace_describe(struct reading *r, const json_t *other)
{
	struct operations *o = r->out;
	char span[UNITS_BYTES];
	char of_ranks[32] = "";
	const double steps = add_windows(r, other);
	size_t ranks;
	const size_t threads = trace_add_ranks(r, other, &ranks);
	o->device_ns = trace_number_of(other, "device_count") * (double)ranks * o->seconds * 1e9;
	o->emulated = json_is_true(json_object_get(other, "emulated"));
	if (ranks > 1)
		(void)snprintf(of_ranks, sizeof of_ranks, " of %zu ranks", ranks);
	(void)snprintf(o->title, sizeof o->title,
		"%.128s, point %.0f, repetition %.0f: %.0f steps, %s, %zu threads%s",
		trace_text_of(other, "benchmark"), trace_number_of(other, "point"),
		trace_number_of(other, "repeat"), steps,
		units_format_duration(o->seconds * 1e9, span), threads, of_ranks);
}

static int trace_check_head(struct reading *r, const json_t *head, const char *config_hash)
{
	const json_t *other = json_object_get(head, "otherData");
	const char *schema = trace_text_of(head, "schema");
	if (strncmp(schema, TIMELINE_SCHEMA, strlen(TIMELINE_SCHEMA) - 1) == 0 &&
		strcmp(schema, TIMELINE_SCHEMA) != 0)
		return error_set(r->err, -EINVAL, "'%s' has schema '%.40s'; this program reads %s",
			r->path, schema, TIMELINE_SCHEMA);
	if (strcmp(schema, TIMELINE_SCHEMA) != 0 || !json_is_object(other))
		return error_set(r->err, -EINVAL,
			"'%s' is not a timeline of mlbench: its first line has no schema %s",
			r->path, TIMELINE_SCHEMA);
	if (config_hash && strcmp(config_hash, trace_text_of(other, "config_hash")) != 0)
		return error_set(r->err, -EINVAL,
			"'%s' is of configuration %.16s, the result beside it of %s", r->path,
			trace_text_of(other, "config_hash"), config_hash);
	trace_describe(r, other);
	if (!(r->out->thread_ns > 0) || !(r->out->seconds > 0))
		return trace_refuse(r, "no time of threads in it");
	return 0;
}

static int trace_read_head(struct reading *r, const char *config_hash)
{
	json_error_t wrong;
	const int got = trace_next_line(r);
	if (got < 0)
		return got;
	if (got == 0)
		return error_set(r->err, -EINVAL, "'%s' is empty", r->path);
	buffer_text(&r->line, "]}");
	if (r->line.failed)
		return error_set(r->err, -ENOMEM, "out of memory");
	json_t *head = json_loadb(r->line.data, r->line.size, 0, &wrong);
	const int code = trace_check_head(r, head, config_hash);
	json_decref(head);
	return code;
}

/* --- events ----------------------------------------------------------------------------------- */

/* "step 12" and "epoch 0" are one operation each, whatever their number. */
static void name_operation(const char *name, char out[OPERATION_NAME_BYTES])
{
	(void)snprintf(out, OPERATION_NAME_BYTES, "%s", name);
	size_t end = strlen(out);
	while (end > 0 && isdigit((unsigned char)out[end - 1]))
		end--;
	if (end > 1 && out[end] && out[end - 1] == ' ')
		out[end - 1] = '\0';
}

static bool is_clipped(const json_t *event)
{
	return json_is_true(json_object_get(json_object_get(event, "args"), "clipped"));
}

static struct operation *trace_row_of(
	struct reading *r, const json_t *event, const char *stage, enum operation_place place)
{
	char name[OPERATION_NAME_BYTES];
	name_operation(trace_text_of(event, "name"), name);
	return operations_row(r->out, name, stage, place);
}

/* A slice of a track begins inside those that have begun on it and not ended. */
static int trace_begin_slice(struct reading *r, const json_t *event, double at_us)
{
	const char *stage = trace_text_of(event, "cat");
	struct operation *row = trace_row_of(r, event, stage,
		strncmp(stage, "device", 6) == 0 ? OPERATION_DEVICE : OPERATION_THREAD);
	if (!row || r->depth == DEPTH_MAX)
		return trace_refuse(
			r, "more operations, or deeper ones, than a timeline of mlbench has");
	r->open[r->depth++] = (struct open_slice){row, at_us, is_clipped(event)};
	return 0;
}

static int end_slice(struct reading *r, double at_us)
{
	if (r->depth == 0)
		return trace_refuse(r, "the end of a slice that did not begin");
	const struct open_slice *slice = &r->open[--r->depth];
	const double ns = (at_us - slice->begin_us) * (double)NS_PER_US;
	if (!(ns >= 0))
		return trace_refuse(r, "a slice that ends before it begins");
	slice->row->self_ns += ns;
	if (r->depth > 0)
		r->open[r->depth - 1].row->self_ns -= ns;
	return operation_add(slice->row, ns, !slice->clipped)
		       ? error_set(r->err, -ENOMEM, "out of memory")
		       : 0;
}

/* Those of one track follow one another. */
static int add_slice(struct reading *r, const json_t *event, bool begins)
{
	const double at_us = trace_number_of(event, "ts");
	const double pid = trace_number_of(event, "pid");
	const double tid = trace_number_of(event, "tid");
	if (!(at_us >= 0) || isnan(pid) || isnan(tid))
		return trace_refuse(r, "a slice without its time or its track");
	if (r->depth > 0 && ((int64_t)pid != r->pid || (int64_t)tid != r->tid))
		return trace_refuse(r, "a slice of another track while one has not ended");
	r->pid = (int64_t)pid;
	r->tid = (int64_t)tid;
	return begins ? trace_begin_slice(r, event, at_us) : end_slice(r, at_us);
}

/* Those of one id follow one another. */
static int add_async(struct reading *r, const json_t *event, bool begins)
{
	const double at_us = trace_number_of(event, "ts");
	if (!(at_us >= 0))
		return trace_refuse(r, "an event without its time");
	if (!begins) {
		if (r->async_depth == 0)
			return trace_refuse(r, "the end of what did not begin");
		const struct open_slice *open = &r->async[--r->async_depth];
		const double ns = (at_us - open->begin_us) * (double)NS_PER_US;
		return operation_add(open->row, ns, !open->clipped)
			       ? error_set(r->err, -ENOMEM, "out of memory")
			       : 0;
	}
	struct operation *row =
		trace_row_of(r, event, trace_text_of(event, "cat"), OPERATION_ASYNC);
	if (!row || r->async_depth == DEPTH_MAX)
		return trace_refuse(r, "more operations than a timeline of mlbench has");
	r->async[r->async_depth++] = (struct open_slice){row, at_us, is_clipped(event)};
	return 0;
}

static int trace_add_event(struct reading *r, const json_t *event)
{
	const char *phase = trace_text_of(event, "ph");
	if (strcmp(phase, "B") == 0 || strcmp(phase, "E") == 0)
		return add_slice(r, event, *phase == 'B');
	if (strcmp(phase, "b") == 0 || strcmp(phase, "e") == 0)
		return add_async(r, event, *phase == 'b');
	return *phase ? 0 : trace_refuse(r, "no event");
}

static int read_event(struct reading *r)
{
	json_error_t wrong;
	size_t size = r->line.size;
	if (strcmp(r->line.data, "]}") == 0) {
		r->ended = true;
		return 0;
	}
	size -= size > 0 && r->line.data[size - 1] == ',';
	json_t *event = json_loadb(r->line.data, size, 0, &wrong);
	if (!event)
		return trace_refuse(r, wrong.text);
	const int code = trace_add_event(r, event);
	json_decref(event);
	return code;
}

/* Nothing follows, and what zlib has summed up on the way is right. */
static int check_end(struct reading *r)
{
	int code;
	if (gzgetc(r->file) != -1)
		return trace_refuse(r, "something follows the end of the document");
	(void)gzerror(r->file, &code);
	return code < 0 ? refuse_torn(r) : 0;
}

static int read_events(struct reading *r)
{
	int got = 1;
	while (!r->ended && (got = trace_next_line(r)) > 0) {
		const int code = read_event(r);
		if (code)
			return code;
	}
	if (got < 0)
		return got;
	if (!r->ended)
		return refuse_torn(r);
	if (r->depth > 0 || r->async_depth > 0)
		return trace_refuse(r, "slices that do not end");
	return check_end(r);
}

int operations_read(
	struct operations *out, const char *path, const char *config_hash, struct error *err)
{
	*out = (struct operations){0};
	(void)snprintf(out->file, sizeof out->file, "%s", path);
	struct reading r = {.out = out, .path = path, .err = err, .pid = -1};
	errno = 0;
	r.file = gzopen(path, "rb");
	if (!r.file)
		return error_set_errno(err, errno ? errno : ENOMEM, "cannot read '%s'", path);
	int code = trace_read_head(&r, config_hash);
	if (!code)
		code = read_events(&r);
	(void)gzclose(r.file);
	buffer_release(&r.line);
	if (code)
		operations_release(out);
	else
		operations_settle(out);
	return code;
}

/* --- the document, and as text ---------------------------------------------------------------- */

static const char *const places[] = {"thread", "device", "in flight"};

static json_t *operations_microseconds(double ns)
{
	return fields_number(ns / (double)NS_PER_US);
}

static json_t *operations_row_json(const struct operation *row)
{
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "operation",
		fields_text(row->name), "stage", fields_text(row->stage), "on", places[row->place],
		"self_us", operations_microseconds(row->self_ns), "share",
		fields_number(row->share), "total_us", operations_microseconds(row->total_ns),
		"calls", (json_int_t)row->calls, "mean_us", operations_microseconds(row->mean_ns),
		"p99_us", operations_microseconds(row->p99_ns), "max_us",
		operations_microseconds(row->max_ns), "cpu_us",
		operations_microseconds(row->cpu_ns));
}

json_t *operations_json(const struct operations *o, const char *sort)
{
	json_t *list = json_array();
	for (size_t i = 0; i < o->count; i++)
		(void)json_array_append_new(list, operations_row_json(&o->list[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:s, s:o}", "schema",
		"mlbench.top/1", "source", o->file[0] ? "timeline" : "stages", "file",
		o->file[0] ? fields_text(o->file) : json_null(), "title", fields_text(o->title),
		"emulated", (int)o->emulated, "seconds", fields_number(o->seconds), "thread_us",
		operations_microseconds(o->thread_ns), "device_us",
		operations_microseconds(o->device_ns), "sort", sort ? sort : "self", "operations",
		list);
}

/* Control characters could move the cursor. */
static void operations_plain_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	utf8_add_plain(out, column_text(row, column->path), "?");
}

#define OPERATION_TIME(title, member) \
	.head = (title), .path = (member), .unit = COLUMN_SECONDS, .scale = 1e-6

void operations_text(const json_t *document, const struct style *style, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.head = "operation",
			.left = true,
			.ink = INK_BOLD,
			.path = "operation",
			.text_of = operations_plain_cell},
		{.head = "stage", .left = true, .path = "stage", .text_of = operations_plain_cell},
		{.head = "on", .left = true, .keep = 5, .ink = INK_DIM, .path = "on"},
		{OPERATION_TIME("self", "self_us")},
		{.head = "share", .ink = INK_ACCENT, .path = "share", .unit = COLUMN_SHARE},
		{OPERATION_TIME("total", "total_us"), .keep = 1},
		{.head = "calls", .path = "calls", .unit = COLUMN_COUNT, .positive = true},
		{OPERATION_TIME("mean", "mean_us")}, {OPERATION_TIME("p99", "p99_us"), .keep = 2},
		{OPERATION_TIME("max", "max_us"), .keep = 4},
		{OPERATION_TIME("CPU", "cpu_us"), .keep = 3}, /* known of stages alone */
	};
	const bool stages = strcmp(column_text(document, "source"), "stages") == 0;
	struct medium medium = medium_terminal(style, out);
	struct buffer text = {0};
	utf8_add_plain(&text, column_text(document, "title"), "?");
	medium_heading(&medium, text.data ? text.data : "");
	buffer_release(&text);
	medium_table(&medium, columns, COUNT(columns) - !stages,
		json_object_get(document, "operations"), "");
	if (stages)
		buffer_text(&text,
			"no timeline was recorded (trace.schedule), so this shows stages only: the "
			"states of their threads and the time per item or batch, p99 from a "
			"histogram (to 3 %)");
	else
		buffer_text(&text,
			"share: of the time of all threads (of all devices, where a device runs "
			"it); mean, p99 and max: of calls that no window cuts off");
	if (json_is_true(json_object_get(document, "emulated")))
		buffer_text(&text, "; devices are emulated: their times are nominal");
	medium_space(&medium);
	medium_note(&medium, &text);
}
