/* Published step times and sizes of models. */
#include "harness/command/step_facts.h"

#include "workloads/backend/backend.h"

#include <math.h>
#include <string.h>

const char *step_facts_backend(const struct config *config)
{
	const struct backend_ops *ops = backend_choose(config, NULL, 0, NULL);
	return ops ? ops->name : "none";
}

int step_facts_check(const struct config *config, struct error *err)
{
	return backend_validate(config, err);
}

double step_facts_time(const struct config *config, uint32_t batch_size)
{
	struct backend *backend;
	if (strcmp(step_facts_backend(config), "emulated") != 0)
		return NAN;
	const double given = config_real(config, KEY_STEP_TIME);
	if (given > 0)
		return given;
	if (backend_open(&backend,
		    &(const struct backend_options){
			    .config = config, .sample_elements = 1, .class_count = 1},
		    NULL) != 0)
		return NAN;
	const double each = backend->nominal_step_ns / backend->batch_size;
	backend_close(backend);
	return each * batch_size;
}

double step_facts_gradient_bytes(const struct config *config)
{
	return backend_gradient_bytes(config);
}

double step_facts_exchange(const struct config *config)
{
	return strcmp(step_facts_backend(config), "emulated") == 0 ? backend_exchange_ns(config)
								   : (double)NAN;
}
