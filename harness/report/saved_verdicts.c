/* Verdicts from a summary. */
#include "harness/report/saved_verdicts.h"

#include "harness/base/files.h"
#include "harness/record/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t SUMMARY_LIMIT_BYTES = (size_t)256 << 20;
static const double SAME_SHARE = 1e-6;

/* NULL where there is none that can be read. */
static json_t *read_summary(const struct record *record)
{
	char *path = files_join(record->folder, "summary.json");
	char *text = NULL;
	size_t size = 0;
	json_t *summary = NULL;
	if (path && files_read(path, SUMMARY_LIMIT_BYTES, &text, &size, NULL) == 0)
		summary = json_loadb(text, size, 0, NULL);
	free(text);
	free(path);
	return summary;
}

/* Points stand in their order. */
static const json_t *find_point(const json_t *summary, size_t id)
{
	const json_t *point = json_array_get(json_object_get(summary, "points"), id);
	return json_integer_value(json_object_get(point, "id")) == (json_int_t)id ? point : NULL;
}

static bool is_same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= SAME_SHARE * fabs(a);
}

/* The summary is of the measurements that are there now: it knows every point with its figure. */
static bool is_of(const json_t *summary, const struct report *report)
{
	const char *hash = json_string_value(json_object_get(summary, "config_hash"));
	if (!hash || strcmp(hash, report->record->config_hash) != 0)
		return false;
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const struct point_summary *p = report->points[i];
		const json_t *point = p ? find_point(summary, i) : NULL;
		const json_t *rate = json_object_get(point, "throughput");
		const double median = fields_real(json_object_get(rate, "median"));
		const size_t repeats = json_array_size(json_object_get(rate, "repeats"));
		if (p && (!point || !is_same(p->median, median) || repeats != p->repeat_count))
			return false;
	}
	return true;
}

static void copy_text(const json_t *object, const char *name, char out[NAME_BYTES])
{
	const char *text = json_string_value(json_object_get(object, name));
	(void)snprintf(out, NAME_BYTES, "%s", text ? text : "");
}

static void take_over(struct report *report, const json_t *summary)
{
	for (size_t i = 0; i < report->record->grid.points; i++) {
		struct point_summary *p = report->points[i];
		const json_t *verdict =
			p ? json_object_get(find_point(summary, i), "verdict") : NULL;
		if (!p || !verdict)
			continue;
		copy_text(verdict, "stage", p->verdict.stage);
		copy_text(verdict, "also", p->verdict.also);
		copy_text(verdict, "resource", p->verdict.resource);
		p->verdict.confidence = fields_real(json_object_get(verdict, "confidence"));
	}
}

bool saved_verdicts_take(struct report *report)
{
	json_t *summary = read_summary(report->record);
	const bool same = summary && is_of(summary, report);
	if (same)
		take_over(report, summary);
	json_decref(summary);
	return same;
}
