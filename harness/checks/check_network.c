/* network: bandwidth and latency to other nodes.  The kind has its place in plans, and measures nothing yet: a check of it is
 * an ERROR that says so. */
#include "harness/checks/check.h"

#include <errno.h>

static void network_estimate(const struct check_context *context, struct check_cost *cost)
{
	(void)context;
	*cost = (struct check_cost){0};
}

static int network_run(const struct check_context *context, struct error *err)
{
	(void)context;
	return error_set(err, -ENOTSUP, "network checks are not part of this version");
}

const struct check_ops check_network = {
	.kind = ACCEPT_NETWORK,
	.estimate = network_estimate,
	.run = network_run,
};
