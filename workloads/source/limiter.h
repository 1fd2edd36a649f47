/* Injected conditions in front of every engine: a bandwidth cap over all readers and a latency per
 * file.  A request that the engine has completed is held until
 *     max(done, submitted + latency, the time its last byte comes through a link of that bandwidth)
 * which is then its done_ns.  The link serves requests one after the other, each from its
 * submission on at the earliest: an idle link saves nothing up, so the bytes released by any time t
 * are at most bandwidth * t. */
#ifndef MLBENCH_WORKLOADS_SOURCE_LIMITER_H
#define MLBENCH_WORKLOADS_SOURCE_LIMITER_H

#include "workloads/source/source.h"

struct source_limiter {
	uint64_t bytes_per_s; /* 0: no cap */
	uint64_t latency_ns;
	_Alignas(COUNTER_ALIGN_BYTES)
		atomic_uint_fast64_t link_free_ns; /* the link is busy until then */
};

/* True when `config` injects any; then fills limiter. */
bool limiter_init(struct source_limiter *limiter, const struct config *config);

/* When a request of size bytes, submitted and completed at these times, is released.  Takes the
 * link's time: once per request.  Any thread. */
uint64_t limiter_release_ns(
	struct source_limiter *limiter, uint64_t submitted_ns, uint64_t done_ns, size_t size);

/* The requests of one reader that are held, a heap ordered by release time, then by arrival.  NULL
 * without memory.  capacity: what is held at once; more stay with the engine meanwhile. */
struct limiter_queue *limiter_queue_open(struct source_limiter *limiter, size_t capacity);
void limiter_queue_close(struct limiter_queue *queue); /* NULL is fine */
size_t limiter_queue_held(const struct limiter_queue *queue);

/* source_reap with the conditions; sleeps without burning CPU, exact to about 100 us. */
size_t limiter_reap(
	struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns);

#endif
