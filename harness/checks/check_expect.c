/* A check's kind. */
#include "harness/checks/check.h"

#include <errno.h>

static void expect_estimate(const struct check_context *context, struct check_cost *cost)
{
	(void)context;
	*cost = (struct check_cost){0};
}

static int expect_run(const struct check_context *context, struct error *err)
{
	(void)context;
	return error_set(err, -ENOTSUP, "expect checks are not part of this version");
}

const struct check_ops check_expect = {
	.kind = ACCEPT_EXPECT,
	.name = "expect",
	.summary = "",
	.estimate = expect_estimate,
	.run = expect_run,
};
