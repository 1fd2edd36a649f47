/* Which experiments a diagnosis calls for, the configuration of each, and what the replay says of it. */
#ifndef MLBENCH_COMMAND_EXPERIMENTS_H
#define MLBENCH_COMMAND_EXPERIMENTS_H

#include "harness/analyze/experiment.h"
#include "harness/command/calibration.h"
#include "workloads/dataset/dataset.h"

struct experiments {
	struct config baseline;
	struct config late_baseline;             /* measured as late as slowed-down reads are */
	struct config variants[EXPERIMENTS_MAX]; /* of the verification's experiments */
	size_t count;
};

/* How many there are for this configuration, without the recommended setting, if there is one. */
size_t experiments_count(const struct config *config);
/* Adds to verification->experiments, predictions included; only stages that the pipeline has.  A variant
 * that cannot be, or that the replay cannot predict, says why. */
int experiments_open(struct experiments *experiments, struct verification *verification,
	const struct diagnosed *diagnosed, const struct dataset *dataset, struct error *err);
void experiments_close(struct experiments *experiments); /* safe on {0} */

/* What this one is interleaved with. */
const struct config *experiments_baseline(
	const struct experiments *experiments, const struct experiment *experiment);

/* How long each run takes, in all configurations. */
int experiments_set_time(struct experiments *experiments, const struct verification *verification,
	double warmup_s, double duration_s, struct error *err);

#endif
