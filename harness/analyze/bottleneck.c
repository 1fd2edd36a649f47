/* Which stage is the bottleneck, from wait states and, where there is one, a replay. */
#include "harness/analyze/verdict.h"

#include "harness/analyze/rates.h"
#include "harness/analyze/reads_alone.h"
#include "harness/analyze/statistics.h"
#include "harness/analyze/summary.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- how well two stages can be told apart ---------------------------------------------------- */

enum { PARTS_MOST = 20, PARTS_LEAST = 4 };

static const double STEPS_A_PART = 2;
/* How much a stage's capacity varies between repetitions where nothing is known about it; weighted
 * like two repetitions. */
static const double USUAL = 0.01;
static const double USUAL_WEIGHT = 2;

/* A stage, as the margin sees it. */
struct taken {
	size_t stage; /* stage_count: not there */
	bool shared;  /* its devices do something else in turn: taken while it is not starved */
};

static bool is_of_device(const char *name)
{
	return stage_is(name, STAGE_STEP) || stage_is(name, STAGE_SYNC) ||
	       stage_is(name, STAGE_CHECKPOINT) || stage_is(name, STAGE_EVALUATE);
}

/* Step, exchange, checkpoints and evaluations share their devices: seen by other stages, both are taken for the sum of their
 * times; beside each other they count separately. */
static struct taken taken_of(const struct measurement *m, const char *name, const char *other)
{
	const bool shared =
		is_of_device(name) && !is_of_device(other) &&
		(measurement_stage(m, STAGE_SYNC) || measurement_stage(m, STAGE_CHECKPOINT) ||
			measurement_stage(m, STAGE_EVALUATE));
	return (struct taken){.stage = measurement_stage_at(m, shared ? STAGE_STEP_NAME : name),
		.shared = shared};
}

static double taken_seconds(const struct taken *of, const double seconds[THREAD_STATES])
{
	return seconds[THREAD_WORKING] + (of->shared ? seconds[THREAD_BLOCKED] : 0);
}

/* Interpolated between windows. */
static double taken_until(const struct measurement *m, const struct taken *of, double t)
{
	double t0 = 0;
	double s0 = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		const double t1 = m->windows[i].t;
		const double s1 = taken_seconds(of, m->windows[i].stage_seconds[of->stage]);
		if (t < t1)
			return t1 > t0 ? s0 + (s1 - s0) * (t - t0) / (t1 - t0) : s0;
		t0 = t1;
		s0 = s1;
	}
	return s0;
}

static void take_parts(
	const struct measurement *m, const struct taken *of, size_t parts, double *out)
{
	double before = taken_until(m, of, m->cut_seconds);
	for (size_t i = 0; i < parts; i++) {
		const double share = (double)(i + 1) / (double)parts;
		const double after =
			taken_until(m, of, m->cut_seconds + share * m->measured_seconds);
		out[i] = after - before;
		before = after;
	}
}

/* Squared standard error of the ratio within one repetition, computed as for a ratio of means; 0:
 * too few parts. */
static double margin_within(
	const struct measurement *m, const struct taken *one, const struct taken *other)
{
	double first[PARTS_MOST];
	double second[PARTS_MOST];
	const double end = m->cut_seconds + m->measured_seconds;
	const size_t parts = rate_parts(m, m->cut_seconds, end, STEPS_A_PART, PARTS_MOST);
	if (parts < PARTS_LEAST)
		return 0;
	take_parts(m, one, parts, first);
	take_parts(m, other, parts, second);
	const double mean_first = statistics_mean(first, parts);
	const double mean_second = statistics_mean(second, parts);
	if (!(mean_first > 0) || !(mean_second > 0))
		return 0;
	for (size_t i = 0; i < parts; i++)
		first[i] = first[i] / mean_first - second[i] / mean_second;
	const double deviation = statistics_deviation(first, parts);
	return deviation * deviation / (double)parts;
}

static double margin_between(const double *ln_ratios, size_t count)
{
	const double usual = 2 * USUAL * USUAL; /* of either of the two */
	const double runs = fmax((double)count, 1);
	if (count < 2)
		return usual;
	const double deviation = statistics_deviation(ln_ratios, count);
	const double squares = (runs - 1) * deviation * deviation;
	return (USUAL_WEIGHT * usual + squares) / (USUAL_WEIGHT + runs - 1) / runs;
}

