/* Reader threads. */
#include "pipelines/readers.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"
#include "workloads/backend/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	IMMEDIATE_DEPTH = 64,
	REAP_WAIT_NS = 100000000, /* looks at the stop flag so often */
};

struct one_reader {
	struct seat seat;
	struct readers *readers;
	pthread_t thread;
	bool started;
	unsigned index, depth;
	struct thread_meter *meter;
	struct reader *reader;
	struct blob **taken, **done;  /* (depth) each */
	struct read_request **reaped; /* (depth) */
	unsigned in_flight;
};

struct readers {
	struct readers_options options;
	struct one_reader *list; /* (options.count) */
};

/* Files to keep in flight.  A source that answers at once is asked for many, so that one visit at the
 * exchange serves them all. */
static unsigned worthwhile_depth(const struct one_reader *r)
{
	const struct readers_options *o = &r->readers->options;
	const unsigned depth = source_reader_depth_most(r->reader);
	const unsigned share = o->exchange->options.blobs / (2 * o->count);
	if (o->source->ops->immediate && !o->source->limiter && share > depth)
		return share < IMMEDIATE_DEPTH ? share : IMMEDIATE_DEPTH;
	return depth;
}

static int open_reader(struct one_reader *r, struct error *err)
{
	const struct readers_options *o = &r->readers->options;
	const int code = source_reader_open(&r->reader, o->source, r->index, err);
	if (code)
		return code;
	r->depth = worthwhile_depth(r);
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

/* Waits for completions; being short of blobs meanwhile is being blocked, since the source could have
 * more to do. */
static size_t readers_reap(struct one_reader *r, bool is_short)
{
	struct reader *const reader = r->reader;
	if (!is_short) {
		const uint64_t shown_ns = timeline_mark();
		const size_t count = source_reap(reader, r->reaped, r->in_flight, REAP_WAIT_NS);
		(void)timeline_end(TIMELINE_REAP, shown_ns, count);
		return count;
	}
	size_t n = source_reap(reader, r->reaped, r->in_flight, 0);
	if (n == 0) {
		readers_set_state(r, THREAD_BLOCKED);
		n = source_reap(reader, r->reaped, r->in_flight, FLOW_LOOK_NS);
		readers_set_state(r, THREAD_WORKING);
	}
	return n;
}

/* In the timeline; a file that was submitted before anything was timed has begun all the same. */
static void readers_show(const struct blob *blob)
{
	const struct read_request *request = &blob->request;
	timeline_span(TIMELINE_FILE, request->submitted_ns, request->done_ns, blob->ticket.number,
		(uint32_t)request->size);
	timeline_span(TIMELINE_FILE_OPEN, request->opened_ns ? request->submitted_ns : 0,
		request->opened_ns, blob->ticket.number, 0);
}

static void readers_meter(struct thread_meter *meter, const struct blob *blob, uint64_t now_ns)
{
	const struct read_request *request = &blob->request;
	const uint64_t service_ns = request->done_ns - request->submitted_ns;
	const struct trace_entry item = {
		.number = blob->ticket.number,
		.end_ns = request->done_ns,
		.service_ns = (float)service_ns,
		.read = {request->status ? 0 : (uint32_t)request->size, blob->in_flight},
	};
	/* Whatever is cut off later, a file aside is none of those at the set depth. */
	if (blob->aside)
		thread_meter_count(meter, 1);
	else
		span_item(meter, now_ns, service_ns, &item);
	if (item.number < meter->ramp.room && blob->switches == 0)
		trace_log_put(&meter->ramp, &item);
	if (meter->clock.timeline && timeline_keeps(meter->clock.timeline, request->submitted_ns))
		readers_show(blob);
}

static size_t readers_collect(struct one_reader *r, size_t n, uint64_t now_ns)
{
	struct exchange *x = r->readers->options.exchange;
	for (size_t i = 0; i < n; i++) {
		r->done[i] = &x->blobs[r->reaped[i]->ticket];
		if (r->meter)
			readers_meter(r->meter, r->done[i], now_ns);
	}
	r->in_flight -= (unsigned)n;
	return n;
}

static void read_files(struct one_reader *r, uint64_t start_ns)
{
	struct exchange *x = r->readers->options.exchange;
	const struct backend_ops *const backend = r->readers->options.backend;
	uint64_t now = r->meter ? start_ns : 0;
	size_t n_done = 0;
	while (!crew_stopping(r->readers->options.crew)) {
		const size_t n = exchange_read(x, &r->seat, r->done, n_done, r->taken,
			r->depth - r->in_flight, r->in_flight, &now);
		if (r->in_flight + n == 0)
			break;
		backend_mark(backend, STAGE_READ_NAME);
		readers_submit(r, n);
		const size_t n_reaped = readers_reap(r, r->seat.is_short);
		backend_mark(backend, NULL);
		if (r->meter)
			now = clock_now_ns();
		n_done = readers_collect(r, n_reaped, now);
	}
	readers_set_state(r, THREAD_STARVED);
}

static void *run_reader(void *context)
{
	struct one_reader *r = context;
	const struct readers_options *o = &r->readers->options;
	struct error err = {0};
	(void)placement_bind(o->placement, o->first_place + r->index, 1);
	span_thread_begin(STAGE_READ, r->meter);
	const int code = open_reader(r, &err);
	if (code)
		crew_fail(o->crew, code, &err);
	uint64_t start_ns;
	if (crew_arrive(o->crew, &start_ns)) {
		span_thread_start(r->meter, THREAD_WORKING, start_ns, o->segment_ns);
		read_files(r, start_ns);
	}
	close_reader(r);
	span_thread_end(r->meter);
	return NULL;
}

int readers_start(struct readers **out, const struct readers_options *options, struct error *err)
{
	struct readers *readers = calloc(1, sizeof *readers);
	if (!readers)
		return error_set(err, -ENOMEM, "out of memory");
	*out = readers;
	readers->options = *options;
	readers->list =
		aligned_alloc(_Alignof(struct one_reader), options->count * sizeof *readers->list);
	if (!readers->list)
		return error_set(err, -ENOMEM, "out of memory");
	memset(readers->list, 0, options->count * sizeof *readers->list);
	for (unsigned i = 0; i < options->count; i++) {
		struct one_reader *r = &readers->list[i];
		r->readers = readers;
		r->index = i;
		r->meter = options->meters ? &options->meters[i] : NULL;
		r->seat.reader = i;
		r->seat.clock = r->meter ? &r->meter->clock : NULL;
		r->seat.lock = r->meter ? &r->meter->lock : NULL;
		const int code = pthread_create(&r->thread, NULL, run_reader, r);
		if (code)
			return error_set_errno(err, code, "cannot start reader thread %u of %u",
				i + 1, options->count);
		r->started = true;
		char name[16];
		(void)snprintf(name, sizeof name, "mlb-read-%u", i % 1000);
		(void)pthread_setname_np(r->thread, name);
	}
	return 0;
}

bool readers_join(struct readers *readers, uint64_t deadline_ns)
{
	if (!readers || !readers->list)
		return true;
	bool all = true;
	for (unsigned i = 0; i < readers->options.count; i++) {
		struct one_reader *r = &readers->list[i];
		if (r->started && crew_join(r->thread, deadline_ns))
			r->started = false;
		all = all && !r->started;
	}
	return all;
}

void readers_free(struct readers *readers)
{
	if (!readers)
		return;
	free(readers->list);
	free(readers);
}
