/* From what was recorded to a struct measurement: finds the cut, takes differences between the cut and
 * the end, and says in words what is missing. */
#ifndef MLBENCH_PIPELINES_COLLECT_H
#define MLBENCH_PIPELINES_COLLECT_H

#include "harness/config/config.h"
#include "harness/record/measurement.h"
#include "harness/record/trace.h"
#include "pipelines/device_watch.h"
#include "pipelines/monitor.h"
#include "pipelines/pipeline.h"
#include "pipelines/rounds.h"
#include "pipelines/stepper.h"
#include "workloads/source/source.h"

/* The part that is measured: between the edge at the cut and the last one. */
struct span {
	const struct edge *from, *to;
	double seconds;
	struct completion steps; /* between completions, from this time on */
	uint64_t completed_from_ns;
	uint64_t completions;
};

struct recorded {
	const struct config *config;
	const struct pipeline_plan *plan;
	const struct monitor *monitor;   /* at least two edges */
	const struct step_account *step; /* of the first device: what is the same of all */
	const struct devices *devices;
	const struct rounds *rounds;
	const struct first_epoch *first_epoch;
	uint64_t warmup_ns; /* as it was */
	unsigned cores;
	bool emulates_storage;
	const struct source_ops *source;
	const struct dataset *dataset;
	struct nvml_watch *nvml; /* stopped; NULL: the device was not watched */
	bool interrupted;
};

/* Sets m's status to OK, UNSTEADY or INTERRUPTED.  traces may be NULL.  0 or -ENOMEM. */
int collect(const struct recorded *recorded, struct measurement *m, struct traces *traces);

#endif
