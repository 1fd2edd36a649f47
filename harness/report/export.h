/* Writing in other tools' formats (export_formats.h).  What each writes is a function of the saved result.
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
#include "harness/report/export_formats.h"
#include "harness/report/report.h"

typedef int export_text(const struct report *report, struct buffer *out, struct error *err);
typedef int export_folder(const struct report *report, const char *folder, struct error *err);

/* One of the two. */
struct export_ops {
	export_text *text; /* a whole file; -ENOMEM is left to out->failed */
	/* Makes the folder; what an earlier export left there of the same result is replaced. */
	export_folder *folder;
};

extern const struct export_ops export_list[EXPORTS];

export_text export_markdown, export_jsonl, export_openmetrics;
export_folder export_tensorboard;

#endif