double margin_noise(const struct measurement *const *repeats, size_t count, const char *stage,
	const char *other)
{
	double *ln_ratios = calloc(count + 1, sizeof *ln_ratios);
	double within = 0;
	size_t known = 0;
	for (size_t i = 0; i < count && ln_ratios; i++) {
		const struct measurement *m = repeats[i];
		const struct taken a = taken_of(m, stage, other);
		const struct taken b = taken_of(m, other, stage);
		if (a.stage == m->stage_count || b.stage == m->stage_count)
			continue;
		const double ratio = taken_seconds(&b, m->stages[b.stage].seconds) /
				     taken_seconds(&a, m->stages[a.stage].seconds);
		if (!(ratio > 0) || !isfinite(ratio))
			continue;
		ln_ratios[known++] = log(ratio);
		within += margin_within(m, &a, &b);
	}
	const double runs = fmax((double)known, 1);
	const double between = margin_between(ln_ratios, known);
	free(ln_ratios);
	return sqrt(fmax(between, within / (runs * runs)));
}

/* --- by wait states: the arrows --------------------------------------------------------------- */

/* At every queue an arrow points to where the time goes: down when the stage above is blocked
 * longer than the one below starves, else up.  The bottleneck is the stage that the arrows on both
 * its sides point to; how sure an arrow is follows from its length against its spread over the
 * repetitions. */

static const double SPREAD_FLOOR = 0.01;  /* of an arrow, with several repeats */
static const double SPREAD_SINGLE = 0.03; /* assumed with one repeat */
static const double CONFLICT_GAP = 0.12;  /* by which the busiest outdoes the arrows */
static const double CONFLICT_CERTAINTY = 0.60;
static const double DEPTH_BUSY_BELOW = 0.75; /* no stage busier: nothing but a queue can bind */
static const double DEPTH_LOSS_MIN = 0.08;   /* of both sides of that queue */

/* Blocked share above minus starved share below, in one repetition. */
static double arrow_of(const struct measurement *m, const char *above, const char *below)
{
	double blocked = 0;
	double starved = 0;
	for (size_t i = 0; i < m->stage_count; i++) {
		const struct stage_measurement *s = &m->stages[i];
		const double total = s->seconds[THREAD_STARVED] + s->seconds[THREAD_WORKING] +
				     s->seconds[THREAD_BLOCKED];
		if (total <= 0)
			continue;
		if (strcmp(s->name, above) == 0)
			blocked = s->seconds[THREAD_BLOCKED] / total;
		if (strcmp(s->name, below) == 0)
			starved = s->seconds[THREAD_STARVED] / total;
	}
	return blocked - starved;
}

static double arrow_spread(const struct evidence_base *base, size_t above)
{
	if (base->count < 2)
		return SPREAD_SINGLE;
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < base->count; i++) {
		const double arrow = arrow_of(base->repeats[i], base->point->stages[above].name,
			base->point->stages[above + 1].name);
		sum += arrow;
		squares += arrow * arrow;
	}
	const double n = (double)base->count;
	const double variance = fmax(squares - sum * sum / n, 0) / (n - 1);
	return fmax(sqrt(variance / n), SPREAD_FLOOR);
}

/* Positive: the arrow points down. */
static double arrow_below(const struct point_summary *point, size_t above)
{
	return point->stages[above].blocked - point->stages[above + 1].starved;
}

/* Probability that both arrows at a stage point to it. */
static double certainty_of(const struct evidence_base *base, size_t stage)
{
	double certainty = 1;
	if (stage > 0)
		certainty *= statistics_normal(
			arrow_below(base->point, stage - 1) / arrow_spread(base, stage - 1));
	if (stage + 1 < base->point->stage_count)
		certainty *= statistics_normal(
			-arrow_below(base->point, stage) / arrow_spread(base, stage));
	return certainty;
}

static bool is_pointed_to(const struct point_summary *point, size_t stage)
{
	return (stage == 0 || arrow_below(point, stage - 1) >= 0) &&
	       (stage + 1 == point->stage_count || arrow_below(point, stage) <= 0);
}

