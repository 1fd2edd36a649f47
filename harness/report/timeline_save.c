/* Writing a trace.json: beside and renamed, through zlib, its first line with what the times mean. */
#include "harness/report/timeline_stream.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* --- the first line --------------------------------------------------------------------------- */

static json_t *head_microseconds(uint64_t ns)
{
	return json_real((double)ns / (double)NS_PER_US);
}

unsigned timeline_pid(const struct timeline_stream *stream, const struct timeline_log *log)
{
	const bool on_device = log->track == TIMELINE_DEVICE || stage_is(log->stage, STAGE_SYNC);
	return on_device ? timeline_devices(stream->story) : timeline_host(stream->story);
}

void timeline_track_name(const struct timeline_log *log, char out[2 * NAME_BYTES])
{
	if (log->lone)
		(void)snprintf(out, 2 * NAME_BYTES, "%s", log->stage);
	else
		(void)snprintf(out, 2 * NAME_BYTES, "%s %u", log->stage, log->thread);
}

static json_t *windows_of(const struct timeline_stream *stream)
{
	const struct timeline *t = stream->story->timeline;
	json_t *array = json_array();
	for (size_t i = 0; i < t->window_count; i++) {
		const struct timeline_window *w = &t->windows[i];
		(void)json_array_append_new(array,
			json_pack("{s:o, s:o, s:I, s:I}", "begin_us",
				head_microseconds(timeline_since(stream, w->begin_ns)), "end_us",
				head_microseconds(timeline_since(stream, w->end_ns)), "first_step",
				(json_int_t)w->first_step, "steps", (json_int_t)w->steps));
	}
	return array;
}

static json_t *head_thread_of(const struct timeline_stream *stream, const struct timeline_log *log)
{
	uint64_t ns[THREAD_STATES];
	char name[2 * NAME_BYTES];
	json_t *accounted = json_object();
	timeline_index_account(&stream->index, log, ns);
	for (int state = 0; state < THREAD_STATES; state++)
		(void)json_object_set_new(
			accounted, thread_state_names[state], head_microseconds(ns[state]));
	timeline_track_name(log, name);
	return json_pack("{s:i, s:i, s:s, s:s, s:i, s:o}", "pid", (int)timeline_pid(stream, log),
		"tid", (int)timeline_tid(log), "name", name, "stage", log->stage, "index",
		(int)log->thread, "accounted_us", accounted);
}

static json_t *threads_of(const struct timeline_stream *stream)
{
	const struct timeline *t = stream->story->timeline;
	json_t *array = json_array();
	for (uint32_t i = 0; i < t->log_count; i++)
		if (t->logs[i].track == TIMELINE_THREAD)
			(void)json_array_append_new(array, head_thread_of(stream, &t->logs[i]));
	return array;
}

static json_t *head_devices_of(const struct measurement *m)
{
	json_t *array = json_array();
	for (size_t i = 0; i < m->device_count; i++) {
		const struct device_measurement *d = &m->devices[i];
		(void)json_array_append_new(
			array, json_pack("{s:i, s:o, s:b, s:o}", "index", (int)d->index, "name",
				       fields_text(d->name), "emulated", (int)d->emulated,
				       "clock_map_error_us",
				       fields_number(d->clock_map_error_ns / (double)NS_PER_US)));
	}
	return array;
}

static json_t *dropped_of(const struct timeline *t)
{
	return json_pack("{s:I, s:I}", "steps", (json_int_t)t->dropped_steps, "entries",
		(json_int_t)atomic_load(&t->lost));
}

/* Of a rank, from an index that is open. */
static json_t *timeline_describe_part(const struct timeline_stream *stream)
{
	const struct timeline_story *const story = stream->story;
	const struct timeline *const t = story->timeline;
	const struct timeline_rank *const rank = story->rank;
	return json_pack("{s:i, s:o, s:i, s:i, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:o}", "rank",
		(int)rank->rank, "host", fields_text(rank->host), "pid", (int)timeline_host(story),
		"devices_pid", (int)timeline_devices(story), "clock_offset_ns",
		(json_int_t)rank->offset_ns, "clock_error_ns", (json_int_t)rank->error_ns,
		"began_us", head_microseconds(timeline_since(stream, t->start_ns)), "steps_of_run",
		(json_int_t)t->steps, "windows", windows_of(stream), "dropped", dropped_of(t),
		"threads", threads_of(stream), "devices", head_devices_of(story->m));
}

/* The leader's, and the others'. */
static json_t *head_ranks(const struct timeline_stream *stream, json_t *others)
{
	json_t *const all = json_array();
	(void)json_array_append_new(all, timeline_describe_part(stream));
	(void)json_array_extend(all, others);
	return all;
}

