/* Everything that readers, decode workers and the consumers of batches (step or uploader of each device) hand each
 * other, behind one lock: blobs, tickets, ready files, slots.  Who gets what, and who is woken, is decided by
 * harness/flow/flow.h, which the replay follows, too.  A thread comes with what it has done and
 * leaves with what is next, in one visit: two visits a sample at most, and one per 32 when samples are
 * tiny.  Sleepers are woken by name, as many as there is work for (crew.h).
 *
 * It cannot deadlock.  Tickets are taken in order, each together with a free blob, so a ticket that was
 * taken never waits for a blob.  Suppose that no thread can go on: nothing is being read or decoded.
 *   - If files are ready, let t be the lowest ready ticket, of batch b.  Every ticket below t was taken,
 *     and is neither being read, ready nor being decoded: it was written.  So every batch below b is
 *     complete, can be delivered, and its slot comes back; the consumer is not waiting unless all were.
 *     Slots are given out in the order of batches, so a batch above b has one only if b has.  Hence
 *     b has a slot, or all slots are free: a worker can take t.  (With several devices: below.)
 *   - If none is ready, all blobs are free: a reader can take a ticket.  Readers that wait for more
 *     room than one blob (wake_free) are woken when nothing is ready, so they do.
 *   - If the sampler is exhausted too, every ticket was written and every batch was delivered: the end.
 * A consumer may hold batches in flight on a device, steps or copies.  These end by themselves: a step
 * waits for the copy of its own batch at most, which was begun before it was launched, and a copy for
 * nothing.  While any is in flight the consumer never waits for a batch without end; what has ended is
 * finished and its slot given back first.  So one that waits without end holds no slot, as above.
 *
 * Several devices that train together wait for each other in every step: none begins its step n + 1 before
 * all have computed step n.  Each is a lane here, with a consumer of its own.  In order, batch b goes to lane b %
 * lanes, so round n is the batches from n x lanes on, and which device computes what is no matter of timing.  As
 * completed, a lane gets whatever is complete when it asks, but not its next before every lane has had as many, so that all
 * make the same number of steps.  The sampler leaves out a round that is not full at the end of an epoch.  It
 * still cannot deadlock, with a slot for each device at least.  Suppose again that b is the lowest ready batch and has no slot: then no batch from b on has one, and all
 * below are complete.  Let m be a device that the others wait for, in step n, the lowest that any has
 * not begun; it has no batch to begin it with, so that its consumer waits here.
 *   - In order it waits for batch n x lanes + m, which is b or above.  Every other device has its own
 *     batch of step n or waits here for it likewise; so no batch below b is undelivered.
 *   - As completed no batch is undelivered, since m would have it.
 *   Slots out are those that the other devices hold for steps from n on: one at most each, in order since others would be of
 *   batches above b, as completed since m would have had as many.  One slot is free: b gets it.
 *
 * Where workers read for themselves, they claim samples of batches, in the order of batches, and then wait for nothing but
 * their own reads.  Suppose that no thread can go on: nothing is being read or decoded.  Let b be the first batch that is
 * not complete.  All below it are, so that as above their slots come back and b has one or can have one.  If samples of b are
 * not claimed, a worker may claim them: any, or worker b % workers (decode.share = batches), who has no claim on a later one,
 * since it makes its batches in their order, nor on an earlier one, since those are complete.
 *
 * Where loading and steps take turns (prefetch.depth = 0), there is a slot for each device, and all come back before the next
 * batches get one.  Those of a turn need no slot beyond these, and each device gets one of them: so every batch of a turn is
 * delivered, stepped and given back, and the next turn begins.
 *
 * Files larger than a blob's room (blob_bytes) are rare, and read into one of a few large buffers, which the ticket
 * holds together with its blob; one that finds none free is not taken, nor is any behind it.  So a ticket that
 * was taken still waits for nothing, and when nothing is being read, ready or decoded all large buffers are free.
 *
 * A worker that waits is starved when nothing is ready, and blocked when files are ready but the lowest
 * one's batch cannot get a slot.  When that changes while it sleeps, whoever changed it turns the one clock of
 * all sleepers under the lock, so the split is exact without waking them.
 *
 * Whoever finds that more workers can go on wakes two of them at most, a consumer one, whatever there is for them: each comes
 * here, takes its own and wakes two more, so that a step that gives back a slot does not pay for hundreds of wake-ups.  None is lost:
 * where a worker sleeps and there is work for it, one that was woken for it is on its way. */
