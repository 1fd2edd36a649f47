/* What of `mlbench lab` runs pipelines: getting to know the laptop, measuring a setting under planted conditions, and the check.
 * Results hold the configuration without what is planted (paired.h, `shown`). */
#ifndef MLBENCH_COMMAND_LAB_RUN_H
#define MLBENCH_COMMAND_LAB_RUN_H

#include "harness/command/command.h"
#include "harness/lab/lab_state.h"
#include "harness/report/report.h"

enum { LAB_MEASUREMENTS_MAX = 200 }; /* of one attempt */

/* What the lab wants to know of this laptop, into known (an object that is kept: what is there is not measured again).  place: the
 * lab's folder. */
int lab_run_laptop(const struct invocation *invocation, const struct lab *lab, json_t *known,
	const char *place, struct lab_laptop *laptop, struct error *err);

/* A result, while it is looked at. */
struct lab_result {
	struct record record;
	struct report report;
	struct lab_measured measured;
};
/* measure.repeats repetitions into PLACE/mNNN.  -EINTR: stopped, nothing is kept of it; -EIO: every repetition failed. */
int lab_run_measure(const struct invocation *invocation, const struct lab *lab,
	const struct lab_drawn *drawn, const struct lab_setting *setting, const char *place,
	unsigned number, struct lab_result *result, struct error *err);
void lab_result_close(struct lab_result *result); /* safe on {0} */

/* The setting beside the broken and the best one, block by block, until it is sure or the lab's time is over.  Nothing of what is
 * measured stays: it would show the best setting. */
int lab_run_check(const struct invocation *invocation, const struct lab *lab,
	const struct lab_drawn *drawn, const struct lab_setting *setting, const char *place,
	struct lab_judgement *judgement, struct error *err);

#endif
