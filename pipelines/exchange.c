/* The exchange: see exchange.h for the idea and for why it cannot deadlock. */
#include "pipelines/exchange.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	SPINS = 400,
	/* Workers that a visit calls at most: they call the others.  Each may take the caller's core, and the step is what must
	 * not wait for one. */
	CALLS = 2,
	CALLS_OF_CONSUMER = 1,
};

/* --- opening and closing --------------------------------------------------------------------- */

/* Blob i's room for usual files; the spare ones lie behind all large ones. */
static uint8_t *blob_buffer(const struct exchange_options *o, uint32_t i)
{
	const size_t large = i < o->blobs ? 0 : (size_t)o->large_blobs * o->large_bytes;
	return o->blob_memory ? o->blob_memory + (size_t)i * o->blob_bytes + large : NULL;
}

/* Large buffer i, likewise. */
static uint8_t *large_buffer(const struct exchange_options *o, uint32_t i)
{
	const size_t blobs = (size_t)o->blobs + (i < o->large_blobs ? 0 : o->spare_blobs);
	return o->blob_memory + blobs * o->blob_bytes + (size_t)i * o->large_bytes;
}

static int open_blobs(struct exchange *x)
{
	const struct exchange_options *o = &x->options;
	const uint32_t blobs = o->blobs + o->spare_blobs;
	x->blobs = aligned_alloc(_Alignof(struct blob), blobs * sizeof *x->blobs);
	if (!x->blobs)
		return -ENOMEM;
	for (uint32_t i = 0; i < blobs; i++)
		x->blobs[i] = (struct blob){
			.index = i,
			.large = FLOW_NONE,
			.request = {.buffer = blob_buffer(o, i), .room = o->blob_bytes},
		};
	return 0;
}

static int exchange_open_slots(struct exchange *x)
{
	const struct exchange_options *o = &x->options;
	x->slots = calloc(o->slots, sizeof *x->slots);
	if (o->by_workers)
		x->tickets = memory_touched((size_t)o->slots * o->slot_samples, sizeof *x->tickets);
	if (!x->slots || (o->by_workers && !x->tickets))
		return -ENOMEM;
	for (uint32_t i = 0; i < o->slots; i++) {
		struct slot *slot = &x->slots[i];
		slot->index = i;
		slot->batch = UINT64_MAX;
		slot->data = o->slot_memory + i * o->slot_bytes;
		slot->labels = o->label_memory + (size_t)i * o->slot_samples * o->label_bytes;
		if (o->note_memory)
			slot->notes = o->note_memory + (size_t)i * o->slot_samples * o->note_bytes;
		if (x->tickets)
			slot->tickets = x->tickets + (size_t)i * o->slot_samples;
	}
	return 0;
}

static int open_flow(struct exchange *x)
{
	const struct exchange_options *o = &x->options;
	const struct flow_options options = {
		.epoch_samples = x->sampler.used,
		.epochs = o->sampler.epochs,
		.batch_size = o->sampler.batch_size,
		.blobs = o->by_workers ? 0 : o->blobs,
		.large_blobs = o->large_blobs,
		.spare_blobs = o->spare_blobs,
		.spare_large_blobs = o->spare_large_blobs,
		.slots = o->slots,
		.lanes = o->lanes,
		.in_order = o->in_order,
		.epochs_apart = o->epochs_apart || o->held,
		.by_workers = o->by_workers,
		.whole_batches = o->whole_batches,
		.turns = o->turns,
		.workers = o->workers,
		.read_depth = o->read_depth,
		.cores = o->cores,
	};
	x->flow_memory = calloc(1, flow_bytes(&options));
	if (!x->flow_memory)
		return -ENOMEM;
	flow_open(&x->flow, &options, x->flow_memory);
	x->epochs_begun = !o->held;
	if (o->startup_ns > 0 || o->held)
		x->flow.open_batches = 0;
	return 0;
}

