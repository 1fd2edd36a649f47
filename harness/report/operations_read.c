/* Key averages from a trace.json: a line at a time, so that its size does not matter, and parsed by jansson. */
#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/operations.h"
#include "harness/report/timeline_report.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

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

static int refuse(const struct reading *r, const char *why)
{
	return error_set(r->err, -EINVAL, "'%s' line %zu: %s", r->path, r->number, why);
}

static int refuse_torn(const struct reading *r)
{
	int code;
	const char *why = gzerror(r->file, &code);
	if (code < 0 && code != Z_BUF_ERROR && *why)
		return error_set(r->err, -EINVAL, "'%s' is damaged or torn after line %zu: %s",
			r->path, r->number, why);
	return error_set(
		r->err, -EINVAL, "'%s' is torn: it ends after line %zu", r->path, r->number);
}

/* 1: a line; 0: the end; or a negative errno. */
static int next_line(struct reading *r)
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
				"'%s' is no timeline of mlbench: its lines have no end", r->path);
	}
	r->number++;
	r->line.data[--r->line.size] = '\0';
	return 1;
}

/* --- the head --------------------------------------------------------------------------------------------- */

static double number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* Times of all threads in the windows, as their clocks have it. */
static size_t add_threads(struct reading *r, const json_t *other)
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

static double add_windows(struct reading *r, const json_t *other)
{
	double steps = 0;
	size_t i;
	json_t *window;
	json_array_foreach(json_object_get(other, "windows"), i, window)
	{
		r->out->seconds +=
			(number_of(window, "end_us") - number_of(window, "begin_us")) / 1e6;
		steps += number_of(window, "steps");
	}
	return steps;
}

static void describe(struct reading *r, const json_t *other)
{
	struct operations *o = r->out;
	char span[UNITS_BYTES];
	const double steps = add_windows(r, other);
	const size_t threads = add_threads(r, other);
	o->device_ns = number_of(other, "device_count") * o->seconds * 1e9;
	o->emulated = json_is_true(json_object_get(other, "emulated"));
	(void)snprintf(o->title, sizeof o->title,
		"%.128s, point %.0f, repeat %.0f: %.0f steps, %s, %zu threads",
		text_of(other, "benchmark"), number_of(other, "point"), number_of(other, "repeat"),
		steps, units_format_duration(o->seconds * 1e9, span), threads);
}

static int check_head(struct reading *r, const json_t *head, const char *config_hash)
{
	const json_t *other = json_object_get(head, "otherData");
	const char *schema = text_of(head, "schema");
	if (strncmp(schema, TIMELINE_SCHEMA, strlen(TIMELINE_SCHEMA) - 1) == 0 &&
		strcmp(schema, TIMELINE_SCHEMA) != 0)
		return error_set(r->err, -EINVAL, "'%s' has schema '%.40s'; this program reads %s",
			r->path, schema, TIMELINE_SCHEMA);
	if (strcmp(schema, TIMELINE_SCHEMA) != 0 || !json_is_object(other))
		return error_set(r->err, -EINVAL,
			"'%s' is no timeline of mlbench: its first line has no schema %s", r->path,
			TIMELINE_SCHEMA);
	if (config_hash && strcmp(config_hash, text_of(other, "config_hash")) != 0)
		return error_set(r->err, -EINVAL,
			"'%s' is of configuration %.16s, the result beside it of %s", r->path,
			text_of(other, "config_hash"), config_hash);
	describe(r, other);
	if (!(r->out->thread_ns > 0) || !(r->out->seconds > 0))
		return refuse(r, "no time of threads in it");
	return 0;
}

static int read_head(struct reading *r, const char *config_hash)
{
	json_error_t wrong;
	const int got = next_line(r);
	if (got < 0)
		return got;
	if (got == 0)
		return error_set(r->err, -EINVAL, "'%s' is empty", r->path);
	buffer_text(&r->line, "]}");
	if (r->line.failed)
		return error_set(r->err, -ENOMEM, "out of memory");
	json_t *head = json_loadb(r->line.data, r->line.size, 0, &wrong);
	const int code = check_head(r, head, config_hash);
	json_decref(head);
	return code;
}

