/* Runs checks in processes of their own, each bounded in time: one that dies or hangs is named, and the rest goes on.
 *
 * The parent never touches the storage that is judged, nor a device: a mount that does not answer, or a driver that does not
 * return, must not take it along.  A process that not even a kill ends (it waits in the kernel) is abandoned: nothing waits
 * for it. */
#ifndef MLBENCH_CHECKS_RUNNER_H
#define MLBENCH_CHECKS_RUNNER_H

#include "harness/accept/plan.h"
#include "harness/base/bounded.h"
#include "harness/base/error.h"
#include "harness/checks/check.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct runner {
	const struct accept_plan *plan;
	enum accept_tier tier;
	const json_t *baseline; /* NULL: none */
	const char *folder, *root, *program;
	uint64_t for_ns;     /* --for; 0 */
	uint64_t until_ns;   /* when all must have ended, clock_now_ns; 0: no bound */
	uint64_t started_ns; /* of the whole; seconds of checks count from there */
	const atomic_bool *stop;
	double free_bytes; /* in the folder; NAN: not known */
	/* Why nothing is asked of the folder: checks that write there fail with it.  "": it answers. */
	char folder_why[ERROR_TEXT_BYTES];
};

/* Fills free_bytes.  -ETIMEDOUT: the folder does not answer; -EINTR. */
int runner_ask_folder(struct runner *runner, struct error *err);

/* What a check costs: its own estimate, which touches nothing; the time is bounded by its budget. */
struct check_cost runner_cost(const struct runner *runner, const struct accept_check *check);
/* Its budget: as the plan says, else by kind and tier; ns. */
uint64_t runner_budget(const struct runner *runner, const struct accept_check *check);

/* Runs it, and again for what cannot be told yet, within its budget.  A line of measured.jsonl; fresh; NULL without
 * memory. */
json_t *runner_check(const struct runner *runner, const struct accept_check *check);

#endif
