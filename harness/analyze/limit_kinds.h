/* What a verdict can name: the tables of words that rules, reports and the runbook share. */
#ifndef MLBENCH_ANALYZE_LIMIT_KINDS_H
#define MLBENCH_ANALYZE_LIMIT_KINDS_H

#include "harness/base/buffer.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

/* Every (stage, resource) that a verdict on a result can give. */

enum { LIMIT_KINDS_MAX = 96, PAIR_BYTES = 2 * NAME_BYTES };

struct limit_kind {
	const char *stage, *resource;
	const char *words; /* "decode is the bottleneck: ..." */
};

extern const struct limit_kind limit_kinds[];
extern const size_t limit_kind_count;

/* NULL: no verdict has this pair. */
const struct limit_kind *limit_kind_find(const char *stage, const char *resource);

/* Of resources, or stages, that may be several ("latency or full") takes the next one and moves *rest behind it; false: none is left,
 * or, where *rest is not at its end, there is no name where one should be. */
bool limit_resource_next(const char **rest, char out[NAME_BYTES]);
bool limit_is_several(const char *names);
/* Whether the stage is one of them. */
bool limit_stage_is_of(const char *stages, const char *stage);

/* A store, or what it is reached by, that gives all it can: "full", or what it is full of. */
bool limit_is_full_store(const char *resource);

/* "decode/cpu" */
const char *limit_kind_pair(const char *stage, const char *resource, char out[PAIR_BYTES]);

enum { BOUND_BYTES = 96 };

/* "CPU-bound", or "limited by cache misses" for a resource that has no such adjective. */
const char *limit_kind_bound(const char *stage, const char *resource, char out[BOUND_BYTES]);

/* "read, latency-bound or limited by ...": resources may be several, or "". */
void limit_kinds_text(const char *stage, const char *resources, struct buffer *out);

/* The runbook's entries for verdicts on jobs of other programs (job_verdict.h). */
struct job_entry {
	const char *stage, *resource; /* of the verdict; NULL: any.  First match wins. */
	const char *entry_stage, *entry_resource;
};
enum { JOB_ENTRIES_MAX = 32 };
extern const struct job_entry job_entries[];
extern const size_t job_entry_count;

#endif
