/* The stages of a pipeline, in the order of a sample's way: the one table of them.  A record has a stage's role by these names, and
 * whoever judges compares with these alone. */
#ifndef MLBENCH_RECORD_STAGES_H
#define MLBENCH_RECORD_STAGES_H

#include <stdbool.h>
#include <string.h>

/* SYNC is no thread's: what of their steps the devices spend in exchanging gradients (devices.h). */
enum stage_id {
	STAGE_READ,
	STAGE_DECODE,
	STAGE_UPLOAD,
	STAGE_STEP,
	STAGE_SYNC,
	STAGE_IDS,
	/* What a verdict may name beside them: the queue before the step, and memory that grows. */
	STAGE_PREFETCH = STAGE_IDS,
	STAGE_MEMORY,
	STAGE_NAMES
};

/* For tables, which want constants. */
#define STAGE_READ_NAME "read"
#define STAGE_DECODE_NAME "decode"
#define STAGE_UPLOAD_NAME "upload"
#define STAGE_STEP_NAME "step"
#define STAGE_SYNC_NAME "sync"
#define STAGE_PREFETCH_NAME "prefetch"
#define STAGE_MEMORY_NAME "memory"

extern const char *const stage_names[STAGE_NAMES];

static inline const char *stage_name(enum stage_id id)
{
	return stage_names[id];
}

static inline bool stage_is(const char *name, enum stage_id id)
{
	return strcmp(name, stage_names[id]) == 0;
}

#endif
