/* Other tools' formats.  Each format is a const struct export_ops at the end of its file, listed in export_list; what it
 * writes is a function of the saved result.
 *
 * mlbench export writes what export_list has (harness/report/export.c). Metrics have their names,
 * units and help in one table, harness/report/openmetrics_names.c, for results
 * (mlbench_result_...) and for --listen (mlbench_run_...); docs/prometheus/ has rules for both,
 * and a test that they name nothing else. node-exporter reads the text format of Prometheus
 * rather than OpenMetrics, which the file is written in; a counter's family has another name
 * there. TensorBoard's events are packed by protobuf-c from harness/report/tensorboard.proto,
 * whose code is generated into build/; steps are those in traces/, not all of the run. */
#ifndef MLBENCH_REPORT_EXPORT_H
#define MLBENCH_REPORT_EXPORT_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/report/report.h"

#include <stdbool.h>
#include <stddef.h>

struct export_ops {
	const char *name, *summary;
	const char *extension; /* ".csv"; of a format that writes a folder: its name */
	/* Why this program cannot write it; NULL, itself or its answer: it can. */
	const char *(*unavailable)(void);
	/* One of the two.  text: a whole file; -ENOMEM is left to out->failed. */
	int (*text)(const struct report *report, struct buffer *out, struct error *err);
	/* Makes the folder; what an earlier export left there of the same result is replaced. */
	int (*folder)(const struct report *report, const char *folder, struct error *err);
};

extern const struct export_ops export_markdown, export_jsonl, export_openmetrics,
	export_tensorboard;
extern const struct export_ops *const export_list[]; /* NULL-terminated */

/* Why this program cannot write it; NULL: it can. */
const char *export_unavailable(const struct export_ops *ops);
/* -EINVAL with the nearest name; -ENOTSUP: not by this program. */
int export_find(const char *name, const struct export_ops **ops, struct error *err);

/* A piece of a file's name from any text: letters, digits and "._=+-" as they are, all else as '_', at most room - 1
 * bytes; "" becomes "_", and a leading dot '_'.  Returns out. */
const char *export_file_name(const char *text, char *out, size_t room);

#endif