/* The busiest of the stages that the arrows point to; there is at least one in any line. */
static size_t pointed_stage(const struct point_summary *point)
{
	size_t best = point->stage_count;
	for (size_t i = 0; i < point->stage_count; i++)
		if (is_pointed_to(point, i) &&
			(best == point->stage_count ||
				point->stages[i].busy > point->stages[best].busy))
			best = i;
	return best;
}

/* Step and exchange, on the same devices. */
static bool binding_takes_turns(const struct point_summary *point, size_t stage, size_t other)
{
	return stage != other && is_of_device(point->stages[stage].name) &&
	       is_of_device(point->stages[other].name);
}

double binding_taken(const struct point_summary *point, size_t stage)
{
	for (size_t i = 0; i < point->stage_count; i++)
		if (binding_takes_turns(point, stage, i)) {
			const size_t step = stage_is(point->stages[i].name, STAGE_STEP) ? i : stage;
			return 1 - point->stages[step].starved;
		}
	return point->stages[stage].busy;
}

static double binding_margin_noise(const struct evidence_base *base, size_t stage, size_t other)
{
	const struct stage_summary *stages = base->point->stages;
	return margin_noise(base->repeats, base->count, stages[stage].name, stages[other].name);
}

static size_t busiest_stage(const struct point_summary *point)
{
	size_t best = 0;
	for (size_t i = 1; i < point->stage_count; i++)
		if (binding_taken(point, i) > binding_taken(point, best))
			best = i;
	return best;
}

/* The arrows decide, unless another stage is much busier: then uneven service times hide in the
 * waits. */
static void choose_stage(const struct evidence_base *base, struct binding *binding)
{
	const struct point_summary *point = base->point;
	const size_t busiest = busiest_stage(point);
	binding->stage = pointed_stage(point);
	binding->certainty = certainty_of(base, binding->stage);
	if (binding_taken(point, busiest) < binding_taken(point, binding->stage) + CONFLICT_GAP)
		return;
	binding->stage = busiest;
	binding->certainty = CONFLICT_CERTAINTY;
	binding->conflict = true;
}

/* By the utilisation law, busy shares relate as capacities do, inverted. */
static void find_second(const struct evidence_base *base, struct binding *binding)
{
	const struct point_summary *point = base->point;
	size_t second = point->stage_count;
	double nearest = 0;
	for (size_t i = 0; i < point->stage_count; i++) {
		/* Of two that take turns, the shorter binds as much if it is nearly as long. */
		const bool turns = binding_takes_turns(point, i, binding->stage);
		const double busy = turns ? point->stages[i].busy : binding_taken(point, i);
		const double own = turns ? point->stages[binding->stage].busy
					 : binding_taken(point, binding->stage);
		const double near = busy / fmax(own, 1e-9);
		if (i == binding->stage || (second < point->stage_count && near <= nearest))
			continue;
		second = i;
		nearest = near;
	}
	binding->second_gap = fmax(1 - nearest, 0);
	binding->alone = 1;
	binding->second = point->stage_count;
	if (second == point->stage_count)
		return;
	binding->second_noise = binding_margin_noise(base, binding->stage, second);
	binding->alone = confidence_alone(1 / nearest, binding->second_noise);
	if (confidence_is_pair(binding->alone))
		binding->second = second;
}

/* Where loading and steps take turns, to overlap them is what helps as long as the step takes longer; else it is what loading
 * takes its time for. */
static bool loads_longer(const struct evidence_base *base, const struct binding *binding)
{
	return base->facts->turns && !is_of_device(base->point->stages[binding->stage].name);
}

/* A worker that reads for itself is busy in one stage or the other. */
static double busiest_share(const struct evidence_base *base)
{
	const struct point_summary *point = base->point;
	const struct stage_summary *read = summary_stage(point, STAGE_READ_NAME);
	const struct stage_summary *decode = summary_stage(point, STAGE_DECODE_NAME);
	double most = binding_taken(point, busiest_stage(point));
	if (base->facts->by_workers && read && decode)
		most = fmax(most, read->busy + decode->busy);
	return most;
}

/* A thread that is woken and gets no core still counts as starved or blocked. */
static bool kept_off_cores(const struct point_summary *point)
{
	bool any = false;
	for (size_t i = 0; i < point->stage_count; i++)
		any = any || point->stages[i].queued >= QUEUED_MUCH;
	return any;
}

