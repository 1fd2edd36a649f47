/* What the first files of a run tell by when they come back.
 *
 * They find a station without files of ours.  Where it serves c at once, each in the same time, they come back in groups of c,
 * that time apart; what lets files through one by one gives groups of one.  Where others keep N files at a station of capacity C
 * that serves all in turn, the first one waits for these, N / C, and the next come 1 / C apart, faster than later on: d of
 * ours then get C d / (d + N). */
#include "harness/analyze/storage.h"

#include "harness/base/order.h"

#include <math.h>
#include <stdlib.h>

enum { FILES_LEAST = 4, GROUPS_LEAST = 2, GROUPS_MANY = 3 };

static const double LATE_FILES = 4; /* one of so many */

static const double APART = 0.4;     /* of the first file's time, between two groups */
static const double SAME_SIZE = 0.5; /* of the groups, at least */
static const double REGULAR = 0.2,
		    MOSTLY = 0.6;       /* off the median, of so many of the times between groups */
static const double FIRST_LEAST = 0.8;  /* of that time, that the first group took */
static const double OFF_CAPACITY = 0.2; /* of a whole number of servers */
static const double AGREE = 0.5;        /* of the repetitions */
static const double EVENLY =
	0.35; /* off the median, of the times between files that come one by one */
static const double OTHERS_LEAST = 0.5; /* of our files in flight: fewer are of no matter */
static const double OTHERS_MOST = 5;    /* likewise: more cannot be counted */
/* Of our files in flight, between others counted in two ways: of a latency they differ by all of these. */
static const double COUNTED_ALIKE = 0.35;
static const double NINETY = 1.645, ELASTICITY_SLACK = 0.1;

struct groups {
	double size; /* the median; 0: nothing regular */
	double apart_ns;
};

static double first_end(const struct trace *ramp)
{
	double end_s = ramp->items[0].end_s;
	for (size_t i = 1; i < ramp->count; i++)
		end_s = fmin(end_s, ramp->items[i].end_s);
	return end_s;
}

/* Sent before any came back. */
static bool is_first(const struct trace_item *item, double first_end_s)
{
	return item->end_s - (double)item->service_ns * 1e-9 < first_end_s;
}

/* ns, ascending. */
static size_t first_responses(const struct trace *ramp, double *ns)
{
	size_t count = 0;
	const double fills_s = first_end(ramp);
	for (size_t i = 0; i < ramp->count && count < TRACE_RAMP_FILES_MAX; i++)
		if (is_first(&ramp->items[i], fills_s))
			ns[count++] = (double)ramp->items[i].service_ns;
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
		const struct trace *ramp = storage_trace(e, r, TRACE_READ_RAMP);
		if (!ramp)
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

/* --- others at the station ------------------------------------------------------------------------------- */

struct turns {
	double apart_ns; /* between files of the mean size; 0: they do not come evenly */
	double first_ns; /* till the first */
};

/* ns: ascending; weights of the same files, mean 1. */
static struct turns turns_of(const double *ns, const double *weights, size_t count)
{
	double gaps[TRACE_RAMP_FILES_MAX] = {0};
	double sum = 0;
	size_t even = 0;
	if (count < FILES_LEAST)
		return (struct turns){0};
	for (size_t i = 1; i < count; i++) {
		gaps[i - 1] = (ns[i] - ns[i - 1]) / weights[i];
		sum += weights[i];
	}
	const double median = statistics_median(gaps, count - 1);
	for (size_t i = 0; i + 1 < count; i++)
		even += fabs(gaps[i] / median - 1) < EVENLY;
	if (!(median > 0) || (double)even < MOSTLY * (double)(count - 1))
		return (struct turns){0};
	return (struct turns){(ns[count - 1] - ns[0]) / sum, ns[0]};
}

struct first_file {
	double ns, bytes;
};

static int by_time(const void *a, const void *b)
{
	return order_doubles(
		&((const struct first_file *)a)->ns, &((const struct first_file *)b)->ns);
}

/* By files or by bytes, whichever is even. */
static struct turns turns_of_ramp(const struct trace *ramp)
{
	struct first_file files[TRACE_RAMP_FILES_MAX];
	double ns[TRACE_RAMP_FILES_MAX];
	double weights[TRACE_RAMP_FILES_MAX];
	double bytes = 0;
	const double fills_s = first_end(ramp);
	size_t count = 0;
	for (size_t i = 0; i < ramp->count && count < TRACE_RAMP_FILES_MAX; i++)
		if (is_first(&ramp->items[i], fills_s)) {
			bytes += (double)ramp->items[i].bytes;
			files[count++] = (struct first_file){
				(double)ramp->items[i].service_ns, (double)ramp->items[i].bytes};
		}
	qsort(files, count, sizeof *files, by_time);
	for (size_t i = 0; i < count; i++) {
		ns[i] = files[i].ns;
		weights[i] = 1;
	}
	const struct turns each = turns_of(ns, weights, count);
	for (size_t i = 0; i < count; i++)
		weights[i] = fmax(files[i].bytes * (double)count / fmax(bytes, 1), 1e-6);
	return each.apart_ns > 0 ? each : turns_of(ns, weights, count);
}

/* What twice as much in flight, or half of it, gives with that many others is what it gave. */
static bool gains_as_with(double others, const struct storage *s, double there)
{
	const double apart = log(there / s->in_flight);
	const double all = log(s->other_in_flight / s->in_flight);
	const double elasticity = s->elasticity * all / apart;
	const double error = s->elasticity_error * fabs(all / apart);
	const double expected = 1 - log((there + others) / (s->in_flight + others)) / apart;
	return fabs(elasticity - expected) <= NINETY * error + ELASTICITY_SLACK;
}

/* Behind a mount that lets only so many through, more in flight wait in front of it. */
static bool gains_as_others(
	const struct storage_evidence *e, const struct storage *s, double others)
{
	const double most = e->let_through;
	const bool fewer = most > s->in_flight && most < s->other_in_flight;
	return gains_as_with(others, s, s->other_in_flight) ||
	       (fewer && gains_as_with(others, s, most));
}

void storage_find_others(const struct storage_evidence *e, struct storage *out)
{
	double apart[STORAGE_REPEATS_MAX];
	double first[STORAGE_REPEATS_MAX];
	size_t told = 0;
	size_t count = 0;
	if (out->compared == 0 || !(out->elasticity + NINETY * out->elasticity_error < 1))
		return;
	for (size_t r = 0; r < e->count && count < STORAGE_REPEATS_MAX; r++) {
		const struct trace *ramp = storage_trace(e, r, TRACE_READ_RAMP);
		if (!ramp)
			continue;
		const struct turns turns = turns_of_ramp(ramp);
		if (turns.apart_ns > 0) {
			apart[told] = turns.apart_ns;
			first[told++] = turns.first_ns;
		}
		count++;
	}
	if (told == 0 || (double)told < AGREE * (double)count)
		return;
	const double capacity = 1e9 / statistics_median(apart, told);
	const double waited_for = statistics_median(first, told) * 1e-9 * capacity - 1;
	const double others = out->in_flight * (capacity / out->rate - 1);
	if (others < OTHERS_LEAST * out->in_flight || others > OTHERS_MOST * out->in_flight ||
		fabs(waited_for - others) > COUNTED_ALIKE * out->in_flight ||
		!gains_as_others(e, out, others))
		return;
	out->others = others;
	out->shared_capacity = capacity;
}
