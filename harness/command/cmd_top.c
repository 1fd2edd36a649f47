/* mlbench top: the key averages of a saved result, from its timeline or, where none was recorded, its stages. */
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/command/saved.h"
#include "harness/report/operations.h"
#include "harness/report/report.h"
#include "harness/report/timeline_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- which one -------------------------------------------------------------------------------- */

/* As the configuration packs it, else the other way.  NULL: there is none, or no memory. */
static char *find_timeline(const struct record *record, uint32_t point)
{
	const bool compress = config_on(&record->config, KEY_TRACE_COMPRESS);
	for (int turn = 0; turn < 2; turn++) {
		char *path = record_timeline_path(record, point, turn == 0 ? compress : !compress);
		if (path && access(path, F_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

/* --- from where ------------------------------------------------------------------------------- */

/* The first repetition that was measured. */
static int of_stages(
	struct operations *out, const struct record *record, uint32_t point, struct error *err)
{
	for (size_t i = 0; i < record->entry_count; i++) {
		const struct record_entry *entry = &record->entries[i];
		if (entry->point != point || entry->status == MEASUREMENT_FAILED)
			continue;
		struct measurement m = {0};
		int code = record_load(record, i, &m, err);
		if (!code)
			code = operations_of_stages(out, &m, record->name, err);
		measurement_release(&m);
		return code;
	}
	return error_set(err, -ENODATA, "point %" PRIu32 " was not measured", point);
}

static int of_record(
	struct operations *out, const struct record *record, int64_t asked, struct error *err)
{
	struct report report;
	const size_t points = record->grid.points;
	if (asked >= 0 && (uint64_t)asked >= points)
		return error_set(err, -EINVAL, "there is no point %" PRId64 ": the last one is %zu",
			asked, points - 1);
	int code = report_open(&report, record, err);
	if (code)
		return code;
	/* The one that is asked for, else the best. */
	const size_t point = asked >= 0 ? (size_t)asked : report.best;
	report_close(&report);
	if (point >= points)
		return error_set(err, -ENODATA, "'%s' has no measurement", record->folder);
	char *path = find_timeline(record, (uint32_t)point);
	code = path ? operations_read(out, path, record->config_hash, err)
		    : of_stages(out, record, (uint32_t)point, err);
	free(path);
	return code;
}

static int top_gather(
	struct operations *out, const struct invocation *invocation, struct error *err)
{
	const char *name = invocation->options.arguments[0];
	const char *text = invocation->options.values[OPTION_POINT];
	int64_t point = -1;
	struct stat st;
	if (text && (units_parse_integer(text, &point) != 0 || point < 0))
		return error_set(err, -EINVAL, "--point takes a number from 0 on, not '%s'", text);
	/* A file that is none of a result's is taken for a timeline. */
	if (stat(name, &st) == 0 && S_ISREG(st.st_mode) && !saved_is_meant(name))
		return point >= 0 ? error_set(err, -EINVAL,
					    "--point needs a result; '%s' is a single file", name)
				  : operations_read(out, name, NULL, err);
	struct record record = {0};
	int code = saved_open(&record, name, SAVED_NEWEST, err);
	if (!code)
		code = of_record(out, &record, point, err);
	record_release(&record);
	return code;
}

/* --- the command ------------------------------------------------------------------------------ */

static int top_print(
	const struct invocation *invocation, const struct operations *operations, struct error *err)
{
	json_t *document = operations_json(operations, invocation->options.values[OPTION_SORT]);
	if (command_wants_json(invocation))
		return command_print_json(invocation, document, err);
	const struct style style = command_style(invocation);
	struct buffer text = {.failed = !document};
	operations_text(document, &style, &text);
	json_decref(document);
	return command_print(&text, err);
}

static int top_command(const struct invocation *invocation, struct error *err)
{
	struct operations operations = {0};
	const char *sort = invocation->options.values[OPTION_SORT];
	/* What cannot be sorted by is said before a large file is read. */
	int code = operations_sort(&operations, sort, err);
	if (!code)
		code = top_gather(&operations, invocation, err);
	if (!code)
		code = operations_sort(&operations, sort, err);
	const int status = code ? command_status(code) : top_print(invocation, &operations, err);
	operations_release(&operations);
	return status;
}

const struct command command_top = {
	.name = "top",
	.summary = "print which operations took the time (key averages)",
	.arguments = "RESULT",
	.description =
		"RESULT is a run's folder, a file in it, the name of a benchmark in results/ "
		"(its newest run), or a trace.json. Prints a row for each operation in the "
		"timeline of the best point, or of --point (trace.schedule records a timeline). "
		"An operation runs on a thread, on a device, or in flight, where many overlap "
		"and none has a time of its own. Without a timeline, the states of the stages' "
		"threads are listed instead, and the table says so.\n\n"
		"Columns, which --sort takes: self (time in the operation itself, without "
		"operations inside it; the default), share (self over the time of all threads, "
		"or of all devices), total (with operations inside it), calls, mean, p99, max "
		"(of one call), cpu (CPU time, of stages only), operation, stage.",
	.example = "mlbench top imagenet_like --sort p99",
	.options = OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_SORT) | OPTION_BIT(OPTION_POINT),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = top_command,
};
