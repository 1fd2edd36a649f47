/* A run's metrics over HTTP while it goes on, on the loopback interface alone (127.0.0.1 and, where there is one, [::1]):
 * GET /metrics.  One thread for each address, a few connections, short time-outs; the run knows nothing of it. */
#ifndef MLBENCH_LIVE_LISTEN_H
#define MLBENCH_LIVE_LISTEN_H

#include "harness/base/error.h"
#include "harness/measure/live.h"

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

#endif
