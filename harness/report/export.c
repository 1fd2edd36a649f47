/* The formats that results can be written in. */
#include "harness/report/export.h"

#include "harness/base/text.h"

#include <errno.h>
#include <string.h>

enum { FORMATS_MAX = 16 };

static int write_csv(const struct report *report, struct buffer *out, struct error *err)
{
	json_t *json = report_summary_json(report);
	if (json)
		report_csv(report, json_object_get(json, "points"), out);
	const bool made = json;
	json_decref(json);
	return made ? 0 : error_set(err, -ENOMEM, "out of memory for the points");
}

static const struct export_ops export_csv = {
	.name = "csv",
	.summary = "a row per point, the same as points.csv",
	.extension = ".csv",
	.text = write_csv,
};

const struct export_ops *const export_list[] = {&export_csv, &export_markdown, &export_jsonl,
	&export_openmetrics, &export_tensorboard, NULL};

const char *export_unavailable(const struct export_ops *ops)
{
	return ops->unavailable ? ops->unavailable() : NULL;
}

int export_find(const char *name, const struct export_ops **ops, struct error *err)
{
	const char *names[FORMATS_MAX];
	size_t count = 0;
	for (; export_list[count] && count < FORMATS_MAX; count++) {
		names[count] = export_list[count]->name;
		if (strcmp(name, names[count]) == 0) {
			const char *why = export_unavailable(export_list[count]);
			*ops = export_list[count];
			return why ? error_set(err, -ENOTSUP, "%s: %s", name, why) : 0;
		}
	}
	const char *near = suggest_nearest(name, names, count);
	if (near)
		return error_set(
			err, -EINVAL, "unknown format '%s' (did you mean '%s'?)", name, near);
	return error_set(
		err, -EINVAL, "unknown format '%s'; 'mlbench list formats' has them all", name);
}

static bool is_harmless(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("._=+-", c);
}

const char *export_file_name(const char *text, char *out, size_t room)
{
	size_t used = 0;
	for (; text[used] && used + 1 < room; used++)
		out[used] = is_harmless(text[used]) ? text[used] : '_';
	if (used == 0)
		out[used++] = '_';
	if (out[0] == '.' || out[0] == '-')
		out[0] = '_';
	out[used] = '\0';
	return out;
}
