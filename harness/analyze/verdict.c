/* The first verdict: gate, arrow, cause, words.
 *
 * confidence = arrows x resource x busy x pair, at most 0.95 (0.9 with fewer than three repeats):
 *
 * - arrows: probability that the arrows beside the stage point the right way, from their length
 *   against their spread over the repeats (arrow.c);
 * - resource: how far the stage's time split is from the threshold that names it (cause.c);
 * - busy: 1 when the stage is busy 90 % of the time, down to 0.7 at 70 %: what it waits is not its
 *   own limit, and without a replay the share of the queues is not known;
 * - pair: 0.6 when another stage binds as much.
 *
 * A queue's depth as the verdict has 0.5: only a replay or an experiment can prove it. */
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double CONFIDENCE_MOST = 0.95;
static const double CONFIDENCE_FEW_REPEATS = 0.90;
static const double CONFIDENCE_DEPTH = 0.50;
static const double CONFIDENCE_NONE = 0.10;
static const double PAIR_FACTOR = 0.60;
static const double BUSY_FULL = 0.90;

enum { REPEATS_WANTED = 3 };

static double confidence_of(
	const struct evidence_base *base, const struct binding *binding, const struct cause *cause)
{
	const double most = base->count < REPEATS_WANTED ? CONFIDENCE_FEW_REPEATS : CONFIDENCE_MOST;
	if (binding->depth)
		return CONFIDENCE_DEPTH;
	const double lacking = fmax(BUSY_FULL - base->point->stages[binding->stage].busy, 0);
	const double busy = fmax(1 - 1.5 * lacking, 0.5);
	const double pair = binding->second < base->point->stage_count ? PAIR_FACTOR : 1;
	return fmin(binding->certainty * cause->certainty * busy * pair, most);
}

static void abstain(struct verdict *out, const char *reason)
{
	(void)snprintf(out->stage, sizeof out->stage, "none");
	(void)snprintf(out->resource, sizeof out->resource, "unknown");
	out->confidence = CONFIDENCE_NONE;
	evidence_add(out, "no verdict: %s", reason);
}

/* The queue in front of the step is the prefetch queue; above that it is the read stage's depth. */
static void name_binding(const struct point_summary *point, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	const char *stage = point->stages[binding->stage].name;
	if (binding->depth)
		stage = strcmp(point->stages[binding->queue_above].name, "read") == 0 ? "read"
										      : "prefetch";
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

/* What was measured counts before what was configured. */
static struct point_facts facts_measured(
	const struct point_summary *point, const struct point_facts *facts)
{
	struct point_facts measured = *facts;
	for (size_t i = 0; i < point->stage_count; i++) {
		if (strcmp(point->stages[i].name, "read") == 0)
			measured.read_threads = point->stages[i].workers;
		if (strcmp(point->stages[i].name, "decode") == 0)
			measured.decode_workers = point->stages[i].workers;
	}
	return measured;
}

void verdict_of_point(const struct point_summary *point, const struct measurement *const *repeats,
	size_t count, const struct point_facts *facts, struct verdict *out)
{
	*out = (struct verdict){0};
	const struct point_facts measured = facts_measured(point, facts);
	const struct evidence_base base = {point, repeats, count, &measured};
	char reason[EVIDENCE_BYTES - 16];
	if (!gate_passes(&base, reason, sizeof reason)) {
		abstain(out, reason);
		return;
	}
	const struct binding binding = binding_find(&base);
	const struct cause cause = cause_of_stage(&base, &point->stages[binding.stage]);
	name_binding(point, &binding, &cause, out);
	out->confidence = confidence_of(&base, &binding, &cause);
	evidence_write(&base, &binding, &cause, out);
	advice_write(&base, &binding, &cause, out);
}
