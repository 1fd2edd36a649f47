/* One key of a model being turned: shared by the files of model_alter. */
#ifndef MLBENCH_ANALYZE_MODEL_CHANGE_H
#define MLBENCH_ANALYZE_MODEL_CHANGE_H

#include "harness/analyze/model_parts.h"

#include <stdbool.h>

struct change {
	struct model *model;
	enum key_id key;
	const struct config *from, *to;
	struct error *err;
};

typedef int turn(const struct change *change);

static inline double change_before(const struct change *c)
{
	return config_real(c->from, c->key);
}

static inline double change_after(const struct change *c)
{
	return config_real(c->to, c->key);
}

static inline bool change_has_devices(const struct config *config)
{
	return config_integer(config, KEY_STEP_DEVICES) > 1;
}

/* Whether a key is the same before and after. */
bool change_keeps(const struct change *change, enum key_id key);

/* How far from the calibration a number was turned. */
void change_count_distance(const struct change *change);

/* model_alter_devices.c.  change_exchange: the exchange is another one, for whichever reason. */
int change_exchange(const struct change *change);
turn turn_devices, turn_exchange, turn_slow_device;

#endif
