/* Series of costs: names, and where each stands. */
#include "harness/analyze/replay_costs.h"

#include "harness/base/rng.h"

static const struct {
	const char *stage, *resource;
	enum replay_stage id;
} costs[COSTS] = {
	[COST_READ_CPU] = {STAGE_READ_NAME, "cpu", REPLAY_READ},
	[COST_READ_LATENCY] = {STAGE_READ_NAME, "latency", REPLAY_READ},
	[COST_READ_DEVICE] = {STAGE_READ_NAME, "full", REPLAY_READ},
	[COST_DECODE_CPU] = {STAGE_DECODE_NAME, "cpu", REPLAY_DECODE},
	[COST_DECODE_LOCK] = {STAGE_DECODE_NAME, "lock", REPLAY_DECODE},
	[COST_DECODE_WAIT] = {STAGE_DECODE_NAME, "wait", REPLAY_DECODE},
	[COST_UPLOAD] = {STAGE_UPLOAD_NAME, "copy", REPLAY_UPLOAD},
	[COST_STEP_HOST] = {STAGE_STEP_NAME, "launch", REPLAY_STEP},
	[COST_STEP_DEVICE] = {STAGE_STEP_NAME, "compute", REPLAY_STEP},
	[COST_SYNC] = {STAGE_SYNC_NAME, "exchange", REPLAY_SYNC},
};

const char *replay_cost_stage(enum replay_cost cost)
{
	return costs[cost].stage;
}

const char *replay_cost_resource(enum replay_cost cost)
{
	return costs[cost].resource;
}

void replay_cursor_draw(struct replay_cursor *cursor)
{
	const uint64_t random = rng_mix(cursor->stream, cursor->next++);
	cursor->at = (random + cursor->offset) % cursor->count;
	cursor->left = cursor->block;
}

void replay_cursor_open(struct replay_cursor *cursor, const struct replay_model *model,
	const struct replay_options *options, enum replay_cost cost)
{
	const struct replay_series *series = &model->series[cost];
	*cursor = (struct replay_cursor){0};
	if (series->count == 0 || model->scale[cost] <= 0)
		return;
	cursor->ns = series->ns;
	cursor->count = series->count;
	cursor->scale = model->scale[cost];
	cursor->block = options->block;
	cursor->offset = options->offset % series->count;
	cursor->stream = rng_mix(options->seed, (uint64_t)costs[cost].id);
	cursor->at = cursor->offset;
	if (cursor->block > 0)
		replay_cursor_draw(cursor);
}
