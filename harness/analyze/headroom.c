/* The input's headroom from busy shares and capacities. */
#include "harness/analyze/headroom.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SATURATED = 0.95;      /* of a stage's thread time at work */
static const double WAITS_TOO_LONG = 0.10; /* of its time, that a healthy step does not starve */
static const double NOTHING = 0.01;

static bool is_device_stage(const struct stage_summary *stage)
{
	return stage_is(stage->name, STAGE_STEP) || stage_is(stage->name, STAGE_SYNC);
}

static bool is_named(const struct verdict *verdict, const struct stage_summary *stage)
{
	return strcmp(verdict->stage, stage->name) == 0 || strcmp(verdict->also, stage->name) == 0;
}

static bool lacks_cpu(const char *resource)
{
	static const char *const takes[] = {"cores", "quota", "steal", "external"};
	for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++)
		if (strcmp(resource, takes[i]) == 0)
			return true;
	return false;
}

struct headroom headroom_of_input(const struct point_summary *point, const struct verdict *verdict)
{
	struct headroom out = {.gain = NAN, .lacks_cpu = lacks_cpu(verdict->resource)};
	for (size_t i = 0; i < point->stage_count; i++) {
		const struct stage_summary *stage = &point->stages[i];
		if (stage_is(stage->name, STAGE_STEP))
			out.waits = stage->starved;
		if (stage_is(stage->name, STAGE_STEP) && !stage->capacity_is_lower_bound)
			out.gain = fmax(stage->capacity / point->median - 1, 0);
		if (is_device_stage(stage) ||
			(!(stage->busy >= SATURATED) && !is_named(verdict, stage)))
			continue;
		if (!out.tight || stage->busy > out.tight->busy)
			out.tight = stage;
	}
	return out;
}

const char *headroom_words(const struct headroom *headroom, char out[HEADROOM_BYTES])
{
	const struct stage_summary *tight = headroom->tight;
	if (headroom->lacks_cpu)
		(void)snprintf(out, HEADROOM_BYTES, "The step lacks CPU time, not input.");
	else if (!tight && headroom->waits >= WAITS_TOO_LONG)
		(void)snprintf(out, HEADROOM_BYTES,
			"The step waits %.0f %% of the time though no stage before it is busy all the while: the timeline (trace.json) shows when.",
			100 * headroom->waits);
	else if (!tight)
		(void)snprintf(out, HEADROOM_BYTES,
			"Healthy: the data loader keeps the step busy. Only a faster step raises throughput.");
	else if (headroom->gain >= NOTHING)
		(void)snprintf(out, HEADROOM_BYTES, "A faster %s stage could gain at most %.0f %%.",
			tight->name, 100 * headroom->gain);
	else
		(void)snprintf(out, HEADROOM_BYTES,
			"The %s stage is %.0f %% busy, too: only making it and the step faster raises throughput.",
			tight->name, 100 * tight->busy);
	return out;
}