/* Even, to a file: of 3 files in flight two readers have 1 and 2. */
static void share_depth(struct exchange *x, uint32_t depth)
{
	const uint64_t readers = x->options.readers;
	for (uint64_t i = 0; i < readers; i++)
		x->shares[i] = (uint32_t)((i + 1) * depth / readers - i * depth / readers);
	x->lookahead = (uint32_t)((uint64_t)x->options.lookahead * depth / x->options.depth);
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

int exchange_open(struct exchange *x, const struct exchange_options *o)
{
	*x = (struct exchange){.options = *o};
	x->options.lanes = o->lanes > 0 ? o->lanes : 1;
	x->lookahead = o->lookahead;
	int code = timed_lock_open(&x->lock, TIMED_LOCK_SHORT);
	if (code) {
		*x = (struct exchange){0};
		return code;
	}
	code = sampler_open(&x->sampler, &o->sampler);
	if (!code)
		code = open_flow(x);
	if (!code)
		code = exchange_open_slots(x);
	if (!code)
		code = open_blobs(x);
	if (!code)
		code = open_shares(x);
	if (code) {
		exchange_close(x);
		return code;
	}
	x->total_batches =
		o->sampler.epochs ? o->sampler.epochs * x->flow.batches_per_epoch : UINT64_MAX;
	x->lane_batches = x->total_batches / x->options.lanes;
	state_clock_start(&x->parked, THREAD_STARVED, clock_now_ns());
	return 0;
}

void exchange_close(struct exchange *x)
{
	if (x->options.blobs == 0)
		return;
	free(x->blobs);
	free(x->slots);
	free(x->tickets);
	free(x->flow_memory);
	free(x->shares);
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

/* --- who can go on, and who is woken ------------------------------------------------------------ */

static bool exchange_stopping(const struct exchange *x)
{
	return atomic_load_explicit(x->options.stopping, memory_order_relaxed);
}

static struct seat *seat_pop(struct seat **list)
{
	struct seat *seat = *list;
	*list = seat->next;
	return seat;
}

static void seat_push(struct seat **list, struct seat *seat)
{
	seat->next = *list;
	*list = seat;
}

static void exchange_move(struct seat **from, struct seat **to)
{
	seat_push(to, seat_pop(from));
}

/* Takes a seat out of a list; false: it was taken out already, and is being woken. */
static bool seat_withdraw(struct seat **list, const struct seat *seat)
{
	while (*list && *list != seat)
		list = &(*list)->next;
	if (!*list)
		return false;
	*list = seat->next;
	return true;
}

/* A worker that reads for itself does not make samples meanwhile, and reads none while it makes them. */
static void seat_enter_state(const struct seat *seat, enum thread_state state, uint64_t now_ns)
{
	if (seat->reading)
		state_clock_enter(seat->reading, state, now_ns);
	if (seat->reading && state == THREAD_WORKING)
		state = THREAD_STARVED;
	if (seat->clock)
		state_clock_enter(seat->clock, state, now_ns);
}

/* All idle workers are in `state` from now on. */
static void turn_parked(struct exchange *x, enum thread_state state, uint64_t now_ns)
{
	if (state_clock_state(&x->parked) == state)
		return;
	state_clock_enter(&x->parked, state, now_ns > x->parked_ns ? now_ns : x->parked_ns);
	for (struct seat *seat = x->shown ? x->idle_workers : NULL; seat; seat = seat->next)
		if (seat->clock && seat->clock->timeline)
			seat_enter_state(seat, state, now_ns);
}

static void call_worker(struct exchange *x, struct seat *seat, struct seat **wake)
{
	(void)seat_withdraw(&x->idle_workers, seat);
	seat_push(wake, seat);
	flow_worker_wakes(&x->flow, seat->worker);
}

/* Whom there is work for, of those that sleep; NULL: nobody. */
static struct seat *callable_worker(struct exchange *x)
{
	struct seat *seat = x->idle_workers;
	if (!x->options.whole_batches)
		return flow_calls_worker(&x->flow) ? seat : NULL;
	const uint32_t owner = flow_calls_owner(&x->flow);
	while (seat && seat->worker != owner)
		seat = seat->next;
	return seat;
}

/* Whether a worker has to start first. */
static bool exchange_starts(const struct exchange *x, const struct seat *seat)
{
	return x->options.startup_ns > 0 && seat->starts < x->epochs_begun;
}

static void wake_workers(struct exchange *x, int calls, uint64_t now_ns, struct seat **wake)
{
	if (flow_all_handed(&x->flow) || exchange_starts(x, x->idle_workers)) {
		while (x->idle_workers)
			call_worker(x, x->idle_workers, wake);
		return;
	}
	const enum flow_lack lack =
		x->options.by_workers ? flow_lack_of_sleepers(&x->flow) : flow_lack(&x->flow);
	if (lack != FLOW_LACKS_NOTHING)
		turn_parked(x, lack == FLOW_LACKS_FILES ? THREAD_STARVED : THREAD_BLOCKED, now_ns);
	const bool any = lack == FLOW_LACKS_NOTHING || x->options.whole_batches;
	for (int i = 0; any && i < calls; i++) {
		struct seat *const seat = callable_worker(x);
		if (!seat)
			return;
		call_worker(x, seat, wake);
	}
}

/* Not exhausted: is its file one for a large buffer? */
static bool next_is_large(struct exchange *x)
{
	const struct exchange_options *const o = &x->options;
	return o->large_blobs > 0 && o->samples[sampler_peek(&x->sampler)].bytes > o->blob_bytes;
}

static void wake_readers(struct exchange *x, struct seat **wake)
{
	if (flow_exhausted(&x->flow)) {
		while (x->idle_readers)
			exchange_move(&x->idle_readers, wake);
		while (x->paused_readers)
			exchange_move(&x->paused_readers, wake);
	} else if (x->idle_readers && flow_calls_reader(&x->flow, next_is_large(x))) {
		exchange_move(&x->idle_readers, wake);
		x->flow.readers_woken++;
	}
}

static void wake_consumers(struct exchange *x, struct seat **wake)
{
	for (uint32_t lane = 0; lane < x->options.lanes; lane++) {
		if (!x->idle_consumers[lane] || !flow_calls_consumer(&x->flow, lane))
			continue;
		exchange_move(&x->idle_consumers[lane], wake);
		x->flow.consumers_woken++;
	}
}

/* Finished batches beyond the queue's depth wait in the slots they were written to: full is full. */
static uint32_t batches_waiting(const struct exchange *x)
{
	const uint32_t most = x->options.prefetch_depth;
	return x->flow.deliverable < most ? x->flow.deliverable : most;
}

/* Before the lock is left: the meters, and who can go on now.  They are woken after it was left. */
static struct seat *exchange_settle(struct exchange *x, int calls, uint64_t now_ns)
{
	struct seat *wake = NULL;
	if (x->idle_workers)
		wake_workers(x, calls, now_ns, &wake);
	if (x->idle_readers || x->paused_readers)
		wake_readers(x, &wake);
	if (x->flow.deliverable > 0)
		wake_consumers(x, &wake);
	if (now_ns > 0) {
		const struct flow *f = &x->flow;
		const bool no_room = !x->options.by_workers &&
				     f->blobs.free_count + x->being_read < f->wake_free;
		queue_meter_set(&x->samples, f->ready_count, no_room, now_ns);
		const uint32_t batches = batches_waiting(x);
		const uint32_t most = x->options.prefetch_depth;
		queue_meter_set(&x->batches, batches, most > 0 && batches == most, now_ns);
	}
	return wake;
}

static void exchange_wake(struct seat *wake)
{
	while (wake)
		parker_wake(&seat_pop(&wake)->parker);
}

static void exchange_unlock(struct exchange *x, int calls, uint64_t now_ns)
{
	struct seat *wake = exchange_settle(x, calls, now_ns);
	(void)pthread_mutex_unlock(&x->lock.mutex);
	exchange_wake(wake);
}

/* With tiny samples and a core for each, the next piece of work comes sooner than a sleep would end. */
static unsigned exchange_spins(const struct exchange *x)
{
	const bool cores_to_spare = x->options.workers + x->options.readers <= x->options.cores;
	return x->flow.chunk > 1 && cores_to_spare ? SPINS : 0;
}

/* Sleeps in a list; the lock is held before and after. */
static void exchange_sleep_in(
	struct exchange *x, struct seat **list, struct seat *seat, int calls, uint64_t *now_ns)
{
	const unsigned looks = exchange_spins(x);
	seat_push(list, seat);
	exchange_unlock(x, calls, *now_ns);
	parker_wait(&seat->parker, looks);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	/* Waiting for the lock is work already: from *now_ns on. */
	uint64_t woken_ns = *now_ns;
	timed_lock_enter(&x->lock, seat->lock, &woken_ns);
}

/* The same until until_ns at most, in the state that the seat's clock has.  Whether it was woken. */
static bool exchange_doze_in(struct exchange *x, struct seat **list, struct seat *seat,
	uint64_t until_ns, uint64_t *now_ns)
{
	seat_push(list, seat);
	exchange_unlock(x, CALLS_OF_CONSUMER, *now_ns);
	bool woken = parker_wait_until(&seat->parker, until_ns);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	uint64_t woken_ns = *now_ns;
	timed_lock_enter(&x->lock, seat->lock, &woken_ns);
	/* Whoever took it out wakes it after leaving the lock: that token must not be left. */
	if (!woken && !seat_withdraw(list, seat)) {
		parker_wait(&seat->parker, 0);
		woken = true;
	}
	return woken;
}

/* --- readers ------------------------------------------------------------------------------------- */

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

/* The readers' depth in a word: how often it changed, and whether it is another than the set one. */
static uint32_t exchange_tag(const struct exchange *x)
{
	return x->switches << 1 | (uint32_t)x->aside;
}

static void count_large(struct exchange *x, struct seat *seat)
{
	struct exchange_reads *const more = &seat->large;
	x->reads.files += more->files;
	x->reads.bytes += more->bytes;
	x->reads.latency_ns += more->latency_ns;
	x->reads.latency_squares += more->latency_squares;
	x->reads.in_flight = more->in_flight;
	/* Until the reader knows of the change, all is from before. */
	if (more->tag == exchange_tag(x))
		x->reads.earlier = more->earlier;
	*more = (struct exchange_reads){.in_flight = more->in_flight};
}

static void put_read(struct exchange *x, struct seat *seat, struct blob *const *done, size_t n_done)
{
	if (x->options.reads_large && x->counts_reads)
		count_large(x, seat);
	for (size_t i = 0; i < n_done; i++) {
		if (x->counts_reads && !x->options.reads_large)
			count_read(x, done[i]);
		flow_put(&x->flow, done[i]->ticket.number, done[i]->index);
	}
	x->being_read -= (uint32_t)n_done;
}

static void use_large(struct exchange *x, struct blob *blob)
{
	blob->large = flow_pool_take(&x->flow.large);
	blob->request.buffer = large_buffer(&x->options, blob->large);
	blob->request.room = x->options.large_bytes;
}

/* Nothing of an epoch is read before the one before is over, where they are kept apart. */
static uint32_t exchange_ahead(struct exchange *x)
{
	const uint32_t left = x->sampler.used - x->sampler.position;
	x->ahead = x->ahead < x->lookahead ? x->ahead + 1 : x->lookahead;
	return x->options.epochs_apart && x->ahead >= left ? UINT32_MAX
							   : sampler_ahead(&x->sampler, x->ahead);
}

static size_t exchange_take_blobs(struct exchange *x, struct blob **taken, size_t want)
{
	struct flow *f = &x->flow;
	size_t n = 0;
	while (n < want && !flow_exhausted(f) && flow_has_room(f) && flow_is_open(f) &&
		flow_has_turn(f)) {
		const bool large = next_is_large(x);
		if (!flow_has_blob(f, large))
			break;
		struct blob *blob = &x->blobs[flow_pool_take(&f->blobs)];
		if (large)
			use_large(x, blob);
		if (x->options.lookahead > 0)
			blob->request.ahead = exchange_ahead(x);
		blob->ticket = sampler_take(&x->sampler, flow_take_ticket(f));
		blob->switches = x->switches;
		blob->aside = x->aside;
		taken[n++] = blob;
	}
	x->being_read += (uint32_t)n;
	return n;
}

/* Of `room` more files, as many as the reader's share of the depth allows. */
static size_t exchange_allowed(
	const struct exchange *x, const struct seat *seat, size_t room, size_t in_flight)
{
	if (!x->shares)
		return room;
	const size_t share = x->shares[seat->reader];
	if (x->options.reads_large) /* it is one of requests, which the source keeps to */
		return share > 0 ? room : 0;
	const size_t more = share > in_flight ? share - in_flight : 0;
	return more < room ? more : room;
}

size_t exchange_read(struct exchange *x, struct seat *seat, struct blob *const *done, size_t n_done,
	struct blob **taken, size_t room, size_t in_flight, uint64_t *now_ns)
{
	size_t n = 0;
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	put_read(x, seat, done, n_done);
	while (!exchange_stopping(x)) {
		const size_t want = exchange_allowed(x, seat, room, in_flight);
		n = exchange_take_blobs(x, taken, want);
		const bool open = flow_is_open(&x->flow);
		seat->is_short = n < want && open && flow_has_turn(&x->flow);
		if (n > 0 || in_flight > 0 || flow_exhausted(&x->flow))
			break;
		seat_enter_state(seat, want > 0 && open ? THREAD_BLOCKED : THREAD_STARVED, *now_ns);
		exchange_sleep_in(
			x, want > 0 ? &x->idle_readers : &x->paused_readers, seat, CALLS, now_ns);
		x->flow.readers_woken = 0;
	}
	if (n > 0)
		seat_enter_state(seat, THREAD_WORKING, *now_ns);
	seat->share = x->shares ? x->shares[seat->reader] : 0;
	seat->share_tag = exchange_tag(x);
	exchange_unlock(x, CALLS, *now_ns);
	return n;
}

void exchange_set_depth(struct exchange *x, uint32_t depth, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	x->switches++;
	x->aside = depth != x->options.depth;
	x->reads.earlier = x->options.reads_large ? x->reads.in_flight + 1 : x->being_read;
	share_depth(x, depth);
	flow_lend(&x->flow, depth > x->options.depth);
	struct seat *paused = x->paused_readers;
	x->paused_readers = NULL;
	exchange_unlock(x, CALLS, now_ns);
	exchange_wake(paused);
}

void exchange_keep_depth(struct exchange *x)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	x->counts_reads = false;
	(void)pthread_mutex_unlock(&x->lock.mutex);
}

uint64_t exchange_look_at_reads(struct exchange *x, struct exchange_reads *out)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	*out = x->reads;
	if (!x->options.reads_large)
		out->in_flight = x->being_read;
	const uint64_t now_ns = clock_now_ns();
	(void)pthread_mutex_unlock(&x->lock.mutex);
	return now_ns;
}

