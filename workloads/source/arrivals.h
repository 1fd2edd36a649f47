/* For how long some reply was on its way: a part of it had come, and the rest had not.
 *
 * A link that is full paces the bytes of a reply, so that one is on its way nearly all the time; where
 * the server is what is slow, replies come in bursts with nothing between.  A server that sends a
 * reply piece by piece looks like a link.
 *
 * Times that overlap count once, over all connections of all threads: they share a link. */
#ifndef MLBENCH_WORKLOADS_SOURCE_ARRIVALS_H
#define MLBENCH_WORKLOADS_SOURCE_ARRIVALS_H

#include <stdint.h>

/* Any thread may call any of these; `now_ns` is the caller's and never before another's by more than
 * threads need to get the lock. */
struct arrivals;

struct arrivals *arrivals_new(void);           /* NULL: no memory */
void arrivals_free(struct arrivals *arrivals); /* NULL is fine */
void arrivals_begin(struct arrivals *arrivals, uint64_t now_ns);
void arrivals_end(struct arrivals *arrivals, uint64_t now_ns);
uint64_t arrivals_ns(struct arrivals *arrivals, uint64_t now_ns); /* until now */

#endif
