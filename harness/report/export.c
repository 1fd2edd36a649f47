/* Who writes each format. */
#include "harness/report/export.h"

#include <errno.h>
#include <stdbool.h>

static int write_csv(const struct report *report, struct buffer *out, struct error *err)
{
	json_t *json = report_summary_json(report);
	if (json)
		report_csv(report, json_object_get(json, "points"), out);
	const bool made = json;
	json_decref(json);
	return made ? 0 : error_set(err, -ENOMEM, "out of memory for the points");
}

const struct export_ops export_list[EXPORTS] = {
	[EXPORT_CSV] = {.text = write_csv},
	[EXPORT_MARKDOWN] = {.text = export_markdown},
	[EXPORT_JSONL] = {.text = export_jsonl},
	[EXPORT_OPENMETRICS] = {.text = export_openmetrics},
	[EXPORT_TENSORBOARD] = {.folder = export_tensorboard},
};