/* --- decode workers ------------------------------------------------------------------------------- */

static void free_large(struct exchange *x, struct blob *blob)
{
	if (blob->large == FLOW_NONE)
		return;
	flow_pool_drop(&x->flow.large, blob->large);
	blob->large = FLOW_NONE;
	blob->request.buffer = blob_buffer(&x->options, blob->index);
	blob->request.room = x->options.blob_bytes;
}

/* Neighbours are mostly of one batch. */
static void exchange_give_back(struct exchange *x, struct blob *const *items, size_t n_done)
{
	for (size_t i = 0; i < n_done;) {
		struct slot *slot = items[i]->slot;
		uint32_t n = 0;
		for (; i < n_done && items[i]->slot == slot; i++, n++) {
			slot->bad += items[i]->bad;
			source_let_go(&items[i]->request);
			free_large(x, items[i]);
			flow_pool_drop(&x->flow.blobs, items[i]->index);
		}
		(void)flow_fill(&x->flow, slot->index, n);
	}
}

/* The slot of a batch, which its first sample makes ready for it. */
static struct slot *exchange_slot_of(struct exchange *x, uint64_t batch)
{
	struct slot *slot = &x->slots[flow_slot_of(&x->flow, batch)];
	if (slot->batch != batch) {
		slot->batch = batch;
		slot->size = flow_batch_size(&x->flow, batch);
		slot->bad = 0;
		atomic_store_explicit(&slot->used, 0, memory_order_relaxed);
	}
	return slot;
}

