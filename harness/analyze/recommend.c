/* What to change, and what comes of it by replay: the keys that may move the limit are tried in the
 * replay, the least setting of the best one is kept, and so on with the limit that comes next.
 * Each setting is judged by short replays first and by a full prediction when it is kept. */
#include "harness/analyze/diagnose.h"

#include "harness/analyze/point_model.h"
#include "harness/analyze/storage_capacity.h"
#include "harness/analyze/verdict.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- what a faster input could still gain ----------------------------------------------------- */

static const double SATURATED = 0.95;      /* of a stage's thread time at work */
static const double WAITS_TOO_LONG = 0.10; /* of its time, that a healthy step does not starve */
static const double NOTHING = 0.01;

static bool lacks_cpu(const char *resource)
{
	static const char *const takes[] = {
		"cores", "affinity", "threads", "quota", "steal", "external"};
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
		if (stage_is(stage->name, STAGE_SYNC))
			out.exchanges = stage->busy + fmax(devices_waiting(point), 0);
		if (stage_is(stage->name, STAGE_STEP) && !stage->capacity_is_lower_bound)
			out.gain = fmax(stage->capacity / point->median - 1, 0);
		const bool named = strcmp(verdict->stage, stage->name) == 0 ||
				   strcmp(verdict->also, stage->name) == 0;
		if (stage_is(stage->name, STAGE_STEP) || stage_is(stage->name, STAGE_SYNC) ||
			stage_is(stage->name, STAGE_CHECKPOINT) ||
			stage_is(stage->name, STAGE_EVALUATE) ||
			!(stage->busy >= SATURATED || named))
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
			"The step starves %.0f %% of the time although no stage before it is "
			"saturated: the timeline (trace.json) shows when.",
			100 * headroom->waits);
	else if (!tight && headroom->exchanges >= WAITS_TOO_LONG)
		(void)snprintf(out, HEADROOM_BYTES,
			"The data loader keeps up, but the step stands still %.0f %% of the time for the "
			"exchange of gradients: a faster step or exchange raises throughput.",
			100 * headroom->exchanges);
	else if (!tight)
		(void)snprintf(out, HEADROOM_BYTES,
			"Healthy: the data loader keeps the step busy. Only a faster step raises "
			"throughput.");
	else if (headroom->gain >= NOTHING)
		(void)snprintf(out, HEADROOM_BYTES, "A faster %s stage could gain at most %.0f %%.",
			tight->name, 100 * headroom->gain);
	else
		(void)snprintf(out, HEADROOM_BYTES,
			"The %s stage is %.0f %% busy too: only making both it and the step faster "
			"raises throughput.",
			tight->name, 100 * tight->busy);
	return out;
}

/* --- what to change --------------------------------------------------------------------------- */

enum {
	SCREEN_SAMPLES = 3000,
	VALUE_MOST = 65536,
	REACH = 2, /* times the files in flight that were observed */
};

static const double FULL_MOST =
	0.35; /* probability that storage is full, of a deeper queue that is advised */
static const double ENOUGH = 0.95; /* of the best gain, that a lesser setting must give */

/* How a key may be changed against a limit: to `times` of its value (0: to `value`). */
struct turn {
	const char *stage, *resource; /* "*": any, or any of the stage */
	enum key_id key;
	double times;
	const char *value;
};

