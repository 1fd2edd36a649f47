/* Sums over repetitions, scores, and what the job waits for. */
#include "harness/analyze/ranks.h"

#include "harness/analyze/statistics.h"
#include "harness/analyze/verdict.h"
#include "harness/base/array.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A straggler is the last in most of the rounds, which happens by chance in few jobs: each of n ranks is the last in a round with a
 * probability of 1/n, so that LAST_SIGMAS standard deviations above that are left to one job in a million; and it costs so much
 * of the time that mending it is worth while. */
static const double LAST_LEAST = 0.5, LAST_SIGMAS = 5, WAIT_LEAST = 0.05;
static const double LAST_SURE = 0.85, WAIT_SURE = 0.1;
static const double STARVED_LEAST = 0.1, SLACK_LEAST = 0.1; /* shares of the time */
static const double HELD_LEAST = 0.1;     /* more than any other rank, and twice as much */
static const double HELD_BY_OTHERS = 0.3; /* cores */
static const double SURE_OF_HELD = 0.85;
static const double BUSY_LEAST = 0.2; /* of a stage whose scores tell something */
static const double SURE = 0.95, UNSURE = 0.6;
static const double SLOWER = 0.85; /* a relative score that explains that a rank is the last */

int ranks_view_open(struct ranks_view *view, unsigned count)
{
	*view = (struct ranks_view){.count = count};
	view->of = calloc(count + 1, sizeof *view->of);
	for (unsigned r = 0; view->of && r < count; r++)
		for (int i = 0; i < STAGE_IDS; i++)
			view->of[r].scores[i].best_ns = HUGE_VAL;
	return view->of ? 0 : -ENOMEM;
}

void ranks_view_close(struct ranks_view *view)
{
	free(view->of);
	*view = (struct ranks_view){0};
}

/* Means over repetitions, each as much as the others. */
static double ranks_mean(double mean, double value, size_t count)
{
	return isnan(value) ? mean : mean + (value - mean) / (double)count;
}

static void ranks_add_stage(struct rank_of *of, int id, const struct stage_measurement *stage)
{
	struct rank_score *const score = &of->scores[id];
	if (!stage || stage->service.count == 0)
		return;
	const double ns = histogram_mean(&stage->service);
	score->item_ns = ranks_mean(score->item_ns, ns, of->repeats);
	score->best_ns = fmin(score->best_ns, ns);
	of->cpu_s[id] += isnan(stage->cpu_seconds) ? 0 : stage->cpu_seconds;
	double all = 0;
	for (int state = 0; state < THREAD_STATES; state++)
		all += stage->seconds[state];
	score->busy = ranks_mean(score->busy,
		all > 0 ? stage->seconds[THREAD_WORKING] / all : (double)NAN, of->repeats);
}

static double ranks_blocked(const struct measurement *m, enum stage_id id)
{
	const struct stage_measurement *const stage = measurement_stage(m, id);
	double all = 0;
	for (int state = 0; stage && state < THREAD_STATES; state++)
		all += stage->seconds[state];
	return all > 0 ? stage->seconds[THREAD_BLOCKED] / all : 0;
}

