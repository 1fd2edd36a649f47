/* Runs the experiments of a diagnosis within a time, and keeps what they gave beside the result. */
#ifndef MLBENCH_COMMAND_VERIFY_H
#define MLBENCH_COMMAND_VERIFY_H

#include "harness/analyze/experiment.h"
#include "harness/command/calibration.h"
#include "harness/command/party.h"
#include "harness/command/verify_ranks.h"
#include "workloads/dataset/dataset.h"

#include <stdatomic.h>

struct verify_job {
	const struct diagnosed *diagnosed;
	const struct dataset *dataset;
	struct party *party; /* runs them together */
	const struct verify_ranks *ranks;
	const char *folder; /* of the result; verification.json is written after each block */
	double budget_s;
	const atomic_bool *stop; /* Ctrl-C: what is done is kept */
};

enum { VERIFY_BUDGET_DEFAULT_S = 180 };

/* -EINVAL when budget_s is too short for the experiments of a configuration that runs at most at so many
 * samples/s (INFINITY: not known); err says what is needed for what, and which budget is enough.  knob: a recommended setting is tried, too. */
int verify_check_budget(const struct config *config, double throughput, bool knob, double budget_s,
	struct error *err);

/* The least that is not too short, in whole seconds. */
double verify_least_budget(const struct config *config, double throughput, bool knob);

/* How long a run takes, and nothing but its throughput is wanted of it: windows follow the duration. */
int verify_set_time(struct config *config, double warmup_s, double duration_s, struct error *err);

/* 0, also when it was stopped; -EINVAL: as verify_check_budget of what was diagnosed. */
int verify_run(const struct verify_job *job, struct verification *verification, struct error *err);

#endif
