#include "harness/fit/source.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void source_more_open(struct source_more *more)
{
	*more = (struct source_more){.rate = NAN};
	for (int id = 0; id < CASE_ENVIRONMENT_COUNT; id++)
		more->environment.of[id].number = NAN;
}

void source_more_release(struct source_more *more)
{
	if (more->has_config)
		config_release(&more->config);
	more->has_config = false;
}

const enum finding_id source_of_sample[] = {FINDING_CPU_SAMPLE, FINDING_CPU_READ,
	FINDING_CPU_DECODE, FINDING_CPU_AUGMENT, FINDING_READ_TIME, FINDING_LOADER_WAIT,
	FINDING_COUNT};

void source_forget_samples(struct findings *findings)
{
	for (const enum finding_id *id = source_of_sample; *id != FINDING_COUNT; id++)
		if (findings->known[*id].source == SOURCE_OBSERVED)
			findings->known[*id] =
				(struct finding){.value = NAN, .low = NAN, .high = NAN};
}

bool source_is_document(const char *text, const char *schema)
{
	text += strspn(text, " \t\r\n");
	if (*text != '{')
		return false;
	text += 1 + strspn(text + 1, " \t\r\n");
	if (strncmp(text, "\"schema\"", 8) != 0)
		return false;
	text += 8 + strspn(text + 8, " \t\r\n:");
	return *text == '"' && strncmp(text + 1, schema, strlen(schema)) == 0;
}

/* --- by content --------------------------------------------------------------------------------- */

typedef int source_reader(
	const char *path, struct findings *out, struct source_more *more, struct error *err);

static int source_folder(
	const char *path, struct findings *out, struct source_more *more, struct error *err)
{
	(void)more;
	return findings_from_folder(out, path, err);
}

static int source_step_log(
	const char *path, struct findings *out, struct source_more *more, struct error *err)
{
	(void)more;
	return findings_from_step_log(out, path, err);
}

static int source_trace(
	const char *path, struct findings *out, struct source_more *more, struct error *err)
{
	(void)more;
	return findings_from_trace(out, path, err);
}

static const struct source_kind {
	enum finding_source kind;
	source_reader *read;
} source_files[] = {
	{SOURCE_TRACE, source_trace}, {SOURCE_STEP_LOG, source_step_log},
	{SOURCE_FOLDER, source_folder}, /* a list of files, or a manifest */
};

/* The beginning of a file; its size in `out`, "" where it cannot be read. */
static void source_head(const char *path, char *out, size_t room)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const ssize_t got = fd >= 0 ? read(fd, out, room - 1) : -1;
	out[got > 0 ? got : 0] = '\0';
	if (fd >= 0)
		(void)close(fd);
}

static int source_refuse(const char *path, struct error *err)
{
	return error_set(err, -EINVAL,
		"'%.200s' is no source that is known: a folder of data, a trace of torch.profiler (.json, .json.gz), a "
		"log of step times (CSV, JSON, TensorBoard, what nanoGPT, Megatron-LM, tqdm and others print), a result of "
		"'mlbench observe --json', a result of mlbench",
		path);
}

static int source_read_file(const char *path, struct findings *out, struct source_more *more,
	enum finding_source *kind, struct error *err)
{
	enum { HEAD_BYTES = 512 };
	char head[HEAD_BYTES];
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	source_head(path, head, sizeof head);
	if (strcmp(name, "points.jsonl") == 0 || source_is_document(head, "mlbench.summary/")) {
		*kind = SOURCE_RESULT;
		return source_result(path, out, more, err);
	}
	if (source_is_document(head, "mlbench.observe/")) {
		*kind = SOURCE_OBSERVED;
		return source_observed(path, out, more, err);
	}
	if (case_is(path))
		return error_set(err, -EINVAL,
			"'%.200s' is a case already: 'mlbench check' tells it, and its keys can be changed in the file",
			path);
	for (size_t i = 0; i < COUNT(source_files); i++) {
		*kind = source_files[i].kind;
		const int code = source_files[i].read(path, out, more, err);
		if (code != -ENOMSG)
			return code;
	}
	return source_refuse(path, err);
}

/* One of several side by side is one, too: which, is for the user to say. */
static bool source_is_result(const char *folder)
{
	char *newest = NULL;
	const int code = record_is_run(folder) ? 0 : record_find_newest(folder, &newest, NULL);
	free(newest);
	return code == 0 || code == -EINVAL;
}

/* A folder of TensorBoard events, or of data. */
static int source_read_data(
	const char *path, struct findings *out, enum finding_source *kind, struct error *err)
{
	*kind = SOURCE_STEP_LOG;
	const int code = findings_from_step_log(out, path, err);
	if (code != -ENOMSG)
		return code;
	*kind = SOURCE_FOLDER;
	return findings_from_folder(out, path, err);
}

static int source_read_folder(const char *path, struct findings *out, struct source_more *more,
	enum finding_source *kind, struct error *err)
{
	char *observed = files_join(path, "observe.json");
	struct stat st;
	int code;
	if (!observed)
		return error_set(err, -ENOMEM, "out of memory");
	*kind = source_is_result(path)     ? SOURCE_RESULT
		: stat(observed, &st) == 0 ? SOURCE_OBSERVED
					   : SOURCE_FOLDER;
	if (*kind == SOURCE_RESULT)
		code = source_result(path, out, more, err);
	else if (*kind == SOURCE_OBSERVED)
		code = source_observed(observed, out, more, err);
	else
		code = source_read_data(path, out, kind, err);
	free(observed);
	return code == -ENOMSG ? source_refuse(path, err) : code;
}

static int source_read_any(const char *path, struct findings *out, struct source_more *more,
	enum finding_source *kind, struct error *err)
{
	struct stat st;
	*kind = SOURCE_NONE;
	if (stat(path, &st) != 0)
		return error_set_errno(err, errno, "cannot open '%.200s'", path);
	if (S_ISDIR(st.st_mode))
		return source_read_folder(path, out, more, kind, err);
	if (!S_ISREG(st.st_mode)) /* it would be read by more than one reader */
		return error_set(err, -EINVAL, "'%.200s' is neither a file nor a folder", path);
	if (st.st_size == 0)
		return error_set(err, -EINVAL,
			"'%.200s' is empty: a job that still runs may not have written to it yet",
			path);
	return source_read_file(path, out, more, kind, err);
}

static uint64_t source_tells_from_ns; /* progress; 0: no source is being read */
static const atomic_bool *source_stop;

int source_check_stop(struct error *err)
{
	return source_stop && atomic_load(source_stop)
		       ? error_set(err, -EINTR, "stopped; no case was written")
		       : 0;
}

void source_progress(const char *format, ...)
{
	enum { AGAIN_MS = 200, TEXT_BYTES = 200 };
	const uint64_t now = clock_now_ns();
	char text[TEXT_BYTES];
	va_list args;
	if (source_tells_from_ns == 0 || now < source_tells_from_ns)
		return;
	source_tells_from_ns = now + AGAIN_MS * NS_PER_MS;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	log_progress("%s", text);
}

int source_read(const char *path, struct findings *out, struct source_more *more,
	enum finding_source *kind, const atomic_bool *stop, struct error *err)
{
	source_tells_from_ns = clock_now_ns() + NS_PER_S;
	source_stop = stop;
	int code = source_read_any(path, out, more, kind, err);
	if (!code)
		code = source_check_stop(err);
	source_stop = NULL;
	source_tells_from_ns = 0;
	log_progress_end();
	return code;
}
