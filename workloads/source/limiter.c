/* Injected conditions: an emulated storage with a cache, or the real one at a slower pace.  Completed
 * requests are held in a binary heap until their time; the reader sleeps in the engine while that still
 * has requests in flight, else on the clock. */
#include "workloads/source/limiter.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* --- the pace of a real storage ------------------------------------------------------------------ */

enum {
	REFILL_SHARE = 4, /* of a gap, at most, may the reader have left the storage short */
};

/* Counts a gap between completions if the storage had all its work for nearly all of it. */
static void pace_learn_gap(
	struct pace *pace, uint64_t now_ns, uint64_t submitted_ns, uint64_t bytes)
{
	const uint64_t gap_ns = now_ns - pace->last_ns;
	const uint64_t short_ns = submitted_ns > pace->last_ns ? submitted_ns - pace->last_ns : 0;
	if (short_ns > gap_ns / REFILL_SHARE)
		return;
	pace->busy_ns += gap_ns;
	pace->busy_bytes += bytes;
}

void pace_learn(struct pace *pace, uint64_t now_ns, uint64_t submitted_ns, size_t files,
	uint64_t bytes, bool busy)
{
	if (pace->learned)
		return;
	if (pace->files == 0)
		pace->first_ns = now_ns;
	else if (busy)
		pace_learn_gap(pace, now_ns, submitted_ns, bytes);
	pace->last_ns = now_ns;
	pace->files += files;
	pace->learned = pace->files >= PACE_LEARN_FILES || now_ns - pace->first_ns >= PACE_LEARN_NS;
}

double pace_ns_per_byte(const struct pace *pace)
{
	return pace->busy_bytes > 0 ? (double)pace->busy_ns / (double)pace->busy_bytes : 0;
}

uint64_t pace_release_ns(struct pace *pace, uint64_t submitted_ns, uint64_t done_ns, uint64_t bytes)
{
	if (!pace->learned)
		return done_ns;
	const uint64_t stretched_ns =
		submitted_ns + (uint64_t)(pace->factor * (double)(done_ns - submitted_ns));
	const uint64_t from_ns =
		pace->link_free_ns > submitted_ns ? pace->link_free_ns : submitted_ns;
	pace->link_free_ns =
		from_ns + (uint64_t)(pace->factor * pace_ns_per_byte(pace) * (double)bytes);
	return pace->link_free_ns > stretched_ns ? pace->link_free_ns : stretched_ns;
}

/* --- what an emulated storage has in its cache ---------------------------------------------------- */

/* A ring of indices: entry `count` is the head, whose `older` is the most recently used sample and whose
 * `newer` is the next to go. */

static const uint32_t CACHE_OUTSIDE = UINT32_MAX;

struct cache_link {
	uint32_t older, newer; /* CACHE_OUTSIDE: not in the cache */
};

struct sample_cache {
	pthread_mutex_t lock;
	const struct dataset *dataset;
	uint64_t room, used;
	uint32_t head;
	struct cache_link links[];
};

struct sample_cache *sample_cache_open(const struct dataset *dataset, uint64_t bytes)
{
	const size_t count = dataset->count;
	struct sample_cache *cache = malloc(sizeof *cache + (count + 1) * sizeof cache->links[0]);
	if (!cache)
		return NULL;
	if (pthread_mutex_init(&cache->lock, NULL)) {
		free(cache);
		return NULL;
	}
	cache->dataset = dataset;
	cache->room = bytes;
	cache->used = 0;
	cache->head = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		cache->links[i] = (struct cache_link){CACHE_OUTSIDE, CACHE_OUTSIDE};
	cache->links[count] = (struct cache_link){(uint32_t)count, (uint32_t)count};
	return cache;
}

