/* The list of kinds. */
#include "harness/checks/check.h"

#include <stddef.h>

const struct check_ops *const check_list[ACCEPT_KINDS + 1] = {
	[ACCEPT_EXPECT] = &check_expect,
	[ACCEPT_CEILING] = &check_ceiling,
	[ACCEPT_PIPELINE] = &check_pipeline,
	[ACCEPT_BURN] = &check_burn,
	[ACCEPT_REPEATABLE] = &check_repeatable,
	[ACCEPT_NETWORK] = &check_network,
};
