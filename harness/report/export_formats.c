/* The table of formats, and names. */
#include "harness/report/export_formats.h"

#include "harness/base/program.h"
#include "harness/base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

const struct export_format export_formats[EXPORTS] = {
	[EXPORT_CSV] = {"csv", "a row per point, the same as points.csv", ".csv", PARTS},
	[EXPORT_MARKDOWN] = {"markdown", "the report's tables and verdict, as GitHub shows them",
		".md", PARTS},
	[EXPORT_JSONL] = {"jsonl", "JSON lines, a flat object per point", ".jsonl", PARTS},
	[EXPORT_OPENMETRICS] = {"openmetrics",
		"metrics for node-exporter's textfile directory (--out DIR/mlbench.prom)", ".prom",
		PARTS},
	[EXPORT_TENSORBOARD] = {"tensorboard",
		"event files for TensorBoard: scalars of steps and epochs, a run per repetition",
		"tensorboard", PART_TENSORBOARD},
};

const char *export_unavailable(enum export_id id)
{
	return export_formats[id].needs < PARTS ? part_missing((enum part)export_formats[id].needs)
						: NULL;
}

int export_find(const char *name, enum export_id *out, struct error *err)
{
	const char *names[EXPORTS];
	for (unsigned id = 0; id < EXPORTS; id++) {
		names[id] = export_formats[id].name;
		if (strcmp(name, names[id]) == 0) {
			const char *why = export_unavailable(id);
			*out = id;
			return why ? error_set(err, -ENOTSUP, "%s: %s", name, why) : 0;
		}
	}
	const char *near = suggest_nearest(name, names, EXPORTS);
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