#ifndef MLBENCH_PIPELINES_EXCHANGE_H
#define MLBENCH_PIPELINES_EXCHANGE_H

#include "harness/flow/flow.h"
#include "harness/measure/state_clock.h"
#include "harness/measure/thread_meter.h"
#include "pipelines/crew.h"
#include "pipelines/sampler.h"
#include "workloads/backend/batch.h"
#include "workloads/dataset/dataset.h"
#include "workloads/sample/sample.h"
#include "workloads/source/source.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES_MAX = DEVICES_MAX };

/* A place where a batch is put together.  Which slot is whose is decided in harness/flow/flow.h; the bytes of
 * one that is being filled belong to the workers that took its samples.
 *
 * Where a device finishes the samples, a worker does only what the device cannot, and the slot is an
 * arena: each unfinished sample takes its place there by an atomic bump (workloads/sample/sample.h), with
 * a note beside it of what is left to do. Only what is used is copied, and one launch makes the samples
 * of the batch. */
struct slot {
	/* (size, bytes of a sample); or, with notes, unfinished ones in any order, each aligned, `used` in all */
	uint8_t *data;
	uint8_t *notes; /* (size, note_bytes); NULL: finished samples */
	atomic_size_t used;
	atomic_uint made; /* samples so far, where a batch has an overhead; 0 again when all are */
	uint8_t *labels;  /* (size, label_bytes) */
	uint64_t batch;   /* since the run began */
	uint32_t size;    /* samples of this batch */
	uint32_t bad;     /* zeroed, because they could not be read or decoded */
	uint32_t index;   /* its own, in the pool */
	struct ticket *
		tickets; /* (size) where workers read for themselves, of those that were dealt; else NULL */
};

/* Samples of one batch that a worker reads and makes: tickets from `place` on. */
struct claim {
	struct slot *slot;
	uint32_t place, count;
	uint32_t bad; /* the worker's count of them */
};

/* As a step or an upload of it receives it; place: where it was uploaded to, or BATCH_ON_HOST. */
static inline struct batch_view slot_view(
	const struct slot *slot, const struct sample_sizes *sizes, int place)
{
	const size_t used = atomic_load_explicit(&slot->used, memory_order_relaxed);
	return (struct batch_view){
		.data = slot->data,
		.labels = (const uint32_t *)(const void *)slot->labels,
		.notes = slot->notes,
		.bytes = slot->notes ? used : slot->size * sizes->bytes,
		.size = slot->size,
		.sample_bytes = sizes->bytes,
		.type = sizes->shape.type,
		.index = slot->batch,
		.place = place,
		.label_bytes = sizes->label_bytes,
	};
}

/* A file on its way from the reader to its place in a batch. */
struct blob {
	_Alignas(CACHE_LINE_BYTES) struct read_request request;
	struct ticket ticket;
	struct slot *slot; /* from when a worker took it */
	uint32_t index;
	uint32_t large;     /* FLOW_NONE, or the large buffer that is its room instead of its own */
	uint32_t in_flight; /* on its reader when it was submitted, itself included */
	uint32_t switches;  /* of the readers' depth, before it was taken */
	bool aside; /* taken while reads were at another depth than the set one (exchange_set_depth) */
	bool bad; /* set by the worker: could not be read or decoded, its place is zeroed */
};

/* Files that readers handed in, and what is with them; where samples are cut out of large requests
 * (options.reads_large), such requests. */
struct exchange_reads {
	uint64_t files, bytes;
	double latency_ns, latency_squares; /* sums, submission to completion */
	uint32_t in_flight;                 /* with the readers */
	uint32_t earlier;                   /* of these, taken before the last change of depth */
	uint32_t tag;                       /* of large requests: whose change that was */
};