static size_t exchange_take_ready(struct exchange *x, struct blob **items)
{
	const uint32_t share = flow_share(&x->flow, x->flow.ready_count);
	struct slot *slot = NULL;
	size_t n = 0;
	while (n < share && flow_lack(&x->flow) == FLOW_LACKS_NOTHING) {
		struct blob *blob = &x->blobs[flow_hand(&x->flow)];
		if (!slot || slot->batch != blob->ticket.batch)
			slot = exchange_slot_of(x, blob->ticket.batch);
		blob->slot = slot;
		items[n++] = blob;
	}
	return n;
}

/* What a worker that reads for itself has made of its claim. */
static void exchange_give_back_claim(struct exchange *x, struct seat *seat)
{
	struct claim *const claim = &seat->claim;
	if (!claim->slot)
		return;
	claim->slot->bad += claim->bad;
	(void)flow_fill(&x->flow, claim->slot->index, claim->count);
	claim->slot = NULL;
}

/* Its next claim: so many samples; 0: it lacks something. */
static size_t exchange_claim(struct exchange *x, struct seat *seat)
{
	if (flow_lack_of(&x->flow, seat->worker) != FLOW_LACKS_NOTHING)
		return 0;
	const struct flow_claim claim = flow_claim(&x->flow, seat->worker);
	while (flow_owes(&x->flow, &claim)) {
		const struct ticket ticket = sampler_take(&x->sampler, flow_deal(&x->flow));
		exchange_slot_of(x, ticket.batch)->tickets[ticket.place] = ticket;
	}
	seat->claim = (struct claim){&x->slots[claim.slot], claim.place, claim.count, 0};
	return claim.count;
}

