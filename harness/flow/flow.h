/* The law by which files become batches: tickets, blobs, ready files, slots, lanes, and who may be woken.  It only decides:
 * it has no lock, no clock, no thread and no bytes, and names everything by an index.  The pipeline follows it under the
 * exchange's lock (pipelines/exchange.h), the replay in virtual time (harness/analyze/replay_line.h), so that what is
 * predicted is what is run.  pipelines/exchange.h says why it cannot deadlock.
 *
 *   tickets   are numbered from 0 over the whole run, in the order of batches; each is taken together with a free blob
 *   ready     files that were read wait for a worker; the lowest ticket comes out first, in whatever order they were read
 *   slots     are given to batches strictly in the order of batches, so that those with a slot are the first ones: a
 *             ticket may be decoded where it is below `reach_ticket`, which one more free slot moves by a batch
 *   epochs    where they are kept apart, no ticket of one is taken before every batch of the one before was given back and
 *             workers have started anew (flow_open_epochs)
 *   lanes     one for each device.  In order, batch b goes to lane b % lanes; as completed, any batch to whichever lane
 *             asks, but none has one more than another before all have as many
 *   claims    where workers read for themselves (by_workers), no file is ever ready: a worker claims samples that it reads
 *             and makes, the next ones of the first batch that has any left; or (whole_batches) all samples of a batch, where
 *             batch b is worker b % workers's alone.  Tickets are dealt in order all the same
 *   turns     there is a slot for each lane, and all come back before the next batches get any: nothing is taken, read or
 *             made while a step computes */
#ifndef MLBENCH_FLOW_FLOW_H
#define MLBENCH_FLOW_FLOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FLOW_CHUNK_MAX = 32,   /* samples that a worker takes at once, at most */
	FLOW_CHUNK_NS = 20000, /* that a chunk may take: about as long as waking a thread */
	FLOW_LOOK_NS =
		1000000, /* a reader with files in flight that is short of blobs looks for one so often */
	FLOW_WORD_BITS = 64,
};
static const uint32_t FLOW_NONE = UINT32_MAX;

struct flow_options {
	uint64_t
		epoch_samples; /* tickets of an epoch, > 0; its last batch ends with it, full or not */
	uint64_t epochs;       /* 0: without end */
	uint32_t batch_size;         /* > 0 */
	uint32_t blobs, large_blobs; /* files larger than a blob's room hold a large one besides */
	uint32_t spare_blobs, spare_large_blobs; /* in use only while they are lent (flow_lend) */
	uint32_t slots, lanes;                   /* > 0 */
	bool in_order;
	bool epochs_apart;
	bool by_workers;    /* there are no readers, and no blobs */
	bool whole_batches; /* by_workers */
	bool turns;         /* slots is lanes */
	uint32_t workers, read_depth;
	uint32_t cores; /* 0: as many as wanted */
};

/* A ticket's place in the run. */
struct flow_ticket {
	uint64_t number, batch;
	uint32_t place; /* in the batch */
};

/* Buffers that are all alike: a stack of the free ones.  From `own` on they are spare. */
struct flow_pool {
	uint32_t *free, *spare;
	uint32_t free_count, spare_count;
	uint32_t own;
	bool lent;
};

/* A slot is free, being filled (samples are missing), finished, or with a consumer. */
struct flow_slot {
	uint64_t batch;
	uint32_t missing;
};

struct flow {
	struct flow_options options;
	uint64_t batches_per_epoch;
	uint64_t total, batches; /* tickets and batches of the run; UINT64_MAX: without end */
	/* The next ticket: its number, its batch, its place there, and how many that batch has. */
	uint64_t next, batch;
	uint32_t place, batch_samples;
	uint64_t open_batches; /* tickets of the first so many may be taken; UINT64_MAX: of all */

	/* Files that were taken: a ring by ticket, with bitmaps of what is there. */
	uint32_t *items; /* (mask + 1): the blob of a ready ticket */
	uint64_t *ready; /* (mask + 1) bits: read, and with no worker yet */
	uint64_t *held;  /* likewise: taken, and with no worker yet; they span mask + 1 at most */
	uint64_t mask;   /* of the ring: a power of two, less 1 */
	uint64_t lowest; /* no ready ticket is below it */
	uint64_t lowest_held; /* no held ticket is below it */
	uint64_t handed;      /* tickets that workers took */
	uint32_t ready_count;

