/* Published step times and sizes of models. */
#include "harness/command/step_facts.h"

#include "workloads/backend/backend.h"
#include "workloads/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TIME_TEXT_BYTES = 32, PARAMETER_BYTES = 4 };

const char *step_facts_backend(const struct config *config)
{
	const struct backend_ops *ops = backend_choose(config, NULL, 0, NULL);
	return ops ? ops->name : "none";
}

int step_facts_check(const struct config *config, struct error *err)
{
	return backend_validate(config, err);
}

int step_facts_resolve(struct config *config, struct error *err)
{
	if (strcmp(step_facts_backend(config), "emulated") != 0)
		return 0;
	struct backend *backend;
	const int code = backend_open(&backend, config, 1, 1, NULL, err);
	if (code)
		return code;
	char time[TIME_TEXT_BYTES];
	(void)snprintf(time, sizeof time, "%lldns", llround(backend->nominal_step_ns));
	backend_close(backend);
	int set = config_set_key(config, KEY_STEP_TIME, time, err);
	if (!set)
		set = config_set_key(config, KEY_STEP_DEVICE, backend_custom_name, err);
	return set ? set : config_set_key(config, KEY_STEP_MODEL, backend_custom_name, err);
}

double step_facts_gradient_bytes(const struct config *config)
{
	const struct model *model = model_find(config_text(config, KEY_STEP_MODEL));
	return model ? (double)model_parameters(model) * PARAMETER_BYTES : 0;
}