static void exchange_park_clock(struct exchange *x, struct state_clock *clock, uint64_t now_ns)
{
	if (clock)
		state_clock_park(clock, &x->parked, now_ns);
}

static void exchange_park(struct exchange *x, struct seat *seat, uint64_t *now_ns)
{
	const enum flow_lack lack =
		x->options.by_workers ? flow_lack_of(&x->flow, seat->worker) : flow_lack(&x->flow);
	const enum thread_state state = lack == FLOW_LACKS_SLOTS ? THREAD_BLOCKED : THREAD_STARVED;
	turn_parked(x, state, *now_ns);
	if (seat->clock && seat->clock->timeline) {
		x->shown = true;
		seat_enter_state(seat, state, *now_ns);
	} else if (seat->clock) {
		exchange_park_clock(x, seat->clock, *now_ns);
		exchange_park_clock(x, seat->reading, *now_ns);
		x->parked_ns = *now_ns > x->parked_ns ? *now_ns : x->parked_ns;
	}
	flow_worker_sleeps(&x->flow, seat->worker);
	exchange_sleep_in(x, &x->idle_workers, seat, CALLS, now_ns);
	if (x->flow.workers_woken > 0)
		x->flow.workers_woken--;
}

/* As long as a start takes; its epoch has begun then. */
static void exchange_start_worker(struct exchange *x, struct seat *seat, uint64_t *now_ns)
{
	seat->starts = x->epochs_begun;
	seat_enter_state(seat, THREAD_STARVED, *now_ns);
	(void)exchange_doze_in(
		x, &x->starting_workers, seat, clock_now_ns() + x->options.startup_ns, now_ns);
	flow_open_epochs(&x->flow, seat->starts);
}

