/* The threads of the data loader: readers and decode workers, or workers that read for themselves.
 *
 * The OpenMP region of the workers runs on a thread of its own, since the control thread has other
 * work; that thread is worker 0.  libgomp is not instrumented for thread sanitizers, so under them
 * the same workers are started as plain threads: what is shared between workers goes through the
 * exchange's lock and the crew's either way. */
#include "pipelines/repetition.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"
#include "workloads/backend/backend.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	IMMEDIATE_DEPTH = 64,
	REAP_WAIT_NS = 100000000, /* looks at the stop flag so often */
	SAMPLED_VISITS =
		8, /* untimed, every so many visits are timed to learn how tiny samples are */
};

static void *loader_zeroed(size_t alignment, size_t bytes)
{
	void *const memory = aligned_alloc(alignment, bytes);
	return memory ? memset(memory, 0, bytes) : NULL;
}

/* --- readers --------------------------------------------------------------------------------- */

struct one_reader {
	struct seat seat;
	struct run *run;
	pthread_t thread;
	bool started;
	unsigned index, depth;
	struct thread_meter *meter;
	struct reader *reader;
	struct blob **taken, **done;  /* (depth) each */
	struct read_request **reaped; /* (depth) */
	unsigned in_flight;
	bool large; /* reads large requests, which are timed in place of samples */
};

/* Files to keep in flight.  A source that answers at once is asked for many, so that one visit at the
 * exchange serves them all. */
static unsigned worthwhile_depth(const struct one_reader *r)
{
	struct run *const run = r->run;
	const unsigned depth = source_reader_depth_most(r->reader);
	const unsigned share = run->exchange.options.blobs / (2 * run->plan.reader_threads);
	if (run->source->ops->immediate && !run->source->limiter && share > depth)
		return share < IMMEDIATE_DEPTH ? share : IMMEDIATE_DEPTH;
	return depth > run->plan.reader_takes ? depth : run->plan.reader_takes;
}

