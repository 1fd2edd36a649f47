/* mlbench show, report and export: a saved result again, on the terminal, as a page for a
 * browser, and in other tools' formats. */
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/command.h"
#include "harness/command/saved.h"
#include "harness/record/fields.h"
#include "harness/report/export.h"
#include "harness/report/html/assets.h"
#include "harness/report/html/report_page.h"
#include "harness/report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A saved result, as the command line names it. */
struct saved {
	struct record record;
	struct report report;
};

static int saved_report_open(
	struct saved *saved, const struct invocation *invocation, struct error *err)
{
	*saved = (struct saved){0};
	const int code =
		saved_open(&saved->record, invocation->options.arguments[0], SAVED_NEWEST, err);
	return code ? code : report_open(&saved->report, &saved->record, err);
}

static void saved_report_close(struct saved *saved)
{
	if (saved->report.record)
		report_close(&saved->report);
	record_release(&saved->record);
}

/* --- show: as the sweep printed it ------------------------------------------------------------ */

static int show_print(
	const struct invocation *invocation, const struct report *report, struct error *err)
{
	if (command_wants_json(invocation))
		return command_print_json(invocation, report_summary_json(report), err);
	const struct style style = command_style(invocation);
	struct buffer text = {0};
	report_terminal(report, &style,
		options_given(&invocation->options, OPTION_VERBOSE) ? REPORT_EVERY_POINT
								    : REPORT_WHOLE,
		&text);
	return command_print(&text, err);
}

static int show_command(const struct invocation *invocation, struct error *err)
{
	struct saved saved;
	int code = saved_report_open(&saved, invocation, err);
	if (!code)
		code = report_diagnose(&saved.report, err);
	int status = code ? command_status(code) : show_print(invocation, &saved.report, err);
	if (!status && saved.report.checksum_check.differ) {
		(void)error_set(err, -EIO, "%s", saved.report.checksum_check.words);
		status = EXIT_STATUS_FAILED;
	}
	saved_report_close(&saved);
	return status;
}

const struct command command_show = {
	.name = "show",
	.summary = "print a saved result again",
	.arguments = "RESULT",
	.description =
		"RESULT is a run's folder, a file in it, or the name of a benchmark in results/ "
		"(its newest run). Everything is computed from points.jsonl, so a run that was "
		"killed can be shown too; what was diagnosed before is used again while no file of "
		"the result has changed. --verbose shows the stages of every point. Exit status 1 "
		"if checksums of run.verify differ that must agree.",
	.example = "mlbench show imagenet_like",
	.options = OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = show_command,
};

/* --- report: as a page ------------------------------------------------------------------------ */

/* grid.points: none was named. */
static int asked_point(const struct invocation *invocation, const struct report *report,
	size_t *point, struct error *err)
{
	const char *text = invocation->options.values[OPTION_POINT];
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
		const char *why = asset_charts_unavailable();
		return command_print_json(invocation,
			json_pack("{s:s, s:o, s:s, s:s, s:o}", "schema", "mlbench.report/1", "file",
				fields_text(path), "name", report->record->name, "status",
				report_status(report), "no_charts",
				why ? json_string(why) : json_null()),
			err);
	}
	struct buffer text = {0};
	buffer_format(&text, "%s\n", path);
	return command_print(&text, err);
}

static int write_page(const struct invocation *invocation, struct report *report, struct error *err)
{
	size_t point;
	int code = asked_point(invocation, report, &point, err);
	if (!code)
		code = report_diagnose(report, err);
	if (code)
		return command_status(code);
	/* A file, or a folder for it; by default the result's. */
	const char *out = invocation->options.values[OPTION_OUT];
	struct stat st;
	char *path = out && (stat(out, &st) != 0 || !S_ISDIR(st.st_mode))
			     ? strdup(out)
			     : files_join(out ? out : report->record->folder, REPORT_PAGE_FILE);
	code = path ? report_page_write(report, point, path, err)
		    : error_set(err, -ENOMEM, "out of memory");
	const int status = code ? command_status(code) : print_name(invocation, report, path, err);
	free(path);
	return status;
}

