/* A check's kind. */
#include "harness/checks/check.h"

#include <errno.h>

static void repeatable_estimate(const struct check_context *context, struct check_cost *cost)
{
	(void)context;
	*cost = (struct check_cost){0};
}

static int repeatable_run(const struct check_context *context, struct error *err)
{
	(void)context;
	return error_set(err, -ENOTSUP, "repeatable checks are not part of this version");
}

const struct check_ops check_repeatable = {
	.kind = ACCEPT_REPEATABLE,
	.name = "repeatable",
	.summary = "",
	.estimate = repeatable_estimate,
	.run = repeatable_run,
};
