/* Holding completed requests back until their time.  The held ones are a binary heap; the reader
 * sleeps in the engine while that still has requests in flight, else on the clock. */
#include "workloads/source/limiter.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

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
	       config_real(config, KEY_INJECT_READ_FACTOR) > 1;
}

/* At least 1: a rate of 0 is none. */
static uint64_t slowed_rate(const struct config *config, double factor)
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
		.bytes_per_s = slowed_rate(config, factor),
		.latency_ns = (uint64_t)(factor * config_real(config, KEY_INJECT_READ_LATENCY)),
		.factor = factor,
		.span = active_span_of(config),
	};
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

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Takes the link for size bytes from start_ns at the earliest; when the last of them is through. */
static uint64_t take_link(struct source_limiter *limiter, uint64_t start_ns, size_t size)
{
	const uint64_t busy_ns =
		(uint64_t)((double)size * (double)NS_PER_S / (double)limiter->bytes_per_s);
	uint64_t free_ns = atomic_load_explicit(&limiter->link_free_ns, memory_order_relaxed);
	uint64_t end_ns;
	do {
		end_ns = later(free_ns, start_ns) + busy_ns;
	} while (!atomic_compare_exchange_weak_explicit(&limiter->link_free_ns, &free_ns, end_ns,
		memory_order_relaxed, memory_order_relaxed));
	return end_ns;
}

uint64_t limiter_release_ns(
	struct source_limiter *limiter, uint64_t submitted_ns, uint64_t done_ns, size_t size)
{
	const uint64_t release_ns = later(done_ns, submitted_ns + limiter->latency_ns);
	if (limiter->bytes_per_s == 0)
		return release_ns;
	return later(release_ns, take_link(limiter, submitted_ns, size));
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

static bool before(const struct held *a, const struct held *b)
{
	return a->release_ns != b->release_ns ? a->release_ns < b->release_ns
					      : a->arrival < b->arrival;
}

static void push(struct limiter_queue *queue, uint64_t release_ns, struct read_request *request)
{
	const struct held held = {release_ns, queue->arrivals++, request};
	size_t at = queue->count++;
	while (at > 0 && before(&held, &queue->heap[(at - 1) / 2])) {
		queue->heap[at] = queue->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	queue->heap[at] = held;
}

static struct read_request *pop(struct limiter_queue *queue)
{
	struct read_request *const first = queue->heap[0].request;
	const struct held last = queue->heap[--queue->count];
	size_t at = 0;
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= queue->count)
			break;
		if (child + 1 < queue->count &&
			before(&queue->heap[child + 1], &queue->heap[child]))
			child++;
		if (!before(&queue->heap[child], &last))
			break;
		queue->heap[at] = queue->heap[child];
		at = child;
	}
	queue->heap[at] = last;
	return first;
}

/* When a completed request is released; says whether the emulated storage had it in its cache. */
static uint64_t release_time(
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
	return limiter_release_ns(limiter, submitted_ns, done_ns, request->size);
}

/* What the storage does by itself, as long as nothing of ours slows it down. */
static void learn(const struct reader *reader, struct read_request *const *batch, size_t count,
	uint64_t now_ns)
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
static void harvest(struct reader *reader, uint64_t wait_ns)
{
	struct limiter_queue *const queue = reader->limiter;
	for (;;) {
		struct read_request *batch[HARVEST_BATCH];
		const size_t room = earlier(queue->capacity - queue->count, HARVEST_BATCH);
		if (room == 0)
			return;
		const size_t count = reader->source->ops->reap(reader, batch, room, wait_ns);
		const uint64_t now_ns = clock_now_ns();
		learn(reader, batch, count, now_ns);
		for (size_t i = 0; i < count; i++) {
			struct read_request *const request = batch[i];
			const uint64_t done_ns = request->done_ns ? request->done_ns : now_ns;
			request->done_ns = release_time(queue, request, done_ns);
			push(queue, request->done_ns, request);
		}
		if (count < room)
			return;
		wait_ns = 0;
	}
}

static size_t release(
	struct limiter_queue *queue, struct read_request **done, size_t room, uint64_t now_ns)
{
	size_t count = 0;
	while (count < room && queue->count > 0 && queue->heap[0].release_ns <= now_ns)
		done[count++] = pop(queue);
	return count;
}

/* Sleeps until something can have changed, `until_ns` at the latest. */
static void sleep_once(struct reader *reader, uint64_t now_ns, uint64_t until_ns)
{
	struct limiter_queue *const queue = reader->limiter;
	if (queue->count > 0)
		until_ns = earlier(until_ns, queue->heap[0].release_ns);
	const bool engine_busy = reader->in_flight > queue->count && queue->count < queue->capacity;
	if (until_ns <= now_ns)
		return;
	if (engine_busy)
		harvest(reader, until_ns - now_ns);
	else
		clock_sleep_until_ns(until_ns);
}

size_t limiter_reap(
	struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns)
{
	struct limiter_queue *const queue = reader->limiter;
	uint64_t now_ns = clock_now_ns();
	const uint64_t deadline_ns = wait_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + wait_ns;
	harvest(reader, 0);
	for (;;) {
		now_ns = clock_now_ns();
		const size_t count = release(queue, done, room, now_ns);
		if (count > 0 || now_ns >= deadline_ns)
			return count;
		sleep_once(reader, now_ns, deadline_ns);
	}
}
