/* The exchange: see exchange.h for the idea and for why it cannot deadlock. */
#include "pipelines/exchange.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <stdlib.h>

enum {
	CHUNK_NS = 20000, /* a chunk may take about as long as waking a thread does */
	SERVICE_SMOOTHING = 8,
	SPINS = 400,
	SPAN_MAX = 1 << 22,
};

/* --- opening and closing -------------------------------------------------------------------------- */

/* The spare buffers lie behind all others. */
static uint8_t *spare_memory(const struct exchange_options *o)
{
	return o->blob_memory + (size_t)o->blobs * o->blob_bytes +
	       (size_t)o->large_blobs * o->large_bytes;
}

static void fill_blobs(struct exchange *x)
{
	const struct exchange_options *o = &x->options;
	for (uint32_t i = 0; i < o->blobs + o->spare_blobs; i++) {
		x->blobs[i] = (struct blob){.index = i, .request.room = o->blob_bytes};
		if (o->blob_memory)
			x->blobs[i].own_buffer =
				i < o->blobs
					? o->blob_memory + (size_t)i * o->blob_bytes
					: spare_memory(o) + (size_t)(i - o->blobs) * o->blob_bytes;
		x->blobs[i].request.buffer = x->blobs[i].own_buffer;
	}
	for (uint32_t i = 0; i < o->blobs; i++)
		x->free[x->free_count++] = o->blobs - 1 - i;
	for (uint32_t i = 0; i < o->spare_blobs; i++)
		x->spare[x->spare_count++] = o->blobs + o->spare_blobs - 1 - i;
	for (uint32_t i = 0; i < o->large_blobs; i++)
		x->free_large[x->free_large_count++] = o->blob_memory +
						       (size_t)o->blobs * o->blob_bytes +
						       (size_t)i * o->large_bytes;
	for (uint32_t i = 0; i < o->spare_large_blobs; i++)
		x->spare_large[x->spare_large_count++] = spare_memory(o) +
							 (size_t)o->spare_blobs * o->blob_bytes +
							 (size_t)i * o->large_bytes;
}

static int open_blobs(struct exchange *x)
{
	const struct exchange_options *o = &x->options;
	const size_t blobs = (size_t)o->blobs + o->spare_blobs;
	const size_t large = (size_t)o->large_blobs + o->spare_large_blobs;
	x->blobs = aligned_alloc(_Alignof(struct blob), blobs * sizeof *x->blobs);
	x->free = calloc(blobs, sizeof *x->free);
	x->free_large = calloc(large + 1, sizeof *x->free_large);
	x->spare = calloc(o->spare_blobs + 1, sizeof *x->spare);
	x->spare_large = calloc(o->spare_large_blobs + 1, sizeof *x->spare_large);
	if (!x->blobs || !x->free || !x->free_large || !x->spare || !x->spare_large)
		return -ENOMEM;
	fill_blobs(x);
	return 0;
}

/* Even, to a file: of 3 files in flight two readers have 1 and 2. */
static void share_depth(struct exchange *x, uint32_t depth)
{
	const uint64_t readers = x->options.readers;
	for (uint64_t i = 0; i < readers; i++)
		x->shares[i] = (uint32_t)((i + 1) * depth / readers - i * depth / readers);
}

static int open_shares(struct exchange *x)
{
	if (x->options.depth == 0)
		return 0;
	x->shares = calloc(x->options.readers, sizeof *x->shares);
	if (!x->shares)
		return -ENOMEM;
	share_depth(x, x->options.depth);
	x->counts_reads = true;
	return 0;
}

/* A reader that ran out of room is worth waking for so many free blobs. */
static uint32_t wake_threshold(const struct exchange_options *o)
{
	const uint32_t quarter = o->blobs / 4;
	const uint32_t threshold = quarter < o->read_depth ? quarter : o->read_depth;
	return threshold > 0 ? threshold : 1;
}

static int open_slots(struct exchange *x)
{
	const struct exchange_options *o = &x->options;
	const struct slots_options options = {
		.count = o->slots,
		.lanes = o->lanes,
		.in_order = o->in_order,
		.data = o->slot_memory,
		.slot_bytes = o->slot_bytes,
		.pictures = o->picture_memory,
		.labels = o->label_memory,
		.slot_labels = o->slot_samples,
	};
	return slots_open(&x->slots, &options);
}