static json_t *other_data(const struct timeline_stream *stream)
{
	const struct timeline_story *story = stream->story;
	const struct timeline *t = story->timeline;
	char started[CLOCK_UTC_BYTES];
	clock_format_utc(story->m->started, started);
	return json_pack(
		"{s:s, s:s, s:o, s:I, s:I, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:b, s:s, s:I, s:o, s:o, s:o, s:o, s:s}",
		"program", "mlbench", "version", MLBENCH_VERSION, "benchmark",
		fields_text(story->name), "point", (json_int_t)story->m->point, "repeat",
		(json_int_t)story->m->repeat, "config_hash", story->config_hash, "schedule",
		fields_text(story->schedule), "started", started, "origin_monotonic_ns",
		(json_int_t)(story->rank ? story->rank->origin_ns : t->start_ns), "batch_size",
		(json_int_t)t->batch_size, "batches_per_epoch", (json_int_t)t->batches_per_epoch,
		"device_count", (json_int_t)t->devices, "emulated", (int)t->emulated, "engine",
		t->engine, "steps_of_run", (json_int_t)t->steps, "windows", windows_of(stream),
		"dropped", dropped_of(t), "threads", threads_of(stream), "devices",
		head_devices_of(story->m), "times",
		"microseconds since the repetition began, to the nanosecond; accounted_us: by the threads' state clocks, within the windows");
}

static json_t *timeline_head(const struct timeline_stream *stream, json_t *others)
{
	json_t *other = other_data(stream);
	if (others) {
		(void)json_object_set_new(other, "ranks", head_ranks(stream, others));
		(void)json_object_set_new(other, "times",
			json_string(
				"microseconds since the leader (rank 0) told all ranks to begin, on its clock: those of a rank are "
				"off by up to its clock_error_ns; accounted_us: by the threads' state clocks, within the windows"));
	}
	return other ? json_pack("{s:s, s:s, s:o}", "schema", TIMELINE_SCHEMA, "displayTimeUnit",
			       "ms", "otherData", other)
		     : NULL;
}

/* --- the file --------------------------------------------------------------------------------- */

enum { EVENT_BYTES = 2048, STREAM_BYTES = 256 * 1024 };

/* --- events ----------------------------------------------------------------------------------------------- */

/* Text as it is. */
static void timeline_stream_text(struct timeline_stream *stream, const char *text)
{
	const size_t size = strlen(text);
	if (!stream->failed && size > 0)
		stream->failed = !stream->sink(stream->context, text, size);
}

void timeline_stream_event(struct timeline_stream *stream, const char *format, ...)
{
	char text[EVENT_BYTES];
	const size_t lead = stream->events++ > 0 ? 2 : 1;
	memcpy(text, lead == 2 ? ",\n" : "\n", lead);
	va_list arguments;
	va_start(arguments, format);
	const int size = vsnprintf(text + lead, sizeof text - lead, format, arguments);
	va_end(arguments);
	if (size < 0 || (size_t)size >= sizeof text - lead)
		stream->failed = true; /* no event of ours is so long */
	timeline_stream_text(stream, text);
}

void timeline_stream_name(struct timeline_stream *stream, const char *what, unsigned pid,
	unsigned tid, const char *text)
{
	json_t *name = fields_text(text);
	char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	json_decref(name);
	if (!quoted) {
		stream->failed = true;
		return;
	}
	timeline_stream_event(stream,
		"{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":%s}}", what,
		pid, tid, quoted);
	free(quoted);
}

/* --- the file --------------------------------------------------------------------------------------------- */