/* What an item costs without the waking of others.  Else workers that wake each other would seem to have
 * long work, take one item at a time, and therefore wake each other for every item. */
static double exchange_cost_of_item(const struct seat *seat, uint64_t service_ns, size_t items)
{
	const double waking_ns = items > 0 ? (double)seat->waking_ns / (double)items : 0;
	return fmax((double)service_ns - waking_ns, 0);
}

size_t exchange_decode(struct exchange *x, struct seat *seat, struct blob **items, size_t n_done,
	uint64_t service_ns, uint64_t *now_ns)
{
	const bool by_workers = x->options.by_workers;
	size_t n = 0;
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	if (by_workers)
		exchange_give_back_claim(x, seat);
	else
		exchange_give_back(x, items, n_done);
	if (service_ns > 0)
		flow_learn(&x->flow, exchange_cost_of_item(seat, service_ns, n_done));
	while (!exchange_stopping(x)) {
		if (exchange_starts(x, seat) && !flow_all_handed(&x->flow)) {
			exchange_start_worker(x, seat, now_ns);
			continue;
		}
		n = by_workers ? exchange_claim(x, seat) : exchange_take_ready(x, items);
		if (n > 0 || (by_workers ? flow_is_done(&x->flow, seat->worker)
					 : flow_all_handed(&x->flow)))
			break;
		exchange_park(x, seat, now_ns);
	}
	seat_enter_state(seat, n > 0 ? THREAD_WORKING : THREAD_STARVED, *now_ns);
	struct seat *wake = exchange_settle(x, CALLS, *now_ns);
	(void)pthread_mutex_unlock(&x->lock.mutex);
	/* Waking others is part of the time that its samples take: the state clock counts it as work, and
	 * rate x service time must agree with that clock. */
	const bool wakes = wake != NULL;
	exchange_wake(wake);
	seat->waking_ns = wakes && *now_ns > 0 ? clock_now_ns() - *now_ns : 0;
	return n;
}

