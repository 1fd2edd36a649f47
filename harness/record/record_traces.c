/* The files of traces of a run's folder: traces/p00012-r1.json, one a repetition.  Each says when its
 * repetition ended, so that one left over from an attempt that was not kept is not taken for another's. */
#include "harness/record/record.h"

#include "harness/base/buffer.h"
#include "harness/base/files.h"
#include "harness/record/traces_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TRACES_LIMIT_BYTES = 16 << 20, TRACES_NAME_BYTES = 48 };
static const double SAME_MOMENT_S = 1e-3;

char *record_traces_path(const struct record *record, uint32_t point, uint32_t repeat)
{
	char name[TRACES_NAME_BYTES];
	(void)snprintf(name, sizeof name, "traces/p%05" PRIu32 "-r%" PRIu32 ".json", point, repeat);
	return files_join(record->folder, name);
}

static int make_folder(const struct record *record, struct error *err)
{
	char *folder = files_join(record->folder, "traces");
	if (!folder)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = files_make_folder(folder, err);
	free(folder);
	return code;
}

int record_save_traces(const struct record *record, const struct traces *traces,
	const struct measurement *m, struct error *err)
{
	int code = make_folder(record, err);
	if (code)
		return code;
	struct buffer text = {0};
	char *path = record_traces_path(record, m->point, m->repeat);
	struct traces named = *traces;
	named.point = m->point;
	named.repeat = m->repeat;
	traces_to_json(&named, m->started + m->wall_seconds, &text);
	if (!path || text.failed)
		code = error_set(err, -ENOMEM, "out of memory for traces");
	else
		code = files_write_atomic(path, text.data, text.size, err);
	buffer_release(&text);
	free(path);
	return code;
}

static int parse(struct traces *traces, const struct record_entry *entry, const char *text,
	size_t size, struct error *err)
{
	double ended = NAN;
	json_error_t wrong;
	json_t *object = json_loadb(text, size, 0, &wrong);
	if (!object)
		return error_set(err, -EINVAL, "no JSON: %s", wrong.text);
	const int code = traces_from_json(traces, &ended, object, err);
	json_decref(object);
	if (code)
		return code;
	if (traces->point != entry->point || traces->repeat != entry->repeat)
		return error_set(err, -EINVAL, "it is of point %" PRIu32 ", repeat %" PRIu32,
			traces->point, traces->repeat);
	if (!(fabs(ended - entry->ended) <= SAME_MOMENT_S))
		return error_set(err, -ENOENT, "it is of another attempt at this repetition");
	return 0;
}

static int load(struct traces *traces, const struct record_entry *entry, const char *path,
	struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	if (access(path, F_OK) != 0)
		return error_set(err, -ENOENT, "no traces were saved: '%s' is not there", path);
	int code = files_read(path, TRACES_LIMIT_BYTES, &text, &size, err);
	if (code)
		return code;
	code = parse(traces, entry, text, size, err);
	free(text);
	return code ? error_prefix(err, code, "%s", path) : 0;
}

int record_load_traces(
	const struct record *record, size_t entry, struct traces *traces, struct error *err)
{
	const struct record_entry *of = &record->entries[entry];
	char *path = record_traces_path(record, of->point, of->repeat);
	*traces = (struct traces){0};
	const int code =
		path ? load(traces, of, path, err) : error_set(err, -ENOMEM, "out of memory");
	free(path);
	if (code)
		traces_release(traces);
	return code;
}
