/* Where a run's results go, and whether it is a new run or the rest of an old one. */
#ifndef MLBENCH_COMMAND_RESUME_H
#define MLBENCH_COMMAND_RESUME_H

#include "harness/command/run_plan.h"
#include "harness/record/record.h"

/* Opens the plan from CONFIG, or from the run that --resume names, which is then read into record.
 * -EINVAL when the run was of another configuration, with the keys that differ. */
int resume_plan(struct plan *plan, struct record *record, const struct invocation *invocation,
	struct error *err);

/* Makes the new run's folder and header line, or takes the old one for writing. */
int resume_record(struct record *record, const struct plan *plan,
	const struct invocation *invocation, struct error *err);

/* What the header line of a new run says, and no folder yet. */
int resume_fill_record(struct record *record, const struct plan *plan,
	const struct invocation *invocation, struct error *err);

/* A new run's, in record->folder, or in one that is named by the time where that is NULL. */
int resume_new_record(struct record *record, const struct plan *plan,
	const struct invocation *invocation, struct error *err);

#endif
