/* Rules that any stage which computes on cores shares: too few of them, taken by others, slowed by others. */
#include "harness/analyze/verdict_parts.h"

#include <math.h>

static const double RUN_QUEUE_BOUND = 0.10; /* of working time waiting for a core */
static const double THROTTLED_BOUND = 0.05;
static const double GAIN_LEAST = 0.05; /* by replay, without the others or with cores for all */
static const double CORES_OVERDRAWN = 1.10;
static const double SLOWED = 1.20; /* times the CPU time that an item takes alone */

bool cause_unknown_split(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	if (!isnan(stage->cpu) && !isnan(stage->run_queue))
		return false;
	return cause_is(out, "unknown", 0.5,
		"how %s's working time divides into CPU and waiting is not known (no schedstat)",
		stage->name);
}

/* It waits for cores more than for anything else. */
static bool waits_for_cores(const struct stage_summary *stage)
{
	const double lock = isnan(stage->lock_wait) ? 0 : stage->lock_wait;
	return stage->run_queue >= RUN_QUEUE_BOUND && stage->run_queue >= cause_asleep(stage) &&
	       stage->run_queue >= lock;
}

/* What waits for neither a core nor runs on one speaks for another cause. */
static double cores_certainty(const struct stage_summary *stage)
{
	return certainty_above(stage->run_queue, RUN_QUEUE_BOUND) *
	       (1 - fmax(1 - stage->cpu - stage->run_queue, 0));
}

static bool others_are_busy(const struct evidence_base *base)
{
	return foreign_load_is_heavy(base->point->cores_busy_outside, base->facts->cores);
}

bool cause_external(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (!waits_for_cores(stage) || !others_are_busy(base) ||
		base->point->throttled_share >= THROTTLED_BOUND)
		return false;
	if (base->findings && base->findings->alone < GAIN_LEAST)
		return false;
	return cause_is(out, "external", cores_certainty(stage),
		"%s waits for a core %.0f %% of its working time, and other processes keep %.1f of %u "
		"cores busy",
		stage->name, stage->run_queue * 100, base->point->cores_busy_outside,
		base->facts->cores);
}

/* Cores that the stages' threads are on or wait for. */
static double cores_wanted(const struct point_summary *point)
{
	double wanted = 0;
	for (size_t i = 0; i < point->stage_count; i++) {
		const struct stage_summary *s = &point->stages[i];
		if (!isnan(s->cpu) && !isnan(s->run_queue))
			wanted += s->busy * s->workers * (s->cpu + s->run_queue);
	}
	return wanted;
}

bool cause_cores(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_facts *facts = base->facts;
	if (!waits_for_cores(stage))
		return false;
	if (base->point->throttled_share >= THROTTLED_BOUND)
		return cause_is(out, "cores", cores_certainty(stage),
			"%s waits for a core %.0f %% of its working time, and the cgroup's CPU quota "
			"throttled the process %.0f %% of the time",
			stage->name, stage->run_queue * 100, base->point->throttled_share * 100);
	const bool own = facts->decode_workers + facts->step_threads > facts->cores ||
			 cores_wanted(base->point) > CORES_OVERDRAWN * facts->cores;
	const bool gains = base->findings && base->findings->roomy >= GAIN_LEAST;
	if (!own && !gains)
		return false;
	return cause_is(out, "cores", cores_certainty(stage),
		"%s waits for a core %.0f %% of its working time: %u decode workers and %u step threads "
		"on %u cores",
		stage->name, stage->run_queue * 100, facts->decode_workers, facts->step_threads,
		facts->cores);
}

/* Others that stream through memory slow every core down without taking one away. */
bool cause_slowed(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double alone = base->facts->decode_alone;
	if (!others_are_busy(base) || !(alone > SLOWED * stage->capacity) ||
		isnan(cause_asleep(stage)) || cause_asleep(stage) > RUN_QUEUE_BOUND)
		return false;
	return cause_is(out, "external", 0.8,
		"%s takes %.1f times as long as it does alone on this node, and other processes keep "
		"%.1f of %u cores busy",
		stage->name, alone / stage->capacity, base->point->cores_busy_outside,
		base->facts->cores);
}

/* The last rule of a stage: what is known of its time, and that it tells nothing. */
bool cause_unexplained(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	return cause_is(out, "unknown", 0.5,
		"%.0f %% of %s's working time is on a CPU, %.0f %% waits for a core, %.0f %% for "
		"something else",
		stage->cpu * 100, stage->name, stage->run_queue * 100,
		fmax(1 - stage->cpu - stage->run_queue, 0) * 100);
}
