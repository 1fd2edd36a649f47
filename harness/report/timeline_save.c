/* The file of a timeline: zlib's stream, which also writes plain text. */
#include "harness/report/timeline_stream.h"

#include "harness/base/files.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { EVENT_BYTES = 2048, STREAM_BYTES = 256 * 1024 };

/* --- events ----------------------------------------------------------------------------------------------- */

void timeline_stream_text(struct timeline_stream *stream, const char *text)
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

static void write_head(struct timeline_stream *stream)
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

static void write_all(struct timeline_stream *stream)
{
	write_head(stream);
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
	write_all(&stream);
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

int timeline_save(
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
