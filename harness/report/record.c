/* A run's folder: one line per repetition, appended and synced, so that a kill loses at most the
 * repetition in flight. */
#include "harness/report/record.h"

#include "harness/base/buffer.h"
#include "harness/base/files.h"
#include "harness/report/measurement_json.h"
#include "harness/report/record_json.h"
#include "harness/report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define POINTS_FILE "points.jsonl"

enum { REAL_DIGITS = 15 };
static const size_t POINTS_LIMIT_BYTES = (size_t)8 << 30;

static double now_seconds(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static char *points_path(const struct record *record, struct error *err)
{
	char *path = files_join(record->folder, POINTS_FILE);
	if (!path)
		(void)error_set(err, -ENOMEM, "out of memory");
	return path;
}

/* Held until release, so that two runs cannot write to one folder. */
static int take_lock(struct record *record, const char *path, struct error *err)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot write '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		(void)close(fd);
		return error_set(err, -EBUSY, "another run is writing to '%s'", record->folder);
	}
	record->lock = fd;
	record->locked = true;
	return 0;
}

static int append_text(struct record *record, const char *text, struct error *err)
{
	char *path = points_path(record, err);
	if (!path)
		return -ENOMEM;
	int code = 0;
	if (record->torn && truncate(path, (off_t)record->whole_bytes) != 0)
		code = error_set_errno(err, errno, "cannot cut the torn last line of '%s'", path);
	if (!code) {
		const size_t size = strlen(text);
		code = files_append(path, text, size, err);
		record->torn = code != 0; /* part of it may have been written */
		if (!code)
			record->whole_bytes += size;
	}
	free(path);
	return code;
}

/* Takes line. */
static int append_line(struct record *record, json_t *line, struct error *err)
{
	char *text =
		line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
	struct buffer out = {0};
	if (text) {
		buffer_text(&out, text);
		buffer_text(&out, "\n");
	}
	const bool good = text && !out.failed;
	const int code = good ? append_text(record, out.data, err)
			      : error_set(err, -ENOMEM, "out of memory for a line of results");
	buffer_release(&out);
	free(text);
	json_decref(line);
	return code;
}

int record_create(struct record *record, struct error *err)
{
	int code = files_make_folder(record->folder, err);
	if (code)
		return code;
	char *path = points_path(record, err);
	if (!path)
		return -ENOMEM;
	if (access(path, F_OK) == 0)
		code = error_set(err, -EEXIST,
			"'%s' holds a run already: continue it with --resume, or name another folder",
			record->folder);
	if (!code)
		code = take_lock(record, path, err);
	free(path);
	return code ? code : append_line(record, record_header_to_json(record), err);
}

int record_continue(struct record *record, struct error *err)
{
	char *path = points_path(record, err);
	if (!path)
		return -ENOMEM;
	const int code = take_lock(record, path, err);
	free(path);
	record->finished = 0;
	record->interrupted = false;
	return code;
}

static struct measurement **find(const struct record *record, uint32_t point, uint32_t repeat)
{
	for (size_t i = 0; i < record->measurement_count; i++) {
		struct measurement *m = record->measurements[i];
		if (m->point == point && m->repeat == repeat)
			return &record->measurements[i];
	}
	return NULL;
}

static void free_measurement(struct measurement *m)
{
	if (m)
		measurement_release(m);
	free(m);
}

/* Takes m; a later one of the same (point, repeat) replaces the earlier. */
static int keep(struct record *record, struct measurement *m, struct error *err)
{
	struct measurement **same = find(record, m->point, m->repeat);
	if (same) {
		free_measurement(*same);
		*same = m;
		return 0;
	}
	if (record->measurement_count == record->measurement_room) {
		const size_t room = record->measurement_room ? 2 * record->measurement_room : 64;
		struct measurement **larger = realloc(record->measurements, room * sizeof(*larger));
		if (!larger) {
			free_measurement(m);
			return error_set(err, -ENOMEM, "out of memory for results");
		}
		record->measurements = larger;
		record->measurement_room = room;
	}
	record->measurements[record->measurement_count++] = m;
	return 0;
}

int record_append(struct record *record, struct measurement *measurement, struct error *err)
{
	json_t *line = measurement_to_json(measurement);
	const int code = keep(record, measurement, err);
	const int saved = append_line(record, line, err);
	return code ? code : saved;
}

int record_append_limit(struct record *record, const struct stage_limit *limit, struct error *err)
{
	if (record->limit_count == RECORD_LIMITS_MAX)
		return error_set(err, -ENOSPC, "more than %d limits", RECORD_LIMITS_MAX);
	record->limits[record->limit_count++] = *limit;
	return append_line(record, record_limit_to_json(limit), err);
}

