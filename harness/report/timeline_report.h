/* trace.json: a timeline in the Trace Event Format, which Perfetto and chrome://tracing open.
 * (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU)
 *
 * The first line holds the schema (mlbench.timeline/1) and, in otherData, what the times mean; then comes one event
 * a line, those of a track together and in order; the last line closes it.  The file is streamed: writing it takes no
 * memory that grows with it. */
#ifndef MLBENCH_REPORT_TIMELINE_REPORT_H
#define MLBENCH_REPORT_TIMELINE_REPORT_H

#include "harness/base/error.h"
#include "harness/measure/timeline.h"
#include "harness/record/measurement.h"
#include "harness/record/record.h"

#define TIMELINE_SCHEMA "mlbench.timeline/1"

struct timeline_story {
	const struct timeline *timeline; /* finished, with a window at least */
	const struct measurement *m;     /* of the same repetition */
	const char *name, *config_hash, *schedule;
};

/* Where a point's is: trace.json in the folder of a run, trace-p00012.json in that of a sweep; with .gz where it is
 * compressed.  Free it; NULL without memory. */
char *timeline_path(const struct record *record, uint32_t point, bool compress);

/* Saves the timeline of a repetition of the record. */
int record_save_timeline(const struct record *record, const struct timeline *timeline,
	const struct measurement *m, struct error *err);

#endif
