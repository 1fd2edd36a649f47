/* The verdict: gate, arrows, replay if there is one, cause, words. */
#include "harness/analyze/confidence.h"
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double CONFIDENCE_DEPTH = 0.50;  /* without a replay */
static const double CONFIDENCE_MISFIT = 0.80; /* a replay that fits too badly to be asked */
static const double CONFIDENCE_NONE = 0.10;
static const double DEPTH_GAIN_LEAST = 0.05;

static double completeness_of(const struct evidence_base *base, bool replayed)
{
	if (replayed && base->findings)
		return confidence_completeness(base->findings->elasticities.unmodelled);
	return base->findings ? CONFIDENCE_MISFIT : 1;
}

static double confidence_of(
	const struct evidence_base *base, const struct binding *binding, const struct cause *cause)
{
	const bool replayed = !isnan(binding->replayed);
	const double complete = completeness_of(base, replayed);
	const double most = confidence_most(base->count);
	if (binding->stalls)
		return fmin(cause->certainty, most);
	if (binding->depth)
		return fmin(
			replayed ? certainty_above(binding->depth_gain, DEPTH_GAIN_LEAST) * complete
				 : CONFIDENCE_DEPTH,
			most);
	/* Of two that bind, either witness may name either. */
	const bool agree = binding->agree || binding->pointed == binding->second;
	/* Threads that a quota stops wait wherever they are: arrows against the replay tell nothing then. */
	const bool stopped = strcmp(cause->resource, "quota") == 0 && replayed && !agree;
	const double stage =
		stopped ? binding->replayed
			: confidence_stage(binding->certainty, binding->replayed, agree);
	const double busy =
		replayed ? 1 : confidence_busy(binding_taken(base->point, binding->stage));
	const double pair =
		confidence_pair(binding->second < base->point->stage_count, binding->alone);
	return fmin(stage * cause->certainty * busy * pair * complete, most);
}

void verdict_abstain(struct verdict *out, const char *reason, const char *way_out)
{
	*out = (struct verdict){.confidence = CONFIDENCE_NONE};
	(void)snprintf(out->stage, sizeof out->stage, "none");
	(void)snprintf(out->resource, sizeof out->resource, "unknown");
	(void)snprintf(out->advice, sizeof out->advice, "%s", way_out);
	evidence_add(out, "no verdict: %s", reason);
}

/* The queue in front of the step is the prefetch queue; above that it is the read stage's depth. */
static void name_binding(const struct point_summary *point, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	const char *stage = point->stages[binding->stage].name;
	if (binding->depth)
		stage = stage_is(point->stages[binding->queue_above].name, STAGE_READ)
				? STAGE_READ_NAME
				: STAGE_PREFETCH_NAME;
	(void)snprintf(out->stage, sizeof out->stage, "%s", stage);
	(void)snprintf(out->resource, sizeof out->resource, "%s",
		binding->depth ? "depth" : cause->resource);
	if (binding->depth)
		(void)snprintf(
			out->also, sizeof out->also, "%s", point->stages[binding->stage].name);
	else if (binding->second < point->stage_count)
		(void)snprintf(
			out->also, sizeof out->also, "%s", point->stages[binding->second].name);
}

struct point_facts point_facts_measured(
	const struct point_summary *point, const struct point_facts *facts)
{
	struct point_facts measured = *facts;
	for (size_t i = 0; i < point->stage_count; i++) {
		if (stage_is(point->stages[i].name, STAGE_READ))
			measured.read_threads = point->stages[i].workers;
		if (stage_is(point->stages[i].name, STAGE_DECODE))
			measured.decode_workers = point->stages[i].workers;
	}
	return measured;
}

/* A stage that is busy the rest of the time binds as well. */
static void name_stalls(const struct point_summary *point, struct binding *binding)
{
	const size_t busy = binding->stage;
	size_t read = 0;
	while (read < point->stage_count && !stage_is(point->stages[read].name, STAGE_READ))
		read++;
	if (read == point->stage_count)
		return;
	binding->stalls = true;
	binding->depth = false;
	binding->replayed = NAN;
	binding->stage = read;
	binding->second = busy != read ? busy : point->stage_count;
}

void verdict_judge_trusted(const struct evidence_base *base, struct verdict *out)
{
	*out = (struct verdict){0};
	struct binding binding = binding_find(base);
	if (base->findings)
		binding_weigh(base, &binding);
	if (stalls_bind(base))
		name_stalls(base->point, &binding);
	const struct cause cause = cause_of_stage(base, &base->point->stages[binding.stage]);
	name_binding(base->point, &binding, &cause, out);
	out->confidence = confidence_of(base, &binding, &cause);
	evidence_write(base, &binding, &cause, out);
	advice_write(base, &binding, &cause, out);
}

void verdict_judge(const struct evidence_base *base, struct verdict *out)
{
	struct refusal refusal;
	/* They are why it was unsteady. */
	const bool explained =
		base->point->status == POINT_UNSTEADY && (stalls_bind(base) || cache_binds(base));
	if (explained || gate_passes(base, &refusal))
		verdict_judge_trusted(base, out);
	else
		verdict_abstain(out, refusal.reason, refusal.way_out);
}

void verdict_of_point(const struct point_summary *point, const struct measurement *const *repeats,
	size_t count, const struct point_facts *facts, struct verdict *out)
{
	const struct point_facts measured = point_facts_measured(point, facts);
	const struct evidence_base base = {
		.point = point, .repeats = repeats, .count = count, .facts = &measured};
	verdict_judge(&base, out);
}
