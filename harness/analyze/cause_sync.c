/* Why devices that train together do not go faster: their exchange of gradients, or one of them. */
#include "harness/analyze/trace_features.h"
#include "harness/analyze/verdict_parts.h"

#include "harness/base/units.h"

#include <math.h>
#include <string.h>

static const double SLOW_RATIO = 1.25;    /* the slowest device's median step over the others' */
static const double SLOW_PROVEN = 1.05;   /* the same where replay gains from even devices ... */
static const double SLOW_GAIN = 0.05;     /* ... by so much */
static const double SLOW_DOUBTLESS = 1.5; /* times */

double devices_waiting(const struct point_summary *point)
{
	const struct stage_summary *step = summary_stage(point, STAGE_STEP_NAME);
	const struct stage_summary *sync = summary_stage(point, STAGE_SYNC_NAME);
	return step && sync ? fmax(step->blocked - sync->busy, 0) : (double)NAN;
}

bool cause_slow_device(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (!base->source || stage->workers < 2)
		return false;
	const struct trace_set set =
		trace_set_of(base->source->traces, base->source->count, stage->name);
	const struct trace_workers team = trace_workers_of(&set);
	const bool gains = base->findings && base->findings->even_devices >= SLOW_GAIN;
	if (!(team.ratio >= (gains ? SLOW_PROVEN : SLOW_RATIO)))
		return false;
	char slow[UNITS_BYTES];
	char others[UNITS_BYTES];
	const double beyond = (team.ratio - SLOW_PROVEN) / (SLOW_DOUBTLESS - SLOW_PROVEN);
	return cause_is(out, "imbalance", 0.7 + 0.25 * fmin(beyond, 1),
		"device %u computes %s a step and the others %s, which wait %.0f %% of the time for one another",
		team.worst, units_format_duration(team.worst_ns, slow),
		units_format_duration(team.others_ns, others), devices_waiting(base->point) * 100);
}

static bool exchanges(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	return cause_is(out, "exchange", 0.95,
		"%u devices exchange gradients %.1f %% of the time, and wait for one another %.1f %% before that",
		stage->workers, stage->busy * 100, devices_waiting(base->point) * 100);
}

cause_rule *const cause_rules_sync[] = {exchanges, NULL};