void sample_cache_close(struct sample_cache *cache)
{
	if (!cache)
		return;
	(void)pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static void cache_take_out(struct sample_cache *cache, uint32_t sample)
{
	struct cache_link *const cache_link = &cache->links[sample];
	cache->links[cache_link->newer].older = cache_link->older;
	cache->links[cache_link->older].newer = cache_link->newer;
	*cache_link = (struct cache_link){CACHE_OUTSIDE, CACHE_OUTSIDE};
	cache->used -= cache->dataset->samples[sample].bytes;
}

static void cache_put_first(struct sample_cache *cache, uint32_t sample)
{
	struct cache_link *const head = &cache->links[cache->head];
	cache->links[sample] = (struct cache_link){.older = head->older, .newer = cache->head};
	cache->links[head->older].newer = sample;
	head->older = sample;
	cache->used += cache->dataset->samples[sample].bytes;
}

static bool cache_read_locked(struct sample_cache *cache, uint32_t sample)
{
	const uint64_t bytes = cache->dataset->samples[sample].bytes;
	const bool hit = cache->links[sample].older != CACHE_OUTSIDE;
	if (hit)
		cache_take_out(cache, sample);
	if (bytes > cache->room)
		return false;
	while (cache->used > cache->room - bytes)
		cache_take_out(cache, cache->links[cache->head].newer);
	cache_put_first(cache, sample);
	return hit;
}

bool sample_cache_read(struct sample_cache *cache, uint32_t sample)
{
	(void)pthread_mutex_lock(&cache->lock);
	const bool hit = cache_read_locked(cache, sample);
	(void)pthread_mutex_unlock(&cache->lock);
	return hit;
}

uint64_t sample_cache_bytes(struct sample_cache *cache)
{
	(void)pthread_mutex_lock(&cache->lock);
	const uint64_t used = cache->used;
	(void)pthread_mutex_unlock(&cache->lock);
	return used;
}

/* --- holding completed requests back ------------------------------------------------------------- */

static const uint64_t SLOW_STREAM = 0x7a11;

enum {
	HARVEST_BATCH = 64,
	TIMER_SLACK_NS = 1000, /* the default of 50 us would be added to every sleep */
};

struct held {
	uint64_t release_ns, arrival;
	struct read_request *request;
};

struct limiter_queue {
	struct source_limiter *limiter;
	struct pace pace; /* where no storage is emulated */
	uint64_t arrivals;
	size_t count, capacity;
	struct held heap[];
};

bool limiter_wanted(const struct config *config)
{
	return config_integer(config, KEY_INJECT_READ_BANDWIDTH) > 0 ||
	       config_integer(config, KEY_INJECT_READ_LATENCY) > 0 ||
	       (config_integer(config, KEY_INJECT_READ_SLOW_LATENCY) > 0 &&
		       config_real(config, KEY_INJECT_READ_SLOW_SHARE) > 0) ||
	       config_real(config, KEY_INJECT_READ_FACTOR) > 1;
}

/* At least 1: a rate of 0 would mean no limit. */
static uint64_t limiter_slowed_rate(const struct config *config, double factor)
{
	const double rate = config_real(config, KEY_INJECT_READ_BANDWIDTH);
	return rate > factor ? (uint64_t)(rate / factor) : rate > 0;
}

int limiter_init(
	struct source_limiter *limiter, const struct config *config, const struct dataset *dataset)
{
	const double factor = config_real(config, KEY_INJECT_READ_FACTOR);
	const double cached = config_real(config, KEY_INJECT_READ_CACHE);
	*limiter = (struct source_limiter){
		.bytes_per_s = limiter_slowed_rate(config, factor),
		.latency_ns = (uint64_t)(factor * config_real(config, KEY_INJECT_READ_LATENCY)),
		.slow_share = config_real(config, KEY_INJECT_READ_SLOW_SHARE),
		.factor = factor,
		.span = active_span_of(config),
	};
	if (limiter->slow_share > 0)
		limiter->slow_ns =
			(uint64_t)(factor * config_real(config, KEY_INJECT_READ_SLOW_LATENCY));
	if (cached <= 0 || !limiter_is_storage(limiter))
		return 0;
	limiter->cache =
		sample_cache_open(dataset, (uint64_t)(cached * (double)dataset->total_bytes));
	return limiter->cache ? 0 : -ENOMEM;
}

void limiter_release(struct source_limiter *limiter)
{
	sample_cache_close(limiter->cache);
	limiter->cache = NULL;
}

static uint64_t limiter_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t limiter_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Takes the link for size bytes from start_ns at the earliest; when the last of them is through. */
static uint64_t limiter_take_link(struct source_limiter *limiter, uint64_t start_ns, size_t size)
{
	const uint64_t busy_ns =
		(uint64_t)((double)size * (double)NS_PER_S / (double)limiter->bytes_per_s);
	uint64_t free_ns = atomic_load_explicit(&limiter->link_free_ns, memory_order_relaxed);
	uint64_t end_ns;
	do {
		end_ns = limiter_later(free_ns, start_ns) + busy_ns;
	} while (!atomic_compare_exchange_weak_explicit(&limiter->link_free_ns, &free_ns, end_ns,
		memory_order_relaxed, memory_order_relaxed));
	return end_ns;
}

uint64_t limiter_release_ns(
	struct source_limiter *limiter, uint64_t submitted_ns, uint64_t done_ns, size_t size)
{
	const uint64_t release_ns = limiter_later(done_ns, submitted_ns + limiter->latency_ns);
	if (limiter->bytes_per_s == 0)
		return release_ns;
	return limiter_later(release_ns, limiter_take_link(limiter, submitted_ns, size));
}

struct limiter_queue *limiter_queue_open(struct source_limiter *limiter, size_t capacity)
{
	struct limiter_queue *queue = calloc(1, sizeof *queue + capacity * sizeof queue->heap[0]);
	if (!queue)
		return NULL;
	queue->limiter = limiter;
	queue->capacity = capacity;
	queue->pace.factor = limiter->factor;
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0); /* of the calling reader thread */
	return queue;
}

void limiter_queue_close(struct limiter_queue *queue)
{
	free(queue);
}

size_t limiter_queue_held(const struct limiter_queue *queue)
{
	return queue->count;
}

static bool limiter_before(const struct held *a, const struct held *b)
{
	return a->release_ns != b->release_ns ? a->release_ns < b->release_ns
					      : a->arrival < b->arrival;
}

