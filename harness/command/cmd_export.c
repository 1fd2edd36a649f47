/* mlbench export: a saved result in other tools' formats. */
#include "harness/report/export.h"

#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/adaptive_sweep.h"
#include "harness/command/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_NAME_BYTES = 160 };

/* "NAME.csv"; metrics lie beside others': "mlbench_NAME.prom". */
static void name_file(const struct export_ops *ops, const struct record *record, char *out)
{
	char name[FILE_NAME_BYTES / 2];
	(void)snprintf(out, FILE_NAME_BYTES, "%s%s%s", ops == &export_openmetrics ? "mlbench_" : "",
		export_file_name(record->name, name, sizeof name), ops->extension);
}

/* node-exporter looks at no other files. */
static void warn_of_name(const struct export_ops *ops, const char *out)
{
	const size_t length = out ? strlen(out) : 0;
	const size_t wanted = strlen(ops->extension);
	if (ops == &export_openmetrics && length > 0 && strncmp(out, "/dev/", 5) != 0 &&
		strcmp(out, "-") != 0 && !product_is_folder(out) &&
		(length < wanted || strcmp(out + length - wanted, ops->extension) != 0))
		log_info("note: node-exporter reads only files that end in '.prom'");
}

static int write_text(const struct export_ops *ops, const struct report *report, const char *out,
	struct error *err)
{
	char name[FILE_NAME_BYTES];
	struct buffer text = {0};
	const int code = ops->text(report, &text, err);
	name_file(ops, report->record, name);
	if (!code)
		warn_of_name(ops, out);
	const int status = code ? command_status(code) : product_write(out, name, &text, err);
	buffer_release(&text);
	return status;
}

static int write_folder(const struct export_ops *ops, const struct report *report, const char *out,
	struct error *err)
{
	char *own = out ? strdup(out) : files_join(report->record->folder, ops->extension);
	const int code =
		own ? ops->folder(report, own, err) : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		log_info("wrote %s", own);
	free(own);
	return command_status(code);
}

static int export_record(const struct invocation *invocation, const struct export_ops *ops,
	const struct record *record, struct error *err)
{
	const char *out = options_value(&invocation->options, OPTION_OUT);
	struct report report;
	int code = report_open(&report, record, err);
	if (code)
		return command_status(code);
	if (ops->text)
		code = report_complete(&report, err);
	int status = command_status(code);
	if (!code)
		status = ops->text ? write_text(ops, &report, out, err)
				   : write_folder(ops, &report, out, err);
	report_close(&report);
	return status;
}

static int export_run(const struct invocation *invocation, struct error *err)
{
	const char *format = options_value(&invocation->options, OPTION_FORMAT);
	const struct export_ops *ops;
	struct record record = {0};
	if (!format) {
		(void)error_set(err, -EINVAL,
			"'mlbench export' needs --format; 'mlbench list formats' has them all");
		return EXIT_STATUS_BAD_INPUT;
	}
	int code = export_find(format, &ops, err);
	if (!code)
		code = saved_open(&record, invocation->options.arguments[0], SAVED_NEWEST, err);
	const int status =
		code ? command_status(code) : export_record(invocation, ops, &record, err);
	record_release(&record);
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
