/* From the threads' logs to traces of the stages. */
#include "pipelines/collect_traces.h"

#include <errno.h>
#include <stdlib.h>

static int gather(const struct stage *stage, enum trace_kind kind, const struct trace_span *span,
	struct traces *traces)
{
	const struct trace_log **logs = malloc(stage->workers * sizeof(const struct trace_log *));
	if (!logs)
		return -ENOMEM;
	for (unsigned i = 0; i < stage->workers; i++)
		logs[i] = &stage->meters[i].trace;
	const struct trace_source source = {
		.stage = stage->name,
		.kind = kind,
		.logs = logs,
		.count = stage->workers,
		.start_ns = span->start_ns,
		.begin_ns = span->begin_ns,
		.end_ns = span->end_ns,
	};
	const int code = trace_gather(&traces->stages[traces->stage_count], &source);
	traces->stage_count += code == 0;
	free(logs);
	return code;
}

int collect_traces(const struct stage *stages, const struct trace_span *span, struct traces *traces)
{
	static const enum trace_kind kinds[STAGE_IDS] = {
		[STAGE_READ] = TRACE_READ,
		[STAGE_DECODE] = TRACE_DECODE,
		[STAGE_UPLOAD] = TRACE_BATCH,
		[STAGE_STEP] = TRACE_BATCH,
	};
	traces->begin_s = (double)(span->begin_ns - span->start_ns) / 1e9;
	traces->end_s = (double)(span->end_ns - span->start_ns) / 1e9;
	for (int id = 0; id < STAGE_IDS; id++) {
		const struct stage *stage = &stages[id];
		const int code = stage->workers > 0 && stage->meters
					 ? gather(stage, kinds[id], span, traces)
					 : 0;
		if (code)
			return code;
	}
	return 0;
}