void ranks_view_add(struct ranks_view *view, unsigned rank, const struct measurement *m)
{
	if (rank >= view->count || m->ranks_count == 0 || !(m->measured_seconds > 0))
		return;
	struct rank_of *const of = &view->of[rank];
	const struct ranks_measurement *const r = &m->ranks[0];
	if (of->repeats < RANK_ROUNDS_MOST && r->rounds > 0)
		of->own_round_s[of->repeats] =
			(measurement_counted_seconds(m) - r->wait_seconds - r->exchange_seconds) /
			(double)r->rounds;
	view->known += of->repeats++ == 0;
	view->bytes = (double)r->bytes;
	(void)snprintf(of->host, sizeof of->host, "%s", r->host);
	of->rate = ranks_mean(of->rate, m->throughput, of->repeats);
	/* So long did the rounds take that are counted: parts of rounds at the ends are in no sum. */
	of->seconds += m->batches > 0 ? (double)r->rounds * m->measured_seconds / (double)m->batches
				      : measurement_counted_seconds(m);
	of->wait += r->wait_seconds;
	of->exchange += r->exchange_seconds;
	of->rounds += r->rounds;
	of->last_rounds += r->last_rounds;
	of->late_s += r->late_seconds;
	if (rank == 0)
		histogram_merge(&view->lateness, &r->lateness);
	of->own_s += r->own_seconds;
	of->own_hidden_s += r->own_hidden_seconds;
	of->clock_error_ns = fmax(of->clock_error_ns, r->clock_error_ns);
	for (int id = 0; id < STAGE_IDS; id++)
		ranks_add_stage(of, id, measurement_stage(m, (enum stage_id)id));
	const struct stage_measurement *const step = measurement_stage(m, STAGE_STEP);
	const double outside = m->cores_busy_outside - fmax(r->siblings_cores, 0);
	of->throttled = ranks_mean(of->throttled, m->throttled_share, of->repeats);
	of->outside = ranks_mean(of->outside, fmax(outside, 0), of->repeats);
	const double all = step ? step->seconds[THREAD_WORKING] + step->seconds[THREAD_STARVED] +
					   step->seconds[THREAD_BLOCKED]
				: 0;
	of->starved = ranks_mean(of->starved,
		all > 0 ? step->seconds[THREAD_STARVED] / all : (double)NAN, of->repeats);
	of->slack = ranks_mean(of->slack,
		fmax(ranks_blocked(m, STAGE_READ), ranks_blocked(m, STAGE_DECODE)), of->repeats);
	of->queued = ranks_mean(
		of->queued, all > 0 ? step->run_queue_seconds / all : (double)NAN, of->repeats);
}

/* --- conclusions ------------------------------------------------------------------------------ */

static void ranks_score(struct ranks_view *view, int id)
{
	double fastest = HUGE_VAL;
	for (unsigned r = 0; r < view->count; r++)
		if (view->of[r].scores[id].item_ns > 0)
			fastest = fmin(fastest, view->of[r].scores[id].item_ns);
	for (unsigned r = 0; r < view->count; r++) {
		struct rank_score *const s = &view->of[r].scores[id];
		const bool known = s->item_ns > 0 && s->busy >= BUSY_LEAST;
		s->relative = known ? fastest / s->item_ns : (double)NAN;
		s->individual = known ? fmin(s->best_ns, s->item_ns) / s->item_ns : (double)NAN;
		s->item_ns = known ? s->item_ns : (double)NAN;
	}
}

/* By the last rank: in the median of the others. */
static double ranks_lost(const struct ranks_view *view)
{
	double *const others = calloc(view->count, sizeof *others);
	const struct rank_of *const last = &view->of[view->last];
	size_t known = 0;
	for (unsigned r = 0; others && r < view->count; r++)
		if (r != view->last && view->of[r].repeats > 0)
			others[known++] = view->of[r].wait + view->of[r].exchange;
	if (known > 0)
		sort_doubles(others, known);
	const double lost =
		known > 0 ? statistics_median(others, known) - (last->wait + last->exchange) : 0;
	free(others);
	return fmax(lost, 0);
}

/* Whether the others could go faster: where the last one waits for its data, and so would they, it is the last by chance. */
static bool ranks_have_slack(const struct ranks_view *view)
{
	double *const others = calloc(view->count, sizeof *others);
	size_t known = 0;
	for (unsigned r = 0; others && r < view->count; r++)
		if (r != view->last)
			others[known++] = view->of[r].slack;
	if (known > 0)
		sort_doubles(others, known);
	const double slack = known > 0 ? statistics_median(others, known) : 0;
	free(others);
	return !(view->of[view->last].starved >= STARVED_LEAST) || slack >= SLACK_LEAST;
}

static void ranks_find_last(struct ranks_view *view)
{
	uint64_t most = 0;
	uint64_t rounds = 0;
	for (unsigned r = 0; r < view->count; r++) {
		rounds += view->of[r].last_rounds;
		if (view->of[r].last_rounds > most) {
			most = view->of[r].last_rounds;
			view->last = r;
		}
	}
	/* Every round has one last rank. */
	view->last_share = rounds > 0 ? (double)most / (double)rounds : 0;
	const double chance = 1.0 / view->count;
	const double spread = rounds > 0 ? sqrt(chance * (1 - chance) / (double)rounds) : 1;
	view->lost = ranks_lost(view);
	view->straggles = view->known == view->count && view->count > 1 &&
			  view->last_share >= fmax(LAST_LEAST, chance + LAST_SIGMAS * spread) &&
			  view->lost >= WAIT_LEAST && ranks_have_slack(view);
}

