/* What one operating point tells: whether files wait for each other.
 *
 * Where N files queue for one server, when one comes back depends on those before it and not on when it was sent: of the times
 * between completions, in order of submission, regressed on those between submissions, the slope is 0.  And each waits
 * for N - 1 of the N services that the one before it waited for, so that times of neighbours go together, by 1 - 1 / N.  Behind a latency that
 * is always the same the slope is 1; of one that varies neighbours know nothing of each other.  Anything else tells nothing: a
 * station that serves all at once, each more slowly, looks like a latency. */
#include "harness/analyze/storage.h"

#include "harness/base/order.h"

#include <math.h>
#include <stdlib.h>

enum { PAIRS_LEAST = 64, RUN_LEAST = 8 };

static const double UNEVEN =
	0.25; /* deviation over mean, of times between submissions: below, they tell nothing */
static const double QUEUES_BELOW = 0.35; /* slope */
static const double ALIKE_LEAST = 0.6;   /* correlation of neighbours' times */
static const double NINETY = 1.645;

struct sent {
	double at, back;
};

struct pair_sums {
	double n, x, y, xx, xy, yy;
	double took, took_squared,
		both_took; /* of the later one, and its product with that of the one before */
};

static int by_submission(const void *a, const void *b)
{
	return order_doubles(&((const struct sent *)a)->at, &((const struct sent *)b)->at);
}

/* Items are consecutive by number. */
static void add_run(
	struct pair_sums *sums, const struct trace_item *items, size_t count, struct sent *scratch)
{
	if (count < RUN_LEAST)
		return;
	for (size_t i = 0; i < count; i++)
		scratch[i] = (struct sent){
			items[i].end_s - (double)items[i].service_ns * 1e-9, items[i].end_s};
	qsort(scratch, count, sizeof *scratch, by_submission);
	for (size_t i = 1; i < count; i++) {
		const double x = scratch[i].at - scratch[i - 1].at;
		const double y = scratch[i].back - scratch[i - 1].back;
		const double took = scratch[i].back - scratch[i].at;
		sums->n++;
		sums->x += x;
		sums->y += y;
		sums->xx += x * x;
		sums->xy += x * y;
		sums->yy += y * y;
		sums->took += took;
		sums->took_squared += took * took;
		sums->both_took += took * (scratch[i - 1].back - scratch[i - 1].at);
	}
}

static void add_trace(struct pair_sums *sums, const struct trace *trace)
{
	struct sent *scratch = malloc((trace->count + 1) * sizeof *scratch);
	for (size_t first = 0; scratch && first < trace->count;) {
		const size_t last = trace_run_end(trace, first);
		add_run(sums, &trace->items[first], last - first, scratch);
		first = last;
	}
	free(scratch);
}

bool storage_queues(const struct storage_evidence *e)
{
	struct pair_sums s = {0};
	for (size_t i = 0; i < e->count; i++) {
		const struct trace *trace = storage_trace(e, i, stage_name(STAGE_READ));
		if (trace)
			add_trace(&s, trace);
	}
	if (s.n < PAIRS_LEAST || !(s.x > 0))
		return false;
	const double var_x = s.xx / s.n - s.x * s.x / s.n / s.n;
	const double var_y = s.yy / s.n - s.y * s.y / s.n / s.n;
	const double both = s.xy / s.n - s.x * s.y / s.n / s.n;
	if (!(sqrt(var_x) > UNEVEN * s.x / s.n))
		return false;
	const double slope = both / var_x;
	const double rest = fmax(var_y - slope * both, 0);
	const double mean = s.took / s.n;
	const double alike = (s.both_took / s.n - mean * mean) /
			     fmax(s.took_squared / s.n - mean * mean, 1e-300);
	return slope + NINETY * sqrt(rest / var_x / s.n) < QUEUES_BELOW && alike > ALIKE_LEAST;
}