/* Finds the queue where the stage above waits for room and the stage below waits for items, in
 * turns (it cannot be at once). */
static void find_depth(const struct evidence_base *base, struct binding *binding)
{
	const struct point_summary *point = base->point;
	double loss = 0;
	for (size_t i = 0; i + 1 < point->stage_count; i++) {
		const double both = fmin(point->stages[i].blocked, point->stages[i + 1].starved);
		const bool one_thread =
			base->facts->by_workers && stage_is(point->stages[i].name, STAGE_READ);
		if (both > loss && !one_thread && !binding_takes_turns(point, i, i + 1)) {
			loss = both;
			binding->queue_above = i;
		}
	}
	binding->depth = busiest_share(base) < DEPTH_BUSY_BELOW && loss >= DEPTH_LOSS_MIN &&
			 !loads_longer(base, binding) && !kept_off_cores(point);
}

struct binding binding_find(const struct evidence_base *base)
{
	struct binding binding = {.replayed = NAN,
		.depth_gain = NAN,
		.shown = NAN,
		.alone_ratio = NAN,
		.agree = true};
	choose_stage(base, &binding);
	binding.pointed = binding.stage;
	find_second(base, &binding);
	find_depth(base, &binding);
	return binding;
}

size_t binding_next_capacity(const struct point_summary *point, size_t but)
{
	size_t next = point->stage_count;
	for (size_t i = 0; i < point->stage_count; i++)
		if (i != but && !isnan(point->stages[i].capacity) &&
			(next == point->stage_count ||
				point->stages[i].capacity < point->stages[next].capacity))
			next = i;
	return next;
}

/* --- by a replay ------------------------------------------------------------------------------ */

/* The bottleneck is the stage whose costs' elasticities sum highest.  Two stages are a pair when
 * their difference is within their intervals or their capacities cannot be told apart.  A queue is
 * the bottleneck when no stage is busy all the time and the replay gains from a deeper queue. */

static const double PAIR_LEAST = 0.20; /* elasticity of a stage that binds as much */
/* Share of what the replay leaves unexplained that any stage may cause, as in model_predict.c. */
static const double UNEXPLAINED = 0.5;
static const double UNMODELLED_MOST = 0.20; /* of the time between batches */
static const double ALL_BUSY = 0.95;        /* a stage so busy is the limit, not a queue */
static const double DEPTH_GAIN = 0.08;      /* by replay, for a queue to be the limit */

struct ranking {
	size_t first, second;
	double value[STAGES_MAX], deviation[STAGES_MAX];
	double certainty; /* that first is above second */
};

static struct ranking rank_stages(const struct evidence_base *base)
{
	const struct point_summary *point = base->point;
	struct ranking r = {.first = 0, .second = point->stage_count};
	for (size_t i = 0; i < point->stage_count; i++)
		r.value[i] = findings_stage(base->findings, point->stages[i].name, &r.deviation[i]);
	for (size_t i = 1; i < point->stage_count; i++)
		if (r.value[i] > r.value[r.first])
			r.first = i;
	for (size_t i = 0; i < point->stage_count; i++)
		if (i != r.first &&
			(r.second == point->stage_count || r.value[i] > r.value[r.second]))
			r.second = i;
	if (r.second == point->stage_count) {
		r.certainty = 1;
		return r;
	}
	const double gap = r.value[r.first] - r.value[r.second];
	const double spread = hypot(r.deviation[r.first], r.deviation[r.second]);
	r.certainty = statistics_normal(gap / spread);
	return r;
}

/* The first stage if there is none of that name. */
static size_t stage_named(const struct point_summary *point, const char *name)
{
	const struct stage_summary *stage = summary_stage(point, name);
	return stage ? (size_t)(stage - point->stages) : 0;
}

/* A slow worker makes the others wait as a shallow queue does; then evening out the workers gains
 * more. */
