/* Within harness/config: a time per batch, as one duration or as a line over the batch size. */
#ifndef MLBENCH_CONFIG_BATCH_TIME_H
#define MLBENCH_CONFIG_BATCH_TIME_H

#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdbool.h>

/* Whether text is meant as points of a line ("106ms@64,61ms@32") and not as one duration. */
bool batch_time_is_line(const char *text);

/* Reads such points: value->text is fresh, in a form that is read back exactly; value->integer is the first
 * point's time in ns, so that it is above 0.  -EINVAL: what is wrong with them; -ENOMEM. */
int batch_time_parse(
	enum key_id key, const char *text, struct config_value *value, struct error *err);

#endif
