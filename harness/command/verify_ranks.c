/* A round ends when its last rank is done: the straggler's model tells what a change gives, and what all waited for it alone is what
 * a job without it gains, as far as the others' input keeps up. */
#include "harness/command/verify_ranks.h"

#include "harness/report/report_ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { VERIFY_RANKS_EFFORT = 20 };

/* Of a rank that another verdict than the leader's names. */
static void take_straggler(struct verify_ranks *ranks, const struct report *report, size_t point,
	const struct ranks_view *view)
{
	struct record record = {0};
	struct error why;
	char *const folder = record_rank_folder(report->record, view->last);
	if (folder && record_open(&record, folder, &why) == 0 &&
		calibration_open(&ranks->straggler, &record, point, NAN, NULL, &why) == 0)
		ranks->model = &ranks->straggler.model;
	record_release(&record);
	free(folder);
}

static double share_of_waiting(const struct rank_of *of)
{
	return of->wait + of->exchange > 0 ? of->wait / (of->wait + of->exchange) : 0;
}

/* Seconds that a round is shorter without the straggler.  Of two ranks the other one is alone, and exchanges nothing. */
static double saved_seconds(const struct ranks_view *view)
{
	const struct rank_of *const last = &view->of[view->last];
	const double exchange = view->count == 2 ? view->exchange * view->round_s : 0;
	const double late = last->rounds > 0 ? last->late_s / (double)last->rounds : 0;
	return exchange + (view->is_held ? view->lost * view->round_s : late);
}

/* Throughput of the leader that waits for nobody, over its own. */
static int predict_leader(const struct model *model, const struct ranks_view *view,
	struct prediction *out, double *before, struct error *err)
{
	struct model alone = {0};
	struct prediction as_it_is;
	int code = model_copy(&alone, model, err);
	if (!code)
		code = model_predict(model, 0, &as_it_is, err);
	if (!code) {
		alone.replay.scale[COST_SYNC] *=
			view->count == 2 ? 0 : 1 - share_of_waiting(&view->of[0]);
		code = model_predict(&alone, VERIFY_RANKS_EFFORT, out, err);
		*before = as_it_is.throughput;
	}
	model_close(&alone);
	return code;
}

static void predict_without(struct verify_ranks *ranks, const struct diagnosed *diagnosed,
	const struct ranks_view *view)
{
	struct prediction leader;
	struct error why;
	double before = 0;
	const double left_s = view->round_s - saved_seconds(view);
	const double rounds = left_s > 0 ? view->round_s / left_s : (double)HUGE_VAL;
	ranks->without.predicted = ranks->without.predicted_90.low =
		ranks->without.predicted_90.high = NAN;
	if (!diagnosed->calibrated ||
		predict_leader(&diagnosed->calibration.model, view, &leader, &before, &why)) {
		(void)snprintf(ranks->without.why, sizeof ranks->without.why,
			"no prediction: the leader's input is not known");
		return;
	}
	const double most = leader.throughput / before;
	ranks->without.predicted = fmin(rounds, most);
	ranks->without.predicted_90 = (struct interval){
		ranks->without.predicted * leader.interval.low / leader.throughput,
		ranks->without.predicted * leader.interval.high / leader.throughput};
}

static void take_without(struct verify_ranks *ranks, const struct diagnosed *diagnosed,
	const struct ranks_view *view)
{
	const char *const host = view->of[view->last].host;
	ranks->without.known = true;
	ranks->without.rank = view->last;
	(void)snprintf(ranks->without.what, sizeof ranks->without.what, "without rank %u%s%s",
		view->last, *host ? " on " : "", host);
	predict_without(ranks, diagnosed, view);
	if (view->last == 0)
		(void)snprintf(ranks->without.why, sizeof ranks->without.why,
			"not tried: rank 0 leads the others; start the job without its node");
	else if (view->laggards > 1)
		(void)snprintf(ranks->without.why, sizeof ranks->without.why,
			"not tried: %u ranks lag alike; start the job without their node",
			view->laggards);
	ranks->without.possible = view->last > 0 && view->laggards == 1;
}

int verify_ranks_open(struct verify_ranks *ranks, const struct report *report,
	const struct diagnosed *diagnosed, struct error *err)
{
	struct ranks_view view;
	*ranks = (struct verify_ranks){.count = 0};
	const int code = report_ranks_open(&view, report, diagnosed->point, err);
	if (!code && view.count > 1) {
		const struct verdict_straggler *const s = &diagnosed->diagnosis.verdict.straggler;
		const bool follows = s->known && !view.is_held && view.last > 0;
		ranks->count = view.count;
		if (follows)
			take_straggler(ranks, report, diagnosed->point, &view);
		ranks->waits = share_of_waiting(&view.of[ranks->model ? view.last : 0]);
		if (s->known)
			take_without(ranks, diagnosed, &view);
	}
	ranks_view_close(&view);
	return code;
}

void verify_ranks_close(struct verify_ranks *ranks)
{
	calibration_close(&ranks->straggler);
	*ranks = (struct verify_ranks){.count = 0};
}