int exchange_open(struct exchange *x, const struct exchange_options *o)
{
	*x = (struct exchange){.options = *o, .chunk = 1, .wake_free = wake_threshold(o)};
	x->options.lanes = o->lanes > 0 ? o->lanes : 1;
	int code = timed_lock_open(&x->lock, TIMED_LOCK_SHORT);
	if (code) {
		*x = (struct exchange){0};
		return code;
	}
	uint64_t span =
		2 * ((uint64_t)o->blobs + o->spare_blobs + (uint64_t)o->slots * o->slot_samples);
	span = span < SPAN_MAX ? span : SPAN_MAX;
	code = sampler_open(&x->sampler, &o->sampler);
	if (!code)
		code = ready_open(&x->ready, span);
	if (!code)
		code = open_slots(x);
	if (!code)
		code = open_blobs(x);
	if (!code)
		code = open_shares(x);
	if (code) {
		exchange_close(x);
		return code;
	}
	x->total_batches =
		o->sampler.epochs ? o->sampler.epochs * x->sampler.batches_per_epoch : UINT64_MAX;
	x->lane_batches = x->total_batches / x->options.lanes;
	return 0;
}

void exchange_close(struct exchange *x)
{
	if (x->options.blobs == 0)
		return;
	free(x->blobs);
	free(x->free);
	free(x->free_large);
	free(x->spare);
	free(x->spare_large);
	free(x->shares);
	slots_close(&x->slots);
	ready_close(&x->ready);
	sampler_close(&x->sampler);
	timed_lock_close(&x->lock);
	*x = (struct exchange){0};
}

void exchange_start_meters(struct exchange *x, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	queue_meter_start(&x->samples, now_ns);
	queue_meter_start(&x->batches, now_ns);
	x->samples.timeline = x->options.samples_timeline;
	x->batches.timeline = x->options.batches_timeline;
	(void)pthread_mutex_unlock(&x->lock.mutex);
}

/* --- who can go on, and who is woken ----------------------------------------------------------------- */

static bool stopping(const struct exchange *x)
{
	return atomic_load_explicit(x->options.stopping, memory_order_relaxed);
}

static bool all_handed(const struct exchange *x)
{
	return x->handed >= x->sampler.total;
}

static struct seat *pop(struct seat **list)
{
	struct seat *seat = *list;
	*list = seat->next;
	return seat;
}

static void push(struct seat **list, struct seat *seat)
{
	seat->next = *list;
	*list = seat;
}

static void move(struct seat **from, struct seat **to)
{
	push(to, pop(from));
}

static uint64_t lowest_batch(struct exchange *x)
{
	uint32_t item;
	(void)ready_lowest(&x->ready, &item);
	return x->blobs[item].ticket.batch;
}

/* How many of the ready files have, or can get, a slot: at most so many. */
static uint64_t takeable(struct exchange *x)
{
	const struct sampler *s = &x->sampler;
	const uint64_t batch = x->slots.next_assigned + x->slots.free_count; /* the first without */
	const uint64_t end = batch / s->batches_per_epoch * s->used +
			     batch % s->batches_per_epoch * s->options.batch_size;
	const uint64_t span = end - x->ready.lowest;
	return x->ready.count < span ? x->ready.count : span;
}

static void turn_clocks(struct seat *list, enum thread_state state, uint64_t now_ns)
{
	for (; list; list = list->next)
		if (list->clock)
			state_clock_enter(list->clock, state, now_ns);
}

static void wake_workers(struct exchange *x, uint64_t now_ns, struct seat **wake)
{
	if (all_handed(x)) {
		while (x->idle_workers)
			move(&x->idle_workers, wake);
	} else if (x->ready.count == 0) {
		turn_clocks(x->idle_workers, THREAD_STARVED, now_ns);
	} else if (!slots_can_fill(&x->slots, lowest_batch(x))) {
		turn_clocks(x->idle_workers, THREAD_BLOCKED, now_ns);
	} else {
		const uint64_t wanted = (takeable(x) + x->chunk - 1) / x->chunk;
		while (x->idle_workers && x->workers_woken < wanted) {
			move(&x->idle_workers, wake);
			x->workers_woken++;
		}
	}
}

