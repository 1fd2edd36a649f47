/* Uploader: its thread, and the ring of staging places between it and the step. */
#include "pipelines/upload_parts.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All but the one that is being stepped: steps that are launched ahead are no further yet.  Between two steps the place of the
 * next may be filled, too; it is no place of the queue. */
static uint32_t waiting(const struct upload *u)
{
	const struct flow_staging *const r = &u->ring;
	const uint32_t filled = (uint32_t)(r->filled - r->released - (r->taken > r->released));
	return filled < u->options.depth ? filled : u->options.depth;
}

static void set_meter(struct upload *u, uint64_t now_ns)
{
	if (now_ns > 0)
		queue_meter_set(&u->meter, waiting(u), waiting(u) >= u->options.depth, now_ns);
}

/* Leaves the lock and wakes whoever sleeps in the list; there is one place in it. */
static void upload_leave(struct upload *u, struct seat **list)
{
	struct seat *seat = *list;
	*list = NULL;
	(void)pthread_mutex_unlock(&u->lock);
	if (seat)
		parker_wake(&seat->parker);
}

/* The uploader sleeps until a place is given back. */
static void uploader_sleeps(struct upload *u, uint64_t *now_ns)
{
	u->idle_upload = &u->seat;
	if (u->seat.clock)
		state_clock_enter(u->seat.clock, THREAD_BLOCKED, *now_ns);
	(void)pthread_mutex_unlock(&u->lock);
	parker_wait(&u->seat.parker, 0);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	(void)pthread_mutex_lock(&u->lock);
}

struct slot *upload_take_place(struct upload *u, uint64_t number, bool may_wait, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	(void)pthread_mutex_lock(&u->lock);
	while (!slot && !crew_stopping(u->options.crew)) {
		if (flow_staging_has_place(&u->ring, number))
			slot = &u->staging[number % u->ring.places];
		else if (may_wait)
			uploader_sleeps(u, now_ns);
		else
			break;
	}
	if (may_wait && slot && u->seat.clock)
		state_clock_enter(u->seat.clock, THREAD_WORKING, *now_ns);
	(void)pthread_mutex_unlock(&u->lock);
	return slot;
}

void upload_label(struct slot *to, const struct slot *from)
{
	to->batch = from->batch;
	to->size = from->size;
	to->bad = from->bad;
}

void upload_deliver(struct upload *u, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&u->lock);
	u->ring.filled++;
	set_meter(u, now_ns);
	upload_leave(u, &u->idle_step);
}

/* One writer. */
static void upload_add(atomic_uint_least64_t *total, uint64_t n)
{
	atomic_store_explicit(
		total, atomic_load_explicit(total, memory_order_relaxed) + n, memory_order_relaxed);
}

void upload_count(struct upload *u, const struct copy_times *copy, bool on_device)
{
	struct thread_meter *const meter = u->options.meter;
	upload_add(&u->batches, 1);
	upload_add(&u->bytes, copy->bytes);
	if (on_device)
		upload_add(&u->device_ns, copy->service_ns);
	if (!meter)
		return;
	const struct trace_entry item = {
		.number = copy->batch,
		.end_ns = copy->ended_ns,
		.service_ns = (float)copy->service_ns,
		.host_ns = NAN,
	};
	span_item(meter, copy->ended_ns, copy->service_ns, &item);
}

static void upload_end(struct upload *u)
{
	(void)pthread_mutex_lock(&u->lock);
	u->ended = true;
	upload_leave(u, &u->idle_step);
}

static void upload_batches(struct upload *u, uint64_t start_ns)
{
	struct thread_meter *const meter = u->options.meter;
	span_thread_start(meter, THREAD_STARVED, start_ns, u->options.segment_ns);
	if (u->options.device)
		upload_by_device(u, start_ns);
	else
		upload_by_copying(u, start_ns);
	if (meter)
		state_clock_enter(&meter->clock, THREAD_STARVED, clock_now_ns());
}

static void *upload_run(void *context)
{
	struct upload *u = context;
	(void)placement_bind(u->options.placement, u->options.place, 1);
	span_thread_begin(STAGE_UPLOAD, u->options.meter);
	uint64_t start_ns;
	if (crew_arrive(u->options.crew, &start_ns))
		upload_batches(u, start_ns);
	upload_end(u);
	span_thread_end(u->options.meter);
	return NULL;
}

void upload_use(struct upload *u, struct backend *backend)
{
	(void)pthread_mutex_lock(&u->lock);
	u->backend = backend;
	(void)pthread_mutex_unlock(&u->lock);
}

void upload_wait_end(struct upload *u, struct seat *seat)
{
	(void)pthread_mutex_lock(&u->lock);
	while (!u->ended) {
		u->idle_step = seat;
		(void)pthread_mutex_unlock(&u->lock);
		parker_wait(&seat->parker, 0);
		(void)pthread_mutex_lock(&u->lock);
	}
	(void)pthread_mutex_unlock(&u->lock);
}

