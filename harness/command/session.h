/* A run from plan to report: what `run`, `sweep` and `diagnose` share. */
#ifndef MLBENCH_COMMAND_SESSION_H
#define MLBENCH_COMMAND_SESSION_H

#include "harness/command/command.h"
#include "harness/command/plan.h"
#include "harness/report/report.h"

/* What a run leaves, while it is still open. */
struct session_result {
	const struct plan *plan;     /* the data set is open in it */
	const struct record *record; /* finished and saved */
	const struct report *report;
	int status; /* the run's own: of a point that failed, an interruption, ... */
};

/* What follows the measuring in place of printing the report; returns an exit status. */
typedef int session_sequel(void *context, const struct session_result *result, struct error *err);

/* one_point: refuses a configuration that sweeps.  Returns an exit status. */
int session_run(const struct invocation *invocation, bool one_point, struct error *err);
/* One point, measured on until there can be a verdict, and then sequel. */
int session_run_then(const struct invocation *invocation, session_sequel *sequel, void *context,
	struct error *err);

#endif
