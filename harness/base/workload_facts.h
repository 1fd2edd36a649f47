/* What a reading engine, a kind of samples and a step's backend are like, whatever they are called: from their tables (source_ops,
 * sample_ops, backend_ops) into each repetition's record, and from there into analysis, which never looks at a name. */
#ifndef MLBENCH_BASE_WORKLOAD_FACTS_H
#define MLBENCH_BASE_WORKLOAD_FACTS_H

#include <stdbool.h>

struct workload_facts {
	bool reads_memory; /* the source has the bytes itself: a file is a pointer */
	bool reads_block;  /* one file at a time per reader thread, whatever read.depth says */
	/* Samples are cut out of large requests (read.request): service times of the read stage, their
	 * sequence and its first items are those of requests, and its items are samples all the same. */
	bool reads_large;
	bool uses_codecs;     /* samples are pictures that codecs decode */
	bool step_null;       /* nothing is computed */
	bool step_emulated;   /* its time is given, or published, and waited for */
	bool step_on_cores;   /* step.threads of this node's cores compute it */
	bool step_has_memory; /* its device has memory of its own: batches are copied to it */
};

#endif
