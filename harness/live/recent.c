/* Keeping the last seconds. */
#include "harness/live/recent.h"

#include "harness/base/clock.h"

#include <math.h>
#include <string.h>

enum { SPACING_NS = 240000000 }; /* between two pictures that are kept */

static const double VERDICT_S = 10, STATES_S = 2;

static void keep_sums(struct history *h, const struct live_view *view)
{
	if (h->begun_ns != view->begun_ns)
		h->sum_count = 0;
	h->begun_ns = view->begun_ns;
	if (h->sum_count == HISTORY_SUMS)
		memmove(h->sums, h->sums + 1, --h->sum_count * sizeof h->sums[0]);
	live_sums_of(view, &h->sums[h->sum_count++]);
}

static void keep_values(struct history *h, const double values[HISTORY_SERIES])
{
	if (h->value_count == HISTORY_VALUES) {
		for (size_t s = 0; s < HISTORY_SERIES; s++)
			memmove(h->values[s], h->values[s] + 1,
				(HISTORY_VALUES - 1) * sizeof h->values[s][0]);
		h->value_count--;
	}
	for (size_t s = 0; s < HISTORY_SERIES; s++) {
		h->values[s][h->value_count] = (float)values[s];
		if (isfinite(values[s]) && values[s] > h->most[s])
			h->most[s] = values[s];
	}
	h->value_count++;
}

void history_add(struct history *h, const struct live_view *view)
{
	static const double gap[HISTORY_SERIES] = {NAN, NAN, NAN, NAN};
	if (view->updated_ns < h->last_ns + SPACING_NS)
		return;
	h->last_ns = view->updated_ns;
	if (isnan(view->period_s)) {
		/* One gap stands for a pause, however long. */
		if (h->value_count > 0 && !isnan(h->values[HISTORY_MEMORY][h->value_count - 1]))
			keep_values(h, gap);
		return;
	}
	const double values[HISTORY_SERIES] = {
		[HISTORY_THROUGHPUT] = view->throughput_window,
		[HISTORY_STEP] = view->step_utilisation_window,
		[HISTORY_READ] = view->bytes_read_per_s,
		[HISTORY_MEMORY] = (double)view->resident_bytes,
	};
	keep_sums(h, view);
	keep_values(h, values);
}

const struct live_sums *history_before(
	const struct history *h, const struct live_view *view, double seconds, uint64_t least_ns)
{
	const uint64_t back_ns = (uint64_t)(seconds * (double)NS_PER_S);
	const uint64_t until_ns = view->updated_ns > back_ns ? view->updated_ns - back_ns : 0;
	const struct live_sums *found = NULL;
	if (h->begun_ns != view->begun_ns)
		return NULL;
	for (size_t i = 0; i < h->sum_count; i++)
		if (h->sums[i].t_ns >= least_ns && (!found || h->sums[i].t_ns <= until_ns))
			found = &h->sums[i];
	return found;
}

void history_verdict(
	const struct history *h, const struct live_view *view, struct live_verdict *out)
{
	const struct live_sums *from =
		view->warm.t_ns > 0 ? history_before(h, view, VERDICT_S, view->warm.t_ns) : NULL;
	const bool long_ago = view->updated_ns > view->warm.t_ns + (uint64_t)(VERDICT_S * NS_PER_S);
	live_verdict_of(from && long_ago ? from : &view->warm, view, out);
}

bool history_states(const struct history *h, const struct live_view *view, size_t stage,
	double shares[THREAD_STATES], double *items_per_s)
{
	const struct live_sums *from = history_before(h, view, STATES_S, 0);
	const struct live_stage *now = &view->stages[stage];
	double total = 0;
	if (!view->timed || !from || from->t_ns >= view->updated_ns)
		return false;
	for (size_t k = 0; k < THREAD_STATES; k++) {
		shares[k] = fmax(now->seconds[k] - from->stages[stage].seconds[k], 0);
		total += shares[k];
	}
	for (size_t k = 0; k < THREAD_STATES; k++)
		shares[k] = total > 0 ? shares[k] / total : 0;
	*items_per_s = (double)(now->items - from->stages[stage].items) * (double)NS_PER_S /
		       (double)(view->updated_ns - from->t_ns);
	return total > 0;
}