static void weigh_depth(const struct evidence_base *base, struct binding *binding)
{
	const struct model_findings *f = base->findings;
	const bool prefetch = f->deeper >= f->deeper_read;
	binding->depth_gain = fmax(f->deeper, f->deeper_read);
	binding->depth = busiest_share(base) < ALL_BUSY && binding->depth_gain >= DEPTH_GAIN &&
			 f->even < binding->depth_gain && !kept_off_cores(base->point);
	binding->depth = binding->depth && !loads_longer(base, binding);
	/* Reading that lacks files in flight lacks them for its latency: that is reading's own
	 * limit. */
	if (binding->depth && !prefetch &&
		binding->stage == stage_named(base->point, STAGE_READ_NAME))
		binding->depth = false;
	if (binding->depth)
		binding->queue_above =
			stage_named(base->point, prefetch ? STAGE_DECODE_NAME : STAGE_READ_NAME);
}

/* The throughput without the first stage is the capacity of the next one. It is known as well as a
 * measurement tells the two apart and as the replay explains it. */
static void weigh_next(const struct evidence_base *base, size_t next, struct binding *binding)
{
	const struct model_findings *f = base->findings;
	binding->second_noise = hypot(binding_margin_noise(base, binding->stage, next),
		UNEXPLAINED * f->elasticities.unmodelled);
	binding->alone = confidence_alone(1 + f->relieved, binding->second_noise);
	if (confidence_is_pair(binding->alone)) {
		binding->second = next;
		binding->second_gap = fmax(f->relieved, 0);
	}
}

/* Whether another stage limits as much: without the first one throughput would hardly rise, or its
 * elasticity is not clearly below the first one's. */
static void find_co_binding(
	const struct evidence_base *base, const struct ranking *r, struct binding *binding)
{
	const struct model_findings *f = base->findings;
	const size_t none = base->point->stage_count;
	const size_t next = stage_named(base->point, stage_names[f->next]);
	binding->second = none;
	binding->alone = 1;
	if (f->next != f->limit && next != r->first)
		weigh_next(base, next, binding);
	if (binding->second != none || r->second == none)
		return;
	if (confidence_is_pair(r->certainty) && r->value[r->second] >= PAIR_LEAST) {
		binding->second = r->second;
		binding->second_gap = fmax(r->value[r->first] - r->value[r->second], 0);
	}
}

void binding_weigh(const struct evidence_base *base, struct binding *binding)
{
	const struct ranking r = rank_stages(base);
	const bool complete = fabs(base->findings->elasticities.unmodelled) <= UNMODELLED_MOST;
	binding->agree = binding->stage == r.first;
	binding->conflict = !binding->agree;
	/* A replay that misses so much of the time may miss what binds. */
	if (!complete && !binding->agree)
		return;
	binding->stage = r.first;
	binding->replayed = r.certainty;
	find_co_binding(base, &r, binding);
	weigh_depth(base, binding);
}

/* --- two stages alone -------------------------------------------------------------------------- */

static const double ALONE_AGREES = 2; /* deviations between the run and the stages alone */

/* Of a loader whose stages overlap and have threads of their own, so that each has a rate alone. */
static bool runs_alone(const struct evidence_base *base, size_t stage, size_t other)
{
	static const char *const names[] = {
		STAGE_READ_NAME, STAGE_DECODE_NAME, STAGE_UPLOAD_NAME, STAGE_STEP_NAME};
	const struct point_summary *point = base->point;
	const size_t either[] = {stage, other};
	if (base->facts->by_workers || base->facts->turns)
		return false;
	for (size_t i = 0; i < point->stage_count; i++)
		if (binding_takes_turns(point, i, stage) || binding_takes_turns(point, i, other))
			return false;
	for (size_t i = 0; i < COUNT(either); i++) {
		bool known = false;
		for (size_t n = 0; n < COUNT(names); n++)
			known = known || strcmp(point->stages[either[i]].name, names[n]) == 0;
		if (!known)
			return false;
	}
	return true;
}

size_t binding_against(const struct evidence_base *base, const struct binding *binding)
{
	const size_t none = base->point->stage_count;
	const size_t against = binding->second < none ? binding->second : binding->pointed;
	if (binding->depth || binding->stalls || binding->tail || binding->restarts ||
		against == binding->stage || !runs_alone(base, binding->stage, against))
		return none;
	return against;
}

/* Stages that share cores in the run and have them for themselves alone, or a store that is slower under load, make the two
 * disagree; so do queues and cores that limit both. Then it is told, and counts for nothing. */
