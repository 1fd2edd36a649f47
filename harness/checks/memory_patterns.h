/* Memory that does not keep what was written: patterns that are written past the caches and read back, by the cores of the
 * NUMA node on which the memory lies.
 *
 *	address      each word holds its own address: wrong address lines show
 *	walking      one bit of each word is set, another one in the next: bits that stick or touch others
 *	random       a sequence that looks random
 *	inversions   all words 0x55...: upwards each is read and replaced by its complement, and downwards back
 *
 * The others are read upwards, replaced by their complement, and read once more. */
#ifndef MLBENCH_CHECKS_MEMORY_PATTERNS_H
#define MLBENCH_CHECKS_MEMORY_PATTERNS_H

#include "harness/base/error.h"
#include "harness/checks/corruption.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PATTERN_NODES_MAX = 64,
	PATTERN_FINDINGS_MAX = 8, /* of a node, that are kept with their details; all are counted */
	PATTERN_AGAIN = 8,        /* times that a wrong word is read once more */
};

struct pattern_finding {
	const char *pattern;
	unsigned core;     /* that read it */
	uint64_t offset;   /* bytes from the start of the node's block */
	uint64_t physical; /* address; 0: the kernel does not tell (it tells root) */
	uint64_t found, expected;
	unsigned again; /* of PATTERN_AGAIN readings past the cache, that were wrong too */
};

struct pattern_node {
	unsigned node; /* as the kernel counts */
	size_t cores;  /* that tested it; 0: the node has none of its own, and others did */
	uint64_t bytes;
	uint64_t words;  /* read and compared */
	uint64_t wrong;  /* of these */
	unsigned passes; /* whole ones */
	struct pattern_finding findings[PATTERN_FINDINGS_MAX];
	size_t finding_count;
	char why[ERROR_TEXT_BYTES]; /* why nothing of it could be tested; "": it was */
};

struct pattern_plan {
	uint64_t bytes; /* on all nodes together */
	unsigned passes;
	uint64_t deadline_ns; /* 0: none */
	const atomic_bool *stop;
	const struct corruptions *corruptions;
	/* Told before each node, so that one that hangs is named.  May be NULL. */
	void (*activity)(void *context, unsigned node, uint64_t bytes);
	void *context;
};

/* One node after the other.  nodes: PATTERN_NODES_MAX.  0 with how many there are in *count, also where it was stopped or
 * the time was over; -ENOTSUP: the nodes cannot be told. */
int memory_patterns_run(const struct pattern_plan *plan, struct pattern_node *nodes, size_t *count,
	struct error *err);

#endif