/* Not exhausted: is its file one for a large buffer? */
static bool next_is_large(struct exchange *x)
{
	const struct exchange_options *const o = &x->options;
	return o->large_blobs > 0 && o->samples[sampler_peek(&x->sampler)].bytes > o->blob_bytes;
}

static bool has_room_for_next(struct exchange *x)
{
	return x->free_count > 0 && (x->free_large_count > 0 || !next_is_large(x));
}

static void wake_readers(struct exchange *x, struct seat **wake)
{
	if (sampler_exhausted(&x->sampler)) {
		while (x->idle_readers)
			move(&x->idle_readers, wake);
		while (x->paused_readers)
			move(&x->paused_readers, wake);
		return;
	}
	const bool worth = x->free_count >= x->wake_free || x->ready.count == 0;
	if (worth && x->idle_readers && has_room_for_next(x) && x->readers_woken == 0 &&
		ready_has_room(&x->ready)) {
		move(&x->idle_readers, wake);
		x->readers_woken++;
	}
}

/* In order a lane waits for its own batch; as completed for any, and who was woken will take one. */
static void wake_consumers(struct exchange *x, struct seat **wake)
{
	for (uint32_t lane = 0; lane < x->options.lanes; lane++) {
		if (!x->idle_consumers[lane] || !slots_has_for(&x->slots, lane))
			continue;
		if (!x->options.in_order && x->consumers_woken >= x->slots.deliverable)
			return;
		move(&x->idle_consumers[lane], wake);
		x->consumers_woken++;
	}
}

/* Finished batches beyond the queue's depth wait in the slots they were written to: full is full. */
static uint32_t batches_waiting(const struct exchange *x)
{
	const uint32_t most = x->options.prefetch_depth;
	return x->slots.deliverable < most ? x->slots.deliverable : most;
}

/* Before the lock is left: the meters, and who can go on now.  They are woken after it was left. */
static struct seat *settle(struct exchange *x, uint64_t now_ns)
{
	struct seat *wake = NULL;
	if (x->idle_workers)
		wake_workers(x, now_ns, &wake);
	if (x->idle_readers || x->paused_readers)
		wake_readers(x, &wake);
	if (x->slots.deliverable > 0)
		wake_consumers(x, &wake);
	if (now_ns > 0) {
		const bool no_room = x->free_count + x->being_read < x->wake_free;
		queue_meter_set(&x->samples, x->ready.count, no_room, now_ns);
		const uint32_t batches = batches_waiting(x);
		queue_meter_set(&x->batches, batches, batches == x->options.prefetch_depth, now_ns);
	}
	return wake;
}

static void leave(struct exchange *x, uint64_t now_ns)
{
	struct seat *wake = settle(x, now_ns);
	(void)pthread_mutex_unlock(&x->lock.mutex);
	while (wake)
		parker_wake(&pop(&wake)->parker);
}

/* With tiny samples and a core for each, the next piece of work comes sooner than a sleep would end. */
static unsigned spins(const struct exchange *x)
{
	const bool cores_to_spare = x->options.workers + x->options.readers <= x->options.cores;
	return x->chunk > 1 && cores_to_spare ? SPINS : 0;
}

/* Sleeps in a list, in `state` from *now_ns on; the lock is held before and after. */
static void sleep_in(struct exchange *x, struct seat **list, struct seat *seat,
	enum thread_state state, uint64_t *now_ns)
{
	const unsigned looks = spins(x);
	push(list, seat);
	if (seat->clock)
		state_clock_enter(seat->clock, state, *now_ns);
	leave(x, *now_ns);
	parker_wait(&seat->parker, looks);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	/* Waiting for the lock is work already: from *now_ns on. */
	uint64_t woken_ns = *now_ns;
	timed_lock_enter(&x->lock, seat->lock, &woken_ns);
}

