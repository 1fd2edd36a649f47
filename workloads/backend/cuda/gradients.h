/* A session's part in the exchange of gradients between devices: its place in the group, and the exchange on its stream. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_GRADIENTS_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_GRADIENTS_H

#include "harness/base/error.h"

#include <stdbool.h>

struct cuda_session;
struct flight;

/* Joins options.group, where there is one, and exchanges once what a step will, so that no timed step is the first; all its
 * sessions at the same time, their gradients zeros. */
int exchange_join(struct cuda_session *session, struct error *err);
/* This session will not go on: the others need not wait for it. */
void exchange_fail(struct cuda_session *session);
/* Before anything is freed or waited for. */
void exchange_leave(struct cuda_session *session);

/* The sum over all devices in place of each one's gradients, between the flight's two events. */
int exchange_enqueue(struct cuda_session *session, const struct flight *flight, struct error *err);

/* Whether it gives the same bits for the same gradients. */
bool exchange_deterministic(const struct cuda_session *session);

#endif
