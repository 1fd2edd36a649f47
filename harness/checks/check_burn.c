/* A check's kind. */
#include "harness/checks/check.h"

#include <errno.h>

static void burn_estimate(const struct check_context *context, struct check_cost *cost)
{
	(void)context;
	*cost = (struct check_cost){0};
}

static int burn_run(const struct check_context *context, struct error *err)
{
	(void)context;
	return error_set(err, -ENOTSUP, "burn checks are not part of this version");
}

const struct check_ops check_burn = {
	.kind = ACCEPT_BURN,
	.name = "burn",
	.summary = "",
	.estimate = burn_estimate,
	.run = burn_run,
};