int upload_start(struct upload **out, const struct upload_options *options, struct error *err)
{
	struct upload *u = aligned_alloc(_Alignof(struct upload), sizeof *u);
	if (!u)
		return error_set(err, -ENOMEM, "out of memory");
	memset(u, 0, sizeof *u);
	u->options = *options;
	u->ring.places = options->depth + 1;
	if (u->ring.places > UPLOAD_PLACES_MAX) {
		free(u);
		return error_set(err, -EINVAL, "upload.depth = %u: at most %d", options->depth,
			UPLOAD_PLACES_MAX - 1);
	}
	u->seat.clock = options->meter ? &options->meter->clock : NULL;
	u->seat.lock = options->meter ? &options->meter->lock : NULL;
	u->staging = calloc(u->ring.places, sizeof *u->staging);
	int code = u->staging ? pthread_mutex_init(&u->lock, NULL) : ENOMEM;
	if (code) {
		free(u->staging);
		free(u);
		return error_set_errno(err, code, "cannot make the staging queue");
	}
	*out = u;
	for (uint32_t i = 0; i < u->ring.places; i++) {
		u->staging[i].index = i;
		if (options->device)
			continue;
		u->staging[i].data =
			options->memory + i * options->slot_samples * options->sizes.bytes;
		u->staging[i].labels =
			options->labels + i * options->slot_samples * options->sizes.label_bytes;
	}
	code = pthread_create(&u->thread, NULL, upload_run, u);
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
	upload_leave(u, &u->idle_upload);
	if (step)
		parker_wake(&step->parker);
}

/* Under the lock: the next uploaded batch, if there is one. */
static struct slot *upload_take(struct upload *u)
{
	return flow_staging_has_batch(&u->ring) ? &u->staging[u->ring.taken++ % u->ring.places]
						: NULL;
}

/* The step sleeps; what it gave back may be what the uploader waits for. */
static void step_sleeps(struct upload *u, struct seat *seat, uint64_t *now_ns)
{
	u->idle_step = seat;
	if (seat->clock)
		state_clock_enter(seat->clock, THREAD_STARVED, *now_ns);
	upload_leave(u, &u->idle_upload);
	parker_wait(&seat->parker, 0);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	(void)pthread_mutex_lock(&u->lock);
}

struct slot *upload_next_batch(
	struct upload *u, struct seat *seat, struct slot *used, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	(void)pthread_mutex_lock(&u->lock);
	if (used)
		u->ring.released++;
	while (!crew_stopping(u->options.crew)) {
		slot = upload_take(u);
		if (slot || u->ended)
			break;
		step_sleeps(u, seat, now_ns);
	}
	if (seat->clock)
		state_clock_enter(seat->clock, slot ? THREAD_WORKING : THREAD_STARVED, *now_ns);
	set_meter(u, *now_ns);
	upload_leave(u, &u->idle_upload);
	return slot;
}

/* Waits for the uploader until until_ns at most, the lock held before and after. */
static void doze(struct upload *u, struct seat *seat, uint64_t until_ns, uint64_t *now_ns)
{
	u->idle_step = seat;
	upload_leave(u, &u->idle_upload);
	const bool woken = parker_wait_until(&seat->parker, until_ns);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	(void)pthread_mutex_lock(&u->lock);
	if (woken)
		return;
	/* Whoever emptied the list wakes its seat after leaving the lock: that token must not be left. */
	if (u->idle_step == seat)
		u->idle_step = NULL;
	else
		parker_wait(&seat->parker, 0);
}

/* Under the lock: whether the copy of that batch has ended; the step's clock says so, too. */
static bool is_here(const struct upload *u, struct seat *seat, uint64_t oldest, uint64_t now_ns)
{
	const bool here = u->copied > oldest;
	const enum thread_state state = here ? THREAD_WORKING : THREAD_STARVED;
	if (seat->clock && state_clock_state(seat->clock) != state)
		state_clock_enter(seat->clock, state, now_ns);
	return here;
}

struct slot *upload_try_batch(struct upload *u, struct seat *seat, struct slot *used,
	uint64_t oldest, uint64_t until_ns, bool *over, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	(void)pthread_mutex_lock(&u->lock);
	if (used)
		u->ring.released++;
	while (!crew_stopping(u->options.crew)) {
		u->wanted = is_here(u, seat, oldest, *now_ns) ? 0 : oldest + 1;
		slot = upload_take(u);
		if (slot || u->ended || until_ns == 0 || clock_now_ns() >= until_ns)
			break;
		doze(u, seat, until_ns, now_ns);
	}
	u->wanted = 0;
	*over = !slot && (crew_stopping(u->options.crew) || u->ended);
	set_meter(u, *now_ns);
	upload_leave(u, &u->idle_upload);
	return slot;
}

void upload_wait_copy(struct upload *u, struct seat *seat, uint64_t oldest, uint64_t *now_ns)
{
	(void)pthread_mutex_lock(&u->lock);
	while (!crew_stopping(u->options.crew) && !is_here(u, seat, oldest, *now_ns)) {
		u->wanted = oldest + 1;
		step_sleeps(u, seat, now_ns);
	}
	u->wanted = 0;
	upload_leave(u, &u->idle_upload);
}

void upload_copied(struct upload *u)
{
	struct seat *none = NULL;
	(void)pthread_mutex_lock(&u->lock);
	u->copied++;
	upload_leave(u, u->wanted > 0 && u->copied >= u->wanted ? &u->idle_step : &none);
}

void upload_start_meter(struct upload *u, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&u->lock);
	queue_meter_start(&u->meter, now_ns);
	u->meter.timeline = u->options.queue_timeline;
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

struct upload_totals upload_read_totals(const struct upload *u)
{
	return (struct upload_totals){
		.batches = atomic_load_explicit(&u->batches, memory_order_relaxed),
		.bytes = atomic_load_explicit(&u->bytes, memory_order_relaxed),
		.device_ns = atomic_load_explicit(&u->device_ns, memory_order_relaxed),
	};
}