	/* Slots.  By batch & batch_mask stand the slots of batches that are not delivered, or not all handed to workers. */
	struct flow_slot *slots; /* (options.slots) */
	uint32_t *slot_of;
	uint64_t batch_mask;
	uint32_t *free_slots, free_slot_count; /* stack */
	uint64_t assigned;                     /* batches that were given one: the first so many */
	uint64_t reach,
		reach_ticket; /* the first batch that could not be given one now; its first ticket */
	uint32_t *finished;   /* as completed: ring of (finished_mask + 1) slots */
	uint32_t finished_mask;
	uint64_t finished_all; /* as completed: batches so far */
	uint64_t delivered_all;
	uint32_t finished_count; /* not delivered, whether they can be or not */
	uint32_t deliverable;    /* over all lanes */
	uint64_t *delivered;     /* (options.lanes) batches */
	uint64_t *complete;      /* (options.lanes), in order: that the lane could have had */

	struct flow_pool blobs, large;

	uint32_t returned; /* turns: slots of the present one that came back */

	/* Whole batches: (options.workers) the next of each worker, and who is asleep; for the first so many batches their
	 * workers were woken if they were. */
	uint64_t *own_batch;
	bool *asleep;
	uint64_t called;

	uint32_t workers_idle; /* asleep, and not woken yet */
	/* Threads that were woken and have not come back yet. */
	uint32_t workers_woken, readers_woken, consumers_woken;
	uint32_t wake_free; /* a sleeping reader is worth waking for so many free blobs */
	uint32_t chunk;     /* samples worth taking at once, by: */
	double service_ns;  /* time of one in a worker, smoothed; 0: not known yet */
};

/* Bytes that flow_open places in `memory`, which is zeroed, aligned for any type, and the caller's. */
uint64_t flow_bytes(const struct flow_options *options);
void flow_open(struct flow *flow, const struct flow_options *options, void *memory);

/* --- tickets ------------------------------------------------------------------------------------- */

static inline uint32_t flow_batch_size(const struct flow *f, uint64_t batch)
{
	const uint64_t first = batch % f->batches_per_epoch * f->options.batch_size;
	const uint64_t left = f->options.epoch_samples - first;
	return left < f->options.batch_size ? (uint32_t)left : f->options.batch_size;
}

static inline bool flow_exhausted(const struct flow *f)
{
	return f->next >= f->total;
}

static inline bool flow_all_handed(const struct flow *f)
{
	return f->handed >= f->total;
}

/* Whether the ring has room for the next ticket. */
static inline bool flow_has_room(const struct flow *f)
{
	return f->next - f->lowest_held <= f->mask;
}

/* Whether the next ticket is of an epoch that has begun. */
static inline bool flow_is_open(const struct flow *f)
{
	return f->batch < f->open_batches;
}

/* The first so many epochs have begun. */
static inline void flow_open_epochs(struct flow *f, uint64_t epochs)
{
	f->open_batches = f->options.epochs_apart ? epochs * f->batches_per_epoch : UINT64_MAX;
}

static inline uint64_t flow_bit(uint64_t ticket)
{
	return 1ULL << (ticket % FLOW_WORD_BITS);
}

static inline uint64_t *flow_word(const struct flow *f, uint64_t *bits, uint64_t ticket)
{
	return &bits[(ticket & f->mask) / FLOW_WORD_BITS];
}

/* Turns: whether the next ticket is of the present one. */
static inline bool flow_has_turn(const struct flow *f)
{
	return !f->options.turns || f->next < f->reach_ticket;
}

/* The next ticket, which nobody holds; not when exhausted. */
static inline struct flow_ticket flow_deal(struct flow *f)
{
	const struct flow_ticket ticket = {f->next, f->batch, f->place};
	f->next++;
	if (++f->place == f->batch_samples) {
		f->place = 0;
		f->batch_samples = flow_batch_size(f, ++f->batch);
	}
	return ticket;
}

/* The next ticket, which is held from now on; nor without room. */
static inline struct flow_ticket flow_take_ticket(struct flow *f)
{
	*flow_word(f, f->held, f->next) |= flow_bit(f->next);
	return flow_deal(f);
}

/* --- ready files --------------------------------------------------------------------------------- */

