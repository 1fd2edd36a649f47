/* A greedy chain of settings, each judged by short replays first and by a full prediction when it is kept. */
#include "harness/analyze/recommend.h"

#include "harness/analyze/recommend_turns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHAIN_MAX = RECOMMENDATIONS_MAX };

static const double GAIN_LEAST = 0.05; /* of the throughput, for a key to be worth turning */
static const double CORES_FULL = 0.97;

/* --- what binds -------------------------------------------------------------------------------- */

/* The costliest cost of the stage whose costs' elasticities sum highest. */
static enum replay_cost limiting_cost(const struct elasticities *e)
{
	double sums[REPLAY_STAGES] = {0};
	size_t best = 0;
	for (size_t i = 0; i < COSTS; i++)
		sums[model_cost_stage(e->costs[i].cost)] += e->costs[i].value;
	for (size_t i = 1; i < COSTS; i++) {
		const double own = sums[model_cost_stage(e->costs[i].cost)];
		const double most = sums[model_cost_stage(e->costs[best].cost)];
		if (own > most || (own == most && e->costs[i].value > e->costs[best].value))
			best = i;
	}
	return e->costs[best].cost;
}

static void name_limit(const struct model *model, const struct replay_result *replay,
	enum replay_cost cost, char stage[NAME_BYTES], char resource[NAME_BYTES])
{
	const char *words = replay_cost_resource(cost);
	if (cost == COST_STEP_HOST && model->facts.step_on_cores)
		words = "compute";
	if (cost == COST_DECODE_CPU && replay->core_utilisation >= CORES_FULL &&
		model->replay.shape.decode_workers > model->replay.cores)
		words = "cores";
	if (cost == COST_DECODE_CPU && model->replay.quota > 0 &&
		replay->core_utilisation * model->replay.cores - model->replay.outside >=
			CORES_FULL * model->replay.quota)
		words = "quota";
	(void)snprintf(stage, NAME_BYTES, "%s", replay_cost_stage(cost));
	(void)snprintf(resource, NAME_BYTES, "%s", words);
}

static int limit_of(const struct model *model, const struct replay_result *replay,
	struct recommendation *link, struct error *err)
{
	struct elasticities e;
	const int code = model_elasticities(model, 1, &e, err);
	if (!code)
		name_limit(model, replay, limiting_cost(&e), link->next_stage, link->next_resource);
	return code;
}

/* --- the chain --------------------------------------------------------------------------------- */

static void describe(struct recommendation *link, double now, bool hidden_device)
{
	char stage[NAME_BYTES];
	char resource[NAME_BYTES];
	memcpy(stage, link->next_stage, sizeof stage);
	memcpy(resource, link->next_resource, sizeof resource);
	(void)snprintf(link->words, sizeof link->words, "%.2f times as fast; then %s binds (%s)%s",
		link->predicted / now, stage, resource,
		hidden_device
			? "; the lower end: storage that serves no more files at once than were measured"
			: "");
}

/* A place for the key's setting: that of an earlier turn of the same key, or a new one; SETTINGS_MAX: full. */
static size_t place_of_setting(const struct recommendation *link, const char *setting)
{
	const size_t name = strcspn(setting, "=") + 1;
	size_t at = 0;
	while (at < link->setting_count && strncmp(link->settings[at], setting, name) != 0)
		at++;
	return at;
}

/* Goes on to where the turn leads. */
static int add_link(const struct recommend_start *start, struct place *place,
	const struct turn *turn, struct recommendation *link, bool *hidden_device,
	struct error *err)
{
	struct place next;
	struct prediction prediction;
	char setting[SETTING_BYTES];
	int code = turn_try(place, turn, &next, setting, err);
	if (code)
		return code;
	const size_t at = place_of_setting(link, setting);
	if (at == SETTINGS_MAX) {
		code = -ENOSPC;
	} else {
		memcpy(link->settings[at], setting, sizeof setting);
		link->setting_count += at == link->setting_count;
		code = model_predict(&next.model, start->effort, &prediction, err);
	}
	if (!code)
		code = limit_of(&next.model, &prediction.replay, link, err);
	if (code) {
		place_release(&next);
		return code;
	}
	link->predicted = prediction.throughput;
	link->interval = prediction.interval;
	*hidden_device = prediction.hidden_device;
	place_release(place);
	*place = next;
	return 0;
}

static void reverse(struct recommendation *chain, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		const struct recommendation swapped = chain[i];
		chain[i] = chain[count - 1 - i];
		chain[count - 1 - i] = swapped;
	}
}

static int follow_chain(const struct recommend_start *start, struct place *place, double now,
	struct diagnosis *out, struct error *err)
{
	struct recommendation link = {.predicted = now};
	(void)snprintf(link.next_stage, sizeof link.next_stage, "%s", start->stage);
	(void)snprintf(link.next_resource, sizeof link.next_resource, "%s", start->resource);
	while (out->recommendation_count < CHAIN_MAX) {
		const double reached = link.predicted;
		const struct turn *turn =
			turn_best(place, link.next_stage, link.next_resource, GAIN_LEAST, err);
		if (!turn)
			break;
		bool hidden_device = false;
		const int code = add_link(start, place, turn, &link, &hidden_device, err);
		if (code == -ENOSPC)
			break;
		if (code)
			return code;
		/* An interval that reaches down to what there is says that the model may be wrong, as where
		 * one file at a time cannot tell latency from a device: the way to know is to set it. */
		if (link.predicted < reached * (1 + GAIN_LEAST))
			break;
		describe(&link, now, hidden_device);
		out->recommendations[out->recommendation_count++] = link;
	}
	reverse(out->recommendations, out->recommendation_count);
	return 0;
}

int recommend(const struct recommend_start *start, struct diagnosis *out, struct error *err)
{
	struct place place = {0};
	struct prediction now;
	out->recommendation_count = 0;
	int code = place_open(&place, start->model, start->config, err);
	if (!code)
		code = model_predict(&place.model, 0, &now, err);
	if (!code)
		code = follow_chain(start, &place, now.throughput, out, err);
	place_release(&place);
	return code;
}
