/* Which resource a binding stage lacks: a table of rules per stage, each with its evidence sentence, asked
 * in order.  Where the measurements cannot tell two causes apart, the resource says so ("full",
 * "unknown") instead of guessing. */
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CERTAIN_ENOUGH_ZONE = 10 }; /* percent above a threshold at which it is beyond doubt */

double certainty_above(double value, double threshold)
{
	const double step = (value - threshold) * CERTAIN_ENOUGH_ZONE;
	return 0.5 + 0.45 * fmin(fmax(step, 0), 1);
}

bool cause_is(struct cause *out, const char *resource, double certainty, const char *format, ...)
{
	*out = (struct cause){.resource = resource, .certainty = certainty};
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out->words, sizeof out->words, format, args);
	va_end(args);
	return true;
}

double cause_asleep(const struct stage_summary *stage)
{
	const double known = stage->cpu + stage->run_queue +
			     (isnan(stage->lock_wait) ? 0 : stage->lock_wait) +
			     (isnan(stage->io_wait) ? 0 : stage->io_wait);
	return isnan(known) ? NAN : fmax(1 - known, 0);
}

double cause_elasticity(const struct evidence_base *base, enum replay_cost cost)
{
	return base->findings ? findings_cost(base->findings, cost) : NAN;
}

struct cause cause_of_stage(const struct evidence_base *base, const struct stage_summary *stage)
{
	static const struct {
		const char *stage;
		cause_rule *const *rules;
	} tables[] = {
		{STAGE_READ_NAME, cause_rules_read},
		{STAGE_DECODE_NAME, cause_rules_decode},
		{STAGE_UPLOAD_NAME, cause_rules_upload},
		{STAGE_STEP_NAME, cause_rules_step},
		{STAGE_SYNC_NAME, cause_rules_sync},
	};
	struct cause cause = {.resource = "unknown", .certainty = 0.5};
	(void)snprintf(cause.words, sizeof cause.words, "there is no rule for %s", stage->name);
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		for (cause_rule *const *rule = tables[i].rules;
			strcmp(tables[i].stage, stage->name) == 0 && *rule; rule++)
			if ((*rule)(base, stage, &cause))
				return cause;
	return cause;
}
