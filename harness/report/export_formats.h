/* Other tools' formats by name: what each is, and whether this program can write it.  Apart from export.h, so that what lists
 * them links nothing that writes them. */
#ifndef MLBENCH_REPORT_EXPORT_FORMATS_H
#define MLBENCH_REPORT_EXPORT_FORMATS_H

#include "harness/base/error.h"

#include <stddef.h>

enum export_id {
	EXPORT_CSV,
	EXPORT_MARKDOWN,
	EXPORT_JSONL,
	EXPORT_OPENMETRICS,
	EXPORT_TENSORBOARD,
	EXPORTS
};

struct export_format {
	const char *name, *summary;
	const char *extension; /* ".csv"; of a format that writes a folder: its name */
	int needs;             /* an enum part (program.h); PARTS: none */
};

extern const struct export_format export_formats[EXPORTS];

/* Why this program cannot write it; NULL: it can. */
const char *export_unavailable(enum export_id id);
/* -EINVAL with the nearest name; -ENOTSUP: not by this program. */
int export_find(const char *name, enum export_id *out, struct error *err);

/* A piece of a file's name from any text: letters, digits and "._=+-" as they are, all else as '_', at most room - 1
 * bytes; "" becomes "_", and a leading dot '_'.  Returns out. */
const char *export_file_name(const char *text, char *out, size_t room);

#endif