void binding_weigh_alone(const struct evidence_base *base, struct binding *binding)
{
	const struct point_summary *point = base->point;
	const size_t other = binding_against(base, binding);
	if (other == point->stage_count || !base->source)
		return;
	const char *name = point->stages[binding->stage].name;
	double error;
	double least;
	const double ratio = stages_alone_ratio(base->source->read_blocks,
		base->source->read_block_count, name, point->stages[other].name, &error, &least);
	if (isnan(ratio))
		return;
	binding->alone_stage = other;
	binding->alone_ratio = ratio;
	binding->alone_error = error;
	binding->alone_least = least;
	const double run = log(binding_taken(point, binding->stage) / binding_taken(point, other));
	const double run_error = binding_margin_noise(base, binding->stage, other);
	if (error > ALONE_ERROR_MOST ||
		!(fabs(ratio - run) <= ALONE_AGREES * hypot(error, run_error)) ||
		!(least <= ALONE_FASTER * point->median))
		return;
	/* Two witnesses of one ratio. */
	const double weight = run_error * run_error / (run_error * run_error + error * error);
	const double both = weight * ratio + (1 - weight) * run;
	const double deviation = error * run_error / hypot(error, run_error);
	const double balanced = confidence_balanced(both, deviation);
	binding->alone = confidence_alone(exp(fabs(both)), deviation);
	binding->second_noise = deviation;
	binding->second_gap = fabs(expm1(both));
	if (confidence_is_pair(binding->alone)) {
		binding->second = other;
		binding->shown = confidence_shown_pair(balanced);
		return;
	}
	binding->second = point->stage_count;
	binding->shown = binding->alone;
	if (both >= 0)
		return;
	binding->alone_stage = binding->stage;
	binding->stage = other;
	binding->alone_ratio = -ratio;
	binding->agree = other == binding->pointed;
}

/* --- checkpoints and evaluations -------------------------------------------------------------- */

/* A step that never waits for input is healthy, unless it stands still for checkpoints or evaluations: that is time in which
 * nothing is trained, however long steps take beside it. */

static const double STALLS_LEAST = LIMIT_STALLS_PERCENT / 100.0; /* of the time */

/* The share of the time that is lost to a stage's stalls, which take `share` of it. */
static double binding_lost(const struct evidence_base *base, const struct binding *binding,
	const char *stage, double share)
{
	double deviation;
	if (!(share >= STALLS_LEAST))
		return 0;
	/* Of a stall that the queue before the step makes up for, nothing is lost. */
	return isnan(binding->replayed) ? share : findings_stage(base->findings, stage, &deviation);
}

void binding_weigh_stopping(const struct evidence_base *base, struct binding *binding)
{
	const struct point_summary *point = base->point;
	const double saving =
		binding_lost(base, binding, STAGE_CHECKPOINT_NAME, point->checkpoint_share);
	const double evaluating =
		binding_lost(base, binding, STAGE_EVALUATE_NAME, point->evaluation_share);
	const double lost = fmax(saving, evaluating);
	const size_t at = stage_named(
		point, evaluating > saving ? STAGE_EVALUATE_NAME : STAGE_CHECKPOINT_NAME);
	if (lost < STALLS_LEAST || binding->stage == at || binding->depth ||
		!is_of_device(point->stages[binding->stage].name))
		return;
	binding->stage = at;
	binding->second = point->stage_count;
	binding->alone = 1;
	binding->agree = true;
	binding->conflict = false;
	binding->certainty = certainty_above(lost, STALLS_LEAST / 2);
	if (!isnan(binding->replayed))
		binding->replayed = binding->certainty;
}

/* --- workers that start anew ------------------------------------------------------------------ */

static const double RESTARTS_MOSTLY = 0.5; /* of the time that the step starves */

void binding_weigh_restarts(const struct evidence_base *base, struct binding *binding)
{
	const struct point_summary *point = base->point;
	const struct stage_summary *step = summary_stage(point, STAGE_STEP_NAME);
	const double share = point->restart_share;
	if (!step || share < STALLS_LEAST || share < RESTARTS_MOSTLY * step->starved)
		return;
	binding->stage = stage_named(point, STAGE_DECODE_NAME);
	binding->second = point->stage_count;
	binding->alone = 1;
	binding->depth = false;
	binding->restarts = true;
	binding->agree = true;
	binding->conflict = false;
	binding->certainty = certainty_above(share, STALLS_LEAST / 2);
	if (!isnan(binding->replayed))
		binding->replayed = binding->certainty;
}

