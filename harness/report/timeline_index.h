/* A timeline in order: the entries that reach into its windows, by log and by what they are of.  Sorts them in the room
 * that the timeline has for it. */
#ifndef MLBENCH_REPORT_TIMELINE_INDEX_H
#define MLBENCH_REPORT_TIMELINE_INDEX_H

#include "harness/measure/timeline.h"

struct timeline_range {
	uint32_t first, count;
};

struct timeline_index {
	const struct timeline *timeline;
	/* Entries of each log, from its first on: by beginning, those that hold others first. */
	uint32_t *order;
	/* The same entries by kind, then by number; samples by batch, then by number. */
	uint32_t *by_number;
	uint32_t count;
	struct timeline_range *logs;                 /* (log_count) in order; owned */
	struct timeline_range kinds[TIMELINE_KINDS]; /* in by_number */
};

/* Of a finished timeline, which is used by one index at a time.  0 or -ENOMEM. */
int timeline_index_open(struct timeline_index *index, const struct timeline *timeline);
void timeline_index_close(struct timeline_index *index); /* safe on {0} */

static inline const struct timeline_entry *timeline_index_entry(
	const struct timeline_index *index, uint32_t id)
{
	return &index->timeline->entries[id];
}

/* The log of an entry. */
static inline const struct timeline_log *timeline_index_log(
	const struct timeline_index *index, uint32_t id)
{
	return &index->timeline->logs[index->timeline->owners[id / TIMELINE_CHUNK]];
}

/* The first window that [begin_ns, end_ns) reaches into, or NULL; a moment is in the window that it is in. */
const struct timeline_window *timeline_index_window(
	const struct timeline *timeline, uint64_t begin_ns, uint64_t end_ns);

/* The first entry of that kind and number; false: there is none. */
bool timeline_index_find(
	const struct timeline_index *index, enum timeline_kind kind, uint64_t number, uint32_t *id);

/* The samples of a batch, in by_number. */
struct timeline_range timeline_index_batch(const struct timeline_index *index, uint64_t batch);

/* Nanoseconds that the log's state clock spent in each state within the windows, by the clock's own sums. */
void timeline_index_account(const struct timeline_index *index, const struct timeline_log *log,
	uint64_t ns[THREAD_STATES]);

#endif
