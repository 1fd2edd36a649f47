/* The control thread's part of a repetition: edges of windows, progress, the end, and the watchdog. */
#ifndef MLBENCH_PIPELINES_CONDUCT_H
#define MLBENCH_PIPELINES_CONDUCT_H

#include "pipelines/crew.h"
#include "pipelines/dither.h"
#include "pipelines/monitor.h"
#include "pipelines/pipeline.h"

/* A repetition without measure.min_batches goes on for so many times its duration. */
enum { CONDUCT_EXTENSION = 4 };

struct conduct {
	struct crew *crew;
	struct monitor *monitor;
	const struct pipeline_control *control;
	struct dither *dither;           /* of the warm-up; NULL: none */
	uint64_t warmup_ns, duration_ns; /* duration 0: until the step has had every batch */
	uint64_t min_batches;
	/* fails when nothing moves for so long, and 20 of the slowest waits */
	uint64_t no_progress_ns;
	uint64_t slowest_wait_ns; /* injected: one file may take so long */
};

/* From the start to the last edge; then everybody was told to stop.  *warmup_ns: how long the warm-up was, as configured or
 * longer.  True: interrupted by *stop. */
bool conduct_run(const struct conduct *conduct, uint64_t *warmup_ns);

#endif
