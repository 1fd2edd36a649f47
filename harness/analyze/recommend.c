/* A greedy chain of settings, each judged by short replays first and by a full prediction when it is kept. */
#include "harness/analyze/recommend.h"

#include "harness/analyze/recommend_turns.h"
#include "harness/analyze/verdict_parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHAIN_MAX = RECOMMENDATIONS_MAX };

static const double CORES_FULL = 0.97;

/* --- what binds -------------------------------------------------------------------------------- */

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
		name_limit(model, replay, model_limiting_cost(&e), link->next_stage,
			link->next_resource);
	return code;
}

/* --- the chain --------------------------------------------------------------------------------- */

double recommendation_rate(const struct recommendation *r)
{
	return r->measured > 0 ? r->measured : r->predicted;
}

/* Of a link, beside itself. */
struct doubts {
	bool hidden_device;
	struct tried_step unsure; /* the way was measured, and may gain nothing further on */
};

static void describe(struct recommendation *link, double now, const struct doubts *doubts)
{
	char tried[TRIED_WORDS_BYTES];
	char stage[NAME_BYTES];
	char resource[NAME_BYTES];
	memcpy(stage, link->next_stage, sizeof stage);
	memcpy(resource, link->next_resource, sizeof resource);
	const int used =
		snprintf(link->words, sizeof link->words, "%.2f times as fast; then %s binds (%s)",
			recommendation_rate(link) / now, stage, resource);
	if (doubts->unsure.answer == TRIED_UNSURE)
		(void)snprintf(link->words + used, sizeof link->words - (size_t)used,
			"; the lower end: %s", tried_words(&doubts->unsure, tried));
	else if (doubts->hidden_device)
		(void)snprintf(link->words + used, sizeof link->words - (size_t)used,
			"; the lower end: storage that serves no more files at once than were measured");
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
	const struct turn *turn, struct recommendation *link, struct doubts *doubts,
	struct error *err)
{
	const double reached = recommendation_rate(link);
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
	const struct tried_point *there = tried_at(next.tried, next.base, &next.config);
	doubts->unsure = turn_tried(place, turn);
	doubts->hidden_device = prediction.hidden_device;
	link->predicted = prediction.throughput;
	link->interval = prediction.interval;
	link->measured = there && there->rate > 0 ? there->rate : 0;
	if (doubts->unsure.answer == TRIED_UNSURE)
		link->interval.low = fmin(link->interval.low, reached);
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

static void say_against(const struct tried_step *against, struct diagnosis *out)
{
	char words[TRIED_WORDS_BYTES];
	evidence_add(
		&out->verdict, "%s: no more of it is recommended", tried_words(against, words));
}

static int follow_chain(const struct recommend_start *start, struct place *place, double now,
	struct diagnosis *out, struct error *err)
{
	struct recommendation link = {.predicted = now};
	(void)snprintf(link.next_stage, sizeof link.next_stage, "%s", start->stage);
	(void)snprintf(link.next_resource, sizeof link.next_resource, "%s", start->resource);
	while (out->recommendation_count < CHAIN_MAX) {
		const double reached = recommendation_rate(&link);
		struct tried_step against = {.answer = TRIED_NOTHING};
		const struct turn *turn = turn_best(place, link.next_stage, link.next_resource,
			TRIED_GAIN_LEAST, reached, &against, err);
		if (against.answer == TRIED_NO_GAIN)
			say_against(&against, out);
		if (!turn)
			break;
		struct doubts doubts = {0};
		const int code = add_link(start, place, turn, &link, &doubts, err);
		if (code == -ENOSPC)
			break;
		if (code)
			return code;
		/* An interval that reaches down to what there is says that the model may be wrong, as where
		 * one file at a time cannot tell latency from a device: the way to know is to set it. */
		if (recommendation_rate(&link) < reached * (1 + TRIED_GAIN_LEAST))
			break;
		describe(&link, now, &doubts);
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
	int code = place_open(&place, start->model, start->config, start->tried, err);
	if (!code)
		code = model_predict(&place.model, 0, &now, err);
	if (!code)
		code = follow_chain(start, &place, now.throughput, out, err);
	place_release(&place);
	return code;
}
