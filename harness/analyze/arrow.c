/* Which stage binds, from wait states alone.  At every queue an arrow points to where the time
 * goes: down when the stage above is blocked longer than the one below starves, else up.  The
 * bottleneck is the stage that the arrows on both its sides point to; how sure an arrow is follows
 * from its length against its spread over the repeats. */
#include "harness/analyze/confidence.h"
#include "harness/analyze/margin.h"
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <string.h>

static const double SPREAD_FLOOR = 0.01;  /* of an arrow, with several repeats */
static const double SPREAD_SINGLE = 0.03; /* assumed with one repeat */
static const double CONFLICT_GAP = 0.12;  /* by which the busiest outdoes the arrows */
static const double CONFLICT_CERTAINTY = 0.60;
static const double DEPTH_BUSY_BELOW = 0.75; /* no stage busier: nothing but a queue can bind */
static const double DEPTH_LOSS_MIN = 0.08;   /* of both sides of that queue */

/* Of one repetition: blocked share above minus starved share below. */
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

/* Positive: down. */
static double arrow_below(const struct point_summary *point, size_t above)
{
	return point->stages[above].blocked - point->stages[above + 1].starved;
}

/* Probability that both arrows at a stage point to it. */
static double certainty_of(const struct evidence_base *base, size_t stage)
{
	double certainty = 1;
	if (stage > 0)
		certainty *= confidence_normal(
			arrow_below(base->point, stage - 1) / arrow_spread(base, stage - 1));
	if (stage + 1 < base->point->stage_count)
		certainty *= confidence_normal(
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

static bool is_stage(const struct point_summary *point, size_t stage, const char *name)
{
	return strcmp(point->stages[stage].name, name) == 0;
}

bool binding_takes_turns(const struct point_summary *point, size_t stage, size_t other)
{
	return (is_stage(point, stage, STAGE_STEP_NAME) &&
		       is_stage(point, other, STAGE_SYNC_NAME)) ||
	       (is_stage(point, stage, STAGE_SYNC_NAME) && is_stage(point, other, STAGE_STEP_NAME));
}

double binding_taken(const struct point_summary *point, size_t stage)
{
	for (size_t i = 0; i < point->stage_count; i++)
		if (binding_takes_turns(point, stage, i)) {
			const size_t step = is_stage(point, i, STAGE_STEP_NAME) ? i : stage;
			return 1 - point->stages[step].starved;
		}
	return point->stages[stage].busy;
}

double binding_margin_noise(const struct evidence_base *base, size_t stage, size_t other)
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

/* The arrows decide, unless another stage is much busier: uneven times then hide in the waits. */
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

/* By the utilisation law busy shares are to each other as capacities are, inverted. */
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

/* The queue where the stage above waits for room while the one below waits for items: in turns,
 * since it cannot be at once. */
static void find_depth(const struct point_summary *point, struct binding *binding)
{
	const double busiest = binding_taken(point, busiest_stage(point));
	double loss = 0;
	for (size_t i = 0; i + 1 < point->stage_count; i++) {
		const double both = fmin(point->stages[i].blocked, point->stages[i + 1].starved);
		if (both > loss && !binding_takes_turns(point, i, i + 1)) {
			loss = both;
			binding->queue_above = i;
		}
	}
	binding->depth = busiest < DEPTH_BUSY_BELOW && loss >= DEPTH_LOSS_MIN;
}

struct binding binding_find(const struct evidence_base *base)
{
	struct binding binding = {.replayed = NAN, .depth_gain = NAN, .agree = true};
	choose_stage(base, &binding);
	binding.pointed = binding.stage;
	find_second(base, &binding);
	find_depth(base->point, &binding);
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