/* Takes a seat out of a list; false: it was taken out already, and is being woken. */
static bool withdraw(struct seat **list, const struct seat *seat)
{
	while (*list && *list != seat)
		list = &(*list)->next;
	if (!*list)
		return false;
	*list = seat->next;
	return true;
}

/* The same until until_ns at most, in the state that the seat's clock has.  Whether it was woken. */
static bool doze_in(struct exchange *x, struct seat **list, struct seat *seat, uint64_t until_ns,
	uint64_t *now_ns)
{
	push(list, seat);
	leave(x, *now_ns);
	bool woken = parker_wait_until(&seat->parker, until_ns);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	uint64_t woken_ns = *now_ns;
	timed_lock_enter(&x->lock, seat->lock, &woken_ns);
	/* Whoever took it out wakes it after leaving the lock: that token must not be left. */
	if (!woken && !withdraw(list, seat)) {
		parker_wait(&seat->parker, 0);
		woken = true;
	}
	return woken;
}

/* --- readers ------------------------------------------------------------------------------------------ */

static void count_read(struct exchange *x, const struct blob *blob)
{
	const struct read_request *const request = &blob->request;
	const double latency_ns = (double)(request->done_ns - request->submitted_ns);
	x->reads.files++;
	x->reads.bytes += request->status ? 0 : request->size;
	x->reads.latency_ns += latency_ns;
	x->reads.latency_squares += latency_ns * latency_ns;
	x->reads.earlier -= blob->switches != x->switches;
}

static void put_read(struct exchange *x, struct blob *const *done, size_t n_done)
{
	for (size_t i = 0; i < n_done; i++) {
		if (x->counts_reads)
			count_read(x, done[i]);
		ready_put(&x->ready, done[i]->ticket.number, done[i]->index);
	}
	x->being_read -= (uint32_t)n_done;
}

static size_t take_blobs(struct exchange *x, struct blob **taken, size_t want)
{
	size_t n = 0;
	while (n < want && !sampler_exhausted(&x->sampler) && has_room_for_next(x) &&
		ready_has_room(&x->ready)) {
		struct blob *blob = &x->blobs[x->free[--x->free_count]];
		if (next_is_large(x)) {
			blob->request.buffer = x->free_large[--x->free_large_count];
			blob->request.room = x->options.large_bytes;
		}
		blob->ticket = sampler_take(&x->sampler);
		blob->switches = x->switches;
		blob->aside = x->aside;
		ready_hold(&x->ready);
		taken[n++] = blob;
	}
	x->being_read += (uint32_t)n;
	return n;
}

/* Of `room` more files, as many as the reader's share of the depth allows. */
static size_t allowed(
	const struct exchange *x, const struct seat *seat, size_t room, size_t in_flight)
{
	if (!x->shares)
		return room;
	const size_t share = x->shares[seat->reader];
	const size_t more = share > in_flight ? share - in_flight : 0;
	return more < room ? more : room;
}

size_t exchange_read(struct exchange *x, struct seat *seat, struct blob *const *done, size_t n_done,
	struct blob **taken, size_t room, size_t in_flight, uint64_t *now_ns)
{
	size_t n = 0;
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	put_read(x, done, n_done);
	while (!stopping(x)) {
		const size_t want = allowed(x, seat, room, in_flight);
		n = take_blobs(x, taken, want);
		seat->is_short = n < want;
		if (n > 0 || in_flight > 0 || sampler_exhausted(&x->sampler))
			break;
		if (want > 0)
			sleep_in(x, &x->idle_readers, seat, THREAD_BLOCKED, now_ns);
		else
			sleep_in(x, &x->paused_readers, seat, THREAD_STARVED, now_ns);
		x->readers_woken = 0;
	}
	if (n > 0 && seat->clock)
		state_clock_enter(seat->clock, THREAD_WORKING, *now_ns);
	leave(x, *now_ns);
	return n;
}

/* A blob that nobody uses any more, or that is lent from now on. */
static void drop_blob(struct exchange *x, uint32_t index)
{
	if (index >= x->options.blobs && !x->lent)
		x->spare[x->spare_count++] = index;
	else
		x->free[x->free_count++] = index;
}