static void limiter_push(
	struct limiter_queue *queue, uint64_t release_ns, struct read_request *request)
{
	const struct held held = {release_ns, queue->arrivals++, request};
	size_t at = queue->count++;
	while (at > 0 && limiter_before(&held, &queue->heap[(at - 1) / 2])) {
		queue->heap[at] = queue->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	queue->heap[at] = held;
}

static struct read_request *limiter_pop(struct limiter_queue *queue)
{
	struct read_request *const first = queue->heap[0].request;
	const struct held last = queue->heap[--queue->count];
	size_t at = 0;
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= queue->count)
			break;
		if (child + 1 < queue->count &&
			limiter_before(&queue->heap[child + 1], &queue->heap[child]))
			child++;
		if (!limiter_before(&queue->heap[child], &last))
			break;
		queue->heap[at] = queue->heap[child];
		at = child;
	}
	queue->heap[at] = last;
	return first;
}

/* Always the same samples, whatever the order. */
static bool limiter_is_slow(const struct source_limiter *limiter, uint32_t sample)
{
	return limiter->slow_ns > 0 &&
	       (double)(rng_mix(sample, SLOW_STREAM) >> 11) * 0x1.0p-53 < limiter->slow_share;
}

/* When a completed request is released; says whether the emulated storage had it in its cache. */
static uint64_t limiter_release_time(
	struct limiter_queue *queue, struct read_request *request, uint64_t done_ns)
{
	struct source_limiter *const limiter = queue->limiter;
	const uint64_t submitted_ns = request->submitted_ns;
	const bool active = active_at(&limiter->span, submitted_ns - limiter->start_ns);
	if (!limiter_is_storage(limiter))
		return active ? pace_release_ns(&queue->pace, submitted_ns, done_ns, request->size)
			      : done_ns;
	request->cached = limiter->cache && sample_cache_read(limiter->cache, request->sample);
	if (request->cached || !active)
		return done_ns;
	const uint64_t bytes = request->packed == UINT64_MAX ? request->size : request->packed;
	const uint64_t release_ns =
		limiter_release_ns(limiter, submitted_ns, done_ns, (size_t)bytes);
	return limiter_is_slow(limiter, request->sample) ? release_ns + limiter->slow_ns
							 : release_ns;
}

/* What the storage does by itself, as long as nothing of ours slows it down. */
static void limiter_learn(const struct reader *reader, struct read_request *const *batch,
	size_t count, uint64_t now_ns)
{
	struct limiter_queue *const queue = reader->limiter;
	if (queue->pace.learned || limiter_is_storage(queue->limiter) || count == 0)
		return;
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += batch[i]->size;
	const bool busy = reader->in_flight - queue->count >= reader->source->depth;
	pace_learn(&queue->pace, now_ns, reader->submitted_ns, count, bytes, busy);
}

/* Moves what the engine has completed into the heap, waiting up to wait_ns for the first. */
static void limiter_harvest(struct reader *reader, uint64_t wait_ns)
{
	struct limiter_queue *const queue = reader->limiter;
	for (;;) {
		struct read_request *batch[HARVEST_BATCH];
		const size_t room = limiter_earlier(queue->capacity - queue->count, HARVEST_BATCH);
		if (room == 0)
			return;
		const size_t count = reader->source->ops->reap(reader, batch, room, wait_ns);
		const uint64_t now_ns = clock_now_ns();
		limiter_learn(reader, batch, count, now_ns);
		for (size_t i = 0; i < count; i++) {
			struct read_request *const request = batch[i];
			const uint64_t done_ns = request->done_ns ? request->done_ns : now_ns;
			request->done_ns = limiter_release_time(queue, request, done_ns);
			limiter_push(queue, request->done_ns, request);
		}
		if (count < room)
			return;
		wait_ns = 0;
	}
}

static size_t limiter_release_due(
	struct limiter_queue *queue, struct read_request **done, size_t room, uint64_t now_ns)
{
	size_t count = 0;
	while (count < room && queue->count > 0 && queue->heap[0].release_ns <= now_ns)
		done[count++] = limiter_pop(queue);
	return count;
}

/* Sleeps until something can have changed, `until_ns` at the latest. */
static void limiter_sleep_once(struct reader *reader, uint64_t now_ns, uint64_t until_ns)
{
	struct limiter_queue *const queue = reader->limiter;
	if (queue->count > 0)
		until_ns = limiter_earlier(until_ns, queue->heap[0].release_ns);
	const bool engine_busy = reader->in_flight > queue->count && queue->count < queue->capacity;
	if (until_ns <= now_ns)
		return;
	if (engine_busy)
		limiter_harvest(reader, until_ns - now_ns);
	else
		clock_sleep_until_ns(until_ns);
}

size_t limiter_reap(
	struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns)
{
	struct limiter_queue *const queue = reader->limiter;
	uint64_t now_ns = clock_now_ns();
	const uint64_t deadline_ns = wait_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + wait_ns;
	limiter_harvest(reader, 0);
	for (;;) {
		now_ns = clock_now_ns();
		const size_t count = limiter_release_due(queue, done, room, now_ns);
		if (count > 0 || now_ns >= deadline_ns)
			return count;
		limiter_sleep_once(reader, now_ns, deadline_ns);
	}
}
