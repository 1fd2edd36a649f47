/* Uploader: a ring of staging slots between it and the step, filled and emptied in order. */
#include "pipelines/upload.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct upload {
	struct upload_options options;
	pthread_t thread;
	bool started;
	struct seat seat; /* of the uploader */
	pthread_mutex_t lock;
	struct slot *staging; /* (count) */
	uint32_t count;       /* options.depth + 1: the step holds one */
	uint64_t filled, taken, released;
	bool ended; /* no batch will follow */
	struct seat *idle_step, *idle_upload;
	struct queue_meter meter;
};

static uint32_t waiting(const struct upload *u)
{
	return (uint32_t)(u->filled - u->taken);
}

static void set_meter(struct upload *u, uint64_t now_ns)
{
	if (now_ns > 0)
		queue_meter_set(&u->meter, waiting(u), waiting(u) >= u->options.depth, now_ns);
}

/* Leaves the lock and wakes whoever sleeps in the list; there is one place in it. */
static void leave(struct upload *u, struct seat **list)
{
	struct seat *seat = *list;
	*list = NULL;
	(void)pthread_mutex_unlock(&u->lock);
	if (seat)
		parker_wake(&seat->parker);
}

static void sleep_in(struct upload *u, struct seat **list, struct seat *seat,
	enum thread_state state, uint64_t *now_ns)
{
	*list = seat;
	if (seat->clock)
		state_clock_enter(seat->clock, state, *now_ns);
	(void)pthread_mutex_unlock(&u->lock);
	parker_wait(&seat->parker, 0);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	(void)pthread_mutex_lock(&u->lock);
}

/* The next staging slot; NULL: the run is over. */
static struct slot *take_staging(struct upload *u, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	(void)pthread_mutex_lock(&u->lock);
	while (!slot && !crew_stopping(u->options.crew)) {
		if (u->filled - u->released < u->count)
			slot = &u->staging[u->filled % u->count];
		else
			sleep_in(u, &u->idle_upload, &u->seat, THREAD_BLOCKED, now_ns);
	}
	if (slot && u->seat.clock)
		state_clock_enter(u->seat.clock, THREAD_WORKING, *now_ns);
	(void)pthread_mutex_unlock(&u->lock);
	return slot;
}

static void copy(struct upload *u, struct slot *to, const struct slot *from)
{
	memcpy(to->data, from->data, from->size * u->options.sample_bytes);
	memcpy(to->labels, from->labels, from->size * sizeof *from->labels);
	to->batch = from->batch;
	to->size = from->size;
	to->bad = from->bad;
}

static void deliver(struct upload *u, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&u->lock);
	u->filled++;
	set_meter(u, now_ns);
	leave(u, &u->idle_step);
}

static void meter_batch(
	struct thread_meter *meter, uint64_t batch, uint64_t now_ns, uint64_t service_ns)
{
	thread_meter_add(meter, now_ns, service_ns, 1);
	struct trace_entry *const entry = trace_log_next(&meter->trace, batch);
	if (entry)
		*entry = (struct trace_entry){
			.number = batch,
			.end_ns = now_ns,
			.service_ns = (float)service_ns,
			.host_ns = NAN,
		};
}

static void upload_batches(struct upload *u, uint64_t start_ns)
{
	struct thread_meter *meter = u->options.meter;
	uint64_t now = meter ? start_ns : 0;
	struct slot *from = NULL;
	while ((from = exchange_next_batch(u->options.exchange, 0, &u->seat, from, &now))) {
		struct slot *to = take_staging(u, &now);
		if (!to)
			break;
		const uint64_t began_ns = now;
		const uint64_t copied_ns = injection_begin_copy(u->options.injection);
		copy(u, to, from);
		injection_end_copy(u->options.injection, copied_ns,
			from->size * u->options.sample_bytes, &u->options.crew->stopping);
		if (meter) {
			now = clock_now_ns();
			meter_batch(meter, to->batch, now, now - began_ns);
		}
		deliver(u, now);
	}
	if (meter)
		state_clock_enter(&meter->clock, THREAD_STARVED, clock_now_ns());
	(void)pthread_mutex_lock(&u->lock);
	u->ended = true;
	leave(u, &u->idle_step);
}

