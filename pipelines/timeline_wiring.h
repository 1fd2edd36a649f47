/* The timeline of a repetition (harness/measure/timeline.h) and the pipeline's parts: how much room it needs, and which log
 * is whose. */
#ifndef MLBENCH_PIPELINES_TIMELINE_WIRING_H
#define MLBENCH_PIPELINES_TIMELINE_WIRING_H

#include "pipelines/wiring.h"

/* Fills plan's timeline_ members, from its other ones.  Zeros without trace.schedule. */
void timeline_wiring_plan(const struct config *config, struct pipeline_plan *plan);

/* Opens the run's timeline, when one is wanted, after the stages and before the exchange.  0 or -ENOMEM. */
int timeline_wiring_open(struct run *run);

/* Logs of the queue of uploaded batches and of the streams of a device; NULL: no timeline. */
struct timeline_log *timeline_wiring_queue(struct run *run, const char *name, unsigned device);
struct timeline_log *timeline_wiring_stream(struct run *run, const char *name, unsigned device);

/* The clock starts. */
void timeline_wiring_start(struct run *run, uint64_t start_ns);

/* After the threads have ended: hands the timeline over to *out, and says in a note what it holds. */
void timeline_wiring_hand_over(struct run *run, struct timeline **out);

#endif
