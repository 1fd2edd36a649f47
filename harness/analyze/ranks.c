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
static const double AS_FAR =
	0.25; /* of the way from the last rank to the others, within which one lags as it does */

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
	if (!stage)
		return 0;
	for (int state = 0; state < THREAD_STATES; state++)
		all += stage->seconds[state];
	return all > 0 ? stage->seconds[THREAD_BLOCKED] / all : 0;
}

/* So long did the rounds take that are counted: parts of rounds at the ends are in no sum. */
static double ranks_seconds(const struct measurement *m)
{
	const struct ranks_measurement *const r = &m->ranks[0];
	if (r->rounds_seconds > 0)
		return r->rounds_seconds;
	return m->batches > 0 ? (double)r->rounds * m->measured_seconds / (double)m->batches
			      : measurement_counted_seconds(m);
}

void ranks_view_add(struct ranks_view *view, unsigned rank, const struct measurement *m)
{
	if (rank >= view->count || m->ranks_count == 0 || !(m->measured_seconds > 0))
		return;
	struct rank_of *const of = &view->of[rank];
	const struct ranks_measurement *const r = &m->ranks[0];
	if (of->repeats < RANK_ROUNDS_MOST && r->rounds > 0)
		of->own_round_s[of->repeats] =
			(ranks_seconds(m) - r->wait_seconds - r->exchange_seconds) /
			(double)r->rounds;
	view->known += of->repeats++ == 0;
	view->bytes = (double)r->bytes;
	(void)snprintf(of->host, sizeof of->host, "%s", r->host);
	of->rate = ranks_mean(of->rate, m->throughput, of->repeats);
	of->seconds += ranks_seconds(m);
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
	of->crowd = r->crowd;
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

static double ranks_idle(const struct rank_of *of)
{
	return of->wait + of->exchange;
}

static double ranks_held(const struct rank_of *of)
{
	return fmax(of->throttled, of->crowded ? 0 : of->queued);
}

static double ranks_crowd(const struct rank_of *of)
{
	return of->crowd;
}

static double ranks_outside(const struct rank_of *of)
{
	return of->outside;
}

static double ranks_active(const struct rank_of *of)
{
	return -ranks_held(of);
}

static double ranks_slack(const struct rank_of *of)
{
	return of->slack;
}

/* Of those that lag, or do not, as far as they are known; 0: of none. */
static double ranks_median(
	const struct ranks_view *view, double value(const struct rank_of *of), bool lag)
{
	double *const values = calloc((size_t)view->count + 1, sizeof *values);
	size_t known = 0;
	for (unsigned r = 0; values && r < view->count; r++)
		if (view->of[r].repeats > 0 && view->of[r].lags == lag)
			values[known++] = value(&view->of[r]);
	if (known > 0)
		sort_doubles(values, known);
	const double median = known > 0 ? statistics_median(values, known) : 0;
	free(values);
	return median;
}

/* Marks the rank `last`, and all whose value, which is low where a rank lags, is nearly as far below the others' as its own. */
static void ranks_mark_laggards(
	struct ranks_view *view, unsigned last, double value(const struct rank_of *of))
{
	view->last = last;
	for (unsigned r = 0; r < view->count; r++)
		view->of[r].lags = r == last;
	const double own = value(&view->of[last]);
	const double far = own + (ranks_median(view, value, false) - own) * AS_FAR;
	view->laggards = 0;
	for (unsigned r = 0; r < view->count; r++) {
		view->of[r].lags = r == last || (view->of[r].repeats > 0 &&
							value(&view->of[r]) <= far && own < far);
		view->laggards += view->of[r].lags;
	}
}

/* Whether the others could go faster: where the last one waits for its data, and so would they, it is the last by chance. */
static bool ranks_have_slack(const struct ranks_view *view)
{
	return !(view->of[view->last].starved >= STARVED_LEAST) ||
	       ranks_median(view, ranks_slack, false) >= SLACK_LEAST;
}

/* Every round has one last rank. */
static double ranks_last_share(const struct ranks_view *view, uint64_t *rounds)
{
	uint64_t last = 0;
	*rounds = 0;
	for (unsigned r = 0; r < view->count; r++) {
		*rounds += view->of[r].last_rounds;
		last += view->of[r].lags ? view->of[r].last_rounds : 0;
	}
	return *rounds > 0 ? (double)last / (double)*rounds : 0;
}

static void ranks_find_last(struct ranks_view *view)
{
	unsigned last = 0;
	uint64_t rounds;
	for (unsigned r = 1; r < view->count; r++)
		if (view->of[r].last_rounds > view->of[last].last_rounds)
			last = r;
	ranks_mark_laggards(view, last, ranks_idle);
	view->last_share = ranks_last_share(view, &rounds);
	const double chance = (double)view->laggards / view->count;
	const double spread = rounds > 0 ? sqrt(chance * (1 - chance) / (double)rounds) : 1;
	view->lost = fmax(
		ranks_median(view, ranks_idle, false) - ranks_median(view, ranks_idle, true), 0);
	view->straggles = view->known == view->count && 2 * view->laggards <= view->count &&
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

/* Those that share their cores with as many other ranks as most do, and with no more of other programs. */
static void ranks_find_crowded(struct ranks_view *view)
{
	for (unsigned r = 0; r < view->count; r++)
		view->of[r].lags = false;
	const double crowd = ranks_median(view, ranks_crowd, false);
	const double outside = ranks_median(view, ranks_outside, false);
	for (unsigned r = 0; r < view->count; r++) {
		struct rank_of *const of = &view->of[r];
		of->crowded = of->crowd > 1 && of->crowd <= crowd &&
			      of->outside - outside < HELD_BY_OTHERS;
	}
}

/* Of those that exchange long, ranks that were stopped more than the others. */
static void ranks_find_held(struct ranks_view *view)
{
	double others = 0;
	unsigned most = 0;
	uint64_t rounds;
	ranks_find_crowded(view);
	for (unsigned r = 1; r < view->count; r++)
		if (ranks_held(&view->of[r]) > ranks_held(&view->of[most]))
			most = r;
	const double held = ranks_held(&view->of[most]);
	ranks_mark_laggards(view, most, ranks_active);
	for (unsigned r = 0; r < view->count; r++)
		if (!view->of[r].lags)
			others = fmax(others, ranks_held(&view->of[r]));
	const double lost = fmin(held - others, view->wait + view->exchange);
	view->is_held = view->straggles =
		view->known == view->count && 2 * view->laggards <= view->count &&
		held - others >= fmax(HELD_LEAST, others) && lost >= WAIT_SURE;
	if (view->is_held)
		view->lost = lost;
	else
		ranks_find_last(view);
	view->last_share = ranks_last_share(view, &rounds);
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

/* Whether those that lag are all ranks of one host, and more than one. */
static bool ranks_are_a_host(const struct ranks_view *view)
{
	const char *const host = view->of[view->last].host;
	bool whole = *host && view->laggards > 1;
	for (unsigned r = 0; r < view->count; r++)
		whole = whole && view->of[r].lags == (strcmp(view->of[r].host, host) == 0);
	return whole;
}

/* "rank 2 on node-2", "ranks 1 and 3", "the 8 ranks on node-2" */
static void ranks_name_laggards(const struct ranks_view *view, char *out, size_t room)
{
	enum { LISTED_MOST = 4 };
	const char *const host = view->of[view->last].host;
	if (view->laggards == 1) {
		(void)snprintf(out, room, "rank %u%s%s", view->last, *host ? " on " : "", host);
		return;
	}
	if (ranks_are_a_host(view)) {
		(void)snprintf(out, room, "the %u ranks on %s", view->laggards, host);
		return;
	}
	if (view->laggards > LISTED_MOST) {
		(void)snprintf(
			out, room, "%u ranks, one of them rank %u", view->laggards, view->last);
		return;
	}
	size_t used = 0;
	unsigned left = view->laggards;
	for (unsigned r = 0; r < view->count && used < room; r++)
		if (view->of[r].lags) {
			left--;
			used += (size_t)snprintf(out + used, room - used, "%s%u",
				used == 0   ? "ranks "
				: left == 0 ? " and "
					    : ", ",
				r);
		}
}

/* How sure it is that these are what the others wait for, and that they lose by it. */
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
	char whose[RANK_WORDS_BYTES] = "its";
	if (view->laggards > 1)
		(void)snprintf(whose, sizeof whose, "rank %u's", view->last);
	evidence_add(out, "%s %s takes %s an item, the fastest rank's %s (relative score %.2f)",
		whose, stage_name((enum stage_id)stage), units_format_duration(s->item_ns, own),
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
		.count = view->laggards,
		.rounds = view->last_share,
		.waiting = view->lost};
	(void)snprintf(out->host, sizeof out->host, "%s", view->of[view->last].host);
	ranks_name_laggards(view, out->who, sizeof out->who);
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
	char it[RANK_WORDS_BYTES] = "it";
	if (s->count > 1)
		(void)snprintf(it, sizeof it, "rank %u", s->rank);
	if (!s->stage[0]) {
		evidence_add(out,
			"what holds %s back is not known: its own measurements do not tell", it);
		return;
	}
	if (cause->evidence_count > 0)
		(void)snprintf(first, sizeof first, ": %.150s", cause->evidence[0]);
	const size_t length = strlen(first);
	if (length > 0 && first[length - 1] == '.')
		first[length - 1] = '\0';
	evidence_add(out, "by its own measurements %s is held back by %s/%s (%.0f %%)%s", it,
		s->stage, s->resource, s->confidence * 100, first);
}

static void ranks_advise(const struct ranks_view *view, struct verdict *out)
{
	const bool several = out->straggler.count > 1;
	const char *own = view->cause.advice;
	if (view->is_held)
		own = several ? "they need cores: look at their quotas, and at other programs on their cores"
			      : "it needs cores: look at its quota, and at other programs on its cores";
	else if (stage_is(out->straggler.stage, STAGE_STEP))
		own = several ? "look at their devices' clocks, power and temperature, and at what else uses them"
			      : "look at its device's clocks, power and temperature, and at what else uses it";
	else if (!own[0])
		own = several ? "their own measurements do not tell what they lack"
			      : "its own measurements do not tell what it lacks";
	(void)snprintf(out->advice, sizeof out->advice, "mend %.60s, or run without %s: %.140s",
		out->straggler.who, several ? "them" : "it", own);
}

static void ranks_straggler_verdict(const struct ranks_view *view, struct verdict *verdict)
{
	struct verdict out = {.evidence_count = 0};
	const bool several = view->laggards > 1;
	(void)snprintf(out.stage, sizeof out.stage, "%s", STAGE_SYNC_NAME);
	(void)snprintf(out.resource, sizeof out.resource, "imbalance");
	ranks_put_straggler(view, &out.straggler, &out.confidence);
	if (view->is_held)
		evidence_add(&out,
			"%s %s stopped %.0f %% of the time by a quota and wait%s %.0f %% for a core, while the "
			"exchange needs %s: the others lose %.0f %%",
			out.straggler.who, several ? "are" : "is",
			view->of[view->last].throttled * 100, several ? "" : "s",
			view->of[view->last].queued * 100, several ? "them" : "it",
			view->lost * 100);
	else
		evidence_add(&out,
			"%s %s the last in %.0f %% of the rounds, and the others lose %.0f %% of their time "
			"by waiting for %s",
			out.straggler.who, several ? "are" : "is", view->last_share * 100,
			view->lost * 100, several ? "them" : "it");
	ranks_add_cause(view, &out);
	ranks_add_slowest(view, &out);
	ranks_advise(view, &out);
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

/* What is advised for devices of a node is no help here. */
static void ranks_exchange_verdict(const struct ranks_view *view, struct verdict *verdict)
{
	ranks_add_shares(view, verdict);
	if (stage_is(verdict->stage, STAGE_SYNC) && strcmp(verdict->resource, "exchange") == 0)
		(void)snprintf(verdict->advice, sizeof verdict->advice,
			"use a larger batch.size (fewer exchanges), a faster network between the ranks, or fewer "
			"ranks; mpirun mlbench accept configs/accept/network.ini names a slow link");
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
		ranks_exchange_verdict(view, verdict);
	ranks_add_store(view, verdict);
}