static void drop_large(struct exchange *x, uint8_t *buffer)
{
	if (x->options.spare_large_blobs > 0 && buffer >= spare_memory(&x->options) && !x->lent)
		x->spare_large[x->spare_large_count++] = buffer;
	else
		x->free_large[x->free_large_count++] = buffer;
}

/* What is in use comes to its place when it is dropped. */
static void lend(struct exchange *x, bool lent)
{
	x->lent = lent;
	while (lent && x->spare_count > 0)
		drop_blob(x, x->spare[--x->spare_count]);
	while (lent && x->spare_large_count > 0)
		drop_large(x, x->spare_large[--x->spare_large_count]);
	const uint32_t blobs = x->free_count;
	const uint32_t large = x->free_large_count;
	x->free_count = x->free_large_count = 0;
	for (uint32_t i = 0; i < blobs; i++)
		drop_blob(x, x->free[i]);
	for (uint32_t i = 0; i < large; i++)
		drop_large(x, x->free_large[i]);
}

void exchange_set_depth(struct exchange *x, uint32_t depth, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	x->switches++;
	x->aside = depth != x->options.depth;
	x->reads.earlier = x->being_read;
	share_depth(x, depth);
	lend(x, depth > x->options.depth);
	struct seat *paused = x->paused_readers;
	x->paused_readers = NULL;
	leave(x, now_ns);
	while (paused)
		parker_wake(&pop(&paused)->parker);
}

void exchange_keep_depth(struct exchange *x)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	x->counts_reads = false;
	(void)pthread_mutex_unlock(&x->lock.mutex);
}

void exchange_look_at_reads(struct exchange *x, struct exchange_reads *out)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	*out = x->reads;
	out->in_flight = x->being_read;
	(void)pthread_mutex_unlock(&x->lock.mutex);
}

/* --- decode workers ------------------------------------------------------------------------------------ */

static void free_large(struct exchange *x, struct blob *blob)
{
	if (blob->request.buffer == blob->own_buffer)
		return;
	drop_large(x, blob->request.buffer);
	blob->request.buffer = blob->own_buffer;
	blob->request.room = x->options.blob_bytes;
}

/* Neighbours are mostly of one batch. */
static void give_back(struct exchange *x, struct blob *const *items, size_t n_done)
{
	for (size_t i = 0; i < n_done;) {
		struct slot *slot = items[i]->slot;
		uint32_t n = 0;
		uint32_t bad = 0;
		for (; i < n_done && items[i]->slot == slot; i++, n++) {
			bad += items[i]->bad;
			free_large(x, items[i]);
			drop_blob(x, items[i]->index);
		}
		(void)slots_filled(&x->slots, slot, n, bad);
	}
}

static uint32_t batch_size(const void *context, uint64_t batch)
{
	return sampler_batch_size(context, batch);
}

static size_t take_ready(struct exchange *x, struct blob **items)
{
	const uint32_t share = x->ready.count / (2 * x->options.workers);
	const uint32_t want = share < 1 ? 1 : share < x->chunk ? share : x->chunk;
	struct slot *slot = NULL;
	size_t n = 0;
	while (n < want && x->ready.count > 0) {
		uint32_t item;
		const uint64_t ticket = ready_lowest(&x->ready, &item);
		struct blob *blob = &x->blobs[item];
		if (!slots_can_fill(&x->slots, blob->ticket.batch))
			break;
		if (!slot || slot->batch != blob->ticket.batch)
			slot = slots_fill(&x->slots, blob->ticket.batch, batch_size, &x->sampler);
		ready_take(&x->ready, ticket);
		blob->slot = slot;
		items[n++] = blob;
	}
	x->handed += n;
	return n;
}

static void learn_service(struct exchange *x, uint64_t service_ns)
{
	if (x->service_ns == 0)
		x->service_ns = service_ns;
	x->service_ns = (x->service_ns * (SERVICE_SMOOTHING - 1) + service_ns) / SERVICE_SMOOTHING;
	const uint64_t fit = CHUNK_NS / (x->service_ns + 1);
	x->chunk = fit < 1 ? 1 : fit < CHUNK_MAX ? (uint32_t)fit : CHUNK_MAX;
}