/* The file of a held ticket was read; item is the caller's. */
static inline void flow_put(struct flow *f, uint64_t ticket, uint32_t item)
{
	f->items[ticket & f->mask] = item;
	*flow_word(f, f->ready, ticket) |= flow_bit(ticket);
	if (f->ready_count++ == 0 || ticket < f->lowest)
		f->lowest = ticket;
}

/* The first ticket from `from` on whose bit is set; the next ticket when there is none. */
static inline uint64_t flow_next_set(const struct flow *f, const uint64_t *bits, uint64_t from)
{
	while (from < f->next) {
		const uint64_t word = bits[(from & f->mask) / FLOW_WORD_BITS];
		const uint64_t rest = word >> (from % FLOW_WORD_BITS);
		if (rest)
			return from + (unsigned)__builtin_ctzll(rest);
		from = (from | (FLOW_WORD_BITS - 1)) + 1;
	}
	return f->next;
}

/* The lowest ready ticket; some are ready. */
static inline uint64_t flow_lowest(struct flow *f)
{
	/* Below lowest_held the ring's bits are those of later tickets. */
	const uint64_t from = f->lowest > f->lowest_held ? f->lowest : f->lowest_held;
	f->lowest = flow_next_set(f, f->ready, from);
	return f->lowest;
}

/* Hands the lowest ready file to a worker: its item.  flow_lack has just said that nothing lacks. */
static inline uint32_t flow_hand(struct flow *f)
{
	const uint64_t ticket = f->lowest;
	const uint64_t bit = flow_bit(ticket);
	*flow_word(f, f->ready, ticket) &= ~bit;
	*flow_word(f, f->held, ticket) &= ~bit;
	f->ready_count--;
	f->handed++;
	if (ticket == f->lowest_held)
		f->lowest_held = flow_next_set(f, f->held, ticket + 1);
	return f->items[ticket & f->mask];
}

/* --- slots and lanes ----------------------------------------------------------------------------- */

/* The slot of a batch below `reach` that has samples which no worker took; those before it get theirs, too. */
static inline uint32_t flow_slot_of(struct flow *f, uint64_t batch)
{
	while (f->assigned <= batch) {
		const uint32_t slot = f->free_slots[--f->free_slot_count];
		f->slots[slot].batch = f->assigned;
		f->slots[slot].missing = flow_batch_size(f, f->assigned);
		f->slot_of[f->assigned++ & f->batch_mask] = slot;
	}
	return f->slot_of[batch & f->batch_mask];
}

/* Batches of all lanes that are not delivered lie within slots x lanes of each other, so that each has a place in slot_of. */
static inline void flow_complete_in_order(struct flow *f, uint64_t batch)
{
	const uint64_t lane = batch % f->options.lanes;
	for (;;) {
		const uint64_t next = f->complete[lane] * f->options.lanes + lane;
		const struct flow_slot *slot = &f->slots[f->slot_of[next & f->batch_mask]];
		if (slot->batch != next || slot->missing > 0)
			return;
		f->complete[lane]++;
		f->deliverable++;
	}
}

/* So many samples more of a slot's batch were written.  True: it is complete. */
static inline bool flow_fill(struct flow *f, uint32_t slot, uint32_t samples)
{
	f->slots[slot].missing -= samples;
	if (f->slots[slot].missing > 0)
		return false;
	f->finished_count++;
	if (f->options.in_order) {
		flow_complete_in_order(f, f->slots[slot].batch);
	} else {
		f->finished[f->finished_all++ & f->finished_mask] = slot;
		f->deliverable++;
	}
	return true;
}

/* As completed: it has had one more than another. */
static inline bool flow_lane_is_ahead(const struct flow *f, uint32_t lane)
{
	for (uint32_t other = 0; other < f->options.lanes; other++)
		if (f->delivered[lane] > f->delivered[other])
			return true;
	return false;
}

/* Whether there is a batch for the lane. */
static inline bool flow_has_for(const struct flow *f, uint32_t lane)
{
	return f->options.in_order ? f->delivered[lane] < f->complete[lane]
				   : f->deliverable > 0 && !flow_lane_is_ahead(f, lane);
}

/* Delivers the lane's next batch: its slot, or FLOW_NONE. */
static inline uint32_t flow_deliver(struct flow *f, uint32_t lane)
{
	if (!flow_has_for(f, lane))
		return FLOW_NONE;
	const uint64_t batch = f->delivered[lane]++ * f->options.lanes + lane;
	const uint64_t in_turn = f->delivered_all++;
	f->deliverable--;
	f->finished_count--;
	return f->options.in_order ? f->slot_of[batch & f->batch_mask]
				   : f->finished[in_turn & f->finished_mask];
}

