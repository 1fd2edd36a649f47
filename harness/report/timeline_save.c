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

int timeline_pid(const struct timeline_log *log)
{
	const bool on_device = log->track == TIMELINE_DEVICE || stage_is(log->stage, STAGE_SYNC);
	return on_device ? TIMELINE_DEVICES : TIMELINE_HOST;
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
	return json_pack("{s:i, s:i, s:s, s:s, s:i, s:o}", "pid", timeline_pid(log), "tid",
		(int)timeline_tid(log), "name", name, "stage", log->stage, "index",
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
		(json_int_t)t->start_ns, "batch_size", (json_int_t)t->batch_size,
		"batches_per_epoch", (json_int_t)t->batches_per_epoch, "device_count",
		(json_int_t)t->devices, "emulated", (int)t->emulated, "engine", t->engine,
		"steps_of_run", (json_int_t)t->steps, "windows", windows_of(stream), "dropped",
		dropped_of(t), "threads", threads_of(stream), "devices", head_devices_of(story->m),
		"times",
		"microseconds since the repetition began, to the nanosecond; accounted_us: by the threads' state clocks, within the windows");
}

static json_t *timeline_head(const struct timeline_stream *stream)
{
	json_t *other = other_data(stream);
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
	if (stream->failed || size == 0)
		return;
	stream->failed = gzwrite(stream->file, text, (unsigned)size) != (int)size;
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

void timeline_stream_name(
	struct timeline_stream *stream, const char *what, int pid, unsigned tid, const char *text)
{
	json_t *name = fields_text(text);
	char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	json_decref(name);
	if (!quoted) {
		stream->failed = true;
		return;
	}
	timeline_stream_event(stream,
		"{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":%s}}", what,
		pid, tid, quoted);
	free(quoted);
}

/* --- the file --------------------------------------------------------------------------------------------- */

static void timeline_write_head(struct timeline_stream *stream)
{
	json_t *head = timeline_head(stream);
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

static void timeline_write_all(struct timeline_stream *stream)
{
	timeline_write_head(stream);
	timeline_write_names(stream);
	timeline_write_tracks(stream);
	timeline_write_files(stream);
	timeline_write_flows(stream);
	timeline_write_batches(stream);
	timeline_write_counters(stream);
	timeline_stream_text(stream, "\n]}\n");
}

static int write_stream(const struct timeline_story *story, int fd, bool compress)
{
	struct timeline_stream stream = {.story = story};
	if (timeline_index_open(&stream.index, story->timeline)) {
		(void)close(fd);
		return -ENOMEM;
	}
	stream.file = gzdopen(fd, compress ? "wb6" : "wbT");
	if (!stream.file) {
		(void)close(fd);
		timeline_index_close(&stream.index);
		return -ENOMEM;
	}
	(void)gzbuffer(stream.file, STREAM_BYTES);
	errno = 0;
	timeline_write_all(&stream);
	int code = stream.failed ? -(errno ? errno : EIO) : 0;
	errno = 0;
	if (gzclose(stream.file) != Z_OK && !code)
		code = -(errno ? errno : EIO);
	timeline_index_close(&stream.index);
	return code;
}

/* fd is kept: the data must be on the disk before the name is. */
static int write_and_sync(const struct timeline_story *story, int fd, bool compress)
{
	const int own = dup(fd);
	int code = own < 0 ? -errno : write_stream(story, own, compress);
	if (!code && fsync(fd) != 0)
		code = -errno;
	return code;
}

/* Written beside and renamed; with `compress`, by zlib.  Nothing is left of it where that fails. */
static int timeline_save(
	const struct timeline_story *story, const char *path, bool compress, struct error *err)
{
	char beside[FILES_PATH_BYTES];
	const int fd = files_create_beside(path, beside, err);
	if (fd < 0)
		return error_prefix(err, fd, "cannot write '%s'", path);
	int code = write_and_sync(story, fd, compress);
	(void)close(fd);
	if (!code && rename(beside, path) != 0)
		code = -errno;
	if (code)
		(void)unlink(beside);
	return code ? error_set_errno(err, -code, "cannot write '%s'", path) : 0;
}

/* --- beside a record -------------------------------------------------------------------------------------- */

char *timeline_path(const struct record *record, uint32_t point, bool compress)
{
	char name[48];
	const char *end = compress ? ".json.gz" : ".json";
	if (record->config.axis_count == 0)
		(void)snprintf(name, sizeof name, "trace%s", end);
	else
		(void)snprintf(name, sizeof name, "trace-p%05" PRIu32 "%s", point, end);
	return files_join(record->folder, name);
}

int record_save_timeline(const struct record *record, const struct timeline *timeline,
	const struct measurement *m, struct error *err)
{
	const bool compress = config_on(&record->config, KEY_TRACE_COMPRESS);
	const struct timeline_story story = {.timeline = timeline,
		.m = m,
		.name = record->name,
		.config_hash = record->config_hash,
		.schedule = config_text(&record->config, KEY_TRACE_SCHEDULE)};
	char *path = timeline_path(record, m->point, compress);
	const int code = path ? timeline_save(&story, path, compress, err)
			      : error_set(err, -ENOMEM, "out of memory");
	free(path);
	return code;
}