static void timeline_write_head(struct timeline_stream *stream, json_t *others)
{
	json_t *head = timeline_head(stream, others);
	char *text = head ? json_dumps(head, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
	json_decref(head);
	if (!text) {
		stream->failed = true;
		return;
	}
	text[strlen(text) - 1] = '\0'; /* the object goes on */
	timeline_stream_text(stream, text);
	timeline_stream_text(stream, ",\"traceEvents\":[");
	free(text);
}

/* Uses up the index. */
static void timeline_write_events(struct timeline_stream *stream)
{
	timeline_write_names(stream);
	timeline_write_tracks(stream);
	timeline_write_rounds(stream);
	timeline_write_files(stream);
	timeline_write_flows(stream);
	timeline_write_batches(stream);
	timeline_write_counters(stream);
}

static bool timeline_write_gz(void *context, const char *text, size_t size)
{
	return gzwrite(context, text, (unsigned)size) == (int)size;
}

static int timeline_write_others(
	struct timeline_stream *stream, const struct timeline_others *others, struct error *err)
{
	size_t i;
	json_t *part;
	int code = 0;
	json_array_foreach(others->parts, i, part)
	{
		if (!code && !stream->failed && !json_object_get(part, "missing"))
			code = others->events(others->context, (unsigned)i + 1, stream->sink,
				stream->context, err);
	}
	return code;
}

static void timeline_write_all(
	struct timeline_stream *stream, const struct timeline_others *others, struct error *why)
{
	timeline_write_head(stream, others ? others->parts : NULL);
	timeline_write_events(stream);
	if (others && timeline_write_others(stream, others, why))
		stream->failed = true;
	timeline_stream_text(stream, "\n]}\n");
}

static int write_stream(const struct timeline_story *story, const struct timeline_others *others,
	int fd, bool compress, struct error *why)
{
	struct timeline_stream stream = {.story = story, .sink = timeline_write_gz};
	const bool indexed = timeline_index_open(&stream.index, story->timeline) == 0;
	gzFile file = indexed ? gzdopen(fd, compress ? "wb6" : "wbT") : NULL;
	if (!file) {
		(void)close(fd);
		timeline_index_close(&stream.index);
		return -ENOMEM;
	}
	stream.context = file;
	(void)gzbuffer(file, STREAM_BYTES);
	errno = 0;
	timeline_write_all(&stream, others, why);
	int code = stream.failed ? -(errno ? errno : EIO) : 0;
	errno = 0;
	if (gzclose(file) != Z_OK && !code)
		code = -(errno ? errno : EIO);
	timeline_index_close(&stream.index);
	return code;
}

/* fd is kept: the data must be on the disk before the name is. */
static int write_and_sync(const struct timeline_story *story, const struct timeline_others *others,
	int fd, bool compress, struct error *why)
{
	const int own = dup(fd);
	int code = own < 0 ? -errno : write_stream(story, others, own, compress, why);
	if (!code && fsync(fd) != 0)
		code = -errno;
	return code;
}

/* Written beside and renamed; with `compress`, by zlib.  Nothing is left of it where that fails. */
static int timeline_save(const struct timeline_story *story, const struct timeline_others *others,
	const char *path, bool compress, struct error *err)
{
	char beside[FILES_PATH_BYTES];
	struct error why = {""}; /* of another rank */
	const int fd = files_create_beside(path, beside, err);
	if (fd < 0)
		return error_prefix(err, fd, "cannot write '%s'", path);
	int code = write_and_sync(story, others, fd, compress, &why);
	(void)close(fd);
	if (!code && rename(beside, path) != 0)
		code = -errno;
	if (code)
		(void)unlink(beside);
	if (code && why.text[0])
		return error_set(err, code, "cannot write '%s': %s", path, why.text);
	return code ? error_set_errno(err, -code, "cannot write '%s'", path) : 0;
}

/* --- a rank's part ---------------------------------------------------------------------------- */

json_t *timeline_part(const struct timeline_story *story)
{
	struct timeline_stream stream = {.story = story};
	json_t *part = NULL;
	if (timeline_index_open(&stream.index, story->timeline) == 0)
		part = timeline_describe_part(&stream);
	timeline_index_close(&stream.index);
	return part;
}

json_t *timeline_no_part(const struct timeline_rank *rank, const char *why)
{
	return json_pack("{s:i, s:o, s:o}", "rank", (int)rank->rank, "host",
		fields_text(rank->host), "missing", fields_text(why));
}

static int64_t part_difference(uint64_t a, int64_t b)
{
	return (int64_t)a > b ? (int64_t)a - b : b - (int64_t)a;
}

void timeline_compare_part(
	const struct timeline *leader, const json_t *part, struct buffer *difference)
{
	const json_t *const windows = json_object_get(part, "windows");
	const int64_t first =
		json_integer_value(json_object_get(json_array_get(windows, 0), "first_step"));
	const int64_t run = json_integer_value(json_object_get(part, "steps_of_run"));
	uint64_t own = 0;
	int64_t theirs = 0;
	size_t i;
	json_t *window;
	for (size_t w = 0; w < leader->window_count; w++)
		own += leader->windows[w].steps;
	json_array_foreach(windows, i, window) theirs +=
		json_integer_value(json_object_get(window, "steps"));
	const int64_t more = part_difference(own, theirs);
	if ((int64_t)leader->windows[0].first_step == first &&
		(more == 0 || (more == 1 && part_difference(leader->steps, run) == 1)))
		return;
	buffer_format(difference,
		"recorded %" PRId64 " steps from step %" PRId64 " on, rank 0 %" PRIu64
		" from step %" PRIu64 " on",
		theirs, first, own, leader->windows[0].first_step);
}

int timeline_write_part(const struct timeline_story *story, timeline_sink *sink, void *context)
{
	struct timeline_stream stream = {
		.story = story, .sink = sink, .context = context, .events = 1};
	if (timeline_index_open(&stream.index, story->timeline))
		return -ENOMEM;
	timeline_write_events(&stream);
	timeline_index_close(&stream.index);
	return stream.failed ? -EIO : 0;
}

/* --- beside a record -------------------------------------------------------------------------------------- */

int record_save_timeline(const struct record *record, const struct timeline *timeline,
	const struct measurement *m, const struct timeline_others *others, struct error *err)
{
	const bool compress = config_on(&record->config, KEY_TRACE_COMPRESS);
	const struct timeline_story story = {.timeline = timeline,
		.m = m,
		.name = record->name,
		.config_hash = record->config_hash,
		.schedule = config_text(&record->config, KEY_TRACE_SCHEDULE),
		.rank = others ? &others->leader : NULL};
	char *path = record_timeline_path(record, m->point, compress);
	const int code = path ? timeline_save(&story, others, path, compress, err)
			      : error_set(err, -ENOMEM, "out of memory");
	free(path);
	return code;
}