/* A thread's place at the exchange. */
struct seat {
	_Alignas(COUNTER_ALIGN_BYTES) struct parker parker;
	struct state_clock *clock; /* NULL: not timed */
	struct lock_meter *lock;   /* NULL: waits for the exchange's lock are not counted */
	struct seat *next;         /* in a list of sleepers */
	unsigned reader, worker;   /* of the readers or of the workers, this one */
	/* Of a worker that reads for itself: how its thread's reading passes the time, where `clock` is of its making; and what
	 * it has claimed. */
	struct state_clock *reading;
	struct claim claim;
	uint64_t starts;    /* of a worker: epochs that it has started for */
	uint64_t waking_ns; /* of a worker: how long its last visit woke others */
	bool is_short; /* of a reader that came last: it got fewer files than it may have in flight */
	/* Of a reader of large requests: what it may have in flight of them (0: that never changes) and their
	 * tag, from the exchange; and what it read of them since its last visit, for the exchange. */
	uint32_t share, share_tag;
	struct exchange_reads large;
};

struct exchange_options {
	struct sampler_options sampler;
	uint32_t lookahead;         /* source_lookahead, at the set depth */
	bool reads_large;           /* source_reads_large */
	uint32_t blobs, blob_bytes; /* blob_bytes 0: the source has the bytes itself */
	/* blobs x blob_bytes, then the large ones, then the same of the spare ones; or NULL */
	uint8_t *blob_memory;
	uint32_t large_blobs,
		large_bytes; /* how many, and the room of each; 0: every file fits a blob */
	/* Lent to the readers while they are deeper than the set depth, and of no use at any other time. */
	uint32_t spare_blobs, spare_large_blobs;
	const struct sample
		*samples; /* (sampler.count), asked for their sizes; NULL without large ones */
	uint32_t slots, prefetch_depth;
	uint8_t *slot_memory;  /* slots x slot_bytes */
	uint8_t *label_memory; /* slots x slot_samples x label_bytes */
	/* slots x slot_samples x note_bytes; NULL: slots hold finished samples */
	uint8_t *note_memory;
	uint32_t slot_samples;
	size_t slot_bytes, label_bytes, note_bytes;
	bool in_order;
	/* flow.h; by_workers: blob i is worker i's own */
	bool by_workers, whole_batches, turns;
	bool epochs_apart; /* workers start anew with each epoch (flow.h) */
	bool held; /* epochs are kept apart, and each begins when exchange_begin_epoch says so */
	uint64_t startup_ns; /* of a worker, at the beginning and then */
	unsigned lanes;      /* devices; 0 is one */
	unsigned workers, readers, read_depth, cores;
	uint32_t
		depth; /* set, of all readers together, where it is to be changed; 0: it never is */
	const atomic_bool *stopping; /* once true, nobody gets anything more */
	/* Told how deep the queues are, from exchange_start_meters on; NULL: nobody is. */
	struct timeline_log *samples_timeline, *batches_timeline;
};

/* Between epochs that are kept apart: from the last batch that was given back to the first one that is delivered, monotonic. */
enum { EXCHANGE_GAPS_MAX = 1024 };
struct exchange_gap {
	uint64_t begin_ns, end_ns;
};

struct exchange {
	struct timed_lock lock;
	struct exchange_options options;
	struct flow flow;       /* who gets what; the bytes are: */
	void *flow_memory;      /* owned */
	struct ticket *tickets; /* (options.slots x slot_samples) by_workers; owned */
	struct sampler sampler;
	struct blob *blobs; /* (options.blobs + spare_blobs); owned */
	struct slot *slots; /* (options.slots); owned */
	uint32_t *shares;   /* (options.readers), of the depth; NULL: it never changes; owned */
	/* At the present depth, and as far as it has come: a step with each ticket, so that hints leave
	 * nothing out. */
	uint32_t lookahead, ahead;
	uint32_t switches;
	bool aside;
	bool counts_reads; /* the depth may still change */
	struct exchange_reads reads;
	uint32_t being_read;    /* blobs with the readers */
	uint64_t total_batches; /* UINT64_MAX: without end */
	uint64_t lane_batches;  /* of these, for each lane */
	struct seat *idle_workers, *idle_readers;
	struct seat *starting_workers;
	uint64_t epochs_begun; /* workers start for each, where that takes time */
	uint64_t gap_begin_ns; /* an epoch is over since then; 0: none */
	size_t gap_count;      /* of all; the first are kept */
	struct exchange_gap gaps[EXCHANGE_GAPS_MAX];
	struct state_clock parked; /* of the idle workers: starved or blocked */
	uint64_t parked_ns;        /* when the last of them parked: their clock turns no earlier */
	bool shown;                /* some of them have timelines, which are told of each */
	struct seat *paused_readers;            /* their share of the depth is none */
	struct seat *idle_consumers[LANES_MAX]; /* one at most in each */
	struct queue_meter samples, batches;
};