/* The consumer has done with a slot. */
static inline void flow_release(struct flow *f, uint32_t slot)
{
	uint32_t more = 1;
	f->free_slots[f->free_slot_count++] = slot;
	if (f->options.turns) {
		more = ++f->returned == f->options.slots ? f->returned : 0;
		f->returned -= more;
	}
	for (; more > 0; more--)
		f->reach_ticket += flow_batch_size(f, f->reach++);
}

/* Where epochs are kept apart: after a release, whether it was the last batch of those that have begun. */
static inline bool flow_epoch_is_over(const struct flow *f)
{
	return f->reach - f->options.slots == f->open_batches;
}

/* --- buffers ------------------------------------------------------------------------------------- */

static inline uint32_t flow_pool_take(struct flow_pool *pool)
{
	return pool->free[--pool->free_count];
}

/* A buffer that nobody uses any more. */
static inline void flow_pool_drop(struct flow_pool *pool, uint32_t index)
{
	if (index >= pool->own && !pool->lent)
		pool->spare[pool->spare_count++] = index;
	else
		pool->free[pool->free_count++] = index;
}

/* From now on the spare ones are in use, or are not: those that are, come to their place when they are dropped. */
void flow_lend(struct flow *flow, bool lent);

/* Whether there are buffers for the next file, which may be a large one. */
static inline bool flow_has_blob(const struct flow *f, bool large)
{
	return f->blobs.free_count > 0 && (!large || f->large.free_count > 0);
}

/* --- what threads may do, and who may be woken ----------------------------------------------------- */

enum flow_lack { FLOW_LACKS_NOTHING, FLOW_LACKS_FILES, FLOW_LACKS_SLOTS };

/* What keeps workers from taking a file.  Where a turn has no more, they wait for the step to give back its slot. */
static inline enum flow_lack flow_lack(struct flow *f)
{
	if (f->ready_count == 0)
		return f->options.turns && f->handed >= f->reach_ticket ? FLOW_LACKS_SLOTS
									: FLOW_LACKS_FILES;
	return flow_lowest(f) < f->reach_ticket ? FLOW_LACKS_NOTHING : FLOW_LACKS_SLOTS;
}

/* Of so many samples those that a worker should take at once: workers that sleep leave theirs to the others. */
static inline uint32_t flow_share(const struct flow *f, uint64_t takeable)
{
	const uint64_t share = takeable / (2 * (f->options.workers - f->workers_idle));
	return share < 1 ? 1 : share < f->chunk ? (uint32_t)share : f->chunk;
}

/* Whether one more worker should be woken: where nothing lacks, as many as there are chunks to take.  Samples that are taken in
 * chunks are too short to wait for anything but a core: more than those would only take them from each other. */
static inline bool flow_calls_worker(const struct flow *f)
{
	const uint32_t awake = f->options.workers - f->workers_idle;
	if (f->chunk > 1 && f->options.cores > 0 && awake >= f->options.cores)
		return false;
	const uint64_t span = f->reach_ticket - (f->options.by_workers ? f->next : f->lowest);
	const uint64_t takeable =
		f->options.by_workers || span < f->ready_count ? span : f->ready_count;
	return f->workers_idle > 0 && (uint64_t)f->workers_woken * f->chunk < takeable;
}

static inline void flow_worker_sleeps(struct flow *f, uint32_t worker)
{
	f->workers_idle++;
	if (f->options.whole_batches)
		f->asleep[worker] = true;
}

static inline void flow_worker_wakes(struct flow *f, uint32_t worker)
{
	f->workers_idle--;
	f->workers_woken++;
	if (f->options.whole_batches)
		f->asleep[worker] = false;
}

/* Whether a sleeping reader should be woken, one at a time; large: the next file is a large one. */
static inline bool flow_calls_reader(const struct flow *f, bool large)
{
	return (f->blobs.free_count >= f->wake_free || f->ready_count == 0) &&
	       f->readers_woken == 0 && flow_has_blob(f, large) && flow_has_room(f) &&
	       flow_is_open(f) && flow_has_turn(f);
}

/* Whether the sleeping consumer of a lane should be woken.  In order it waits for its own batch; as completed for any, and
 * who was woken will take one. */
