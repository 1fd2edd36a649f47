/* pipeline_run with its time limits as parameters, for tests of what happens when a thread hangs. */
#ifndef MLBENCH_PIPELINES_RUN_H
#define MLBENCH_PIPELINES_RUN_H

#include "pipelines/pipeline.h"

struct pipeline_limits {
	uint64_t no_progress_ns; /* fails when nothing moves for so long, and 20 steps */
	uint64_t join_ns;        /* gives threads up that do not end in so long, and 20 steps */
};

int pipeline_run_limited(const struct config *config, const struct dataset *dataset,
	const struct pipeline_control *control, const struct pipeline_limits *limits,
	struct measurement *out, struct error *err);

#endif
