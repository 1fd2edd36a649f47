/* A step that does nothing, to measure everything in front of it. */
#include "workloads/backend/backend.h"

#include <stdio.h>

static int null_open(struct backend *backend, struct error *err)
{
	(void)err;
	(void)snprintf(
		backend->description, sizeof backend->description, "null: a step takes no time");
	return 0;
}

static int null_step(struct backend *backend, const struct batch_view *batch,
	struct step_result *out, struct error *err)
{
	(void)backend;
	(void)batch;
	(void)out; /* already: no device time, no loss */
	(void)err;
	return 0;
}

const struct backend_ops null_backend_ops = {
	.name = "null",
	.null = true,
	.summary = "does nothing: measures the pipeline in front of the step",
	.size = sizeof(struct backend),
	.open = null_open,
	.step = null_step,
};