static inline bool flow_calls_consumer(const struct flow *f, uint32_t lane)
{
	return flow_has_for(f, lane) &&
	       (f->options.in_order || f->consumers_woken < f->deliverable);
}

/* A worker's items took so long each. */
static inline void flow_learn(struct flow *f, double service_ns)
{
	enum { SMOOTHING = 8 };
	if (f->service_ns <= 0)
		f->service_ns = service_ns;
	f->service_ns = (f->service_ns * (SMOOTHING - 1) + service_ns) / SMOOTHING;
	const double fit = FLOW_CHUNK_NS / (f->service_ns + 1);
	f->chunk = fit < 1 ? 1 : fit < FLOW_CHUNK_MAX ? (uint32_t)fit : FLOW_CHUNK_MAX;
}

/* --- workers that read for themselves -------------------------------------------------------------- */

/* Samples of a batch from `place` on, to be read and made by one worker. */
struct flow_claim {
	uint64_t batch;
	uint32_t slot, place, count;
};

/* The batch that a worker claims samples of next. */
static inline uint64_t flow_batch_of(const struct flow *f, uint32_t worker)
{
	return f->options.whole_batches ? f->own_batch[worker] : f->batch;
}

/* Whether there is nothing more for a worker, ever. */
static inline bool flow_is_done(const struct flow *f, uint32_t worker)
{
	return flow_batch_of(f, worker) >= f->batches;
}

/* What keeps a worker from a claim. */
static inline enum flow_lack flow_lack_of(const struct flow *f, uint32_t worker)
{
	const uint64_t batch = flow_batch_of(f, worker);
	if (batch >= f->batches || batch >= f->open_batches)
		return FLOW_LACKS_FILES;
	return batch < f->reach ? FLOW_LACKS_NOTHING : FLOW_LACKS_SLOTS;
}

/* A worker's next claim; it lacks nothing.  Its tickets, and those before them, are dealt before anything else is done:
 *     while (flow_owes(f, &claim)) flow_deal(f) */
static inline struct flow_claim flow_claim(struct flow *f, uint32_t worker)
{
	const uint64_t batch = flow_batch_of(f, worker);
	struct flow_claim claim = {batch, flow_slot_of(f, batch), 0, flow_batch_size(f, batch)};
	if (f->options.whole_batches) {
		f->own_batch[worker] += f->options.workers;
	} else {
		const uint32_t share = flow_share(f, f->reach_ticket - f->next);
		claim.place = f->place;
		claim.count -= f->place;
		claim.count = share < claim.count ? share : claim.count;
	}
	f->handed += claim.count;
	return claim;
}

static inline bool flow_owes(const struct flow *f, const struct flow_claim *claim)
{
	return f->batch < claim->batch ||
	       (f->batch == claim->batch && f->place < claim->place + claim->count);
}

/* Whole batches: a worker that sleeps and whose batch has come, to be woken; FLOW_NONE: there is none.  Each batch is looked
 * at once: its worker sleeps, or comes by itself before it would. */
static inline uint32_t flow_calls_owner(struct flow *f)
{
	uint64_t end = f->reach < f->batches ? f->reach : f->batches;
	end = end < f->open_batches ? end : f->open_batches;
	while (f->called < end) {
		const uint64_t batch = f->called++;
		const uint32_t worker = (uint32_t)(batch % f->options.workers);
		if (f->asleep[worker] && f->own_batch[worker] == batch)
			return worker;
	}
	return FLOW_NONE;
}

/* What the sleeping workers lack, but for those that are to be woken. */
static inline enum flow_lack flow_lack_of_sleepers(const struct flow *f)
{
	if (!f->options.whole_batches)
		return flow_lack_of(f, 0);
	const uint64_t end = f->batches < f->open_batches ? f->batches : f->open_batches;
	return f->reach < end ? FLOW_LACKS_SLOTS : FLOW_LACKS_FILES;
}

/* --- staging ------------------------------------------------------------------------------------- */

/* Places for uploaded batches between an upload and its step, filled and given back in order. */
struct flow_staging {
	uint32_t places;
	uint64_t filled, taken, released;
};

/* Whether copy number `number`, from 0 on, has a place. */
static inline bool flow_staging_has_place(const struct flow_staging *s, uint64_t number)
{
	return number - s->released < s->places;
}

static inline bool flow_staging_has_batch(const struct flow_staging *s)
{
	return s->taken < s->filled;
}

#endif
