/* Features of recorded service times.  Each works on sorted or gathered copies, so that a set of
 * traces stays as it is; without memory a feature is not found. */
#include "harness/analyze/trace_features.h"

#include "harness/analyze/statistics.h"
#include "harness/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	MODES_ITEMS_MIN = 40,
	WORKER_ITEMS_MIN = 8,
	WORKERS_MAX = 1024,
};

static const double MODES_EXPLAINED = 0.80; /* a normal variable gives 0.64, a uniform one 0.75 */
static const double MODES_RATIO = 3;        /* of the means */
static const double MODES_RARE = 0.04;
static const double SIZES_VARY = 1e-4; /* variance of ln of bytes, that tells anything */

struct trace_set trace_set_of(const struct traces *const *traces, size_t count, const char *stage)
{
	struct trace_set set = {0};
	for (size_t i = 0; traces && i < count && set.count < TRACE_SET_MAX; i++) {
		const struct trace *trace = traces[i] ? traces_find(traces[i], stage) : NULL;
		if (!trace || trace->count == 0)
			continue;
		set.of[set.count++] = trace;
		set.items += trace->count;
	}
	return set;
}

/* Service times that are numbers above zero; NULL when there are none.  The caller frees. */
static double *gather_service(const struct trace_set *set, size_t *count)
{
	double *values = set->items > 0 ? malloc(set->items * sizeof *values) : NULL;
	*count = 0;
	for (size_t i = 0; values && i < set->count; i++)
		for (size_t n = 0; n < set->of[i]->count; n++) {
			const double ns = (double)set->of[i]->items[n].service_ns;
			if (isfinite(ns) && ns > 0)
				values[(*count)++] = ns;
		}
	if (*count > 0)
		return values;
	free(values);
	return NULL;
}

/* Otsu's split of sorted values: the one that explains most of their variance. */
static struct trace_modes split_sorted(const double *x, size_t n)
{
	struct trace_modes modes = {0};
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < n; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	const double total = squares - sum * sum / (double)n;
	double left = 0;
	for (size_t k = 1; k < n; k++) {
		left += x[k - 1];
		const double low = left / (double)k;
		const double high = (sum - left) / (double)(n - k);
		const double between =
			(high - low) * (high - low) * (double)k * (double)(n - k) / (double)n;
		if (total <= 0 || between / total <= modes.explained)
			continue;
		modes.explained = between / total;
		modes.fast_share = (double)k / (double)n;
		modes.fast_ns = exp(low);
		modes.slow_ns = exp(high);
	}
	return modes;
}

/* ln of the service times, less what a line through ln of the bytes explains of them beyond their
 * mean. */
static double *gather_logs(const struct trace_set *set, size_t *count)
{
	double *x = gather_service(set, count);
	double *bytes = x ? calloc(*count, sizeof *bytes) : NULL;
	double sx = 0, sb = 0, sbb = 0, sxb = 0;
	size_t n = 0;
	for (size_t i = 0; bytes && i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			if (!isfinite(item->service_ns) || item->service_ns <= 0)
				continue;
			x[n] = log(x[n]);
			bytes[n] = log(fmax(item->bytes, 1));
			sx += x[n];
			sb += bytes[n];
			sbb += bytes[n] * bytes[n];
			sxb += x[n] * bytes[n];
			n++;
		}
	const double m = (double)n;
	const double variance = sbb - sb * sb / m;
	/* No file is quicker for being larger. */
	const double slope =
		variance > SIZES_VARY * m ? fmax((sxb - sx * sb / m) / variance, 0) : 0;
	for (size_t i = 0; bytes && i < n; i++)
		x[i] -= slope * (bytes[i] - sb / m);
	const bool ok = bytes != NULL;
	free(bytes);
	if (ok)
		return x;
	free(x);
	return NULL;
}

struct trace_modes trace_modes_of(const struct trace_set *set)
{
	size_t n = 0;
	double *x = gather_logs(set, &n);
	struct trace_modes modes = {0};
	if (x && n >= MODES_ITEMS_MIN) {
		sort_doubles(x, n);
		modes = split_sorted(x, n);
	}
	free(x);
	modes.two = modes.explained >= MODES_EXPLAINED &&
		    modes.slow_ns >= MODES_RATIO * modes.fast_ns &&
		    modes.fast_share >= MODES_RARE && modes.fast_share <= 1 - MODES_RARE;
	return modes;
}

/* Median service time of one worker over all repeats; NAN: too few items. */
static double worker_median(const struct trace_set *set, unsigned worker, double *scratch)
{
	size_t n = 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			if (item->worker == worker && isfinite(item->service_ns))
				scratch[n++] = (double)item->service_ns;
		}
	if (n < WORKER_ITEMS_MIN)
		return NAN;
	sort_doubles(scratch, n);
	return scratch[n / 2];
}

static unsigned workers_in(const struct trace_set *set)
{
	unsigned most = 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const unsigned worker = set->of[i]->items[k].worker;
			if (worker < WORKERS_MAX && worker + 1 > most)
				most = worker + 1;
		}
	return most;
}

/* medians: of each worker seen, to which `who` are the numbers; the worst is taken out of the
 * rest. */
static void compare_workers(struct trace_workers *out, double *medians, const unsigned *who)
{
	unsigned worst = 0;
	for (unsigned i = 1; i < out->seen; i++)
		if (medians[i] > medians[worst])
			worst = i;
	out->worst = who[worst];
	out->worst_ns = medians[worst];
	medians[worst] = medians[out->seen - 1];
	out->others_ns = statistics_median(medians, out->seen - 1);
	out->ratio = out->others_ns > 0 ? out->worst_ns / out->others_ns : NAN;
}

struct trace_workers trace_workers_of(const struct trace_set *set)
{
	struct trace_workers out = {.ratio = NAN};
	const unsigned workers = workers_in(set);
	double *scratch = malloc((set->items + workers + 1) * sizeof *scratch);
	unsigned *who = malloc((workers + 1) * sizeof *who);
	if (scratch && who) {
		double *medians = scratch + set->items;
		for (unsigned w = 0; w < workers; w++) {
			const double median = worker_median(set, w, scratch);
			if (isnan(median))
				continue;
			who[out.seen] = w;
			medians[out.seen++] = median;
		}
		if (out.seen >= 2)
			compare_workers(&out, medians, who);
	}
	free(who);
	free(scratch);
	return out;
}

double trace_host_share(const struct trace_set *set, bool apart)
{
	double host = 0;
	double all = 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			if (!isfinite(item->host_ns) || !isfinite(item->service_ns))
				continue;
			host += (double)item->host_ns;
			all += (double)item->service_ns + (apart ? (double)item->host_ns : 0);
		}
	return all > 0 ? host / all : NAN;
}
