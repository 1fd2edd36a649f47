/* Groups of devices, whatever the backend. */
#include "workloads/backend/group.h"

#include "harness/config/all_reduce.h"
#include "workloads/backend/backend.h"
#include "workloads/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { PARAMETER_BYTES = 4 };

static const double NS_PER_SECOND = 1e9;

int backend_group_open(struct backend_group **out, const struct config *config, struct error *err)
{
	*out = NULL;
	const unsigned count = (unsigned)config_integer(config, KEY_STEP_DEVICES);
	if (count < 2)
		return 0;
	int code = backend_validate(config, err);
	if (code)
		return code;
	struct backend_group *group = calloc(1, sizeof *group);
	if (!group)
		return error_set(err, -ENOMEM, "no memory for a group of %u devices", count);
	group->ops = backend_choose(config, NULL, 0, err);
	group->count = count;
	code = group->ops->group_open(&group->own, config, count, err);
	if (code) {
		free(group);
		return code;
	}
	*out = group;
	return 0;
}

void backend_group_close(struct backend_group *group)
{
	if (!group)
		return;
	group->ops->group_close(group->own);
	free(group);
}

double backend_gradient_bytes(const struct config *config)
{
	const struct model *model = model_find(config_text(config, KEY_STEP_MODEL));
	return model ? (double)model_parameters(model) * PARAMETER_BYTES : 0;
}

double backend_exchange_ns(const struct config *config)
{
	const double bytes_per_s = config_real(config, KEY_SYNC_BANDWIDTH);
	const double latency_s = config_real(config, KEY_SYNC_LATENCY) / NS_PER_SECOND;
	return NS_PER_SECOND * all_reduce_ring_seconds(backend_gradient_bytes(config),
				       (unsigned)config_integer(config, KEY_STEP_DEVICES),
				       bytes_per_s > 0 ? bytes_per_s : HUGE_VAL, latency_s);
}
