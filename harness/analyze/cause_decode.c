/* Why decoding does not go faster: one slow worker, a lock, cores, waiting off the cores, or its CPU. */
#include "harness/analyze/trace_features.h"
#include "harness/analyze/verdict_parts.h"

#include "harness/base/units.h"

#include <math.h>

static const double CPU_BOUND = 0.90; /* of working time on a CPU */
static const double CPU_LIKELY = 0.80;
static const double ASLEEP_BOUND = 0.15;     /* neither on a core nor waiting for one */
static const double LOCK_WAIT_BOUND = 0.08;  /* of working time */
static const double LOCK_BUSY_BOUND = 0.90;  /* of all time */
static const double IMBALANCE_RATIO = 1.5;   /* the slowest worker's median over the others' */
static const double IMBALANCE_PROVEN = 1.2;  /* the same where replay gains from even workers ... */
static const double IMBALANCE_GAIN = 0.05;   /* ... by so much */
static const double IMBALANCE_DOUBTLESS = 2; /* times */

/* In order, the batch of a slow worker is waited for while later ones are complete. */
static bool imbalance(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (!base->source)
		return false;
	const struct trace_set set =
		trace_set_of(base->source->traces, base->source->count, stage->name);
	const struct trace_workers team = trace_workers_of(&set);
	const bool gains = base->findings && base->findings->even >= IMBALANCE_GAIN;
	if (!(team.ratio >= (gains ? IMBALANCE_PROVEN : IMBALANCE_RATIO)))
		return false;
	char slow[UNITS_BYTES];
	char others[UNITS_BYTES];
	const double beyond =
		(team.ratio - IMBALANCE_RATIO) / (IMBALANCE_DOUBTLESS - IMBALANCE_RATIO);
	return cause_is(out, "imbalance", 0.6 + 0.35 * fmin(beyond, 1),
		"%s's worker %u takes %s a sample and the others %s: it is waited for", stage->name,
		team.worst, units_format_duration(team.worst_ns, slow),
		units_format_duration(team.others_ns, others));
}

/* Waiting for the lock grows without bound as it is held all the time: either shows that it binds. */
static bool lock(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	const bool waits =
		stage->lock_wait >= LOCK_WAIT_BOUND && stage->lock_wait >= stage->run_queue;
	const bool held = stage->lock_busy >= LOCK_BUSY_BOUND && stage->workers > 1;
	if (!waits && !held)
		return false;
	const double certainty =
		fmax(waits ? certainty_above(stage->lock_wait, LOCK_WAIT_BOUND) : 0,
			held ? certainty_above(stage->lock_busy, LOCK_BUSY_BOUND) : 0);
	return cause_is(out, "lock", certainty,
		"%s waits for its lock %.0f %% of its working time, and the lock is held %.0f %% of all "
		"time",
		stage->name, stage->lock_wait * 100, stage->lock_busy * 100);
}

/* Without the lock's own clock: sleeping that nothing else explains. */
static bool lock_unseen(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	const double asleep = cause_asleep(stage);
	if (!isnan(stage->lock_wait) || asleep < ASLEEP_BOUND || stage->cpu >= CPU_BOUND)
		return false;
	return cause_is(out, "lock", certainty_above(asleep, ASLEEP_BOUND) * 0.9,
		"%s sleeps %.0f %% of the time in which it should work, and not for want of a core "
		"(%.1f %%): it waits for a lock",
		stage->name, asleep * 100, stage->run_queue * 100);
}

static bool waiting(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	const double asleep = cause_asleep(stage) + (isnan(stage->io_wait) ? 0 : stage->io_wait);
	if (isnan(stage->lock_wait) || asleep < ASLEEP_BOUND)
		return false;
	return cause_is(out, "wait", certainty_above(asleep, ASLEEP_BOUND),
		"%s waits off the cores %.0f %% of its working time, for neither a core (%.1f %%) nor its "
		"lock (%.1f %%)",
		stage->name, asleep * 100, stage->run_queue * 100, stage->lock_wait * 100);
}

static bool on_cpu(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	if (stage->cpu >= CPU_BOUND)
		return cause_is(out, "cpu", certainty_above(stage->cpu, CPU_BOUND),
			"%.1f %% of %s's working time is on a CPU, %.1f %% waits for a core",
			stage->cpu * 100, stage->name, stage->run_queue * 100);
	if (stage->cpu < CPU_LIKELY)
		return false;
	return cause_is(out, "cpu", 0.6,
		"%.0f %% of %s's working time is on a CPU, %.0f %% waits for a core, %.0f %% for "
		"something else",
		stage->cpu * 100, stage->name, stage->run_queue * 100,
		fmax(1 - stage->cpu - stage->run_queue, 0) * 100);
}

cause_rule *const cause_rules_decode[] = {imbalance, cause_unknown_split, lock, cause_quota,
	cause_stolen, cause_external, cause_cores, lock_unseen, waiting, cause_slowed, on_cpu,
	cause_unexplained, NULL};
