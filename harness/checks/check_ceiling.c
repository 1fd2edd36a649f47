/* A check's kind. */
#include "harness/checks/check.h"

#include <errno.h>

static void ceiling_estimate(const struct check_context *context, struct check_cost *cost)
{
	(void)context;
	*cost = (struct check_cost){0};
}

static int ceiling_run(const struct check_context *context, struct error *err)
{
	(void)context;
	return error_set(err, -ENOTSUP, "ceiling checks are not part of this version");
}

const struct check_ops check_ceiling = {
	.kind = ACCEPT_CEILING,
	.name = "ceiling",
	.summary = "",
	.estimate = ceiling_estimate,
	.run = ceiling_run,
};