/* For one key the smaller settings come first; among keys the cheaper ones. */
static const struct turn turns[] = {
	{"*", "*", KEY_PREFETCH_DEPTH, 0, "2"},
	{STAGE_READ_NAME, "latency", KEY_READ_DEPTH, 2, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_DEPTH, 4, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_DEPTH, 8, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_THREADS, 2, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_THREADS, 4, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_THREADS, 8, NULL},
	{STAGE_READ_NAME, "tail", KEY_READ_DEPTH, 2, NULL},
	{STAGE_READ_NAME, "tail", KEY_READ_DEPTH, 4, NULL},
	{STAGE_READ_NAME, "tail", KEY_READ_DEPTH, 8, NULL},
	{STAGE_READ_NAME, "tail", KEY_READ_THREADS, 4, NULL},
	{STAGE_READ_NAME, "tail", KEY_BATCH_ORDER, 0, "as-completed"},
	{STAGE_READ_NAME, "tail", KEY_PREFETCH_DEPTH, 2, NULL},
	{STAGE_READ_NAME, "tail", KEY_PREFETCH_DEPTH, 4, NULL},
	{STAGE_READ_NAME, "tail", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_READ_NAME, "tail", KEY_DECODE_WORKERS, 4, NULL},
	{STAGE_READ_NAME, "cache", KEY_READ_DEPTH, 2, NULL},
	{STAGE_READ_NAME, "cache", KEY_READ_DEPTH, 4, NULL},
	{STAGE_READ_NAME, "cpu", KEY_READ_THREADS, 2, NULL},
	{STAGE_READ_NAME, "depth", KEY_READ_DEPTH, 2, NULL},
	{STAGE_READ_NAME, "depth", KEY_READ_DEPTH, 4, NULL},
	{STAGE_READ_NAME, "latency", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_READ_NAME, "latency", KEY_DECODE_WORKERS, 4, NULL},
	{STAGE_READ_NAME, "latency", KEY_DECODE_WORKERS, 8, NULL},
	{STAGE_READ_NAME, "cache", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_READ_NAME, "cpu", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_DECODE_NAME, "cpu", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_DECODE_NAME, "cpu", KEY_DECODE_WORKERS, 4, NULL},
	{STAGE_DECODE_NAME, "hand-over", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_DECODE_NAME, "unknown", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_DECODE_NAME, "wait", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_DECODE_NAME, "wait", KEY_DECODE_WORKERS, 4, NULL},
	{STAGE_DECODE_NAME, "wait", KEY_DECODE_WORKERS, 8, NULL},
	{STAGE_DECODE_NAME, "imbalance", KEY_BATCH_ORDER, 0, "as-completed"},
	{STAGE_DECODE_NAME, "imbalance", KEY_PREFETCH_DEPTH, 2, NULL},
	{STAGE_DECODE_NAME, "imbalance", KEY_PREFETCH_DEPTH, 4, NULL},
	{STAGE_DECODE_NAME, "imbalance", KEY_PREFETCH_DEPTH, 8, NULL},
	{STAGE_DECODE_NAME, "imbalance", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_DECODE_NAME, "cores", KEY_DECODE_WORKERS, 0.5, NULL},
	{STAGE_DECODE_NAME, "startup", KEY_DECODE_PERSISTENT, 0, "on"},
	{STAGE_PREFETCH_NAME, "depth", KEY_PREFETCH_DEPTH, 2, NULL},
	{STAGE_PREFETCH_NAME, "depth", KEY_PREFETCH_DEPTH, 4, NULL},
	{STAGE_PREFETCH_NAME, "depth", KEY_PREFETCH_DEPTH, 8, NULL},
	{STAGE_PREFETCH_NAME, "depth", KEY_BATCH_ORDER, 0, "as-completed"},
	{STAGE_UPLOAD_NAME, "*", KEY_UPLOAD_MODE, 0, "none"},
	{STAGE_UPLOAD_NAME, "*", KEY_UPLOAD_DEPTH, 2, NULL},
	{STAGE_CHECKPOINT_NAME, "storage", KEY_CHECKPOINT_MODE, 0, "async"},
	{STAGE_CHECKPOINT_NAME, "*", KEY_CHECKPOINT_EVERY, 2, NULL},
	{STAGE_CHECKPOINT_NAME, "*", KEY_CHECKPOINT_EVERY, 4, NULL},
	{STAGE_CHECKPOINT_NAME, "*", KEY_CHECKPOINT_EVERY, 8, NULL},
	{STAGE_EVALUATE_NAME, "*", KEY_EVALUATE_EVERY, 2, NULL},
	{STAGE_EVALUATE_NAME, "*", KEY_EVALUATE_EVERY, 4, NULL},
	{STAGE_EVALUATE_NAME, "*", KEY_EVALUATE_SAMPLES, 0.5, NULL},
	{STAGE_STEP_NAME, "cores", KEY_DECODE_WORKERS, 0.5, NULL},
	{STAGE_STEP_NAME, "*", KEY_PREFETCH_DEPTH, 2, NULL},
	{STAGE_STEP_NAME, "*", KEY_PREFETCH_DEPTH, 4, NULL},
};

enum { TURNS = sizeof turns / sizeof turns[0] };

