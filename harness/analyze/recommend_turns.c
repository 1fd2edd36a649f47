/* The table of turns, and trying one. */
#include "harness/analyze/recommend_turns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	SCREEN_SAMPLES = 3000,
	VALUE_MOST = 65536,
	REACH = 2, /* times the files in flight that were observed */
};

static const double FULL_MOST =
	0.35; /* probability that storage is full, of a deeper queue that is advised */
static const double ENOUGH = 0.95; /* of the best gain, that a lesser setting must give */

/* How a key may be turned against a limit: to `times` of what it is (0: to `value`). */
struct turn {
	const char *stage, *resource; /* "*": any of the stage */
	enum key_id key;
	double times;
	const char *value;
};

/* Of one key the lesser settings come first; of several keys the cheaper. */
static const struct turn turns[] = {
	{STAGE_READ_NAME, "latency", KEY_READ_DEPTH, 2, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_DEPTH, 4, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_DEPTH, 8, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_THREADS, 2, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_THREADS, 4, NULL},
	{STAGE_READ_NAME, "latency", KEY_READ_THREADS, 8, NULL},
	{STAGE_READ_NAME, "cache", KEY_READ_DEPTH, 2, NULL},
	{STAGE_READ_NAME, "cache", KEY_READ_DEPTH, 4, NULL},
	{STAGE_READ_NAME, "cpu", KEY_READ_THREADS, 2, NULL},
	{STAGE_READ_NAME, "depth", KEY_READ_DEPTH, 2, NULL},
	{STAGE_READ_NAME, "depth", KEY_READ_DEPTH, 4, NULL},
	{STAGE_DECODE_NAME, "cpu", KEY_DECODE_WORKERS, 2, NULL},
	{STAGE_DECODE_NAME, "cpu", KEY_DECODE_WORKERS, 4, NULL},
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
	{STAGE_PREFETCH_NAME, "depth", KEY_PREFETCH_DEPTH, 2, NULL},
	{STAGE_PREFETCH_NAME, "depth", KEY_PREFETCH_DEPTH, 4, NULL},
	{STAGE_PREFETCH_NAME, "depth", KEY_PREFETCH_DEPTH, 8, NULL},
	{STAGE_PREFETCH_NAME, "depth", KEY_BATCH_ORDER, 0, "as-completed"},
	{STAGE_UPLOAD_NAME, "*", KEY_UPLOAD_MODE, 0, "none"},
	{STAGE_UPLOAD_NAME, "*", KEY_UPLOAD_DEPTH, 2, NULL},
	{STAGE_STEP_NAME, "cores", KEY_DECODE_WORKERS, 0.5, NULL},
	{STAGE_STEP_NAME, "*", KEY_PREFETCH_DEPTH, 2, NULL},
	{STAGE_STEP_NAME, "*", KEY_PREFETCH_DEPTH, 4, NULL},
};

enum { TURNS = sizeof turns / sizeof turns[0] };

/* --- places ------------------------------------------------------------------------------------ */

void place_release(struct place *place)
{
	model_close(&place->model);
	config_release(&place->config);
	*place = (struct place){0};
}

static int screen(struct place *place, struct error *err)
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

int place_open(struct place *place, const struct model *model, const struct config *config,
	const struct tried *tried, struct error *err)
{
	int code = place_copy(place, model, config, err);
	place->tried = tried;
	place->base = config;
	if (!code)
		code = screen(place, err);
	return code;
}

/* --- turns ------------------------------------------------------------------------------------- */

static bool applies(const struct turn *turn, const char *stage, const char *resource)
{
	return strcmp(turn->stage, stage) == 0 &&
	       (turn->resource[0] == '*' || strcmp(turn->resource, resource) == 0);
}

/* False: the key has no such value, or has it already. */
static bool value_of(const struct turn *turn, const struct config *config, char *out, size_t room)
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
	const bool more = turn->key == KEY_READ_DEPTH || turn->key == KEY_READ_THREADS;
	return more &&
	       (strcmp(turn->resource, "latency") == 0 || strcmp(turn->resource, "cache") == 0);
}

/* More in flight is promised to gain only where several operating points say that storage has more to give, and not far beyond
 * what was observed: there a new measurement is worth more than a prediction. */
static bool is_within_reach(const struct turn *turn, const struct model *model)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	return !adds_reads(turn) ||
	       (model->read_full < FULL_MOST && shape->reader_threads * shape->read_depth <=
							REACH * model->measured_in_flight);
}

int turn_try(const struct place *from, const struct turn *turn, struct place *to,
	char setting[SETTING_BYTES], struct error *err)
{
	char value[CONFIG_VALUE_BYTES];
	*to = (struct place){0};
	if (!model_knows(turn->key) || !value_of(turn, &from->config, value, sizeof value))
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
		code = screen(to, err);
	if (code)
		place_release(to);
	return code;
}

struct screened {
	const struct turn *turn;
	double rate;
};

static const struct turn *choose(
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

/* --- what was measured ------------------------------------------------------------------------- */

/* Depth and threads of the reads both put more files in flight, unless threads are to share the work of cores. */
static bool same_means(const struct turn *turn, enum key_id key)
{
	const bool reads = turn->key == KEY_READ_DEPTH || turn->key == KEY_READ_THREADS;
	return key == turn->key || (reads && strcmp(turn->resource, "cpu") != 0 &&
					   (key == KEY_READ_DEPTH || key == KEY_READ_THREADS));
}

struct tried_step turn_tried(const struct place *from, const struct turn *turn)
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

/* Measured there, or on the way there, and not worth it. */
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

const struct turn *turn_best(const struct place *place, const char *stage, const char *resource,
	double gain, double reached, struct tried_step *against, struct error *err)
{
	struct screened tried[TURNS];
	size_t count = 0;
	for (size_t i = 0; i < TURNS; i++) {
		struct place other;
		char setting[SETTING_BYTES];
		if (!applies(&turns[i], stage, resource) ||
			turn_try(place, &turns[i], &other, setting, err))
			continue;
		if (!is_refuted(place, &other, &turns[i], reached, gain, against))
			tried[count++] = (struct screened){&turns[i], other.screened};
		place_release(&other);
	}
	return choose(tried, count, place->screened, gain);
}
