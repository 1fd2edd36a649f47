/* Results of before 2026-11-24 name the engine and the backend and do not say what these are like.  Here alone is that told by
 * their names. */
#ifndef MLBENCH_RECORD_OLDER_FACTS_H
#define MLBENCH_RECORD_OLDER_FACTS_H

#include "harness/record/record.h"

/* Of a repetition of the record that has none. */
struct workload_facts older_facts(const struct record *record, const struct measurement *m);
/* Of an engine that probed. */
bool older_reads_block(const char *engine);

#endif