/* A model with some keys changed, and the configuration it is of. */
struct place {
	struct model model;
	struct config config;
	double screened; /* samples/s of a short replay */
	/* What was measured beside `base`, the diagnosed configuration; may be NULL. */
	const struct tried *tried;
	const struct config *base;
};

static void place_release(struct place *place)
{
	model_close(&place->model);
	config_release(&place->config);
	*place = (struct place){0};
}

static int screen_place(struct place *place, struct error *err)
{
	const struct replay_options options = model_options(&place->model, SCREEN_SAMPLES);
	struct replay_result result;
	const int code = replay_run(&place->model.replay, &options, &result, err);
	place->screened = code ? NAN : result.throughput;
	return code;
}

static int place_copy(struct place *place, const struct model *model, const struct config *config,
	struct error *err)
{
	*place = (struct place){0};
	int code = model_copy(&place->model, model, err);
	if (code) {
		place->model = (struct model){0};
		return code;
	}
	code = config_copy(&place->config, config, err);
	if (code)
		place_release(place);
	return code;
}

static int place_open(struct place *place, const struct model *model, const struct config *config,
	const struct tried *tried, struct error *err)
{
	int code = place_copy(place, model, config, err);
	place->tried = tried;
	place->base = config;
	if (!code)
		code = screen_place(place, err);
	return code;
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Of loaders of this kind: workers that read take the place of readers, and what is loaded in turns with the step is first to
 * be loaded ahead; in a turn one worker makes a whole batch. */
static bool turn_suits(const struct turn *turn, const struct pipeline_shape *shape)
{
	const bool reads = stage_is(turn->stage, STAGE_READ);
	if (turn->key == KEY_DECODE_WORKERS)
		return (shape->by_workers || !reads) && !(shape->turns && shape->whole_batches);
	if (turn->key == KEY_PREFETCH_DEPTH && turn->value)
		return shape->turns;
	const bool of_batches = turn->key == KEY_PREFETCH_DEPTH || turn->key == KEY_BATCH_ORDER;
	return !reads || !shape->by_workers || of_batches;
}

static bool turn_applies(const struct turn *turn, const char *stage, const char *resource)
{
	return (turn->stage[0] == '*' || strcmp(turn->stage, stage) == 0) &&
	       (turn->resource[0] == '*' || strcmp(turn->resource, resource) == 0);
}

/* False: the key has no such value, or has it already. */
static bool value_of_turn(
	const struct turn *turn, const struct config *config, char *out, size_t room)
{
	if (turn->value) {
		char now[CONFIG_VALUE_BYTES];
		(void)snprintf(out, room, "%s", turn->value);
		(void)config_format_value(turn->key, &config->values[turn->key], now, sizeof now);
		return strcmp(now, turn->value) != 0;
	}
	const double now = (double)config_integer(config, turn->key);
	const double then = floor(now * turn->times);
	const struct key *key = &config_keys[turn->key];
	if (then < fmax(key->min, 1) || then > fmin(key->max, VALUE_MOST) || then == now)
		return false;
	(void)snprintf(out, room, "%.0f", then);
	return true;
}

static bool adds_reads(const struct turn *turn)
{
	return stage_is(turn->stage, STAGE_READ) &&
	       (turn->key == KEY_READ_DEPTH || turn->key == KEY_READ_THREADS ||
		       turn->key == KEY_DECODE_WORKERS) &&
	       (strcmp(turn->resource, "latency") == 0 || strcmp(turn->resource, "cache") == 0 ||
		       strcmp(turn->resource, "tail") == 0);
}

/* More files in flight are recommended only where several operating points say that storage has
 * more to give, and not far beyond what was observed: there a new measurement is worth more than a
 * prediction. */
static bool is_within_reach(const struct turn *turn, const struct model *model)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	return !adds_reads(turn) ||
	       (model->read_full < FULL_MOST && shape->reader_threads * shape->read_depth <=
							REACH * model->measured_in_flight);
}

/* to is fresh, to be released; setting: "decode.workers=8".  -ENOTSUP: there is no such value, or
 * the replay does not model it. */
