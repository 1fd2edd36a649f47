/* Which stage binds, with a replay: the one whose costs' elasticities sum highest.  Two whose difference is
 * within their intervals, or whose capacities cannot be told apart, are a pair; a queue binds when nobody is busy
 * all the time and the replay gains from a deeper one. */
#include "harness/analyze/confidence.h"
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <string.h>

static const double PAIR_LEAST = 0.20; /* elasticity of a stage that binds as much */
/* Of what the replay leaves unexplained, so much may be any stage's, as in model_predict.c. */
static const double UNEXPLAINED = 0.5;
static const double UNMODELLED_MOST = 0.20; /* of the time between batches */
static const double ALL_BUSY = 0.95;        /* a stage so busy is the limit, not a queue */
static const double DEPTH_GAIN = 0.08;      /* by replay, for a queue to be the limit */

struct ranking {
	size_t first, second;
	double value[STAGES_MAX], deviation[STAGES_MAX];
	double certainty; /* that first is above second */
};

static struct ranking rank_stages(const struct evidence_base *base)
{
	const struct point_summary *point = base->point;
	struct ranking r = {.first = 0, .second = point->stage_count};
	for (size_t i = 0; i < point->stage_count; i++)
		r.value[i] = findings_stage(base->findings, point->stages[i].name, &r.deviation[i]);
	for (size_t i = 1; i < point->stage_count; i++)
		if (r.value[i] > r.value[r.first])
			r.first = i;
	for (size_t i = 0; i < point->stage_count; i++)
		if (i != r.first &&
			(r.second == point->stage_count || r.value[i] > r.value[r.second]))
			r.second = i;
	if (r.second == point->stage_count) {
		r.certainty = 1;
		return r;
	}
	const double gap = r.value[r.first] - r.value[r.second];
	const double spread = hypot(r.deviation[r.first], r.deviation[r.second]);
	r.certainty = confidence_normal(gap / spread);
	return r;
}

static double busiest(const struct point_summary *point)
{
	double most = 0;
	for (size_t i = 0; i < point->stage_count; i++)
		most = fmax(most, binding_taken(point, i));
	return most;
}

/* The first where it has none of that name. */
static size_t stage_named(const struct point_summary *point, const char *name)
{
	const struct stage_summary *stage = summary_stage(point, name);
	return stage ? (size_t)(stage - point->stages) : 0;
}

/* A slow worker makes its team wait as a shallow queue does; evening out gains more then. */
static void weigh_depth(const struct evidence_base *base, struct binding *binding)
{
	const struct findings *f = base->findings;
	const bool prefetch = f->deeper >= f->deeper_read;
	binding->depth_gain = fmax(f->deeper, f->deeper_read);
	binding->depth = busiest(base->point) < ALL_BUSY && binding->depth_gain >= DEPTH_GAIN &&
			 f->even < binding->depth_gain;
	/* Reading that lacks files in flight lacks them for its latency: that is reading's own limit. */
	if (binding->depth && !prefetch &&
		binding->stage == stage_named(base->point, STAGE_READ_NAME))
		binding->depth = false;
	if (binding->depth)
		binding->queue_above =
			stage_named(base->point, prefetch ? STAGE_DECODE_NAME : STAGE_READ_NAME);
}

/* What the throughput would be without the first is the other's capacity: as well known as a measurement tells the
 * two apart, and as well as the replay explains it. */
static void weigh_next(const struct evidence_base *base, size_t next, struct binding *binding)
{
	const struct findings *f = base->findings;
	binding->second_noise = hypot(binding_margin_noise(base, binding->stage, next),
		UNEXPLAINED * f->elasticities.unmodelled);
	binding->alone = confidence_alone(1 + f->relieved, binding->second_noise);
	if (confidence_is_pair(binding->alone)) {
		binding->second = next;
		binding->second_gap = fmax(f->relieved, 0);
	}
}

/* Whether another stage binds as much: without the first the throughput would hardly rise, as far as can be told;
 * or its elasticity is not clearly below the first's. */
static void find_co_binding(
	const struct evidence_base *base, const struct ranking *r, struct binding *binding)
{
	const struct findings *f = base->findings;
	const size_t none = base->point->stage_count;
	const size_t next = stage_named(base->point, stage_names[f->next]);
	binding->second = none;
	binding->alone = 1;
	if (f->next != f->limit && next != r->first)
		weigh_next(base, next, binding);
	if (binding->second != none || r->second == none)
		return;
	if (confidence_is_pair(r->certainty) && r->value[r->second] >= PAIR_LEAST) {
		binding->second = r->second;
		binding->second_gap = fmax(r->value[r->first] - r->value[r->second], 0);
	}
}

void binding_weigh(const struct evidence_base *base, struct binding *binding)
{
	const struct ranking r = rank_stages(base);
	const bool complete = fabs(base->findings->elasticities.unmodelled) <= UNMODELLED_MOST;
	binding->agree = binding->stage == r.first;
	binding->conflict = !binding->agree;
	/* A replay that misses so much of the time may miss what binds. */
	if (!complete && !binding->agree)
		return;
	binding->stage = r.first;
	binding->replayed = r.certainty;
	find_co_binding(base, &r, binding);
	weigh_depth(base, binding);
}