size_t exchange_decode(struct exchange *x, struct seat *seat, struct blob **items, size_t n_done,
	uint64_t service_ns, uint64_t *now_ns)
{
	size_t n = 0;
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	give_back(x, items, n_done);
	if (service_ns > 0)
		learn_service(x, service_ns);
	while (!stopping(x)) {
		n = take_ready(x, items);
		if (n > 0 || all_handed(x))
			break;
		sleep_in(x, &x->idle_workers, seat,
			x->ready.count > 0 ? THREAD_BLOCKED : THREAD_STARVED, now_ns);
		if (x->workers_woken > 0)
			x->workers_woken--;
	}
	if (seat->clock)
		state_clock_enter(seat->clock, n > 0 ? THREAD_WORKING : THREAD_STARVED, *now_ns);
	leave(x, *now_ns);
	return n;
}

/* --- the consumer -------------------------------------------------------------------------------------- */

struct slot *exchange_next_batch(
	struct exchange *x, unsigned lane, struct seat *seat, struct slot *used, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	if (used)
		slots_release(&x->slots, used);
	while (!stopping(x) && x->slots.delivered[lane] < x->lane_batches) {
		slot = slots_deliver(&x->slots, lane);
		if (slot)
			break;
		sleep_in(x, &x->idle_consumers[lane], seat, THREAD_STARVED, now_ns);
		if (x->consumers_woken > 0)
			x->consumers_woken--;
	}
	if (seat->clock)
		state_clock_enter(seat->clock, slot ? THREAD_WORKING : THREAD_STARVED, *now_ns);
	leave(x, *now_ns);
	return slot;
}

struct slot *exchange_try_batch(struct exchange *x, unsigned lane, struct seat *seat,
	struct slot *used, uint64_t until_ns, bool *over, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	if (used)
		slots_release(&x->slots, used);
	while (!stopping(x) && x->slots.delivered[lane] < x->lane_batches) {
		slot = slots_deliver(&x->slots, lane);
		if (slot || until_ns == 0 || clock_now_ns() >= until_ns)
			break;
		if (doze_in(x, &x->idle_consumers[lane], seat, until_ns, now_ns) &&
			x->consumers_woken > 0)
			x->consumers_woken--;
	}
	*over = !slot && (stopping(x) || x->slots.delivered[lane] >= x->lane_batches);
	if (slot && seat->clock)
		state_clock_enter(seat->clock, THREAD_WORKING, *now_ns);
	leave(x, *now_ns);
	return slot;
}

void exchange_release(struct exchange *x, struct seat *seat, struct slot *used, uint64_t *now_ns)
{
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	slots_release(&x->slots, used);
	leave(x, *now_ns);
}

/* --- everybody ----------------------------------------------------------------------------------------- */

void exchange_wake_all(struct exchange *x)
{
	struct seat *wake = NULL;
	(void)pthread_mutex_lock(&x->lock.mutex);
	while (x->idle_workers)
		move(&x->idle_workers, &wake);
	while (x->idle_readers)
		move(&x->idle_readers, &wake);
	while (x->paused_readers)
		move(&x->paused_readers, &wake);
	for (uint32_t lane = 0; lane < x->options.lanes; lane++)
		while (x->idle_consumers[lane])
			move(&x->idle_consumers[lane], &wake);
	(void)pthread_mutex_unlock(&x->lock.mutex);
	while (wake)
		parker_wake(&pop(&wake)->parker);
}

void exchange_read_queues(struct exchange *x, uint64_t now_ns, struct exchange_queues *out)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	queue_meter_set(&x->samples, x->samples.depth, x->samples.full, now_ns);
	queue_meter_set(&x->batches, x->batches.depth, x->batches.full, now_ns);
	*out = (struct exchange_queues){
		.samples = x->samples.sums,
		.batches = x->batches.sums,
		.samples_depth = x->ready.count,
		.batches_depth = batches_waiting(x),
		.being_read = x->being_read,
	};
	(void)pthread_mutex_unlock(&x->lock.mutex);
}