/* --- events ----------------------------------------------------------------------------------------------- */

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

static struct operation *row_of(
	struct reading *r, const json_t *event, const char *stage, enum operation_place place)
{
	char name[OPERATION_NAME_BYTES];
	name_operation(text_of(event, "name"), name);
	return operations_row(r->out, name, stage, place);
}

/* A slice of a track begins inside those that have begun on it and not ended. */
static int begin_slice(struct reading *r, const json_t *event, double at_us)
{
	const char *stage = text_of(event, "cat");
	struct operation *row = row_of(r, event, stage,
		strncmp(stage, "device", 6) == 0 ? OPERATION_DEVICE : OPERATION_THREAD);
	if (!row || r->depth == DEPTH_MAX)
		return refuse(r, "more operations, or deeper ones, than a timeline of mlbench has");
	r->open[r->depth++] = (struct open_slice){row, at_us, is_clipped(event)};
	return 0;
}

static int end_slice(struct reading *r, double at_us)
{
	if (r->depth == 0)
		return refuse(r, "the end of a slice that did not begin");
	const struct open_slice *slice = &r->open[--r->depth];
	const double ns = (at_us - slice->begin_us) * (double)NS_PER_US;
	if (!(ns >= 0))
		return refuse(r, "a slice that ends before it begins");
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
	const double at_us = number_of(event, "ts");
	const double pid = number_of(event, "pid");
	const double tid = number_of(event, "tid");
	if (!(at_us >= 0) || isnan(pid) || isnan(tid))
		return refuse(r, "a slice without its time or its track");
	if (r->depth > 0 && ((int64_t)pid != r->pid || (int64_t)tid != r->tid))
		return refuse(r, "a slice of another track while one has not ended");
	r->pid = (int64_t)pid;
	r->tid = (int64_t)tid;
	return begins ? begin_slice(r, event, at_us) : end_slice(r, at_us);
}

/* Those of one id follow one another. */
static int add_async(struct reading *r, const json_t *event, bool begins)
{
	const double at_us = number_of(event, "ts");
	if (!(at_us >= 0))
		return refuse(r, "an event without its time");
	if (!begins) {
		if (r->async_depth == 0)
			return refuse(r, "the end of what did not begin");
		const struct open_slice *open = &r->async[--r->async_depth];
		const double ns = (at_us - open->begin_us) * (double)NS_PER_US;
		return operation_add(open->row, ns, !open->clipped)
			       ? error_set(r->err, -ENOMEM, "out of memory")
			       : 0;
	}
	struct operation *row = row_of(r, event, text_of(event, "cat"), OPERATION_ASYNC);
	if (!row || r->async_depth == DEPTH_MAX)
		return refuse(r, "more operations than a timeline of mlbench has");
	r->async[r->async_depth++] = (struct open_slice){row, at_us, is_clipped(event)};
	return 0;
}

static int add_event(struct reading *r, const json_t *event)
{
	const char *phase = text_of(event, "ph");
	if (strcmp(phase, "B") == 0 || strcmp(phase, "E") == 0)
		return add_slice(r, event, *phase == 'B');
	if (strcmp(phase, "b") == 0 || strcmp(phase, "e") == 0)
		return add_async(r, event, *phase == 'b');
	return *phase ? 0 : refuse(r, "no event");
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
		return refuse(r, wrong.text);
	const int code = add_event(r, event);
	json_decref(event);
	return code;
}

/* Nothing follows, and what zlib has summed up on the way is right. */
static int check_end(struct reading *r)
{
	int code;
	if (gzgetc(r->file) != -1)
		return refuse(r, "something follows the end of the document");
	(void)gzerror(r->file, &code);
	return code < 0 ? refuse_torn(r) : 0;
}

static int read_events(struct reading *r)
{
	int got = 1;
	while (!r->ended && (got = next_line(r)) > 0) {
		const int code = read_event(r);
		if (code)
			return code;
	}
	if (got < 0)
		return got;
	if (!r->ended)
		return refuse_torn(r);
	if (r->depth > 0 || r->async_depth > 0)
		return refuse(r, "slices that do not end");
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
	int code = read_head(&r, config_hash);
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