/* Shares; of waiting, the median of those that are not the last. */
static int ranks_take_shares(struct ranks_view *view)
{
	double *const waits = calloc(2 * (size_t)view->count + 1, sizeof *waits);
	double *const exchanges = waits + view->count;
	size_t known = 0;
	if (!waits)
		return -ENOMEM;
	for (unsigned r = 0; r < view->count; r++) {
		struct rank_of *const of = &view->of[r];
		if (of->repeats == 0 || !(of->seconds > 0))
			continue;
		of->wait /= of->seconds;
		of->exchange /= of->seconds;
		waits[known] = of->wait;
		exchanges[known++] = of->exchange;
	}
	if (known > 0) {
		sort_doubles(waits, known);
		sort_doubles(exchanges, known);
		/* The last one hardly waits. */
		view->wait = known > 1 ? statistics_median(waits + 1, known - 1) : 0;
		view->exchange = statistics_median(exchanges, known);
	}
	free(waits);
	return 0;
}

static void ranks_take_exchanges(struct ranks_view *view)
{
	double own = 0;
	double hidden = 0;
	double seconds = 0;
	uint64_t count = 0;
	uint64_t rounds = 0;
	for (unsigned r = 0; r < view->count; r++) {
		own += view->of[r].own_s;
		hidden += view->of[r].own_hidden_s;
		count += view->of[r].last_rounds;
		seconds += view->of[r].seconds;
		rounds += view->of[r].rounds;
	}
	view->round_s = rounds > 0 ? seconds / (double)rounds : (double)NAN;
	view->own_s = count > 0 ? own / (double)count : (double)NAN;
	view->hidden = own > 0 ? hidden / own : (double)NAN;
	view->bus_bytes_per_s =
		view->bytes > 0 && view->own_s > 0
			? 2.0 * (view->count - 1) / view->count * view->bytes / view->own_s
			: (double)NAN;
}

static double ranks_held(const struct rank_of *of)
{
	return fmax(of->throttled, of->queued);
}

/* Of those that exchange long, one that was stopped more than the others. */
static void ranks_find_held(struct ranks_view *view)
{
	double others = 0;
	unsigned most = 0;
	for (unsigned r = 1; r < view->count; r++)
		if (ranks_held(&view->of[r]) > ranks_held(&view->of[most]))
			most = r;
	for (unsigned r = 0; r < view->count; r++)
		if (r != most)
			others = fmax(others, ranks_held(&view->of[r]));
	const double more = ranks_held(&view->of[most]) - others;
	const double lost = fmin(more, view->wait + view->exchange);
	if (view->known < view->count || more < HELD_LEAST || more < others || lost < WAIT_SURE)
		return;
	view->is_held = view->straggles = true;
	view->last = most;
	view->lost = lost;
	view->last_share = view->of[most].rounds > 0 ? (double)view->of[most].last_rounds /
							       (double)view->of[most].rounds
						     : 0;
}

void ranks_conclude(struct ranks_view *view)
{
	view->rate_least = HUGE_VAL;
	for (unsigned r = 0; r < view->count; r++) {
		const struct rank_of *const of = &view->of[r];
		view->rate += of->rate;
		view->longest_s = fmax(view->longest_s, of->seconds);
		if (of->repeats > 0)
			view->rate_least = fmin(view->rate_least, of->rate * view->count);
	}
	for (int id = 0; id < STAGE_IDS; id++)
		ranks_score(view, id);
	ranks_take_exchanges(view);
	if (ranks_take_shares(view) == 0)
		ranks_find_last(view);
	if (!view->straggles)
		ranks_find_held(view);
}

/* --- the verdict ------------------------------------------------------------------------------ */

static void ranks_name(const struct ranks_view *view, unsigned rank, char *out, size_t room)
{
	const char *const host = view->of[rank].host;
	(void)snprintf(out, room, "rank %u%s%s", rank, *host ? " on " : "", host);
}