/* --- while a run is in progress --------------------------------------------------------------- */

/* The difference of two snapshots of a run, judged like a measurement. */

enum { BATCHES_LEAST = 4 };

static const double SECONDS_LEAST = 1;
static const double CLEAR = 0.75, LIKELY = 0.50;

static bool live_cannot(struct live_verdict *out, const char *words)
{
	(void)snprintf(out->words, sizeof out->words, "%s", words);
	return false;
}

static bool live_runs(const struct live_view *to, struct live_verdict *out)
{
	if (to->phase != LIVE_WARMUP && to->phase != LIVE_MEASURING && to->phase != LIVE_LIMITS)
		return live_cannot(out, "none: no repetition is running");
	if (to->limit)
		return live_cannot(out, "none: a stage runs alone, to measure its limit");
	if (!to->timed)
		return live_cannot(out,
			"unknown: measure.profiler is off, so that thread time is not accounted "
			"for");
	if (to->updated_ns >= to->warm_ns)
		return true;
	(void)snprintf(out->words, sizeof out->words, "too early: the warm-up ends in %.1f s",
		(double)(to->warm_ns - to->updated_ns) / (double)NS_PER_S);
	return false;
}

static bool live_is_enough(
	const struct live_sums *from, const struct live_view *to, struct live_verdict *out)
{
	if (!live_runs(to, out))
		return false;
	const bool follows = from->t_ns > 0 && from->t_ns >= to->begun_ns &&
			     to->updated_ns > from->t_ns && to->batches >= from->batches;
	out->over_s = follows ? (double)(to->updated_ns - from->t_ns) / (double)NS_PER_S : 0;
	const uint64_t batches = follows ? to->batches - from->batches : 0;
	if (out->over_s >= SECONDS_LEAST && batches >= BATCHES_LEAST)
		return true;
	(void)snprintf(out->words, sizeof out->words,
		"too early: %.1f s and %llu batch%s since the warm-up", out->over_s,
		(unsigned long long)batches, batches == 1 ? "" : "es");
	return false;
}

/* --- the measurement -------------------------------------------------------------------------- */

static double grown(double from, double to)
{
	return fmax(to - from, 0); /* NAN: fmax would hide it */
}

static double grown_or_unknown(double from, double to)
{
	return isnan(from) || isnan(to) ? NAN : grown(from, to);
}

static void live_fill_stage(const struct live_stage *from, const struct live_stage *to,
	double samples_per_batch, struct stage_measurement *out)
{
	memcpy(out->name, to->name, sizeof out->name);
	out->workers = to->workers;
	out->per_batch = to->per_batch;
	out->device = to->device;
	out->items = to->items > from->items ? to->items - from->items : 0;
	for (int k = 0; k < THREAD_STATES; k++)
		out->seconds[k] = grown(from->seconds[k], to->seconds[k]);
	out->cpu_seconds = grown_or_unknown(from->cpu_seconds, to->cpu_seconds);
	out->run_queue_seconds = grown_or_unknown(from->run_queue_seconds, to->run_queue_seconds);
	out->io_wait_seconds = grown_or_unknown(from->io_wait_seconds, to->io_wait_seconds);
	out->lock_wait_seconds = grown_or_unknown(from->lock_wait_seconds, to->lock_wait_seconds);
	out->lock_held_seconds = out->slowest_ns = out->others_ns = NAN;
	const double samples = (double)out->items * (to->per_batch ? samples_per_batch : 1);
	const bool stops =
		stage_is(to->name, STAGE_CHECKPOINT) || stage_is(to->name, STAGE_EVALUATE);
	const double working = stops ? 0 : out->seconds[THREAD_WORKING];
	out->capacity = working > 0 && samples > 0 ? samples / working * to->workers : NAN;
}