static void *run(void *context)
{
	struct upload *u = context;
	(void)placement_bind(u->options.placement, u->options.place, 1);
	if (u->options.meter)
		thread_meter_attach(u->options.meter);
	uint64_t start_ns;
	if (crew_arrive(u->options.crew, &start_ns)) {
		if (u->options.meter)
			thread_meter_start(
				u->options.meter, THREAD_STARVED, start_ns, u->options.segment_ns);
		upload_batches(u, start_ns);
	}
	if (u->options.meter)
		thread_meter_detach(u->options.meter);
	return NULL;
}

int upload_start(struct upload **out, const struct upload_options *options, struct error *err)
{
	struct upload *u = aligned_alloc(_Alignof(struct upload), sizeof *u);
	if (!u)
		return error_set(err, -ENOMEM, "out of memory");
	memset(u, 0, sizeof *u);
	u->options = *options;
	u->count = options->depth + 1;
	u->seat.clock = options->meter ? &options->meter->clock : NULL;
	u->seat.lock = options->meter ? &options->meter->lock : NULL;
	u->staging = calloc(u->count, sizeof *u->staging);
	int code = u->staging ? pthread_mutex_init(&u->lock, NULL) : ENOMEM;
	if (code) {
		free(u->staging);
		free(u);
		return error_set_errno(err, code, "cannot make the staging queue");
	}
	*out = u;
	for (uint32_t i = 0; i < u->count; i++) {
		u->staging[i].data =
			options->memory + i * options->slot_samples * options->sample_bytes;
		u->staging[i].labels = options->labels + i * options->slot_samples;
	}
	code = pthread_create(&u->thread, NULL, run, u);
	if (code)
		return error_set_errno(err, code, "cannot start the upload thread");
	u->started = true;
	(void)pthread_setname_np(u->thread, "mlb-upload");
	return 0;
}

bool upload_join(struct upload *u, uint64_t deadline_ns)
{
	if (u && u->started && crew_join(u->thread, deadline_ns))
		u->started = false;
	return !u || !u->started;
}

void upload_free(struct upload *u)
{
	if (!u)
		return;
	(void)pthread_mutex_destroy(&u->lock);
	free(u->staging);
	free(u);
}

void upload_wake(struct upload *u)
{
	(void)pthread_mutex_lock(&u->lock);
	struct seat *step = u->idle_step;
	u->idle_step = NULL;
	leave(u, &u->idle_upload);
	if (step)
		parker_wake(&step->parker);
}

struct slot *upload_next_batch(
	struct upload *u, struct seat *seat, struct slot *used, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	(void)pthread_mutex_lock(&u->lock);
	if (used)
		u->released++;
	while (!slot && !crew_stopping(u->options.crew)) {
		if (u->taken < u->filled)
			slot = &u->staging[u->taken++ % u->count];
		else if (u->ended)
			break;
		else
			sleep_in(u, &u->idle_step, seat, THREAD_STARVED, now_ns);
	}
	if (seat->clock)
		state_clock_enter(seat->clock, slot ? THREAD_WORKING : THREAD_STARVED, *now_ns);
	set_meter(u, *now_ns);
	leave(u, &u->idle_upload);
	return slot;
}

void upload_start_meter(struct upload *u, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&u->lock);
	queue_meter_start(&u->meter, now_ns);
	(void)pthread_mutex_unlock(&u->lock);
}

uint32_t upload_read_queue(struct upload *u, uint64_t now_ns, struct queue_integrals *out)
{
	(void)pthread_mutex_lock(&u->lock);
	queue_meter_set(&u->meter, u->meter.depth, u->meter.full, now_ns);
	*out = u->meter.sums;
	const uint32_t depth = waiting(u);
	(void)pthread_mutex_unlock(&u->lock);
	return depth;
}
