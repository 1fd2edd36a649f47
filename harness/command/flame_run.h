/* `run --flame`: the sampler of a session, and what becomes of its samples. */
#ifndef MLBENCH_COMMAND_FLAME_RUN_H
#define MLBENCH_COMMAND_FLAME_RUN_H

#include "harness/command/command.h"
#include "harness/measure/flame.h"
#include "harness/record/measurement.h"
#include "harness/record/record.h"

/* What a session keeps of it; {0} without --flame, where each call does nothing. */
struct flame_run {
	struct flame *flame;
	struct flame_profile profile;
	bool finished;
};

/* Before the first repetition. */
int flame_run_start(struct flame_run *run, const struct invocation *invocation, struct error *err);
/* A repetition that was sampled says so in its record. */
void flame_run_note(const struct flame_run *run, struct measurement *m);
/* After the last repetition: no samples any more, and the files. */
int flame_run_finish(struct flame_run *run, const struct record *record, struct error *err);
/* After the report. */
int flame_run_print(
	const struct flame_run *run, const struct invocation *invocation, struct error *err);
void flame_run_close(struct flame_run *run);

#endif