/* How sure it is that this rank is what the others wait for, and that they lose by it. */
static double ranks_certainty(const struct ranks_view *view)
{
	const double last =
		view->is_held ? 1 : (view->last_share - LAST_LEAST) / (LAST_SURE - LAST_LEAST);
	const double wait = (view->lost - WAIT_LEAST) / (WAIT_SURE - WAIT_LEAST);
	return UNSURE + (SURE - UNSURE) * fmin(fmin(last, wait), 1);
}

/* The stage in which it lags behind the fastest most; STAGE_IDS: in none. */
static int ranks_slowest_stage(const struct ranks_view *view)
{
	static const enum stage_id stages[] = {STAGE_READ, STAGE_DECODE, STAGE_UPLOAD, STAGE_STEP};
	int slowest = STAGE_IDS;
	double least = SLOWER;
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
		const double score = view->of[view->last].scores[stages[i]].relative;
		if (score < least) {
			least = score;
			slowest = (int)stages[i];
		}
	}
	return slowest;
}

/* "its step takes 36.1 ms, the fastest rank's 20.0 ms" */
static void ranks_add_slowest(const struct ranks_view *view, struct verdict *out)
{
	const int stage = ranks_slowest_stage(view);
	char own[UNITS_BYTES];
	char fastest[UNITS_BYTES];
	if (stage == STAGE_IDS)
		return;
	const struct rank_score *const s = &view->of[view->last].scores[stage];
	evidence_add(out, "its %s takes %s an item, the fastest rank's %s (relative score %.2f)",
		stage_name((enum stage_id)stage), units_format_duration(s->item_ns, own),
		units_format_duration(s->item_ns * s->relative, fastest), s->relative);
}

static bool ranks_cause_is_known(const struct verdict *cause)
{
	return cause->stage[0] && strcmp(cause->stage, "none") != 0 &&
	       !stage_is(cause->stage, STAGE_SYNC);
}

/* What stops it is not in what its stages wait for: their queues are full. */
static void ranks_put_held(const struct ranks_view *view, struct verdict_straggler *out)
{
	const struct rank_of *const of = &view->of[view->last];
	int most = STAGE_DECODE;
	for (int id = 0; id < STAGE_IDS; id++)
		if (of->cpu_s[id] > of->cpu_s[most])
			most = id;
	(void)snprintf(out->stage, sizeof out->stage, "%s", stage_name((enum stage_id)most));
	(void)snprintf(out->resource, sizeof out->resource, "%s",
		of->throttled >= of->queued     ? "quota"
		: of->outside >= HELD_BY_OTHERS ? "external"
						: "cores");
	out->confidence = SURE_OF_HELD;
}

static void ranks_put_straggler(
	const struct ranks_view *view, struct verdict_straggler *out, double *certainty)
{
	const struct verdict *const cause = &view->cause;
	const int slowest = ranks_slowest_stage(view);
	*out = (struct verdict_straggler){.known = true,
		.rank = view->last,
		.rounds = view->last_share,
		.waiting = view->lost};
	(void)snprintf(out->host, sizeof out->host, "%s", view->of[view->last].host);
	if (view->is_held) {
		ranks_put_held(view, out);
	} else if (ranks_cause_is_known(cause)) {
		(void)snprintf(out->stage, sizeof out->stage, "%s", cause->stage);
		(void)snprintf(out->resource, sizeof out->resource, "%s", cause->resource);
		out->confidence = cause->confidence;
	} else if (slowest != STAGE_IDS) {
		(void)snprintf(
			out->stage, sizeof out->stage, "%s", stage_name((enum stage_id)slowest));
		(void)snprintf(out->resource, sizeof out->resource, "unknown");
		out->confidence = UNSURE;
	}
	*certainty = ranks_certainty(view);
}

static void ranks_add_cause(const struct ranks_view *view, struct verdict *out)
{
	if (view->is_held)
		return;
	const struct verdict *const cause = &view->cause;
	const struct verdict_straggler *const s = &out->straggler;
	char first[EVIDENCE_BYTES] = "";
	if (!s->stage[0]) {
		evidence_add(
			out, "what holds it back is not known: its own measurements do not tell");
		return;
	}
	if (cause->evidence_count > 0)
		(void)snprintf(first, sizeof first, ": %.150s", cause->evidence[0]);
	const size_t length = strlen(first);
	if (length > 0 && first[length - 1] == '.')
		first[length - 1] = '\0';
	evidence_add(out, "by its own measurements it is held back by %s/%s (%.0f %%)%s", s->stage,
		s->resource, s->confidence * 100, first);
}

