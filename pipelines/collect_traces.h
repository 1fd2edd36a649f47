/* From the threads' logs to traces of the stages: collect.c's, after the threads have ended. */
#ifndef MLBENCH_PIPELINES_COLLECT_TRACES_H
#define MLBENCH_PIPELINES_COLLECT_TRACES_H

#include "harness/record/trace.h"
#include "pipelines/stage_meters.h"

/* Monotonic times: of the start, and of the part that was measured. */
struct trace_span {
	uint64_t start_ns, begin_ns, end_ns;
};

/* stages: (STAGE_IDS).  Fills traces, which was {0}; 0 or -ENOMEM. */
int collect_traces(
	const struct stage *stages, const struct trace_span *span, struct traces *traces);

#endif
