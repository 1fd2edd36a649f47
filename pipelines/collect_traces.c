/* From the threads' logs to traces of the stages. */
#include "pipelines/collect_traces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What the stage's threads did, or (device) what devices did for them. */
static int gather(const struct stage *stage, const char *name, enum trace_kind kind, bool device,
	const struct trace_span *span, struct traces *traces)
{
	const struct trace_log **logs = malloc(stage->workers * sizeof(const struct trace_log *));
	if (!logs)
		return -ENOMEM;
	for (unsigned i = 0; i < stage->workers; i++)
		logs[i] = device ? &stage->meters[i].device : &stage->meters[i].trace;
	const struct trace_source source = {
		.stage = name,
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
		[STAGE_SYNC] = TRACE_BATCH,
	};
	traces->begin_s = (double)(span->begin_ns - span->start_ns) / 1e9;
	traces->end_s = (double)(span->end_ns - span->start_ns) / 1e9;
	int code = 0;
	for (int id = 0; id < STAGE_IDS && !code; id++)
		if (stages[id].workers > 0 && stages[id].meters)
			code = gather(&stages[id], stages[id].name, kinds[id], false, span, traces);
	for (int id = 0; id < STAGE_IDS && !code; id++) {
		char name[NAME_BYTES];
		if (stages[id].workers == 0 || !stages[id].meters ||
			stages[id].meters->device.room == 0)
			continue;
		(void)snprintf(name, sizeof name, TRACE_DEVICE_PREFIX "%s", stages[id].name);
		code = gather(&stages[id], name, kinds[id], true, span, traces);
	}
	return code;
}
