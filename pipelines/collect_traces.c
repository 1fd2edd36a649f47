/* From the threads' logs to traces of the stages. */
#include "pipelines/collect_traces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum which_log { LOG_STAGE, LOG_DEVICE, LOG_RAMP };

static const struct trace_log *log_of(const struct thread_meter *meter, enum which_log which)
{
	switch (which) {
	case LOG_DEVICE:
		return &meter->device;
	case LOG_RAMP:
		return &meter->ramp;
	case LOG_STAGE:
		break;
	}
	return &meter->trace;
}

/* What the stage's threads did, or (device) what devices did for them, or the first of it. */
static int collect_traces_gather(const struct stage *stage, const char *name, enum trace_kind kind,
	enum which_log which, const struct trace_span *span, struct traces *traces)
{
	const struct trace_log **logs = malloc(stage->workers * sizeof(const struct trace_log *));
	if (!logs)
		return -ENOMEM;
	for (unsigned i = 0; i < stage->workers; i++)
		logs[i] = log_of(&stage->meters[i], which);
	const struct trace_source source = {
		.stage = name,
		.kind = kind,
		.logs = logs,
		.count = stage->workers,
		.start_ns = span->start_ns,
		.begin_ns = which == LOG_RAMP ? span->start_ns : span->begin_ns,
		.end_ns = span->end_ns,
	};
	const int code = trace_gather(&traces->stages[traces->stage_count], &source);
	traces->stage_count += code == 0;
	free(logs);
	return code;
}

static bool has_log(const struct stage *stage, enum which_log which)
{
	return stage->workers > 0 && stage->meters && log_of(stage->meters, which)->room > 0;
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
		if (has_log(&stages[id], LOG_STAGE))
			code = collect_traces_gather(
				&stages[id], stages[id].name, kinds[id], LOG_STAGE, span, traces);
	for (int id = 0; id < STAGE_IDS && !code; id++) {
		char name[NAME_BYTES];
		if (!has_log(&stages[id], LOG_DEVICE))
			continue;
		(void)snprintf(name, sizeof name, TRACE_DEVICE_PREFIX "%s", stages[id].name);
		code = collect_traces_gather(
			&stages[id], name, kinds[id], LOG_DEVICE, span, traces);
	}
	if (!code && has_log(&stages[STAGE_READ], LOG_RAMP))
		code = collect_traces_gather(
			&stages[STAGE_READ], TRACE_READ_RAMP, TRACE_READ, LOG_RAMP, span, traces);
	return code;
}