static void live_fill_stages(
	const struct live_sums *from, const struct live_view *to, struct measurement *m)
{
	double states = 0;
	double wall = 0;
	const double batch = m->batches > 0 ? (double)m->samples / (double)m->batches : NAN;
	m->stage_count = to->stage_count;
	for (size_t i = 0; i < m->stage_count; i++) {
		struct stage_measurement *stage = &m->stages[i];
		live_fill_stage(&from->stages[i], &to->stages[i], batch, stage);
		for (int k = 0; k < THREAD_STATES; k++)
			states += stage->seconds[k];
		wall += stage->workers * m->measured_seconds;
	}
	m->accounted = wall > 0 ? states / wall : NAN;
}

static void live_fill(
	const struct live_sums *from, const struct live_view *to, struct measurement *m)
{
	*m = (struct measurement){.status = MEASUREMENT_OK,
		.measured_seconds = (double)(to->updated_ns - from->t_ns) / (double)NS_PER_S,
		.samples = to->samples - from->samples,
		.batches = to->batches - from->batches,
		.bad_samples = to->bad_samples,
		.bytes_read = to->bytes_read - from->bytes_read,
		.step_utilisation = NAN,
		.accelerator_utilisation = NAN,
		.step_wait_share = NAN,
		.disk_bytes_per_s = NAN,
		.page_cache_share = NAN,
		.resident_before = NAN,
		.cores_busy_outside = NAN,
		.cores_busy_elsewhere = NAN,
		.quota_cores = NAN,
		.quota_used = NAN,
		.throttled_share = NAN,
		.throttled_seconds = NAN,
		.steal_share = NAN,
		.oversleep_mean_ns = NAN,
		.oversleep_max_ns = NAN,
		.loss_first = NAN,
		.flops_per_sample = NAN,
		.loss_last = NAN,
		.file_bytes_mean = NAN,
		.pool_bytes = to->pool_bytes};
	m->throughput = (double)m->samples / m->measured_seconds;
	m->bytes_read_per_s = (double)m->bytes_read / m->measured_seconds;
	live_fill_stages(from, to, m);
}

static struct point_facts live_facts(const struct live_view *to)
{
	struct point_facts facts = {.cores = to->cores,
		.read_depth = to->read_depth,
		.step_threads = to->step_threads,
		.batch_size = to->batch_size,
		.prefetch_depth = to->prefetch_depth,
		.step_emulated = to->step_emulated,
		.reads_memory = to->reads_memory,
		.any_order = to->any_order,
		.by_workers = to->by_workers,
		.turns = to->prefetch_depth == 0};
	for (size_t i = 0; i < to->stage_count; i++) {
		if (stage_is(to->stages[i].name, STAGE_READ))
			facts.read_threads = to->stages[i].workers;
		if (stage_is(to->stages[i].name, STAGE_DECODE))
			facts.decode_workers = to->stages[i].workers;
	}
	return facts;
}

/* --- words ------------------------------------------------------------------------------------ */

static void live_say(struct live_verdict *out)
{
	const struct verdict *v = &out->verdict;
	out->told = strcmp(v->stage, "none") != 0;
	if (!out->told) {
		const char *why = v->evidence_count > 0 ? v->evidence[0] : "the reason is unknown";
		(void)snprintf(out->words, sizeof out->words, "none yet: %.200s", why);
		return;
	}
	(void)snprintf(out->words, sizeof out->words,
		"forming: %s / %s, so far%s%s (%s, %.0f %% sure, over %.1f s)", v->stage,
		v->resource, v->also[0] ? ", with " : "", v->also,
		v->confidence >= CLEAR    ? "clear"
		: v->confidence >= LIKELY ? "likely"
					  : "unsure",
		v->confidence * 100, out->over_s);
}

void live_verdict_of(
	const struct live_sums *from, const struct live_view *to, struct live_verdict *out)
{
	*out = (struct live_verdict){0};
	if (!live_is_enough(from, to, out))
		return;
	struct measurement *m = malloc(sizeof *m);
	struct point_summary *summary = calloc(1, sizeof *summary);
	const struct measurement *one = m;
	const struct point_facts facts = live_facts(to);
	bool judged = m && summary;
	if (judged) {
		live_fill(from, to, m);
		judged = summary_of_point(&one, 1, &facts, summary, NULL) == 0;
	}
	if (judged) {
		out->verdict = summary->verdict;
		point_summary_release(summary);
		live_say(out);
	} else {
		(void)live_cannot(out, "none: out of memory");
	}
	free(summary);
	free(m);
}
