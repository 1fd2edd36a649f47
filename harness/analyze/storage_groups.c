/* Servers that are counted: the first files of a run find an idle station, and where it serves c at once, each in the same time,
 * they come back in groups of c, that time apart.  What lets files through one by one gives groups of one. */
#include "harness/analyze/storage.h"

#include "harness/base/order.h"

#include <math.h>

enum { FILES_LEAST = 4, GROUPS_LEAST = 2, GROUPS_MANY = 3 };

static const double APART = 0.4;     /* of the first file's time, between two groups */
static const double SAME_SIZE = 0.5; /* of the groups, at least */
static const double REGULAR = 0.2,
		    MOSTLY = 0.6;      /* off the median, of so many of the times between groups */
static const double FIRST_LEAST = 0.8; /* of that time, that the first group took */
static const double OFF_CAPACITY =
	0.25;                    /* of group / time between groups, from the station's rate */
static const double AGREE = 0.5; /* of the repetitions */

struct groups {
	unsigned size; /* most of them; 0: nothing regular */
	double apart_ns;
};

/* Of files that were sent together: ns, ascending. */
static size_t first_responses(const struct trace *ramp, double *ns)
{
	size_t count = 0;
	double fills_s = ramp->items[0].end_s;
	for (size_t i = 1; i < ramp->count; i++)
		fills_s = fmin(fills_s, ramp->items[i].end_s);
	for (size_t i = 0; i < ramp->count && count < TRACE_RAMP_FILES_MAX; i++) {
		const struct trace_item *item = &ramp->items[i];
		if (item->end_s - (double)item->service_ns * 1e-9 < fills_s)
			ns[count++] = (double)item->service_ns;
	}
	sort_doubles(ns, count);
	return count;
}

static unsigned most_frequent(const unsigned *sizes, size_t count, double *share)
{
	unsigned best = 0;
	size_t most = 0;
	for (size_t i = 0; i < count; i++) {
		size_t same = 0;
		for (size_t k = 0; k < count; k++)
			same += sizes[k] == sizes[i];
		if (same > most) {
			most = same;
			best = sizes[i];
		}
	}
	*share = count > 0 ? (double)most / (double)count : 0;
	return best;
}

/* ns: ascending.  The last of several groups may be a part of one. */
static struct groups groups_of(const double *ns, size_t count)
{
	unsigned sizes[TRACE_RAMP_FILES_MAX];
	double gaps[TRACE_RAMP_FILES_MAX];
	size_t groups = 0;
	double began = 0;
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || ns[i] - ns[i - 1] > APART * ns[0]) {
			if (groups > 0)
				gaps[groups - 1] = ns[i] - began;
			began = ns[i];
			sizes[groups++] = 0;
		}
		sizes[groups - 1]++;
	}
	if (count < FILES_LEAST || groups < GROUPS_LEAST)
		return (struct groups){0};
	double share;
	const size_t whole = groups >= GROUPS_MANY ? groups - 1 : groups;
	const unsigned size = most_frequent(sizes, whole, &share);
	const size_t between = whole - 1;
	const double apart = statistics_median(gaps, between);
	size_t regular = 0;
	for (size_t i = 0; i < between; i++)
		regular += fabs(gaps[i] / apart - 1) < REGULAR;
	if (share < SAME_SIZE || (double)regular < MOSTLY * (double)between)
		return (struct groups){0};
	/* A throttle that lets several through in each slice of time lets the first through at once. */
	if (size > 1 && ns[0] < FIRST_LEAST * apart)
		return (struct groups){0};
	return (struct groups){size, apart};
}

void storage_find_groups(const struct storage_evidence *e, struct storage *out)
{
	struct groups found[STORAGE_REPEATS_MAX];
	double ns[TRACE_RAMP_FILES_MAX];
	unsigned sizes[STORAGE_REPEATS_MAX];
	double apart = 0;
	size_t count = 0;
	for (size_t r = 0; r < e->count && count < STORAGE_REPEATS_MAX; r++) {
		const struct trace *ramp = e->traces && e->traces[r]
						   ? traces_find(e->traces[r], TRACE_READ_RAMP)
						   : NULL;
		if (!ramp || ramp->count == 0)
			continue;
		found[count] = groups_of(ns, first_responses(ramp, ns));
		sizes[count] = found[count].size;
		count++;
	}
	double share;
	const unsigned size = most_frequent(sizes, count, &share);
	double same = 0;
	for (size_t i = 0; i < count; i++)
		if (sizes[i] == size) {
			apart += found[i].apart_ns;
			same++;
		}
	if (size == 0 || share < AGREE)
		return;
	apart /= same;
	if (fabs(log(out->rate * apart * 1e-9 / size)) > OFF_CAPACITY)
		return;
	out->group = size;
	out->group_ns = apart;
}
