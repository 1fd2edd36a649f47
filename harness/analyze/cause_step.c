/* Why the step, or the copy to it, does not go faster. */
#include "harness/analyze/trace_features.h"
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <string.h>

static const double CPU_BOUND = 0.90; /* of working time on a CPU */
static const double CPU_LIKELY = 0.80;
static const double HOST_BOUND = 0.50; /* of a step's time, spent by its thread beforehand */

/* The device waits for its thread: as with many small kernels. */
static bool launch(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (!base->source || base->facts->step_threads > 0)
		return false;
	const struct trace_set set =
		trace_set_of(base->source->traces, base->source->count, stage->name);
	const double host = trace_host_share(&set, base->facts->step_emulated);
	const double by_host = cause_elasticity(base, COST_STEP_HOST);
	const double by_device = cause_elasticity(base, COST_STEP_DEVICE);
	if (!(host >= HOST_BOUND) && !(by_host > by_device))
		return false;
	const bool agree = isnan(by_host) || (by_host > by_device) == (host >= HOST_BOUND);
	return cause_is(out, "launch", agree ? certainty_above(host, HOST_BOUND) : 0.5,
		"the step's thread works %.0f %% of a step's time before the device begins",
		host * 100);
}

static bool on_device(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (base->facts->step_emulated)
		return cause_is(out, "compute", 0.95,
			"the emulated device computes %.1f %% of the time", stage->busy * 100);
	if (!stage->device)
		return false;
	return cause_is(
		out, "compute", 0.9, "the device computes %.1f %% of the time", stage->busy * 100);
}

static bool works_on_cpu(const struct stage_summary *stage, const char *resource, struct cause *out)
{
	if (stage->cpu < CPU_LIKELY)
		return false;
	return cause_is(out, resource,
		stage->cpu >= CPU_BOUND ? certainty_above(stage->cpu, CPU_BOUND) : 0.6,
		"%.1f %% of %s's working time is on a CPU, %.1f %% waits for a core",
		stage->cpu * 100, stage->name, stage->run_queue * 100);
}

static bool computes(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	return works_on_cpu(stage, "compute", out);
}

static bool copies(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	if (works_on_cpu(stage, "copy", out))
		return true;
	/* A copy that sleeps waits for the memory or the link that it copies over. */
	const double asleep = cause_asleep(stage);
	if (isnan(asleep) || asleep < stage->run_queue)
		return false;
	return cause_is(out, "copy", 0.85,
		"upload copies %.0f %% of its working time on a core and waits %.0f %% for the other side",
		stage->cpu * 100, asleep * 100);
}

cause_rule *const cause_rules_step[] = {launch, on_device, cause_unknown_split, cause_external,
	cause_cores, computes, cause_unexplained, NULL};
cause_rule *const cause_rules_upload[] = {
	cause_unknown_split, cause_external, cause_cores, copies, cause_unexplained, NULL};
