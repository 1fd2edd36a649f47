/* Levels of a load over time. */
#include "harness/checks/drift.h"

#include "harness/analyze/statistics.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Means of as many windows each as it takes; what is left at the end is left out.  Returns how many in one. */
static size_t drift_join(const double *rates, size_t count, struct change_set *set)
{
	const size_t join = (count + CHANGE_VALUES_MAX - 1) / CHANGE_VALUES_MAX;
	set->series_count = 1;
	set->count = join > 0 ? count / join : 0;
	for (size_t i = 0; i < set->count; i++)
		set->series[0].values[i] = statistics_mean(rates + i * join, join);
	return join;
}

void drift_find(const double *rates, size_t count, double window_s, double begin_s, double least,
	struct drift *out)
{
	struct change_set *const set = calloc(1, sizeof *set);
	struct segmentation found;
	*out = (struct drift){0};
	const size_t join = set ? drift_join(rates, count, set) : 0;
	if (!set || set->count < 2 * CHANGE_SEGMENT_MIN) {
		free(set);
		return;
	}
	const double mean = statistics_mean(set->series[0].values, set->count);
	set->series[0].least = least * mean;
	if (mean > 0)
		change_points_find(set, &found);
	else
		found = (struct segmentation){.count = 1};
	for (size_t i = 0; i < found.count; i++) {
		const size_t first = found.starts[i] * join;
		const size_t end = i + 1 < found.count ? found.starts[i + 1] * join : count;
		out->parts[i] = (struct drift_part){.from_s = begin_s + (double)first * window_s,
			.to_s = begin_s + (double)end * window_s,
			.rate = statistics_mean(rates + first, end - first)};
	}
	out->part_count = found.count;
	for (size_t i = 1; i < out->part_count; i++) {
		const double lost = 1 - out->parts[i].rate / out->parts[0].rate;
		if (i == 1 || (lost >= least && out->dip <= 0))
			out->from_s = out->parts[i].from_s;
		out->dip = fmax(out->dip, lost >= least ? lost : 0);
		out->lost = lost >= least ? lost : 0;
	}
	free(set);
}

void drift_against_others(const float *rates, size_t stride, size_t cores, size_t core,
	size_t count, double *out, double *scratch)
{
	for (size_t at = 0; at < count; at++) {
		for (size_t i = 0; i < cores; i++)
			scratch[i] = (double)rates[i * stride + at];
		const double median = statistics_median(scratch, cores);
		out[at] = median > 0 ? (double)rates[core * stride + at] / median : 1;
	}
}

const char *drift_text(const struct drift *drift, char out[DRIFT_TEXT_BYTES])
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 1; i < drift->part_count && used + 1 < DRIFT_TEXT_BYTES; i++) {
		const struct drift_part *const part = &drift->parts[i];
		const double share = part->rate / drift->parts[0].rate - 1;
		char until[32] = " on";
		if (i + 1 < drift->part_count)
			(void)snprintf(until, sizeof until, " to %s s", UNITS_PLAIN(part->to_s, 4));
		const int n = snprintf(out + used, DRIFT_TEXT_BYTES - used,
			"%sfrom %s s%s: %s %% %s", i > 1 ? ", " : "", UNITS_PLAIN(part->from_s, 4),
			until, UNITS_PLAIN(100 * fabs(share), 2), share < 0 ? "less" : "more");
		used += n > 0 ? (size_t)n : 0;
	}
	return out;
}