static void ranks_advise(const struct ranks_view *view, const char *name, struct verdict *out)
{
	const char *own = view->cause.advice;
	if (view->is_held)
		own = "give it cores: its quota, and other programs on its cores, are where it runs";
	else if (stage_is(out->straggler.stage, STAGE_STEP))
		own = "look at its device's clocks, power and temperature, and at what else uses it";
	else if (!own[0])
		own = "its own measurements do not tell what it lacks";
	(void)snprintf(out->advice, sizeof out->advice, "mend %.60s, or run without it: %.140s",
		name, own);
}

static void ranks_straggler_verdict(const struct ranks_view *view, struct verdict *verdict)
{
	struct verdict out = {.evidence_count = 0};
	char name[RANK_HOST_BYTES + 32];
	(void)snprintf(out.stage, sizeof out.stage, "%s", STAGE_SYNC_NAME);
	(void)snprintf(out.resource, sizeof out.resource, "imbalance");
	ranks_put_straggler(view, &out.straggler, &out.confidence);
	ranks_name(view, view->last, name, sizeof name);
	if (view->is_held)
		evidence_add(&out,
			"%s is stopped %.0f %% of the time by a quota and waits %.0f %% for a core, while the "
			"exchange needs it: the others lose %.0f %%",
			name, view->of[view->last].throttled * 100,
			view->of[view->last].queued * 100, view->lost * 100);
	else
		evidence_add(&out,
			"%s is the last in %.0f %% of the rounds, and the others lose %.0f %% of their time "
			"by waiting for it",
			name, view->last_share * 100, view->lost * 100);
	ranks_add_cause(view, &out);
	ranks_add_slowest(view, &out);
	ranks_advise(view, name, &out);
	*verdict = out;
}

/* A rank that is the last for no reason that shows in its own measurements is as likely the last in the exchange. */
static bool ranks_is_explained(const struct ranks_view *view)
{
	return view->is_held || ranks_cause_is_known(&view->cause) ||
	       ranks_slowest_stage(view) != STAGE_IDS;
}

/* "4 ranks wait 2.1 % of the time for the last one, and exchange gradients for 12.2 %" */
static void ranks_add_shares(const struct ranks_view *view, struct verdict *verdict)
{
	evidence_add(verdict,
		"%u ranks wait %.1f %% of the time for the last one of a round, and then exchange "
		"gradients for %.1f %%",
		view->count, view->wait * 100, view->exchange * 100);
}

/* "one rank alone reads 250 files/s, each of 4 together 64: they share a store that 1.0 of them fill" */
static void ranks_add_store(const struct ranks_view *view, struct verdict *verdict)
{
	static const double SHARES = 0.8, APART = 0.9; /* of the rate alone */
	char alone[UNITS_BYTES];
	char together[UNITS_BYTES];
	const double share = view->together_files / view->alone_files;
	if (!(share > 0) || !stage_is(verdict->stage, STAGE_READ))
		return;
	(void)units_format_count(view->alone_files, alone);
	(void)units_format_count(view->together_files, together);
	if (share >= APART)
		evidence_add(verdict,
			"one rank alone reads %s files/s, each of %u at the same time %s: they do not share what "
			"limits them",
			alone, view->count, together);
	else
		evidence_add(verdict,
			"one rank alone reads %s files/s, each of %u at the same time %s: they share a store, "
			"which %.1f of them fill%s",
			alone, view->count, together, share * view->count,
			share < SHARES ? "" : ", nearly all");
}

void ranks_weigh(const struct ranks_view *view, struct verdict *verdict)
{
	if (view->count < 2 || view->known == 0)
		return;
	if (view->known < view->count) {
		evidence_add(verdict,
			"of %u ranks only %u were measured: whether the others wait for one of them is not known",
			view->count, view->known);
		verdict->confidence = fmin(verdict->confidence, UNSURE);
		return;
	}
	if (view->straggles && ranks_is_explained(view))
		ranks_straggler_verdict(view, verdict);
	else
		ranks_add_shares(view, verdict);
	ranks_add_store(view, verdict);
}