bool record_has(const struct record *record, uint32_t point, uint32_t repeat)
{
	struct measurement **m = find(record, point, repeat);
	return m && (*m)->status != MEASUREMENT_FAILED && (*m)->status != MEASUREMENT_INTERRUPTED;
}

size_t record_failed_count(const struct record *record)
{
	size_t failed = 0;
	for (size_t i = 0; i < record->measurement_count; i++)
		failed += record->measurements[i]->status == MEASUREMENT_FAILED;
	return failed;
}

static int read_repetition(struct record *record, const json_t *object, struct error *err)
{
	struct measurement *m = calloc(1, sizeof *m);
	if (!m)
		return error_set(err, -ENOMEM, "out of memory for results");
	int code = measurement_from_json(m, object, err);
	if (!code && m->point >= record->grid.points)
		code = error_set(err, -EINVAL, "point %u is not of this sweep", m->point);
	if (!code)
		return keep(record, m, err);
	free_measurement(m);
	return code;
}

static int read_object(struct record *record, json_t *object, struct error *err)
{
	if (!record->header)
		return record_header_from_json(record, object, err);
	const char *kind = json_string_value(json_object_get(object, "kind"));
	if (kind && strcmp(kind, "repetition") == 0)
		return read_repetition(record, object, err);
	if (kind && strcmp(kind, "limit") == 0)
		return record_limit_from_json(record, object, err);
	if (kind && strcmp(kind, "end") == 0)
		record_end_from_json(record, object);
	return 0; /* a kind of a later version */
}

static int read_line(struct record *record, const char *text, size_t size, struct error *err)
{
	json_error_t wrong;
	json_t *object = json_loadb(text, size, 0, &wrong);
	if (!object)
		return error_set(err, -EINVAL, "no JSON: %s", wrong.text);
	const int code = read_object(record, object, err);
	json_decref(object);
	return code;
}

static int read_lines(
	struct record *record, const char *path, const char *text, size_t size, struct error *err)
{
	size_t at = 0;
	for (size_t number = 1; at < size; number++) {
		const char *newline = memchr(text + at, '\n', size - at);
		if (!newline)
			break;
		const size_t length = (size_t)(newline - (text + at));
		const int code = read_line(record, text + at, length, err);
		if (code)
			return error_prefix(err, code, "%s:%zu", path, number);
		at += length + 1;
	}
	record->whole_bytes = at;
	record->torn = at < size;
	if (!record->header)
		return error_set(err, -EINVAL, "'%s' holds no whole line", path);
	return 0;
}

/* Without an end line (a kill): when the last thing known happened. */
static void settle_end(struct record *record)
{
	size_t measured = 0;
	double last = record->started;
	for (size_t i = 0; i < record->measurement_count; i++) {
		const struct measurement *m = record->measurements[i];
		const double end = m->started + m->wall_seconds;
		last = end > last ? end : last;
		measured += m->status != MEASUREMENT_INTERRUPTED;
	}
	const size_t repeats = (size_t)config_integer(&record->config, KEY_MEASURE_REPEATS);
	record->interrupted = measured < repeats * record->grid.points;
	if (record->finished < last)
		record->finished = last;
}

int record_open(struct record *record, const char *folder, struct error *err)
{
	*record = (struct record){0};
	int code = record_find_newest(folder, &record->folder, err);
	if (code)
		return code;
	char *path = points_path(record, err);
	char *text = NULL;
	size_t size = 0;
	code = path ? files_read(path, POINTS_LIMIT_BYTES, &text, &size, err) : -ENOMEM;
	if (!code)
		code = read_lines(record, path, text, size, err);
	if (!code)
		settle_end(record);
	free(text);
	free(path);
	return code;
}

int record_finish(struct record *record, struct error *err)
{
	const bool ended = record->finished > 0;
	settle_end(record);
	if (!ended)
		record->finished = now_seconds();
	int code = append_line(record, record_end_to_json(record), err);
	struct report report;
	const int built = report_open(&report, record, code ? NULL : err);
	code = code ? code : built;
	if (!code)
		code = report_write_files(&report, err);
	if (!built)
		report_close(&report);
	return code;
}

void record_release(struct record *record)
{
	for (size_t i = 0; i < record->measurement_count; i++)
		free_measurement(record->measurements[i]);
	free(record->measurements);
	free(record->folder);
	config_grid_close(&record->grid);
	config_release(&record->config);
	fact_list_release(&record->environment);
	json_decref(record->header);
	if (record->locked)
		(void)close(record->lock);
	*record = (struct record){0};
}
