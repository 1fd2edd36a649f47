/* Injected conditions in front of every engine: an emulated storage (a bandwidth over all readers, a
 * latency per file, a cache), or the real one k times as slow (pace.h).  A request that the engine has
 * completed is held until
 *     max(done, submitted + latency, the time its last byte comes through a link of that bandwidth)
 * which is then its done_ns.  The link serves requests one after the other, each from its
 * submission on at the earliest: an idle link saves nothing up, so the bytes released by any time t
 * are at most bandwidth * t.  What the emulated storage's cache holds passes at once. */
#ifndef MLBENCH_WORKLOADS_SOURCE_LIMITER_H
#define MLBENCH_WORKLOADS_SOURCE_LIMITER_H

#include "harness/config/active.h"
#include "workloads/source/pace.h"
#include "workloads/source/sample_cache.h"
#include "workloads/source/source.h"

struct source_limiter {
	uint64_t bytes_per_s; /* 0: no cap */
	uint64_t latency_ns;
	double factor;              /* of a storage that is not emulated; up to 1: as it is */
	struct sample_cache *cache; /* of the emulated storage; NULL: none */
	struct active_span span;    /* when files are held; the cache works at any time */
	uint64_t start_ns;          /* of the repetition: set before the readers start */
	_Alignas(COUNTER_ALIGN_BYTES)
		atomic_uint_fast64_t link_free_ns; /* the link is busy until then */
};

/* True when `config` injects any. */
bool limiter_wanted(const struct config *config);
/* 0 or -ENOMEM, with nothing to release. */
int limiter_init(
	struct source_limiter *limiter, const struct config *config, const struct dataset *dataset);
void limiter_release(struct source_limiter *limiter); /* safe on {0} */

/* A storage is emulated: what is read comes from it or from its cache, wherever it really came from. */
static inline bool limiter_is_storage(const struct source_limiter *limiter)
{
	return limiter->bytes_per_s > 0 || limiter->latency_ns > 0;
}

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
