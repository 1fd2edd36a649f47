/* mlbench report: a saved result as a page for a browser. */
#include "harness/base/files.h"
#include "harness/command/adaptive_sweep.h"
#include "harness/command/command.h"
#include "harness/record/fields.h"
#include "harness/report/html/page.h"
#include "harness/report/html/report_page.h"
#include "harness/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCHEMA "mlbench.report/1"

/* grid.points: none was named. */
static int asked_point(const struct invocation *invocation, const struct report *report,
	size_t *point, struct error *err)
{
	const char *text = options_value(&invocation->options, OPTION_POINT);
	const size_t points = report->record->grid.points;
	char *end;
	*point = points;
	if (!text)
		return 0;
	errno = 0;
	const unsigned long long number = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || number >= points)
		return error_set(err, -EINVAL, "--point '%s': the result has the points 0 to %zu",
			text, points - 1);
	if (!report->points[number])
		return error_set(err, -ENODATA, "point %llu was not measured", number);
	*point = (size_t)number;
	return 0;
}

static int print_name(const struct invocation *invocation, const struct report *report,
	const char *path, struct error *err)
{
	if (command_wants_json(invocation)) {
		const char *why = page_charts_unavailable();
		return command_print_json(invocation,
			json_pack("{s:s, s:o, s:s, s:s, s:o}", "schema", SCHEMA, "file",
				fields_text(path), "name", report->record->name, "status",
				report_status(report), "no_charts",
				why ? json_string(why) : json_null()),
			err);
	}
	struct buffer text = {0};
	buffer_format(&text, "%s\n", path);
	return command_print(&text, err);
}

/* A file, or a folder for it; by default the result's. */
static char *page_path(const char *out, const char *folder)
{
	struct stat st;
	if (out && (stat(out, &st) != 0 || !S_ISDIR(st.st_mode)))
		return strdup(out);
	return files_join(out ? out : folder, REPORT_PAGE_FILE);
}

static int write_page(const struct invocation *invocation, struct report *report, struct error *err)
{
	size_t point;
	int code = asked_point(invocation, report, &point, err);
	if (!code)
		code = report_complete(report, err);
	if (code)
		return command_status(code);
	char *path = page_path(invocation->options.out, report->record->folder);
	code = path ? report_page_write(report, point, path, err)
		    : error_set(err, -ENOMEM, "out of memory");
	const int status = code ? command_status(code) : print_name(invocation, report, path, err);
	free(path);
	return status;
}

static int report_command(const struct invocation *invocation, struct error *err)
{
	struct record record = {0};
	struct report report = {0};
	int code = saved_open(&record, invocation->options.arguments[0], SAVED_NEWEST, err);
	if (!code)
		code = report_open(&report, &record, err);
	int status = command_status(code);
	if (!code) {
		status = write_page(invocation, &report, err);
		report_close(&report);
	}
	record_release(&record);
	return status;
}

const struct command command_report = {
	.name = "report",
	.summary = "write a saved result as a page for a browser",
	.arguments = "RESULT",
	.description =
		"RESULT is a run's folder, a file in it, or the name of a benchmark in results/ "
		"(its newest run). Writes report.html into its folder, or into the file that "
		"--out names, and prints the name of the file. 'run' and 'sweep' write it at "
		"their end too.\n\n"
		"The page is one file that needs no network: the verdict, the bottlenecks in "
		"order, the map of throughput over the swept keys, where the time went, what to "
		"do and the evidence for it, and the commands that reproduce it. Every chart "
		"has a table behind it. Charts of one point show the best one, or the one that "
		"--point names.",
	.example = "mlbench report imagenet_like --out report.html",
	.options = OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_POINT),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = report_command,
};