/* --- the consumer --------------------------------------------------------------------------------- */

static void exchange_end_epoch(struct exchange *x, uint64_t now_ns)
{
	if (x->options.held)
		return;
	x->epochs_begun++;
	x->gap_begin_ns = now_ns;
	if (x->options.startup_ns == 0)
		flow_open_epochs(&x->flow, x->epochs_begun);
}

static void exchange_end_gap(struct exchange *x, uint64_t now_ns)
{
	if (x->gap_count < EXCHANGE_GAPS_MAX)
		x->gaps[x->gap_count] = (struct exchange_gap){x->gap_begin_ns, now_ns};
	x->gap_count++;
	x->gap_begin_ns = 0;
}

static void exchange_free_slot(struct exchange *x, const struct slot *used, uint64_t now_ns)
{
	if (!used)
		return;
	flow_release(&x->flow, used->index);
	if (flow_epoch_is_over(&x->flow))
		exchange_end_epoch(x, now_ns);
}

static struct slot *exchange_deliver(struct exchange *x, unsigned lane)
{
	const uint32_t slot = flow_deliver(&x->flow, lane);
	return slot == FLOW_NONE ? NULL : &x->slots[slot];
}

/* Whether the lane may expect another batch. */
static bool exchange_goes_on(const struct exchange *x, unsigned lane)
{
	return !exchange_stopping(x) && x->flow.delivered[lane] < x->lane_batches;
}

static void consumer_came(struct exchange *x)
{
	if (x->flow.consumers_woken > 0)
		x->flow.consumers_woken--;
}

struct slot *exchange_next_batch(
	struct exchange *x, unsigned lane, struct seat *seat, struct slot *used, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	exchange_free_slot(x, used, *now_ns);
	while (exchange_goes_on(x, lane)) {
		slot = exchange_deliver(x, lane);
		if (slot)
			break;
		seat_enter_state(seat, THREAD_STARVED, *now_ns);
		exchange_sleep_in(x, &x->idle_consumers[lane], seat, CALLS_OF_CONSUMER, now_ns);
		consumer_came(x);
	}
	if (slot && x->gap_begin_ns > 0)
		exchange_end_gap(x, *now_ns);
	seat_enter_state(seat, slot ? THREAD_WORKING : THREAD_STARVED, *now_ns);
	exchange_unlock(x, CALLS_OF_CONSUMER, *now_ns);
	return slot;
}

