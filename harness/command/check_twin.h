/* Runs the twin of a new case for a few seconds, so that the case says how like the job it is (harness/fit/twin_check.h). */
#ifndef MLBENCH_COMMAND_CHECK_TWIN_H
#define MLBENCH_COMMAND_CHECK_TWIN_H

#include "harness/command/command.h"
#include "harness/fit/case.h"

enum { CHECK_TWIN_BUDGET_S = 30 };

/* In a folder of its own, with the reported node's storage, cores and quota emulated; corrects what was assumed and runs it again, at
 * most twice, while budget_s lasts (0: it is not run).  cannot: why it cannot be compared here, as far as the caller knows; NULL: it
 * can.  fixed: KEY_COUNT flags of keys that stay.  What cannot be measured leaves the case unchecked, with the reason.  -EINTR,
 * -ENOMEM. */
int check_twin(const struct invocation *invocation, struct case_file *file, const char *cannot,
	const bool *fixed, double budget_s, struct error *err);

#endif
