/* A check's kind. */
#include "harness/checks/check.h"

#include <errno.h>

static void pipeline_estimate(const struct check_context *context, struct check_cost *cost)
{
	(void)context;
	*cost = (struct check_cost){0};
}

static int pipeline_run(const struct check_context *context, struct error *err)
{
	(void)context;
	return error_set(err, -ENOTSUP, "pipeline checks are not part of this version");
}

const struct check_ops check_pipeline = {
	.kind = ACCEPT_PIPELINE,
	.name = "pipeline",
	.summary = "",
	.estimate = pipeline_estimate,
	.run = pipeline_run,
};
