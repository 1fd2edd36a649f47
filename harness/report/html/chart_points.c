/* Points of a sweep, as charts show them. */
#include "harness/report/html/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *parts_point_label(const struct report *report, size_t point, char *out, size_t room)
{
	char value[CONFIG_VALUE_BYTES];
	size_t used = (size_t)snprintf(out, room, "#%zu", point);
	for (size_t axis = 0; axis < report->record->config.axis_count && used < room; axis++)
		used += (size_t)snprintf(out + used, room - used, "%s%s", axis ? " / " : "  ",
			report_setting(report, point, axis, value, sizeof value));
	return out;
}

json_t *parts_settings(const struct report *report, size_t point)
{
	struct buffer text = {0};
	report_settings(report, point, &text);
	json_t *json = text.failed ? NULL : parts_text(text.data ? text.data : "");
	buffer_release(&text);
	return json;
}

struct parts_ranked {
	double throughput;
	size_t point;
};

static int parts_fastest_first(const void *a, const void *b)
{
	const struct parts_ranked *left = a;
	const struct parts_ranked *right = b;
	if (left->throughput != right->throughput)
		return left->throughput > right->throughput ? -1 : 1;
	return left->point < right->point ? -1 : left->point > right->point;
}

static size_t parts_rank(const struct report *report, struct parts_ranked *ranked)
{
	size_t count = 0;
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const struct point_summary *p = report->points[i];
		if (p && p->status != POINT_FAILED && isfinite(p->median))
			ranked[count++] = (struct parts_ranked){p->median, i};
	}
	qsort(ranked, count, sizeof *ranked, parts_fastest_first);
	return count;
}

size_t *parts_points(const struct report *report, size_t *count, size_t *all)
{
	struct parts_ranked *ranked = calloc(report->record->grid.points + 1, sizeof *ranked);
	size_t *points = calloc(PARTS_POINTS_MOST, sizeof *points);
	if (!ranked || !points) {
		free(ranked);
		free(points);
		return NULL;
	}
	*all = parts_rank(report, ranked);
	*count = *all < PARTS_POINTS_MOST ? *all : PARTS_POINTS_MOST;
	/* With more: the first, the last, and evenly between. */
	for (size_t i = 0; i < *count; i++)
		points[i] = ranked[*all > *count ? i * (*all - 1) / (*count - 1) : i].point;
	free(ranked);
	return points;
}

const struct point_summary *parts_point(const struct chart_input *input)
{
	return input->point < input->report->record->grid.points
		       ? input->report->points[input->point]
		       : NULL;
}

const struct diagnosis *parts_diagnosis(const struct chart_input *input)
{
	return input->report->diagnoses && input->point < input->report->record->grid.points
		       ? input->report->diagnoses[input->point]
		       : NULL;
}
