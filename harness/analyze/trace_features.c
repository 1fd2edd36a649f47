/* Features of recorded service times.  Each works on sorted or gathered copies, so that a set of traces
 * stays as it is; without memory a feature is not found. */
#include "harness/analyze/trace_features.h"

#include "harness/analyze/statistics.h"
#include "harness/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	MODES_ITEMS_MIN = 40,
	WORKER_ITEMS_MIN = 8,
	WORKERS_MAX = 1024,
	PACING_RUN_MIN = 8, /* items in sequence, for gaps between them to be told */
	PACING_EDGE = 4, /* 1 / of a run that is dropped at each end: neighbours may be missing */
};

static const double MODES_EXPLAINED = 0.80; /* a normal variable gives 0.64, a uniform one 0.75 */
static const double MODES_RATIO = 3;        /* of the means */
static const double MODES_RARE = 0.04;
static const double TAIL_MEDIANS = 4;

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

struct trace_modes trace_modes_of(const struct trace_set *set)
{
	size_t n;
	double *x = gather_service(set, &n);
	struct trace_modes modes = {0};
	for (size_t i = 0; x && i < n; i++)
		x[i] = log(x[i]);
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

/* medians: of each worker seen, to which `who` are the numbers; the worst is taken out of the rest. */
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

struct ending {
	double at, bytes;
};

static int by_time(const void *a, const void *b)
{
	const struct ending *x = a;
	const struct ending *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

/* Sums for a correlation of gaps and bytes. */
struct gap_sums {
	size_t n;
	double g, b, gg, bb, gb;
};

/* Items first .. first + n - 1 are consecutive by number; their ends are sorted in scratch. */
static void add_run(
	struct gap_sums *sums, const struct trace_item *first, size_t n, struct ending *scratch)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = (struct ending){first[i].end_s, (double)first[i].bytes};
	qsort(scratch, n, sizeof *scratch, by_time);
	for (size_t i = n / PACING_EDGE + 1; i < n - n / PACING_EDGE; i++) {
		const double gap = scratch[i].at - scratch[i - 1].at;
		sums->n++;
		sums->g += gap;
		sums->b += scratch[i].bytes;
		sums->gg += gap * gap;
		sums->bb += scratch[i].bytes * scratch[i].bytes;
		sums->gb += gap * scratch[i].bytes;
	}
}

static void add_trace(struct gap_sums *sums, const struct trace *trace, struct ending *scratch)
{
	for (size_t first = 0; first < trace->count;) {
		size_t last = first + 1;
		while (last < trace->count &&
			trace->items[last].number == trace->items[last - 1].number + 1)
			last++;
		if (last - first >= PACING_RUN_MIN)
			add_run(sums, &trace->items[first], last - first, scratch);
		first = last;
	}
}

struct trace_pacing trace_pacing_of(const struct trace_set *set)
{
	struct gap_sums s = {0};
	struct ending *scratch = malloc((set->items + 1) * sizeof *scratch);
	for (size_t i = 0; scratch && i < set->count; i++)
		add_trace(&s, set->of[i], scratch);
	free(scratch);
	struct trace_pacing pacing = {.gaps = s.n, .correlation = NAN, .variation = NAN};
	if (s.n < PACING_RUN_MIN || s.g <= 0)
		return pacing;
	const double n = (double)s.n;
	const double vg = fmax(s.gg / n - (s.g / n) * (s.g / n), 0);
	const double vb = fmax(s.bb / n - (s.b / n) * (s.b / n), 0);
	pacing.variation = sqrt(vg) / (s.g / n);
	/* Bytes that differ by less than a hundredth tell nothing. */
	if (vg > 0 && sqrt(vb) > 0.01 * s.b / n)
		pacing.correlation = (s.gb / n - s.g / n * s.b / n) / sqrt(vg * vb);
	return pacing;
}

double trace_tail_share(const struct trace_set *set)
{
	size_t n;
	double *x = gather_service(set, &n);
	if (!x)
		return NAN;
	const double limit = TAIL_MEDIANS * statistics_median(x, n);
	double all = 0;
	double tail = 0;
	for (size_t i = 0; i < n; i++) {
		all += x[i];
		tail += x[i] > limit ? x[i] : 0;
	}
	free(x);
	return tail / all;
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