static int turn_try(const struct place *from, const struct turn *turn, struct place *to,
	char setting[SETTING_BYTES], struct error *err)
{
	char value[CONFIG_VALUE_BYTES];
	/* Large requests take one reader thread. */
	const bool alone = turn->key == KEY_READ_THREADS && from->model.facts.reads_large;
	*to = (struct place){0};
	if (alone || !model_knows(turn->key) ||
		!value_of_turn(turn, &from->config, value, sizeof value))
		return -ENOTSUP;
	(void)snprintf(setting, SETTING_BYTES, "%s.%s=%.24s", config_keys[turn->key].section,
		config_keys[turn->key].name, value);
	int code = place_copy(to, &from->model, &from->config, err);
	to->tried = from->tried;
	to->base = from->base;
	if (!code)
		code = config_set_key(&to->config, turn->key, value, err);
	if (!code)
		code = model_alter(&to->model, &from->config, &to->config, err);
	if (!code && !is_within_reach(turn, &to->model))
		code = -ENOTSUP;
	if (!code)
		code = screen_place(to, err);
	if (code)
		place_release(to);
	return code;
}

struct screened {
	const struct turn *turn;
	double rate;
};

static const struct turn *choose_turn(
	const struct screened *tried, size_t count, double now, double gain)
{
	double best = 0;
	for (size_t i = 0; i < count; i++)
		best = fmax(best, tried[i].rate);
	if (best < now * (1 + gain))
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (tried[i].rate >= now + ENOUGH * (best - now))
			return tried[i].turn;
	return NULL;
}

/* --- what was measured ------------------------------------------------------------------------ */

/* read.depth and read.threads both put more files in flight, unless threads are to share CPU
 * work. */
static bool same_means(const struct turn *turn, enum key_id key)
{
	const bool reads = turn->key == KEY_READ_DEPTH || turn->key == KEY_READ_THREADS;
	return key == turn->key || (reads && strcmp(turn->resource, "cpu") != 0 &&
					   (key == KEY_READ_DEPTH || key == KEY_READ_THREADS));
}

/* What was measured on the way that the turn continues. */
static struct tried_step turn_tried(const struct place *from, const struct turn *turn)
{
	static const enum key_id in_flight[] = {KEY_READ_DEPTH, KEY_READ_THREADS};
	struct tried_step step = {.key = turn->key};
	if (!turn->value)
		step = tried_last_step(
			from->tried, from->base, &from->config, turn->key, turn->times > 1);
	for (size_t i = 0; i < 2 && step.answer == TRIED_NOTHING; i++)
		if (!turn->value && same_means(turn, in_flight[i]))
			step = tried_last_step(from->tried, from->base, &from->config, in_flight[i],
				turn->times > 1);
	return step;
}

/* Measured at that setting, or on the way to it, and not worth it. */
static bool is_refuted(const struct place *from, const struct place *to, const struct turn *turn,
	double reached, double gain, struct tried_step *against)
{
	const struct tried_point *there = tried_at(to->tried, to->base, &to->config);
	const struct tried_step step = turn_tried(from, turn);
	if (there && there->rate >= reached * (1 + gain))
		return false;
	if (step.answer == TRIED_NO_GAIN)
		*against = step;
	return there || step.answer == TRIED_NO_GAIN;
}

/* The least setting that gives nearly as much as the best against that limit; NULL: none gains
 * `gain`. reached: samples/s at the place.  What was measured to gain nothing is left out; the last
 * of that is in *against. */
static const struct turn *turn_best(const struct place *place, const char *stage,
	const char *resource, double gain, double reached, struct tried_step *against,
	struct error *err)
{
	struct screened tried[TURNS];
	size_t count = 0;
	for (size_t i = 0; i < TURNS; i++) {
		struct place other;
		char setting[SETTING_BYTES];
		if (!turn_applies(&turns[i], stage, resource) ||
			!turn_suits(&turns[i], &place->model.replay.shape) ||
			turn_try(place, &turns[i], &other, setting, err))
			continue;
		if (!is_refuted(place, &other, &turns[i], reached, gain, against))
			tried[count++] = (struct screened){&turns[i], other.screened};
		place_release(&other);
	}
	return choose_turn(tried, count, place->screened, gain);
}

/* --- the chain of settings -------------------------------------------------------------------- */

static const double CORES_FULL = 0.97;