struct slot *exchange_try_batch(struct exchange *x, unsigned lane, struct seat *seat,
	struct slot *used, uint64_t until_ns, bool *over, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	exchange_free_slot(x, used, *now_ns);
	while (exchange_goes_on(x, lane)) {
		slot = exchange_deliver(x, lane);
		if (slot || until_ns == 0 || clock_now_ns() >= until_ns)
			break;
		if (exchange_doze_in(x, &x->idle_consumers[lane], seat, until_ns, now_ns))
			consumer_came(x);
	}
	*over = !slot && !exchange_goes_on(x, lane);
	if (slot && x->gap_begin_ns > 0)
		exchange_end_gap(x, *now_ns);
	if (slot)
		seat_enter_state(seat, THREAD_WORKING, *now_ns);
	exchange_unlock(x, CALLS_OF_CONSUMER, *now_ns);
	return slot;
}

void exchange_release(struct exchange *x, struct seat *seat, struct slot *used, uint64_t *now_ns)
{
	timed_lock_enter(&x->lock, seat->lock, now_ns);
	exchange_free_slot(x, used, *now_ns);
	exchange_unlock(x, CALLS_OF_CONSUMER, *now_ns);
}

void exchange_begin_epoch(struct exchange *x)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	flow_open_epochs(&x->flow, ++x->epochs_begun);
	exchange_unlock(x, CALLS_OF_CONSUMER, 0);
}

static size_t exchange_gaps_kept(const struct exchange *x)
{
	return x->gap_count < EXCHANGE_GAPS_MAX ? x->gap_count : EXCHANGE_GAPS_MAX;
}

uint64_t exchange_epoch_ns(const struct exchange *x)
{
	const size_t kept = exchange_gaps_kept(x);
	return kept < 2 ? 0 : (x->gaps[kept - 1].begin_ns - x->gaps[0].begin_ns) / (kept - 1);
}

uint64_t exchange_whole_gaps_ns(
	const struct exchange *x, uint64_t from_ns, uint64_t to_ns, uint64_t *count)
{
	uint64_t sum_ns = 0;
	*count = 0;
	for (size_t i = 0; i < exchange_gaps_kept(x); i++) {
		const struct exchange_gap *const gap = &x->gaps[i];
		if (gap->begin_ns < from_ns || gap->end_ns > to_ns)
			continue;
		sum_ns += gap->end_ns - gap->begin_ns;
		++*count;
	}
	return sum_ns;
}

/* --- everybody ------------------------------------------------------------------------------------ */

void exchange_wake_all(struct exchange *x)
{
	struct seat *wake = NULL;
	(void)pthread_mutex_lock(&x->lock.mutex);
	while (x->idle_workers)
		call_worker(x, x->idle_workers, &wake);
	while (x->starting_workers)
		exchange_move(&x->starting_workers, &wake);
	while (x->idle_readers)
		exchange_move(&x->idle_readers, &wake);
	while (x->paused_readers)
		exchange_move(&x->paused_readers, &wake);
	for (uint32_t lane = 0; lane < x->options.lanes; lane++)
		while (x->idle_consumers[lane])
			exchange_move(&x->idle_consumers[lane], &wake);
	(void)pthread_mutex_unlock(&x->lock.mutex);
	while (wake)
		parker_wake(&seat_pop(&wake)->parker);
}

void exchange_read_queues(struct exchange *x, uint64_t now_ns, struct exchange_queues *out)
{
	(void)pthread_mutex_lock(&x->lock.mutex);
	queue_meter_set(&x->samples, x->samples.depth, x->samples.full, now_ns);
	queue_meter_set(&x->batches, x->batches.depth, x->batches.full, now_ns);
	*out = (struct exchange_queues){
		.samples = x->samples.sums,
		.batches = x->batches.sums,
		.samples_depth = x->flow.ready_count,
		.batches_depth = batches_waiting(x),
		.being_read = x->being_read,
	};
	(void)pthread_mutex_unlock(&x->lock.mutex);
}
