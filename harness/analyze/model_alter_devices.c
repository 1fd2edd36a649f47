/* Turning the number of devices that train together, and what their exchange of gradients costs. */
#include "harness/analyze/model_change.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* --- several devices --------------------------------------------------------------------------------- */

static double exchange_ns(const struct change *c, const struct config *config)
{
	return c->model->exchange_time ? c->model->exchange_time(config) : NAN;
}

static double planted_exchange(const struct config *config)
{
	return config_real(config, KEY_INJECT_SYNC_FACTOR);
}

/* What was measured goes with what it should be; where nothing was, what it should be is taken. */
int change_exchange(const struct change *c)
{
	struct replay_model *replay = &c->model->replay;
	struct replay_series *series = &replay->series[COST_SYNC];
	const double from = exchange_ns(c, c->from);
	const double to = exchange_ns(c, c->to);
	const struct key *key = &config_keys[c->key];
	if (isnan(from) || isnan(to))
		return error_set(c->err, -ENOTSUP,
			"%s.%s: what the exchange of gradients takes is known of emulated devices alone",
			key->section, key->name);
	if (series->count > 0 && from > 0) {
		replay->scale[COST_SYNC] *= to / from;
		return 0;
	}
	float *one = malloc(sizeof *one);
	if (!one)
		return error_set(c->err, -ENOMEM, "out of memory");
	*one = (float)(to * planted_exchange(c->from));
	free(c->model->storage[COST_SYNC]);
	c->model->storage[COST_SYNC] = one;
	replay->scale[COST_SYNC] = 1;
	*series = (struct replay_series){.ns = one, .count = *one > 0};
	return 0;
}

/* Keys of the exchange are turned at once, whichever of them comes first. */
int turn_exchange(const struct change *c)
{
	static const enum key_id together[] = {
		KEY_STEP_DEVICES, KEY_SYNC_BANDWIDTH, KEY_SYNC_LATENCY};
	const size_t count = sizeof together / sizeof *together;
	for (size_t i = 0; i < count && together[i] != c->key; i++)
		if (!change_keeps(c, together[i]))
			return 0;
	return change_has_devices(c->to) ? change_exchange(c) : 0;
}

int turn_devices(const struct change *c)
{
	struct model *model = c->model;
	const unsigned was = (unsigned)change_before(c);
	const unsigned now = (unsigned)change_after(c);
	for (unsigned d = now; d < was; d++)
		model->device_factor[d] = 1;
	if (now > was)
		model_note(model,
			"more devices than measured: those that are added are taken to be as quick");
	change_count_distance(c);
	if (now > 1)
		return turn_exchange(c);
	/* Alone it exchanges with nobody. */
	free(model->storage[COST_SYNC]);
	model->storage[COST_SYNC] = NULL;
	model->replay.series[COST_SYNC] = (struct replay_series){0};
	return 0;
}

int turn_slow_device(const struct change *c)
{
	c->model->device_factor[0] *= (float)(change_after(c) / change_before(c));
	change_count_distance(c);
	return 0;
}