static void name_limit(const struct model *model, const struct replay_result *replay,
	enum replay_cost cost, char stage[NAME_BYTES], char resource[NAME_BYTES])
{
	const char *words = replay_cost_resource(cost);
	if (cost == COST_STEP_HOST && model->facts.step_on_cores)
		words = "compute";
	const bool decodes = cost == COST_DECODE_CPU || cost == COST_DECODE_BATCH;
	if (decodes && replay->core_utilisation >= CORES_FULL &&
		model->replay.shape.decode_workers > model->replay.cores)
		words = "cores";
	if (decodes && model->replay.quota > 0 &&
		replay->core_utilisation * model->replay.cores - model->replay.outside >=
			CORES_FULL * model->replay.quota)
		words = "quota";
	(void)snprintf(stage, NAME_BYTES, "%s", replay_cost_stage(cost));
	(void)snprintf(resource, NAME_BYTES, "%s", words);
}

static int limit_after(const struct model *model, const struct replay_result *replay,
	struct recommendation *link, struct error *err)
{
	struct elasticities e;
	const int code = model_elasticities(model, 1, &e, err);
	if (!code)
		name_limit(model, replay, model_limiting_cost(&e), link->next_stage,
			link->next_resource);
	return code;
}

double recommendation_rate(const struct recommendation *r)
{
	return r->measured > 0 ? r->measured : r->predicted;
}

/* Doubts about a recommendation. */
struct doubts {
	bool hidden_device;
	struct tried_step unsure; /* the way was measured, and may gain nothing further on */
};

static void describe_link(struct recommendation *link, double now, const struct doubts *doubts)
{
	char tried[TRIED_WORDS_BYTES];
	char stage[NAME_BYTES];
	char resource[NAME_BYTES];
	memcpy(stage, link->next_stage, sizeof stage);
	memcpy(resource, link->next_resource, sizeof resource);
	const int used = snprintf(link->words, sizeof link->words,
		"%.2f times as fast; then the bottleneck is %s (%s)",
		recommendation_rate(link) / now, stage, resource);
	if (doubts->unsure.answer == TRIED_UNSURE)
		(void)snprintf(link->words + used, sizeof link->words - (size_t)used,
			"; at the lower end %s", tried_words(&doubts->unsure, tried));
	else if (doubts->hidden_device)
		(void)snprintf(link->words + used, sizeof link->words - (size_t)used,
			"; at the lower end storage serves no more files at once than were "
			"measured");
}

/* The place of the key's setting: that of an earlier change of the same key, or a new one;
 * SETTINGS_MAX: full. */
static size_t place_of_setting(const struct recommendation *link, const char *setting)
{
	const size_t name = strcspn(setting, "=") + 1;
	size_t at = 0;
	while (at < link->setting_count && strncmp(link->settings[at], setting, name) != 0)
		at++;
	return at;
}

/* Applies the change and moves on to the place it leads to. */
static int add_setting(const struct recommend_start *start, struct place *place,
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
		code = limit_after(&next.model, &prediction.replay, link, err);
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

static void reverse_chain(struct recommendation *chain, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		const struct recommendation swapped = chain[i];
		chain[i] = chain[count - 1 - i];
		chain[count - 1 - i] = swapped;
	}
}

static int follow_limits(const struct recommend_start *start, struct place *place, double now,
	struct diagnosis *out, struct error *err)
{
	struct recommendation link = {.predicted = now};
	char words[TRIED_WORDS_BYTES];
	(void)snprintf(link.next_stage, sizeof link.next_stage, "%s", start->stage);
	(void)snprintf(link.next_resource, sizeof link.next_resource, "%s", start->resource);
	while (out->recommendation_count < RECOMMENDATIONS_MAX) {
		const double reached = recommendation_rate(&link);
		struct tried_step against = {.answer = TRIED_NOTHING};
		const struct turn *turn = turn_best(place, link.next_stage, link.next_resource,
			TRIED_GAIN_LEAST, reached, &against, err);
		if (tried_costs(&against, words))
			evidence_add(&out->verdict, "%s", words);
		else if (against.answer == TRIED_NO_GAIN)
			evidence_add(&out->verdict, "%s, so going further is not recommended",
				tried_words(&against, words));
		if (!turn)
			break;
		struct doubts doubts = {0};
		const int code = add_setting(start, place, turn, &link, &doubts, err);
		if (code == -ENOSPC)
			break;
		if (code)
			return code;
		/* An interval that reaches down to what there is says that the model may be wrong,
		 * as where one file at a time cannot tell latency from a device: the way to know is
		 * to set it. */
		if (recommendation_rate(&link) < reached * (1 + TRIED_GAIN_LEAST))
			break;
		describe_link(&link, now, &doubts);
		out->recommendations[out->recommendation_count++] = link;
	}
	reverse_chain(out->recommendations, out->recommendation_count);
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
		code = follow_limits(start, &place, now.throughput, out, err);
	place_release(&place);
	return code;
}