static int report_command(const struct invocation *invocation, struct error *err)
{
	struct saved saved;
	const int code = saved_report_open(&saved, invocation, err);
	const int status = code ? command_status(code) : write_page(invocation, &saved.report, err);
	saved_report_close(&saved);
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
		"has a table behind it, and a click on a mark opens its point. Charts of one "
		"point show the best one, or the one that --point names.",
	.example = "mlbench report imagenet_like --out report.html",
	.options = OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_POINT),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = report_command,
};

/* --- export: in other formats ----------------------------------------------------------------- */

enum { FILE_NAME_BYTES = 160 };

/* node-exporter looks at no other files. */
static void warn_of_name(enum export_id format, const char *out)
{
	const size_t length = out ? strlen(out) : 0;
	const char *const extension = export_formats[format].extension;
	const size_t wanted = strlen(extension);
	if (format == EXPORT_OPENMETRICS && length > 0 && strncmp(out, "/dev/", 5) != 0 &&
		strcmp(out, "-") != 0 && !product_is_folder(out) &&
		(length < wanted || strcmp(out + length - wanted, extension) != 0))
		log_info("note: node-exporter reads only files that end in '.prom'");
}

static int write_text(
	enum export_id format, const struct report *report, const char *out, struct error *err)
{
	char name[FILE_NAME_BYTES];
	char stem[FILE_NAME_BYTES / 2];
	struct buffer text = {0};
	const int code = export_list[format].text(report, &text, err);
	if (code) {
		buffer_release(&text);
		return command_status(code);
	}
	warn_of_name(format, out);
	/* "NAME.csv"; metrics lie beside others': "mlbench_NAME.prom". */
	(void)snprintf(name, sizeof name, "%s%s%s", format == EXPORT_OPENMETRICS ? "mlbench_" : "",
		export_file_name(report->record->name, stem, sizeof stem),
		export_formats[format].extension);
	return product_write(out, name, &text, err);
}

static int write_folder(
	enum export_id format, const struct report *report, const char *out, struct error *err)
{
	char *own = out ? strdup(out)
			: files_join(report->record->folder, export_formats[format].extension);
	const int code = own ? export_list[format].folder(report, own, err)
			     : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		log_info("wrote %s", own);
	free(own);
	return command_status(code);
}

static int export_run(const struct invocation *invocation, struct error *err)
{
	const char *name = invocation->options.values[OPTION_FORMAT];
	const char *out = invocation->options.values[OPTION_OUT];
	enum export_id format;
	struct saved saved = {0};
	int code =
		name ? export_find(name, &format, err)
		     : error_set(err, -EINVAL,
			       "'mlbench export' needs --format; 'mlbench list formats' has them all");
	if (!code)
		code = saved_report_open(&saved, invocation, err);
	if (!code && export_list[format].text)
		code = report_diagnose(&saved.report, err);
	int status = command_status(code);
	if (!code)
		status = export_list[format].text ? write_text(format, &saved.report, out, err)
						  : write_folder(format, &saved.report, out, err);
	saved_report_close(&saved);
	return status;
}

const struct command command_export = {
	.name = "export",
	.summary = "write a saved result in another tool's format",
	.arguments = "RESULT",
	.description =
		"RESULT is named as for 'mlbench show'. Formats: csv, markdown, jsonl (a JSON "
		"object per point, one per line), openmetrics (for node-exporter's textfile "
		"directory; docs/prometheus/ has rules for it) and tensorboard (event files). "
		"'mlbench list formats' explains each.\n\n"
		"Text goes to standard output, or to the file or folder that --out names. The "
		"file is replaced at once when all of it is written, so that no reader sees half "
		"of it. TensorBoard's files go to the folder that --out names, by default "
		"'tensorboard' beside the result, with a run for each repetition.",
	.example =
		"mlbench export imagenet_like --format openmetrics --out /var/lib/node_exporter/",
	.options = OPTION_BIT(OPTION_FORMAT) | OPTION_BIT(OPTION_OUT),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = export_run,
};
