/* Every (stage, resource) that a verdict can give: the one list that rules, reports and the runbook
 * share. */
#ifndef MLBENCH_ANALYZE_LIMIT_KIND_H
#define MLBENCH_ANALYZE_LIMIT_KIND_H

#include "harness/record/measurement.h"

#include <stddef.h>

enum { LIMIT_KINDS_MAX = 48, PAIR_BYTES = 2 * NAME_BYTES };

struct limit_kind {
	const char *stage, *resource;
	const char *words; /* "decode is the bottleneck: ..." */
};

extern const struct limit_kind limit_kinds[];
extern const size_t limit_kind_count;

/* NULL: no verdict has this pair. */
const struct limit_kind *limit_kind_find(const char *stage, const char *resource);

/* "decode/cpu" */
const char *limit_kind_pair(const char *stage, const char *resource, char out[PAIR_BYTES]);

enum { BOUND_BYTES = 96 };

/* "CPU-bound", or "limited by cache misses" for a resource that has no such adjective. */
const char *limit_kind_bound(const char *stage, const char *resource, char out[BOUND_BYTES]);

#endif