static int open_reader(struct one_reader *r, struct error *err)
{
	struct run *const run = r->run;
	const int code = source_reader_open(&r->reader, run->source, r->index, err);
	if (code)
		return code;
	r->depth = worthwhile_depth(r);
	r->large = run->plan.facts.reads_large;
	r->taken = calloc(r->depth, sizeof(struct blob *));
	r->done = calloc(r->depth, sizeof(struct blob *));
	r->reaped = calloc(r->depth, sizeof(struct read_request *));
	if (!r->taken || !r->done || !r->reaped)
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static void close_reader(struct one_reader *r)
{
	source_reader_close(r->reader);
	free(r->taken);
	free(r->done);
	free(r->reaped);
}

static void readers_submit(struct one_reader *r, size_t n)
{
	const uint64_t shown_ns = n > 0 ? timeline_mark() : 0;
	for (size_t i = 0; i < n; i++) {
		struct blob *blob = r->taken[i];
		blob->request.sample = blob->ticket.sample;
		blob->request.ticket = blob->index;
		blob->in_flight = r->in_flight + (uint32_t)i + 1;
		source_submit(r->reader, &blob->request);
	}
	r->in_flight += (unsigned)n;
	(void)timeline_end(TIMELINE_SUBMIT, shown_ns, n);
}

static void readers_set_state(struct one_reader *r, enum thread_state state)
{
	if (r->meter)
		state_clock_enter(&r->meter->clock, state, clock_now_ns());
}

static uint16_t in_flight_of(uint32_t count)
{
	return (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
}

/* A large request takes the place of a file: its time says what the store does. */
static void readers_meter_large(
	struct one_reader *r, const struct large_read *read, uint64_t now_ns)
{
	struct thread_meter *const meter = r->meter;
	struct exchange_reads *const sums = &r->seat.large;
	const uint64_t service_ns = read->done_ns - read->submitted_ns;
	const struct trace_entry item = {
		.number = read->number,
		.end_ns = read->done_ns,
		.service_ns = (float)service_ns,
		.read = {read->bytes, in_flight_of(read->in_flight), 0},
	};
	sums->files++;
	sums->bytes += read->bytes;
	sums->latency_ns += (double)service_ns;
	sums->latency_squares += (double)service_ns * (double)service_ns;
	/* As in exchange_tag: not at another depth than the set one; before the first change. */
	if (!(read->tag & 1)) {
		service_log_add(&meter->service, now_ns, service_ns, 1);
		trace_log_put(&meter->trace, &item);
	}
	if (item.number < meter->ramp.room && read->tag >> 1 == 0)
		trace_log_put(&meter->ramp, &item);
}

static size_t readers_reap_now(struct one_reader *r, uint64_t wait_ns)
{
	const size_t count = source_reap(r->reader, r->reaped, r->in_flight, wait_ns);
	if (!r->large || !r->meter)
		return count;
	struct large_reads reads;
	source_reader_large(r->reader, &reads);
	const uint64_t now_ns = reads.count > 0 ? clock_now_ns() : 0;
	for (size_t i = 0; i < reads.count; i++)
		readers_meter_large(r, &reads.done[i], now_ns);
	r->seat.large.in_flight = reads.in_flight;
	r->seat.large.earlier = reads.earlier;
	r->seat.large.tag = reads.tag;
	return count;
}

/* Waits for completions; being short of blobs meanwhile is being blocked, since the source could have
 * more to do. */
static size_t readers_reap(struct one_reader *r, bool is_short)
{
	if (!is_short) {
		const uint64_t shown_ns = timeline_mark();
		const size_t count = readers_reap_now(r, REAP_WAIT_NS);
		(void)timeline_end(TIMELINE_REAP, shown_ns, count);
		return count;
	}
	size_t n = readers_reap_now(r, 0);
	if (n == 0) {
		readers_set_state(r, THREAD_BLOCKED);
		n = readers_reap_now(r, FLOW_LOOK_NS);
		readers_set_state(r, THREAD_WORKING);
	}
	return n;
}

/* In the timeline; a file that was submitted before anything was timed has begun all the same. */
static void reads_show(const struct blob *blob)
{
	const struct read_request *request = &blob->request;
	timeline_span(TIMELINE_FILE, request->submitted_ns, request->done_ns, blob->ticket.number,
		(uint32_t)request->size);
	timeline_span(TIMELINE_FILE_OPEN, request->opened_ns ? request->submitted_ns : 0,
		request->opened_ns, blob->ticket.number, 0);
}

/* The share of its time in which the file was opened. */
static uint16_t open_of(const struct read_request *request, uint64_t service_ns)
{
	const uint64_t open_ns = request->opened_ns > request->submitted_ns
					 ? request->opened_ns - request->submitted_ns
					 : 0;
	if (open_ns == 0 || open_ns > service_ns)
		return 0;
	const double share = (double)open_ns / (double)service_ns * TRACE_OPEN_WHOLE;
	return (uint16_t)(share < 1 ? 1 : share);
}

static void reads_meter(
	struct thread_meter *meter, const struct blob *blob, bool large, uint64_t now_ns)
{
	const struct read_request *request = &blob->request;
	const uint64_t service_ns = request->done_ns - request->submitted_ns;
	const struct trace_entry item = {
		.number = blob->ticket.number,
		.end_ns = request->done_ns,
		.service_ns = (float)service_ns,
		.sample = large ? 0 : blob->ticket.sample + 1,
		.read = {request->status ? 0 : (uint32_t)request->size,
			in_flight_of(blob->in_flight), open_of(request, service_ns)},
	};
	/* Whatever is cut off later, a file aside is none of those at the set depth. */
	if (blob->aside || large)
		thread_meter_count(meter, 1);
	else
		span_item(meter, now_ns, service_ns, &item);
	if (item.number < meter->ramp.room && blob->switches == 0 && !large)
		trace_log_put(&meter->ramp, &item);
	if (meter->clock.timeline && timeline_keeps(meter->clock.timeline, request->submitted_ns))
		reads_show(blob);
}

static size_t readers_collect(struct one_reader *r, size_t n, uint64_t now_ns)
{
	struct exchange *x = &r->run->exchange;
	for (size_t i = 0; i < n; i++) {
		r->done[i] = &x->blobs[r->reaped[i]->ticket];
		if (r->meter)
			reads_meter(r->meter, r->done[i], r->large, now_ns);
	}
	r->in_flight -= (unsigned)n;
	return n;
}

static void read_files(struct one_reader *r, uint64_t start_ns)
{
	struct exchange *x = &r->run->exchange;
	const struct backend_ops *const backend = r->run->backend;
	uint64_t now = r->meter ? start_ns : 0;
	size_t n_done = 0;
	while (!crew_stopping(&r->run->crew)) {
		const size_t n = exchange_read(x, &r->seat, r->done, n_done, r->taken,
			r->depth - r->in_flight, r->in_flight, &now);
		if (r->in_flight + n == 0)
			break;
		if (r->seat.share > 0)
			source_reader_allow(r->reader, r->seat.share, r->seat.share_tag);
		backend_mark(backend, STAGE_READ_NAME);
		readers_submit(r, n);
		const size_t n_reaped = readers_reap(r, r->seat.is_short);
		backend_mark(backend, NULL);
		if (r->meter)
			now = clock_now_ns();
		n_done = readers_collect(r, n_reaped, now);
		struct error err;
		const int code = source_reader_dead(r->reader, &err);
		if (code)
			crew_fail(&r->run->crew, code, &err);
	}
	readers_set_state(r, THREAD_STARVED);
}

static void *run_reader(void *context)
{
	struct one_reader *r = context;
	struct run *const run = r->run;
	struct error err = {0};
	(void)placement_bind(&run->placement, run->plan.decode_workers + r->index, 1);
	span_thread_begin(STAGE_READ, r->meter);
	const int code = open_reader(r, &err);
	if (code)
		crew_fail(&run->crew, code, &err);
	uint64_t start_ns;
	if (crew_arrive(&run->crew, &start_ns)) {
		span_thread_start(r->meter, THREAD_WORKING, start_ns, run->segment_ns);
		read_files(r, start_ns);
	}
	close_reader(r);
	span_thread_end(r->meter);
	return NULL;
}

int readers_start(struct run *run, struct error *err)
{
	const unsigned count = run->plan.reader_threads;
	if (count == 0)
		return 0;
	run->readers = loader_zeroed(_Alignof(struct one_reader), count * sizeof *run->readers);
	if (!run->readers)
		return error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < count; i++) {
		struct one_reader *r = &run->readers[i];
		r->run = run;
		r->index = i;
		r->meter = run_meter(run, STAGE_READ, i);
		r->seat.reader = i;
		seat_open(&r->seat, r->meter);
		const int code = pthread_create(&r->thread, NULL, run_reader, r);
		if (code)
			return error_set_errno(
				err, code, "cannot start reader thread %u of %u", i + 1, count);
		r->started = true;
		char name[16];
		(void)snprintf(name, sizeof name, "mlb-read-%u", i % 1000);
		(void)pthread_setname_np(r->thread, name);
	}
	return 0;
}

/* --- decode workers -------------------------------------------------------------------------- */

struct worker {
	struct seat seat;
	struct run *run;
	unsigned index;
	struct thread_meter *meter;
	/* Of one that reads for itself: else NULL.  reading is its meter's part. */
	struct reader *reader;
	struct thread_meter *reading;
	uint64_t claimed_ns; /* when it had done with its last claim */
	struct sample_maker maker;
	struct sample_task task; /* of the sample that is being made */
	uint64_t start_ns;
	uint64_t visits;
	uint64_t visit_ns; /* when it took what it decodes; 0: not timed */
};

/* A sample that the end of the run broke off is neither good nor bad.  One that took this long by
 * then may be why there are so few others: it is named. */
static void break_off(struct worker *w, struct blob *blob)
{
	const uint64_t now_ns = clock_now_ns();
	blob->bad = true;
	if (w->visit_ns > 0)
		bad_samples_broken_off(&w->run->bad, blob->ticket.sample, now_ns - w->visit_ns);
	w->visit_ns = now_ns; /* the others that it had taken are not to blame */
}

/* Where it comes from, and where it goes. */
static void set_task(struct worker *w, const struct blob *blob)
{
	struct run *const run = w->run;
	const struct sample_sizes *const sizes = &run->plan.sample;
	struct slot *const slot = blob->slot;
	const size_t place = blob->ticket.place;
	struct sample_task *const task = &w->task;
	task->bytes = blob->request.data;
	task->size = blob->request.size;
	task->seed = blob->ticket.seed;
	task->sample = &run->dataset->samples[blob->ticket.sample];
	task->labels = slot->labels + place * sizes->label_bytes;
	task->out = slot->data + place * sizes->bytes;
	if (!slot->notes)
		return;
	task->note = slot->notes + place * sizes->note_bytes;
	task->raw = slot->data;
	task->raw_used = &slot->used;
}

/* What a loader costs for each sample beside making it. */
static void team_spend_overhead(const struct worker *w)
{
	struct run *const run = w->run;
	struct timed_lock *const lock = &run->injection.lock;
	struct lock_meter *const meter = w->meter ? &w->meter->lock : NULL;
	if (__builtin_expect(run->overhead.locked_ns > 0, 0)) {
		uint64_t now_ns = clock_now_ns();
		timed_lock_enter(lock, meter, &now_ns);
		(void)clock_spin_cpu(run->overhead.locked_ns, &run->crew.stopping);
		timed_lock_leave(lock, meter, clock_now_ns());
	}
	(void)clock_spin_cpu(run->overhead.sample_ns, &run->crew.stopping);
}

static void decode(struct worker *w, struct blob *blob)
{
	struct run *const run = w->run;
	const struct read_request *request = &blob->request;
	set_task(w, blob);
	blob->bad = request->status != 0;
	if (request->status) {
		w->maker.blank(&w->task);
		bad_samples_add_unread(&run->bad, blob->ticket.sample, -request->status);
		return;
	}
	struct error err;
	err.text[0] = '\0';
	const int code = sample_maker_make(&w->maker, &w->task, &err);
	if (code == -EINTR) {
		break_off(w, blob);
	} else if (code) {
		blob->bad = true;
		w->maker.blank(&w->task);
		bad_samples_add(&run->bad, blob->ticket.sample, err.text);
	}
	team_spend_overhead(w);
}

/* After each sample: the worker that made the last of a batch puts it together.  ns that it took, which are no sample's. */
static uint64_t team_complete_batch(struct worker *w, struct slot *slot)
{
	const uint64_t cost_ns = w->run->overhead.batch_ns;
	if (__builtin_expect(cost_ns == 0, 1) || atomic_fetch_add(&slot->made, 1) + 1 < slot->size)
		return 0;
	atomic_store(&slot->made, 0);
	const uint64_t began_ns = clock_now_ns();
	(void)clock_spin_cpu(cost_ns, &w->run->crew.stopping);
	const uint64_t took_ns = clock_now_ns() - began_ns;
	if (w->meter)
		atomic_fetch_add_explicit(&w->meter->overhead_ns, took_ns, memory_order_relaxed);
	return took_ns;
}

/* The same with planted conditions. */
static void decode_injected(struct worker *w, struct blob *blob, struct lock_meter *lock)
{
	struct injection *injection = &w->run->injection;
	const uint64_t began_ns = injection_begin(injection, &blob->ticket, lock);
	decode(w, blob);
	injection_end(injection, w->index, &blob->ticket, lock, began_ns, w->start_ns,
		&w->run->crew.stopping);
}

static void trace(const struct worker *w, const struct blob *blob, uint64_t service_ns,
	uint64_t ended_ns, uint64_t lock_wait_ns, uint64_t lock_hold_ns)
{
	const struct trace_entry item = {
		.number = blob->ticket.number,
		.end_ns = ended_ns,
		.service_ns = (float)service_ns,
		.sample = blob->ticket.sample + 1,
		.decode = {(float)lock_wait_ns, (float)lock_hold_ns},
	};
	trace_log_put(&w->meter->trace, &item);
}

/* In the timeline. */
static void team_show(const struct blob *blob, uint64_t began_ns, uint64_t ended_ns)
{
	timeline_span(TIMELINE_DECODE, began_ns, ended_ns, blob->ticket.number,
		(uint32_t)blob->ticket.batch);
}

/* Items with planted conditions, each timed for itself; *now_ns moves on.  The mean time of one. */
static uint64_t decode_each(struct worker *w, struct blob *const *items, size_t n, uint64_t *now_ns)
{
	struct lock_meter *const lock = &w->meter->lock;
	uint64_t began_ns = *now_ns;
	for (size_t i = 0; i < n; i++) {
		const uint64_t waited_ns = lock_meter_wait_ns(lock, *now_ns);
		const uint64_t held_ns = lock_meter_hold_ns(lock);
		const bool shown = timeline_is_on();
		w->visit_ns = *now_ns;
		decode_injected(w, items[i], lock);
		const uint64_t ended_ns = clock_now_ns();
		team_show(items[i], shown ? *now_ns : 0, ended_ns);
		thread_meter_add(w->meter, ended_ns, ended_ns - *now_ns, 1);
		trace(w, items[i], ended_ns - *now_ns, ended_ns,
			lock_meter_wait_ns(lock, ended_ns) - waited_ns,
			lock_meter_hold_ns(lock) - held_ns);
		const uint64_t apart_ns = team_complete_batch(w, items[i]->slot);
		*now_ns = ended_ns + apart_ns;
		began_ns += apart_ns;
	}
	return (*now_ns - began_ns) / n;
}

/* Of items that were timed together only the mean is known. */
static void meter_chunk(
	struct worker *w, struct blob *const *items, size_t n, uint64_t service_ns, uint64_t now_ns)
{
	thread_meter_add(w->meter, now_ns, service_ns, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		trace(w, items[i], service_ns, now_ns, 0, 0);
}

/* A sample, and in a timeline when it began and ended; the next one begins at the end that is returned (0: not
 * timed). */
static uint64_t decode_shown(struct worker *w, struct blob *blob, bool injected, uint64_t began_ns)
{
	if (injected)
		decode_injected(w, blob, NULL);
	else
		decode(w, blob);
	if (__builtin_expect(began_ns == 0, 1))
		return 0;
	const uint64_t ended_ns = clock_now_ns();
	team_show(blob, began_ns, ended_ns);
	return ended_ns;
}

/* Decodes n items and returns the mean time of one, 0 if it was not taken; *now_ns moves on. */
static uint64_t decode_items(
	struct worker *w, struct blob *const *items, size_t n, uint64_t *now_ns)
{
	const bool injected = w->run->injection.decode_active;
	if (injected && w->meter)
		return decode_each(w, items, n, now_ns);
	const bool sampled = !w->meter && w->visits++ % SAMPLED_VISITS == 0;
	const uint64_t began_ns = sampled ? clock_now_ns() : *now_ns;
	w->visit_ns = began_ns;
	uint64_t shown_ns = timeline_mark();
	uint64_t apart_ns = 0;
	for (size_t i = 0; i < n; i++) {
		/* The next file's first lines are on another core: ask for them meanwhile. */
		if (i + 1 < n)
			__builtin_prefetch(items[i + 1]->request.data);
		shown_ns = decode_shown(w, items[i], injected, shown_ns);
		const uint64_t completing_ns = team_complete_batch(w, items[i]->slot);
		shown_ns += shown_ns > 0 ? completing_ns : 0;
		apart_ns += completing_ns;
	}
	if (!w->meter && !sampled)
		return 0;
	const uint64_t ended_ns = shown_ns > 0 ? shown_ns : clock_now_ns();
	const uint64_t service_ns = (ended_ns - began_ns - apart_ns) / n;
	if (w->meter) {
		meter_chunk(w, items, n, service_ns, ended_ns);
		*now_ns = ended_ns;
	}
	return service_ns;
}

/* --- workers that read for themselves ----------------------------------------------------------- */

/* From now on the thread reads, or makes what it has read. */
static void worker_turns_to(const struct worker *w, bool reads, uint64_t now_ns)
{
	if (!w->meter)
		return;
	state_clock_enter(&w->reading->clock, reads ? THREAD_WORKING : THREAD_BLOCKED, now_ns);
	state_clock_enter(&w->meter->clock, reads ? THREAD_STARVED : THREAD_WORKING, now_ns);
	timeline_use(reads ? w->reading->clock.timeline : w->meter->clock.timeline);
}

/* Waits for it; false: the run is over, or no read will succeed any more. */
static bool worker_waits_for(struct worker *w, struct read_request *request)
{
	source_submit(w->reader, request);
	while (source_reap(w->reader, &request, 1, REAP_WAIT_NS) == 0) {
		struct error err;
		const int code = source_reader_dead(w->reader, &err);
		if (code)
			crew_fail(&w->run->crew, code, &err);
		if (crew_stopping(&w->run->crew))
			return false;
	}
	return true;
}

/* Into its own blob; *now_ns moves on. */
static bool worker_reads(struct worker *w, struct blob *blob, uint64_t *now_ns)
{
	const uint64_t began_ns = *now_ns;
	const bool waits = !w->run->source->ops->immediate || w->run->source->limiter;
	worker_turns_to(w, true, began_ns);
	blob->request.sample = blob->ticket.sample;
	blob->in_flight = 1;
	if (w->meter && waits)
		thread_meter_begin_piece(w->reading);
	backend_mark(w->run->backend, STAGE_READ_NAME);
	const bool done = worker_waits_for(w, &blob->request);
	backend_mark(w->run->backend, NULL);
	if (!done || !w->meter)
		return done;
	*now_ns = clock_now_ns();
	const uint64_t took_ns = *now_ns - began_ns;
	/* Until it goes on, but not what it then waits for a core: that is no matter of storage. */
	blob->request.done_ns = *now_ns;
	blob->request.done_ns -= waits ? thread_meter_end_piece(w->reading, took_ns)
				       : thread_meter_add_piece(w->reading, took_ns);
	if (blob->request.done_ns < blob->request.submitted_ns)
		blob->request.done_ns = blob->request.submitted_ns;
	reads_meter(w->reading, blob, false, *now_ns);
	worker_turns_to(w, false, *now_ns);
	return true;
}

/* Reads and makes the samples of its claim, one after the other: the mean time of one. */
static uint64_t make_claim(struct worker *w, uint64_t *now_ns)
{
	struct claim *const claim = &w->seat.claim;
	struct blob *const blob = &w->run->exchange.blobs[w->index];
	const uint64_t began_ns = w->meter ? *now_ns : clock_now_ns();
	if (w->meter)
		thread_meter_pass_rest(w->reading, began_ns - w->claimed_ns);
	blob->slot = claim->slot;
	for (uint32_t i = 0; i < claim->count; i++) {
		blob->ticket = claim->slot->tickets[claim->place + i];
		if (!worker_reads(w, blob, now_ns))
			break;
		const uint64_t read_ns = *now_ns;
		(void)decode_items(w, &blob, 1, now_ns);
		if (w->meter)
			thread_meter_pass_rest(w->reading, *now_ns - read_ns);
		claim->bad += blob->bad;
		source_let_go(&blob->request);
	}
	w->claimed_ns = w->meter ? *now_ns : clock_now_ns();
	return (w->claimed_ns - began_ns) / claim->count;
}

static void work(struct worker *w)
{
	struct exchange *x = &w->run->exchange;
	const struct backend_ops *const backend = w->run->backend;
	uint64_t now_ns = w->meter ? w->start_ns : 0;
	uint64_t service_ns = 0;
	struct blob *items[FLOW_CHUNK_MAX];
	size_t n = 0;
	while ((n = exchange_decode(x, &w->seat, items, n, service_ns, &now_ns)) > 0) {
		backend_mark(backend, STAGE_DECODE_NAME);
		service_ns =
			w->reader ? make_claim(w, &now_ns) : decode_items(w, items, n, &now_ns);
		backend_mark(backend, NULL);
	}
}

/* A worker that is woken waits for a core and takes none from the one who woke it, at the same share
 * of time (SCHED_BATCH, sched(7)).  Else the step, which wakes a worker at the end of each step, loses
 * its core before it begins the next one, for as long as that worker and those that it wakes decode:
 * the longer, the more of them there are. */
static void worker_takes_no_core(void)
{
	const struct sched_param no_priority = {0};
	if (sched_getscheduler(0) == SCHED_OTHER)
		(void)sched_setscheduler(0, SCHED_BATCH, &no_priority);
}

static void run_worker(struct worker *w)
{
	struct run *const run = w->run;
	struct error err = {0};
	(void)placement_bind(&run->placement, w->index, 1);
	worker_takes_no_core();
	span_thread_begin(STAGE_DECODE, w->meter);
	const struct sample_options options = {
		.config = run->config, .dataset = run->dataset, .stop = &run->crew.stopping};
	w->task.sizes = &run->plan.sample;
	int code = sample_maker_open(&w->maker, &options, &run->plan.sample, &err);
	if (!code && run->plan.by_workers)
		code = source_reader_open(&w->reader, run->source, w->index, &err);
	if (code)
		crew_fail(&run->crew, code, &err);
	if (crew_arrive(&run->crew, &w->start_ns)) {
		span_thread_start(w->meter, THREAD_STARVED, w->start_ns, run->segment_ns);
		if (w->reading)
			thread_meter_start_part(w->meter, w->reading);
		work(w);
	}
	source_reader_close(w->reader);
	sample_maker_close(&w->maker);
	span_thread_end(w->meter);
}

#if defined(__SANITIZE_THREAD__)

static void *run_plain(void *context)
{
	run_worker(context);
	return NULL;
}

static void run_team(struct run *run)
{
	const unsigned count = run->plan.decode_workers;
	pthread_t *threads = calloc(count, sizeof *threads);
	unsigned started = 1;
	while (threads && started < count &&
		pthread_create(&threads[started], NULL, run_plain, &run->workers[started]) == 0)
		started++;
	if (started < count) {
		struct error err;
		crew_fail(&run->crew,
			error_set(&err, -EAGAIN, "cannot start decode worker %u of %u", started + 1,
				count),
			&err);
	}
	run_worker(&run->workers[0]);
	for (unsigned i = 1; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	free(threads);
}

#else

static void run_team(struct run *run)
{
	const unsigned count = run->plan.decode_workers;
	omp_set_dynamic(0);
#pragma omp parallel num_threads(count)
	{
		const unsigned index = (unsigned)omp_get_thread_num();
		const unsigned got = (unsigned)omp_get_num_threads();
		if (got == count) {
			run_worker(&run->workers[index]);
		} else if (index == 0) {
			struct error err;
			crew_fail(&run->crew,
				error_set(&err, -EAGAIN,
					"decode.workers = %u, but OpenMP gave %u threads "
					"(is OMP_THREAD_LIMIT set?)",
					count, got),
				&err);
		}
	}
}

#endif

static void *team_thread(void *context)
{
	run_team(context);
	return NULL;
}

static void *do_nothing(void *context)
{
	uint64_t start_ns;
	(void)crew_arrive(context, &start_ns);
	return NULL;
}

/* libgomp ends the whole program when it cannot start a thread, so it is tried out beforehand: as many
 * threads at once, which end when the last has started. */
static int try_threads(unsigned count, struct error *err)
{
	struct crew gate;
	pthread_t *threads = calloc(count, sizeof *threads);
	if (!threads || crew_open(&gate, 0, NULL, NULL)) {
		free(threads);
		return error_set(err, -ENOMEM, "out of memory");
	}
	unsigned started = 0;
	int code = 0;
	while (!code && started < count) {
		code = pthread_create(&threads[started], NULL, do_nothing, &gate);
		started += code == 0;
	}
	crew_start(&gate, 0);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	crew_close(&gate);
	free(threads);
	return code ? error_set_errno(
			      err, code, "cannot start %u decode workers, only %u", count, started)
		    : 0;
}

int team_start(struct run *run, struct error *err)
{
	const unsigned count = run->plan.decode_workers;
	run->workers = loader_zeroed(_Alignof(struct worker), count * sizeof *run->workers);
	if (!run->workers)
		return error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < count; i++) {
		struct worker *w = &run->workers[i];
		w->run = run;
		w->index = i;
		w->meter = run_meter(run, STAGE_DECODE, i);
		w->reading = run->plan.by_workers ? run_meter(run, STAGE_READ, i) : NULL;
		seat_open(&w->seat, w->meter);
		w->seat.worker = i;
		w->seat.reading = w->reading ? &w->reading->clock : NULL;
	}
	int code = try_threads(count, err);
	if (code)
		return code;
	code = pthread_create(&run->team, NULL, team_thread, run);
	if (code)
		return error_set_errno(err, code, "cannot start the decode team");
	run->team_started = true;
	(void)pthread_setname_np(run->team, "mlb-decode");
	return 0;
}

/* --- both ------------------------------------------------------------------------------------ */

bool loader_join(struct run *run, uint64_t deadline_ns)
{
	bool all = true;
	for (unsigned i = 0; run->readers && i < run->plan.reader_threads; i++) {
		struct one_reader *r = &run->readers[i];
		if (r->started && crew_join(r->thread, deadline_ns))
			r->started = false;
		all = all && !r->started;
	}
	if (run->team_started && crew_join(run->team, deadline_ns))
		run->team_started = false;
	return all && !run->team_started;
}

void loader_free(struct run *run)
{
	free(run->workers);
	free(run->readers);
}