/* --- advice in words -------------------------------------------------------------------------- */

#define HAND_OVER_LESS \
	"hand over fewer and larger objects: collate each batch into one tensor a field in the worker, in shared memory, and copy it no further"

/* What helps where no setting does, by the replay. */
static const struct {
	const char *stage, *resource;
	bool final; /* nothing helps, or what helps is bought: not to be said of a busy node */
	const char *words;
} without_keys[] = {
	{STAGE_READ_NAME, "bandwidth", true,
		"no setting helps: use fewer bytes per sample (smaller samples, a denser format), "
		"a faster link or more disks, or data that fits in the page cache"},
	{STAGE_READ_NAME, "iops", true,
		"no setting helps: use larger files that hold several samples (shards), or storage "
		"with more IOPS"},
	{STAGE_READ_NAME, "concurrency", true,
		"no setting helps: use more servers or connections, a server with more threads, or "
		"larger files that hold several samples (shards)"},
	{STAGE_READ_NAME, "full", true,
		"no setting helps: use fewer bytes per sample if bandwidth limits, files that hold "
		"several samples if IOPS do, or faster storage"},
	{STAGE_READ_NAME, "network", true,
		"no setting helps: use fewer bytes per sample (smaller samples, a denser format), "
		"a faster link or one more, or data that fits in the page cache"},
	{STAGE_READ_NAME, "server", true,
		"no setting of this job helps: use more server threads, faster storage behind the "
		"server, or more servers; larger files that hold several samples (shards) need "
		"fewer calls"},
	{STAGE_READ_NAME, "metadata", false,
		"use larger files that hold several samples (shards); where attributes are looked "
		"up again and again, mount with a longer actimeo, and with nocto if nobody writes"},
	{STAGE_READ_NAME, "shared", false,
		"find out who else reads there, or use dedicated storage; more files in flight "
		"(read.depth, read.threads) take a larger share, at the others' expense"},
	{STAGE_READ_NAME, "latency", true,
		"no setting helps (predicted): use storage with a lower latency, or larger files "
		"that hold several samples (shards)"},
	{STAGE_READ_NAME, "stalls", false,
		"find out what the storage does meanwhile (flushes, garbage collection, a "
		"neighbour, a failing disk or link); a deeper prefetch.depth bridges stalls for as "
		"long as its batches last"},
	{STAGE_READ_NAME, "tail", false,
		"find out what delays those files (a bad disk or server, a cold tier, their size), "
		"and move or rewrite them; where they are others each time, ask again for what is "
		"late and take the first answer (hedged reads)"},
	{STAGE_READ_NAME, "outage", false,
		"find out why the storage did not answer (server, network, disk; see the kernel's "
		"log), and measure again"},
	{STAGE_READ_NAME, "cache", true,
		"no setting helps: use a cache that holds more of the data (more memory, fewer "
		"bytes per sample), or faster storage behind it"},
	{STAGE_READ_NAME, "cpu", true,
		"no setting helps (predicted): use larger files, or more cores"},
	{STAGE_DECODE_NAME, "lock", true,
		"more workers will not help: do less under the lock, or split it"},
	{STAGE_DECODE_NAME, "wait", true,
		"more workers will not help (predicted): make what the samples wait for faster"},
	{STAGE_DECODE_NAME, "imbalance", true,
		"no setting helps (predicted): find out what slows that worker (its core, its "
		"data)"},
	{STAGE_DECODE_NAME, "startup", false,
		"keep the workers from epoch to epoch (decode.persistent = on), or make epochs "
		"longer"},
	{STAGE_DECODE_NAME, "hand-over", true, HAND_OVER_LESS},
	{STAGE_DECODE_NAME, "external", false,
		"stop the other processes, or keep cores for this job (run.affinity, cgroup "
		"cpuset)"},
	{STAGE_UPLOAD_NAME, "copy", true,
		"no setting helps (predicted): use pinned memory, fewer bytes per batch "
		"(augment.type = uint8 of pictures), or a faster link"},
	{STAGE_STEP_NAME, "launch", true,
		"no setting helps (predicted): use larger batches (batch.size), fewer and larger "
		"kernels, or launch several at once (graphs)"},
	{STAGE_STEP_NAME, "hand-over", true, HAND_OVER_LESS},
	{STAGE_STEP_NAME, "external", false,
		"stop the other processes, or keep cores for this job (run.affinity, cgroup "
		"cpuset)"},
	{STAGE_STEP_NAME, "imbalance", true,
		"no setting helps: find out what slows that device (its clocks and temperature, "
		"another process on it, its place on the bus), or train without it"},
	{STAGE_SYNC_NAME, "exchange", false,
		"use a larger batch.size (fewer exchanges), a faster link between the devices "
		"(sync.bandwidth), or fewer devices (step.devices)"},
	{STAGE_CHECKPOINT_NAME, "storage", false,
		"write checkpoints less often (checkpoint.every), in the background "
		"(checkpoint.mode = async), smaller (checkpoint.bytes), or to faster storage "
		"(checkpoint.path)"},
	{STAGE_CHECKPOINT_NAME, "copy", false,
		"write checkpoints less often (checkpoint.every) or smaller (checkpoint.bytes): "
		"the copy of the state is what training stands still for"},
	{STAGE_EVALUATE_NAME, "input", false,
		"give evaluations more workers (evaluate.workers), or evaluate less often "
		"(evaluate.every) or fewer samples (evaluate.samples)"},
	{STAGE_EVALUATE_NAME, "step", false,
		"evaluate less often (evaluate.every), fewer samples (evaluate.samples), or in "
		"larger batches (evaluate.batch_size); more evaluate.workers will not help"},
};

