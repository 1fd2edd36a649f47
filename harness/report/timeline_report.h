/* trace.json: a timeline in the Trace Event Format, which Perfetto and chrome://tracing open.
 * (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU)
 *
 * The first line holds the schema (mlbench.timeline/1) and, in otherData, what the times mean; then comes one event
 * a line, those of a track together and in order; the last line closes it.  The file is streamed: writing it takes no
 * memory that grows with it. */
#ifndef MLBENCH_REPORT_TIMELINE_REPORT_H
#define MLBENCH_REPORT_TIMELINE_REPORT_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/measure/timeline.h"
#include "harness/record/measurement.h"
#include "harness/record/record.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_SCHEMA "mlbench.timeline/1"

/* A rank of several that recorded at once.  One file holds all of them: two processes each, whose times are on the leader's
 * clock, and what is known of each in otherData.ranks. */
struct timeline_rank {
	unsigned rank;
	const char *host;
	/* Of its monotonic clock: added to it, this is the leader's, give or take the error. */
	int64_t offset_ns;
	uint64_t error_ns;
	uint64_t
		origin_ns; /* when the file's times begin, by the leader's clock: before any rank does */
};

struct timeline_story {
	const struct timeline *timeline; /* finished, with a window at least */
	const struct measurement *m;     /* of the same repetition */
	const char *name, *config_hash, *schedule;
	const struct timeline_rank *rank; /* NULL: it was alone */
};

/* Takes text; false: it could not, and no more of it is asked for. */
typedef bool timeline_sink(void *context, const char *text, size_t size);

/* A rank's part of the leader's file: its place in otherData.ranks, NULL without memory, and its events, which follow those of
 * another rank: each begins with a comma, and the sink gets it whole.  0 or a negative errno. */
json_t *timeline_part(const struct timeline_story *story);
json_t *timeline_no_part(const struct timeline_rank *rank, const char *why);
/* Says in words where it is of other steps than the leader's.  A rank may end a step before another. */
void timeline_compare_part(
	const struct timeline *leader, const json_t *part, struct buffer *difference);
int timeline_write_part(const struct timeline_story *story, timeline_sink *sink, void *context);

/* The other ranks' parts, for the leader: they are asked for one by one, and none is kept. */
struct timeline_others {
	struct timeline_rank leader;
	json_t *parts; /* by rank, from 1 on; NULL: it is alone */
	/* The events of a rank. */
	int (*events)(
		void *context, unsigned rank, timeline_sink *sink, void *to, struct error *err);
	void *context;
};
/* Saves the timeline of a repetition of the record, and those of other ranks behind it. */
int record_save_timeline(const struct record *record, const struct timeline *timeline,
	const struct measurement *m, const struct timeline_others *others, struct error *err);

#endif
