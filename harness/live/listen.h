/* A run's metrics over HTTP while it goes on, on the loopback interface alone (127.0.0.1 and, where there is one, [::1]):
 * GET /metrics.  One thread for each address, a few connections, short time-outs; the run knows nothing of it. */
#ifndef MLBENCH_LIVE_LISTEN_H
#define MLBENCH_LIVE_LISTEN_H

#include "harness/base/error.h"
#include "harness/measure/live.h"
#include "harness/report/openmetrics.h"

#include <stdint.h>

enum { LISTEN_PORT_DEFAULT = 9477 };

struct listener;

/* port 0: one that is free.  The board outlives it.  -EINVAL: the port cannot be had, with the reason. */
int listener_open(
	struct listener **out, const struct live_board *board, uint16_t port, struct error *err);
void listener_close(struct listener *listener); /* NULL is fine */
uint16_t listener_port(const struct listener *listener);

/* "9477" -> 9477; NULL: the default.  -EINVAL. */
int listener_parse_port(const char *text, uint16_t *port, struct error *err);

/* The moment that it is asked for, by two clocks. */
struct metrics_time {
	uint64_t now_ns; /* monotonic */
	double now;      /* seconds since the epoch */
};
struct metrics_time metrics_now(void);

/* A picture of a run as metrics (harness/report/openmetrics_names.h).  Counters are of the repetition that runs, and begin
 * anew with the next; what is not known, or not true between two repetitions, is left out.  stuck: 1 or 0; NAN: not known. */
void metrics_write(const struct live_view *view, struct metrics_time time, double stuck,
	enum openmetrics_dialect dialect, struct buffer *out);

#endif
