/* The forms of an acceptance result, and the files of its folder. */
#include "harness/report/accept_report.h"

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/report/accept_document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ACCEPT_FORMATS_MAX = 16 };

int accept_write_json(const json_t *document, const struct accept_view *view, struct buffer *out,
	struct error *err)
{
	(void)view;
	char *text = json_dumps(document, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	if (!text)
		return error_set(err, -ENOMEM, "out of memory for the result");
	buffer_text(out, text);
	buffer_text(out, "\n");
	free(text);
	return out->failed ? error_set(err, -ENOMEM, "out of memory for the result") : 0;
}

const struct accept_format accept_formats[] = {
	{.name = "terminal",
		.summary = "a screen for people: verdict, failures, passes",
		.write = accept_write_terminal},
	{.name = "json",
		.summary = "the judged result itself (docs/accept.schema.json)",
		.file = ACCEPT_FILE,
		.write = accept_write_json},
	{.name = "page",
		.summary = "a page with charts, for a browser",
		.file = "accept.html",
		.write = accept_write_page},
	{.name = "certificate",
		.summary = "one sheet of A4 to print and sign",
		.file = "certificate.html",
		.write = accept_write_certificate},
	{.name = "markdown",
		.summary = "the terminal's screen, for an issue or a wiki",
		.file = "accept.md",
		.write = accept_write_markdown},
	{.name = "junit",
		.summary = "JUnit XML for CI servers",
		.file = "junit.xml",
		.write = accept_write_junit},
	{.name = "openmetrics",
		.summary = "metrics for node-exporter's textfile directory",
		.file = "accept.prom",
		.write = accept_write_openmetrics},
	{.name = "nagios",
		.summary =
			"status line, performance data and exit status of a plug-in for Nagios and Icinga",
		.write = accept_write_nagios,
		.status = accept_nagios_status},
	{.name = "nhc",
		.summary = "a line for a node health check",
		.write = accept_write_nhc,
		.of_node = true},
	{.name = "slurm",
		.summary = "a reason of at most 100 characters for scontrol",
		.write = accept_write_slurm,
		.of_node = true},
	{.name = NULL},
};

int accept_format_find(const char *name, const struct accept_format **format, struct error *err)
{
	const char *names[ACCEPT_FORMATS_MAX];
	struct buffer all = {0};
	size_t count = 0;
	for (; accept_formats[count].name && count < ACCEPT_FORMATS_MAX; count++) {
		names[count] = accept_formats[count].name;
		if (strcmp(name, names[count]) == 0) {
			*format = &accept_formats[count];
			buffer_release(&all);
			return 0;
		}
		buffer_format(&all, "%s%s", count ? ", " : "", names[count]);
	}
	const char *near = suggest_nearest(name, names, count);
	const int code = near ? error_set(err, -EINVAL,
					"unknown format '%.64s'; did you mean '%s'?", name, near)
			      : error_set(err, -EINVAL, "unknown format '%.64s'; there are %s",
					name, all.data ? all.data : "");
	buffer_release(&all);
	return code;
}

int accept_files_write(const json_t *document, const char *folder, struct error *err)
{
	const struct accept_view view = {.style = {.width = STYLE_WIDTH_DEFAULT}};
	int code = 0;
	for (const struct accept_format *format = accept_formats; format->name && !code; format++) {
		struct buffer text = {0};
		char *path = format->file ? files_join(folder, format->file) : NULL;
		if (!format->file)
			continue;
		code = path ? format->write(document, &view, &text, err)
			    : error_set(err, -ENOMEM, "out of memory for a path");
		if (!code)
			code = files_write_atomic(path, text.data, text.size, err);
		buffer_release(&text);
		free(path);
	}
	return code;
}
