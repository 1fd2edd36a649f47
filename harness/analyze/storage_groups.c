/* Servers that are counted: the first files of a run find an idle station, and where it serves c at once, each in the same time,
 * they come back in groups of c, that time apart.  What lets files through one by one gives groups of one. */
#include "harness/analyze/storage.h"

#include "harness/base/order.h"

#include <math.h>

enum { FILES_LEAST = 4, GROUPS_LEAST = 2, GROUPS_MANY = 3 };

static const double LATE_FILES = 4; /* one of so many */

static const double APART = 0.4;     /* of the first file's time, between two groups */
static const double SAME_SIZE = 0.5; /* of the groups, at least */
static const double REGULAR = 0.2,
		    MOSTLY = 0.6;       /* off the median, of so many of the times between groups */
static const double FIRST_LEAST = 0.8;  /* of that time, that the first group took */
static const double OFF_CAPACITY = 0.2; /* of a whole number of servers */
static const double AGREE = 0.5;        /* of the repetitions */

struct groups {
	double size; /* most of them; 0: nothing regular */
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

/* A file that another keeps waiting leaves its group one short. */
static bool alike(double a, double b)
{
	return fabs(a - b) <= floor(b / LATE_FILES);
}

/* ns: ascending.  The last of several groups may be a part of one. */
static struct groups groups_of(const double *ns, size_t count)
{
	double sizes[TRACE_RAMP_FILES_MAX];
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
	const size_t whole = groups >= GROUPS_MANY ? groups - 1 : groups;
	const size_t between = whole - 1;
	const double apart = statistics_median(gaps, between);
	const double size = ceil(statistics_median(sizes, whole));
	size_t same = 0;
	size_t regular = 0;
	for (size_t i = 0; i < whole; i++)
		same += alike(sizes[i], size);
	for (size_t i = 0; i < between; i++)
		regular += fabs(gaps[i] / apart - 1) < REGULAR;
	if ((double)same < SAME_SIZE * (double)whole || (double)regular < MOSTLY * (double)between)
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
	double apart[STORAGE_REPEATS_MAX];
	size_t count = 0;
	size_t told = 0;
	for (size_t r = 0; r < e->count && count < STORAGE_REPEATS_MAX; r++) {
		const struct trace *ramp = e->traces && e->traces[r]
						   ? traces_find(e->traces[r], TRACE_READ_RAMP)
						   : NULL;
		if (!ramp || ramp->count == 0)
			continue;
		found[count] = groups_of(ns, first_responses(ramp, ns));
		if (found[count].size > 0)
			apart[told++] = found[count].apart_ns;
		count++;
	}
	if (told == 0)
		return;
	const double between = statistics_median(apart, told);
	const double servers = out->rate * between * 1e-9;
	const double whole = fmax(round(servers), 1);
	size_t agree = 0;
	for (size_t i = 0; i < count; i++)
		agree += found[i].size > 0 && alike(found[i].size, whole);
	if ((double)agree < AGREE * (double)count || fabs(servers / whole - 1) > OFF_CAPACITY)
		return;
	out->group = (unsigned)whole;
	out->group_ns = between;
}