int exchange_open(struct exchange *exchange, const struct exchange_options *options);
void exchange_close(struct exchange *exchange); /* safe on {0}; after all its threads have ended */

/* Starts the queue meters (not called: no times are kept). */
void exchange_start_meters(struct exchange *exchange, uint64_t now_ns);

/* In all visits *now_ns is when the caller came (0: not timed); it is moved on when the caller had to
 * wait for the lock, to sleep or to wake others, and the caller's clock is working again when the visit returns with something. */

/* A reader: hands in n_done files and takes up to room blobs with their tickets, as far as its share of the depth allows
 * beside the in_flight ones that it still has.  Sleeps for room, or for a share, only without any; 0 then means that the run
 * is over. */
size_t exchange_read(struct exchange *exchange, struct seat *seat, struct blob *const *done,
	size_t n_done, struct blob **taken, size_t room, size_t in_flight, uint64_t *now_ns);

/* From now on all readers together have `depth` files in flight at most, evenly; options.depth is not 0.  Readers that have
 * more finish them first, and one whose share is none pauses (its clock: starved).  Tickets stay in order, so batches are the
 * same at any depth. */
void exchange_set_depth(struct exchange *exchange, uint32_t depth, uint64_t now_ns);
/* It stays as it is from now on, and reads are not counted any more: they cost what they do where it never changed. */
void exchange_keep_depth(struct exchange *exchange);
/* Returns the moment that *out is of: between two looks no file is counted that came after the second.  All zeros where
 * options.depth is 0. */
uint64_t exchange_look_at_reads(struct exchange *exchange, struct exchange_reads *out);

/* A decode worker: hands in the n_done items that it wrote and takes up to FLOW_CHUNK_MAX, lowest tickets
 * first, with their slots.  service_ns: time per item, 0 if not measured.  0: the run is over.
 * One that reads for itself hands in its seat's claim and gets the next one there; its reading begins now.  items is not
 * looked at. */
size_t exchange_decode(struct exchange *exchange, struct seat *seat, struct blob **items,
	size_t n_done, uint64_t service_ns, uint64_t *now_ns);

/* The consumer of a lane (0 where there is one device): gives back a slot (or NULL) and takes the lane's next
 * batch.  NULL: the run is over. */
struct slot *exchange_next_batch(struct exchange *exchange, unsigned lane, struct seat *seat,
	struct slot *used, uint64_t *now_ns);

/* The same for a consumer with work of its own in flight: it waits until until_ns at most (0: not at
 * all), and is working meanwhile.  NULL: no batch came; *over: none will. */
struct slot *exchange_try_batch(struct exchange *exchange, unsigned lane, struct seat *seat,
	struct slot *used, uint64_t until_ns, bool *over, uint64_t *now_ns);

/* The consumer: gives back a slot, and takes nothing. */
void exchange_release(
	struct exchange *exchange, struct seat *seat, struct slot *used, uint64_t *now_ns);

/* held: the next epoch begins; the one before is over, its last slot given back. */
void exchange_begin_epoch(struct exchange *exchange);

/* After the threads have ended: ns from epoch to epoch, where they are kept apart and at least two gaps were between them, else
 * 0; and ns of the gaps that lie between two times, and how many. */
uint64_t exchange_epoch_ns(const struct exchange *exchange);
uint64_t exchange_whole_gaps_ns(
	const struct exchange *exchange, uint64_t from_ns, uint64_t to_ns, uint64_t *count);

/* After *stopping became true: wakes everybody. */
void exchange_wake_all(struct exchange *exchange);

/* What the queues held so far, and hold now. */
struct exchange_queues {
	struct queue_integrals samples, batches;
	uint32_t samples_depth, batches_depth;
	uint32_t being_read; /* files with the readers */
};
void exchange_read_queues(struct exchange *exchange, uint64_t now_ns, struct exchange_queues *out);

#endif
