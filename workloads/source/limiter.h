/* Injected conditions in front of every engine: an emulated storage (a bandwidth over all readers, a
 * latency per file, a cache), or the real one k times as slow (struct pace).  A request that the engine has
 * completed is held until
 *     max(done, submitted + latency, the time its last byte comes through a link of that bandwidth)
 * which is then its done_ns; a slow file is held for longer, after that.  The link serves requests one after the other, each from its
 * submission on at the earliest: an idle link saves nothing up, so the bytes released by any time t
 * are at most bandwidth * t.  What the emulated storage's cache holds passes at once. */
#ifndef MLBENCH_WORKLOADS_SOURCE_LIMITER_H
#define MLBENCH_WORKLOADS_SOURCE_LIMITER_H

#include "harness/config/shape.h"
#include "workloads/source/source.h"

/* A storage that is k times as slow as the one there is (inject.read_factor).
 *
 * Stretching the time in flight by k is not enough: the storage then has fewer files in flight at once,
 * and one that is bound by bandwidth gives all it has as long as it has any.  So a reader's pace learns
 * first, undisturbed, how far apart completions are while the reader keeps all the files in flight that
 * it may: what this storage can give it.  From then on a file is released at
 *     max(submitted + k (done - submitted), the time its bytes come through a link that is k times as
 *         slow as that)
 * A storage that was never kept busy has no pace to learn, and only times in flight are stretched.
 *
 * Plain arithmetic on given times.  One reader's own. */
enum {
	PACE_LEARN_NS = 200 * 1000 * 1000, /* since the first completion, at most */
	PACE_LEARN_FILES = 1024,           /* enough of them, sooner */
};

struct pace {
	double factor; /* k */
	uint64_t first_ns, last_ns;
	uint64_t files, busy_bytes, busy_ns; /* seen while it learned */
	uint64_t link_free_ns;
	bool learned;
};

/* Files that completed together at now_ns, bytes in all.  busy: all that may be in flight were, and
 * have been since submitted_ns, when the last of them was handed over. */
void pace_learn(struct pace *pace, uint64_t now_ns, uint64_t submitted_ns, size_t files,
	uint64_t bytes, bool busy);

/* ns for a byte that this storage needs when it is kept busy; 0: not known. */
double pace_ns_per_byte(const struct pace *pace);

/* When a file is released that would be done at done_ns; takes the link's time. */
uint64_t pace_release_ns(
	struct pace *pace, uint64_t submitted_ns, uint64_t done_ns, uint64_t bytes);

/* Which samples an emulated storage has in its cache: least recently used out first, by bytes.  Holds
 * no data, only a list through one array; every operation is O(1) amortised.  Shared by all readers. */
struct sample_cache;

/* Empty, with room for bytes; 8 bytes of memory a sample.  dataset outlives it.  NULL without memory. */
struct sample_cache *sample_cache_open(const struct dataset *dataset, uint64_t bytes);
void sample_cache_close(struct sample_cache *cache); /* NULL is fine */

/* Reads a sample through the cache: true when it was there.  It is the most recently used after that,
 * unless it is larger than the whole cache.  Any thread. */
bool sample_cache_read(struct sample_cache *cache, uint32_t sample);

/* Of the samples in it, now. */
uint64_t sample_cache_bytes(struct sample_cache *cache);

/* --- in front of an engine --- */

struct source_limiter {
	uint64_t bytes_per_s; /* 0: no cap */
	uint64_t latency_ns;
	double slow_share;          /* of the samples, by their number; these ... */
	uint64_t slow_ns;           /* ... take so much longer; 0: none */
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
	return limiter->bytes_per_s > 0 || limiter->latency_ns > 0 || limiter->slow_ns > 0;
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
