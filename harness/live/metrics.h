/* A picture of a run as metrics (harness/report/openmetrics_names.h).  Counters are of the repetition that runs, and begin anew
 * with the next; what is not known, or not true between two repetitions, is left out. */
#ifndef MLBENCH_LIVE_METRICS_H
#define MLBENCH_LIVE_METRICS_H

#include "harness/measure/live.h"
#include "harness/report/openmetrics.h"

/* The moment that it is asked for, by two clocks. */
struct metrics_time {
	uint64_t now_ns; /* monotonic */
	double now;      /* seconds since the epoch */
};
struct metrics_time metrics_now(void);

/* stuck: 1 or 0; NAN: not known. */
void metrics_write(const struct live_view *view, struct metrics_time time, double stuck,
	enum openmetrics_dialect dialect, struct buffer *out);

#endif
