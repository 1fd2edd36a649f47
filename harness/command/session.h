/* A run from plan to report: what `run` and `sweep` share. */
#ifndef MLBENCH_COMMAND_SESSION_H
#define MLBENCH_COMMAND_SESSION_H

#include "harness/command/command.h"

/* one_point: refuses a configuration that sweeps.  Returns an exit status. */
int session_run(const struct invocation *invocation, bool one_point, struct error *err);

#endif