static void advise_chain(const struct diagnosis *diagnosis, double measured, char *out, size_t room)
{
	const struct recommendation *best = &diagnosis->recommendations[0];
	char settings[SETTINGS_MAX * (SETTING_BYTES + 2)] = "";
	char predicted[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	char now[UNITS_BYTES];
	size_t used = 0;
	(void)units_format_count(measured, now);
	for (size_t i = 0; i < best->setting_count; i++)
		used += (size_t)snprintf(settings + used, sizeof settings - used, "%s%s",
			i ? ", " : "", best->settings[i]);
	if (best->measured > 0)
		(void)snprintf(out, room, "set %s: measured %s samples/s, against %s here",
			settings, units_format_count(best->measured, predicted), now);
	else
		(void)snprintf(out, room,
			"set %s: predicted %s samples/s (90 %% CI %s-%s), against %s now; then the "
			"bottleneck is %s (%s)",
			settings, units_format_count(best->predicted, predicted),
			units_format_count(best->interval.low, low),
			units_format_count(best->interval.high, high), now, best->next_stage,
			best->next_resource);
}

static bool is_verdict(const struct verdict *v, const char *stage, const char *resource)
{
	return strcmp(v->stage, stage) == 0 && strcmp(v->resource, resource) == 0;
}

/* More workers than cores only take turns: fewer are as fast, which is worth saying although it
 * gains nothing. */
static void advise_decode(
	const struct point_summary *point, const struct point_facts *facts, char *out, size_t room)
{
	const unsigned fewer = advice_fewer_workers(facts);
	char cheaper[CHEAPER_BYTES];
	if (advice_after_load(point, out, room))
		return;
	(void)advice_cheaper_decode(facts, cheaper);
	if (fewer > 0)
		(void)snprintf(out, room,
			"decode.workers=%u keeps all %u cores busy; %u workers only take turns on "
			"them. Make decoding cheaper (%s) or add cores",
			fewer, facts->cores, facts->decode_workers, cheaper);
	else
		(void)snprintf(out, room,
			"more workers will not help (predicted). Make decoding cheaper (%s) or add "
			"cores",
			cheaper);
}

static const double HANDOVER_MUCH = 0.10, CORES_USED = 0.85;

/* Of samples that take microseconds, much of the cores' time is no sample's; what of that another setting would save is in no
 * prediction. */
static bool advise_handover(const struct diagnosis *diagnosis, const struct point_summary *point,
	const struct point_facts *facts, char *out, size_t room)
{
	if (diagnosis->handover_share < HANDOVER_MUCH ||
		point->cores_used < CORES_USED * point->cores_allowed ||
		advice_after_load(point, out, room))
		return false;
	(void)snprintf(out, room,
		"%.1f of %u cores are in use, %.0f %% of it to hand samples from thread to thread: "
		"more cores help; what read.depth = %u saves of that is not predicted: try it",
		point->cores_used, point->cores_allowed, 100 * diagnosis->handover_share,
		2 * facts->read_depth);
	return true;
}

static void advise_step_computes(
	const struct point_summary *point, const struct verdict *verdict, char *out, size_t room)
{
	const struct headroom headroom = headroom_of_input(point, verdict);
	char words[HEADROOM_BYTES];
	(void)headroom_words(&headroom, words);
	(void)snprintf(out, room,
		"%s For a faster step change step.device, batch.size or step.threads", words);
}

bool recommend_without_keys(const struct point_summary *point, const char *stage,
	const char *resource, char *out, size_t room)
{
	if (strcmp(resource, "threads") == 0) {
		if (advice_after_load(point, out, room))
			return true;
		(void)snprintf(out, room,
			"set decode.threads = 1: the workers use the cores already (OMP_NUM_THREADS=1, torch.set_num_threads(1) or cv2.setNumThreads(0) in each worker)");
		return true;
	}
	if (strcmp(resource, "affinity") == 0) {
		(void)snprintf(out, room,
			"find who sets the affinity mask and widen it to the %u cores: the launcher (srun --cpus-per-task=N or --cpu-bind=none), taskset, OpenMP (OMP_PROC_BIND, GOMP_CPU_AFFINITY) or a library at import (os.sched_setaffinity after it)",
			point->cores_reachable);
		return true;
	}
	for (size_t i = 0; i < sizeof without_keys / sizeof without_keys[0]; i++)
		if (strcmp(without_keys[i].stage, stage) == 0 &&
			strcmp(without_keys[i].resource, resource) == 0) {
			if (!without_keys[i].final || !advice_after_load(point, out, room))
				(void)snprintf(out, room, "%s", without_keys[i].words);
			return true;
		}
	return false;
}

static const double MEASURED_MORE = 1.05, MORE_IN_FLIGHT = 1.2;

void recommend_qualify(
	const struct storage *storage, const struct point_facts *facts, char *advice, size_t room)
{
	static const char none[] = "no setting helps";
	const char *const rest = strchr(advice, ':');
	char beyond[EVIDENCE_BYTES];
	if (strncmp(advice, none, strlen(none)) != 0 || !rest || !storage->known ||
		storage->compared == 0 || !(storage->ratio >= MEASURED_MORE) ||
		!(storage->other_in_flight >= MORE_IN_FLIGHT * storage->in_flight))
		return;
	const double times = storage->other_in_flight / storage->in_flight;
	const unsigned now = facts->by_workers ? facts->read_threads : facts->read_depth;
	(void)snprintf(beyond, sizeof beyond, "%s", rest + 1);
	(void)snprintf(advice, room,
		"%s=%.0f gives up to %.0f %% more, as measured; beyond that,%s",
		facts->by_workers ? "decode.workers" : "read.depth", ceil(now * times - 0.5),
		100 * (storage->ratio - 1), beyond);
}

void recommend_advise(const struct diagnosis *diagnosis, const struct point_summary *point,
	const struct point_facts *facts, char *out, size_t room)
{
	const struct verdict *v = &diagnosis->verdict;
	if (stage_is(v->stage, STAGE_READ) &&
		advice_of_limits(point, facts, v->resource, out, room))
		return;
	if (diagnosis->recommendation_count > 0) {
		advise_chain(diagnosis, point->median, out, room);
		return;
	}
	if (is_verdict(v, STAGE_DECODE_NAME, "cpu") || is_verdict(v, STAGE_DECODE_NAME, "cores"))
		advise_decode(point, facts, out, room);
	if (is_verdict(v, STAGE_STEP_NAME, "compute"))
		advise_step_computes(point, v, out, room);
	if (strcmp(v->resource, "cpu") == 0 && advise_handover(diagnosis, point, facts, out, room))
		return;
	(void)recommend_without_keys(point, v->stage, v->resource, out, room);
}
