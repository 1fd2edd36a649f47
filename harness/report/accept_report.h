/* What `mlbench accept` says of a node, in each form: to people, schedulers, monitoring and CI.  Every form is a function
 * of the saved document (accept.json, harness/accept/result.h) and of nothing else, and judges nothing: verdicts, sentences,
 * limits and actions are the document's.
 *
 * To add one: a writer in harness/report/accept_NAME.c, and a line in accept_formats (accept_report.c).  `--format`, its
 * help and the files of a result's folder come from that list. */
#ifndef MLBENCH_REPORT_ACCEPT_REPORT_H
#define MLBENCH_REPORT_ACCEPT_REPORT_H

#include "harness/accept/result.h"
#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/report/style.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define ACCEPT_FILE "accept.json"

/* How the terminal has it; other forms look the same for everybody. */
struct accept_view {
	struct style style;
	bool verbose; /* every finding and every check, however many */
};

struct accept_format {
	const char *name, *summary;
	/* In the folder of every result, written by accept_files_write; NULL: only where it is asked for. */
	const char *file;
	/* Appends the whole text, as it may be printed or stored (with colours, by command_print).  -ENOMEM with err. */
	int (*write)(const json_t *document, const struct accept_view *view, struct buffer *out,
		struct error *err);
	bool of_node; /* its readers take exit status 0 for a node that is fit: not for a part of a plan */
	/* The exit status that its readers expect, of NULL where there is no document; NULL: the document's own. */
	int (*status)(const json_t *document);
};
extern const struct accept_format
	accept_formats[]; /* ended by a name of NULL; the first: terminal */

/* -EINVAL with the nearest name. */
int accept_format_find(const char *name, const struct accept_format **format, struct error *err);

/* Writes all that have a file into the folder, each atomically (a reader sees the file before or the one after). */
int accept_files_write(const json_t *document, const char *folder, struct error *err);

/* The exit status of a plug-in for Nagios and Icinga: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. */
int accept_nagios_status(const json_t *document);

#endif
