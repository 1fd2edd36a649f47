/* Rules that any stage which computes on cores shares: too few of them; kept back by a quota, by the host or by other
 * processes; slowed by others. */
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double RUN_QUEUE_BOUND = 0.10; /* of working time waiting for a core */
/* Of a quota's periods: below, it is of no matter; above, nothing else keeps the threads off the cores. */
static const double THROTTLED_BOUND = 0.10, THROTTLED_MOSTLY = 0.50;
static const double THROTTLED_DOUBTLESS = 0.60;
static const double USES_ALL = 0.80; /* of a quota: less, and others of its group use the rest */
/* Of the CPU time that anybody on the machine wanted: below, it is of no matter; above, it counts for more than threads
 * that wait for each other. */
static const double STOLEN_BOUND = 0.10, STOLEN_MUCH = 0.20;
static const double STOLEN_SLACK = 0.15; /* asleep beyond what is stolen: for something else */
static const double GAIN_LEAST = 0.05;   /* by replay, without the others or with cores for all */
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

const char *cause_short_group(const char *group, char out[QUOTA_WORDS_BYTES])
{
	const size_t length = strlen(group);
	const size_t most = QUOTA_WORDS_BYTES - 1 - strlen("...");
	if (length < QUOTA_WORDS_BYTES)
		(void)snprintf(out, QUOTA_WORDS_BYTES, "%s", group);
	else
		(void)snprintf(out, QUOTA_WORDS_BYTES, "...%s", group + length - most);
	return out;
}

const char *cause_quota_name(const struct point_summary *point, char out[QUOTA_NAME_BYTES])
{
	char group[QUOTA_WORDS_BYTES];
	(void)snprintf(out, QUOTA_NAME_BYTES, "the quota of cgroup %s (%.3g core%s)",
		cause_short_group(point->quota_group, group), point->quota_cores,
		point->quota_cores == 1 ? "" : "s");
	return out;
}

static bool others_are_busy(const struct evidence_base *base)
{
	return foreign_load_is_heavy(base->point->cores_busy_outside, base->facts->cores);
}

/* Where the quota throttles now and then only, other processes may matter more. */
static bool quota_matters(const struct evidence_base *base)
{
	const struct findings *f = base->findings;
	if (base->point->throttled_share >= THROTTLED_MOSTLY)
		return true;
	if (f && f->unthrottled < GAIN_LEAST)
		return false;
	return !others_are_busy(base) || (f && f->unthrottled >= f->alone);
}

bool cause_quota_throttles(const struct point_summary *point)
{
	return point->quota_cores > 0 && point->throttled_share >= THROTTLED_BOUND;
}

double cause_quota_certainty(const struct point_summary *point)
{
	const double beyond = (point->throttled_share - THROTTLED_BOUND) /
			      (THROTTLED_DOUBTLESS - THROTTLED_BOUND);
	return 0.6 + 0.35 * fmin(fmax(beyond, 0), 1);
}

bool cause_quota(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_summary *point = base->point;
	char quota[QUOTA_NAME_BYTES];
	if (!cause_quota_throttles(point) || !waits_for_cores(stage) || !quota_matters(base))
		return false;
	return cause_is(out, "quota",
		cause_quota_certainty(point) * (1 - fmax(1 - stage->cpu - stage->run_queue, 0)),
		"%s throttled in %.0f %% of its periods: %s waits %.0f %% of its working time; "
		"%.2f cores used%s",
		cause_quota_name(point, quota), point->throttled_share * 100, stage->name,
		stage->run_queue * 100, point->cores_used,
		point->cores_used < USES_ALL * point->quota_cores
			? ", the rest by other processes of the group"
			: "");
}

/* Where the kernel keeps stolen time out of a thread's CPU time, the thread seems to sleep meanwhile. */
bool cause_stolen(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_summary *point = base->point;
	const double cores = point->steal_share * base->facts->cores;
	const double outside = isnan(point->cores_busy_outside) ? 0 : point->cores_busy_outside;
	const double stolen = cores / (cores + point->cores_used + outside);
	const double lock = isnan(stage->lock_wait) ? 0 : stage->lock_wait;
	if (!(stolen >= STOLEN_BOUND) || !(cause_asleep(stage) <= stolen + STOLEN_SLACK) ||
		lock > STOLEN_SLACK)
		return false;
	if (waits_for_cores(stage) && ((others_are_busy(base) && outside > cores) ||
					      (stage->run_queue > stolen && stolen < STOLEN_MUCH)))
		return false;
	return cause_is(out, "steal", certainty_above(stolen, STOLEN_BOUND),
		"the host took %.1f of %u cores' time away (steal): %.0f %% of what processes here "
		"wanted; %s is on a CPU %.0f %% of its working time and waits for one %.0f %%",
		cores, base->facts->cores, stolen * 100, stage->name, stage->cpu * 100,
		stage->run_queue * 100);
}

bool cause_external(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (!waits_for_cores(stage) || !others_are_busy(base))
		return false;
	if (base->findings && base->findings->alone < GAIN_LEAST)
		return false;
	return cause_is(out, "external", cores_certainty(stage),
		"%s waits for a core %.0f %% of its working time, and other processes keep %.1f of %u "
		"cores busy",
		stage->name, stage->run_queue * 100, base->point->cores_busy_outside,
		base->facts->cores);
}

double cause_cores_wanted(const struct point_summary *point)
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
	const bool own = facts->decode_workers + facts->step_threads > facts->cores ||
			 cause_cores_wanted(base->point) > CORES_OVERDRAWN * facts->cores;
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
