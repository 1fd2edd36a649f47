/* The uploader: its thread, the ring of staging places between it and the step, filled and emptied in
 * order, and the two ways to fill it. */
#include "pipelines/repetition.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"
#include "workloads/backend/backend.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { UPLOAD_PLACES_MAX = 65 }; /* upload.depth is at most 64 */

struct upload {
	struct run *run;
	unsigned lane;              /* at the exchange, and which of the devices */
	uint32_t depth;             /* batches that may wait for the step */
	struct thread_meter *meter; /* or NULL: not timed */
	/* Of the timeline: the queue of uploaded batches, and what the device copies; NULL: none. */
	struct timeline_log *queue_timeline, *device_timeline;
	pthread_t thread;
	bool started;
	struct seat seat; /* of the uploader */
	pthread_mutex_t lock;
	struct slot *staging;     /* (ring.places) */
	struct flow_staging ring; /* depth + 1 places: the step holds one */
	uint64_t copied;          /* by a device: copies that have ended */
	uint64_t wanted;          /* the step sleeps until so many have; 0: it waits for no copy */
	bool ended;               /* no batch will follow, and the backend is used no more */
	struct backend *backend;  /* which copies, where the step has a device */
	struct seat *idle_step, *idle_upload;
	struct queue_meter waiting;
	atomic_uint_least64_t batches, bytes, device_ns; /* that were copied */
};

struct copy_times {
	uint64_t batch, bytes;
	uint64_t ended_ns, service_ns; /* service: of the copy itself */
};

/* --- the ring, as the uploader sees it ------------------------------------------------------- */

/* All but the one that is being stepped: steps that are launched ahead are no further yet.  Between two steps the place of the
 * next may be filled, too; it is no place of the queue. */
static uint32_t upload_waiting(const struct upload *u)
{
	const struct flow_staging *const r = &u->ring;
	const uint32_t filled = (uint32_t)(r->filled - r->released - (r->taken > r->released));
	return filled < u->depth ? filled : u->depth;
}

static void upload_set_meter(struct upload *u, uint64_t now_ns)
{
	if (now_ns > 0)
		queue_meter_set(
			&u->waiting, upload_waiting(u), upload_waiting(u) >= u->depth, now_ns);
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

/* The place of copy number `number`, which are numbered from 0; NULL: the run is over, or, unless
 * may_wait, none is free. */
static struct slot *upload_take_place(
	struct upload *u, uint64_t number, bool may_wait, uint64_t *now_ns)
{
	struct slot *slot = NULL;
	(void)pthread_mutex_lock(&u->lock);
	while (!slot && !crew_stopping(&u->run->crew)) {
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

/* Names the batch in the place. */
static void upload_label(struct slot *to, const struct slot *from)
{
	to->batch = from->batch;
	to->size = from->size;
	to->bad = from->bad;
}

/* Hands the next place to the step. */
static void upload_deliver(struct upload *u, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&u->lock);
	u->ring.filled++;
	upload_set_meter(u, now_ns);
	upload_leave(u, &u->idle_step);
}

/* One writer. */
static void upload_add(atomic_uint_least64_t *total, uint64_t n)
{
	atomic_store_explicit(
		total, atomic_load_explicit(total, memory_order_relaxed) + n, memory_order_relaxed);
}

static void upload_count(struct upload *u, const struct copy_times *copy, bool on_device)
{
	struct thread_meter *const meter = u->meter;
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

/* A device has ended one more copy. */
static void upload_copied(struct upload *u)
{
	struct seat *none = NULL;
	(void)pthread_mutex_lock(&u->lock);
	u->copied++;
	upload_leave(u, u->wanted > 0 && u->copied >= u->wanted ? &u->idle_step : &none);
}

/* --- copying where the step runs in host memory: the thread itself copies -------------------- */

static void upload_copy(const struct upload *u, struct slot *to, const struct slot *from)
{
	memcpy(to->data, from->data, from->size * u->run->plan.sample.bytes);
	memcpy(to->labels, from->labels, from->size * u->run->plan.sample.label_bytes);
	upload_label(to, from);
}

static void upload_by_copying(struct upload *u, uint64_t start_ns)
{
	struct run *const run = u->run;
	uint64_t now = u->meter ? start_ns : 0;
	struct slot *from = NULL;
	for (uint64_t number = 0;; number++) {
		from = exchange_next_batch(&run->exchange, u->lane, &u->seat, from, &now);
		struct slot *to = from ? upload_take_place(u, number, true, &now) : NULL;
		if (!to)
			break;
		const size_t bytes = from->size * run->plan.sample.bytes;
		const uint64_t began_ns = now;
		const uint64_t copied_ns = injection_begin_copy(&run->injection);
		const bool shown = timeline_is_on();
		upload_copy(u, to, from);
		injection_end_copy(&run->injection, copied_ns, bytes, &run->crew.stopping);
		if (u->meter)
			now = clock_now_ns();
		timeline_span(TIMELINE_COPY, shown ? began_ns : 0, now, to->batch, from->size);
		upload_count(u,
			&(const struct copy_times){.batch = to->batch,
				.bytes = bytes,
				.ended_ns = now,
				.service_ns = now - began_ns},
			false);
		upload_deliver(u, now);
	}
}

/* --- copying by a device that copies by itself ----------------------------------------------- */

/* The thread begins a copy for every batch that there is a
 * place for, and gives a batch's slot back when its copy has ended.  It waits for a batch or a place only
 * while no copy is under way: then it holds no slot.
 *
 * A planted slow-down keeps a clock of the copies as they should have been: each begins when the device
 * began it, or when the one before it ended, and the step gets its batch only when it ends. */

struct copies {
	struct upload *upload;
	struct slot *from[UPLOAD_PLACES_MAX]; /* by place; of those under way */
	uint64_t begun_ns[UPLOAD_PLACES_MAX]; /* the host began it */
	uint64_t begun, ended;                /* copies */
	uint64_t last_end_ns;                 /* of the newest that ended */
	bool late;                            /* the step gets a batch when its copy has ended */
	bool over;                            /* no batch will come */
};

static bool copies_report(const struct upload *u, int code, const struct error *err)
{
	struct error named = *err;
	if (code && u->run->plan.devices > 1)
		(void)error_prefix(&named, code, "device %u", u->lane);
	if (code && !crew_stopping(&u->run->crew))
		crew_fail(&u->run->crew, code, &named);
	return code == 0;
}

static bool copies_begin(struct copies *c, struct slot *to, struct slot *from, uint64_t now_ns)
{
	struct upload *u = c->upload;
	struct run *const run = u->run;
	first_epoch_hash(&run->first_epoch, from);
	upload_label(to, from);
	const struct batch_view view = slot_view(from, &run->plan.sample, (int)to->index);
	c->from[to->index] = from;
	c->begun_ns[to->index] = clock_now_ns();
	struct error err = {0};
	const struct span span = span_begin(STAGE_UPLOAD, u->backend->ops->mark);
	const int code = u->backend->ops->upload(u->backend, to->index, &view, &err);
	span_end(&span, TIMELINE_COPY_LAUNCH, from->batch, 0);
	if (!copies_report(u, code, &err))
		return false;
	c->begun++;
	if (!c->late)
		upload_deliver(u, now_ns);
	return true;
}

/* When it was at work, by the device's own clock where that is known. */
static void copies_judge(struct copies *c, const struct slot *from,
	const struct upload_result *result, uint64_t begun_ns, struct copy_times *out)
{
	struct run *const run = c->upload->run;
	const uint64_t now_ns = clock_now_ns();
	const bool known = result->end_ns > 0;
	uint64_t end_ns = known && result->end_ns < now_ns ? result->end_ns : now_ns;
	uint64_t took_ns = known ? result->device_ns : 0;
	const uint64_t free_ns = begun_ns > c->last_end_ns ? begun_ns : c->last_end_ns;
	if (!known)
		took_ns = end_ns > free_ns ? end_ns - free_ns : 0;
	out->batch = from->batch;
	out->bytes = slot_view(from, &run->plan.sample, 0).bytes;
	if (c->late) {
		const uint64_t began_ns = end_ns - took_ns;
		took_ns = injection_copy_ns(&run->injection, began_ns, took_ns, out->bytes);
		end_ns = (began_ns > c->last_end_ns ? began_ns : c->last_end_ns) + took_ns;
	}
	out->service_ns = took_ns;
	out->ended_ns = end_ns > c->last_end_ns ? end_ns : c->last_end_ns;
	c->last_end_ns = out->ended_ns;
}

/* What the device did, as nothing planted would have it. */
static void copies_trace(const struct upload *u, uint64_t batch, const struct upload_result *result)
{
	const struct trace_entry item = {
		.number = batch,
		.end_ns = result->end_ns,
		.service_ns = (float)(result->end_ns - result->begin_ns),
		.host_ns = NAN,
	};
	if (result->end_ns > 0)
		span_device(u->meter, u->device_timeline, TIMELINE_DEVICE_COPY, result->begin_ns,
			&item);
}

/* Waits for the oldest copy; its slot is free again.  NULL: the run is over. */
static struct slot *copies_finish(struct copies *c, uint64_t *now_ns)
{
	struct upload *u = c->upload;
	struct run *const run = u->run;
	const unsigned place = (unsigned)(c->ended % u->ring.places);
	struct upload_result result = {0};
	struct error err = {0};
	const uint64_t shown_ns = timeline_mark();
	const int code = u->backend->ops->upload_finish(u->backend, place, &result, &err);
	(void)timeline_end(TIMELINE_COPY_WAIT, shown_ns, c->from[place]->batch);
	if (!copies_report(u, code, &err) || crew_stopping(&run->crew))
		return NULL;
	struct slot *const from = c->from[place];
	struct copy_times times;
	copies_judge(c, from, &result, c->begun_ns[place], &times);
	copies_trace(u, from->batch, &result);
	c->ended++;
	if (c->late)
		injection_hold(times.ended_ns, &run->crew.stopping);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	upload_count(u, &times, true);
	upload_copied(u);
	if (c->late)
		upload_deliver(u, *now_ns);
	return from;
}

/* Begins the copy of the next batch, giving a slot back (or NULL) on the way.  False: the run is over, or
 * failed; *begun: whether there was a batch. */
static bool copies_begin_next(
	struct copies *c, struct slot *to, struct slot *used, bool *begun, uint64_t *now_ns)
{
	struct upload *u = c->upload;
	struct exchange *x = &u->run->exchange;
	const unsigned lane = u->lane;
	const bool flying = c->begun > c->ended;
	struct slot *const from =
		flying ? exchange_try_batch(x, lane, &u->seat, used, 0, &c->over, now_ns)
		       : exchange_next_batch(x, lane, &u->seat, used, now_ns);
	c->over = c->over || (!flying && !from);
	*begun = from != NULL;
	return !from || copies_begin(c, to, from, *now_ns);
}

static void upload_by_device(struct upload *u, uint64_t start_ns)
{
	const struct backend_ops *const ops = u->backend->ops;
	struct copies c = {.upload = u, .late = injection_slows_copies(&u->run->injection)};
	uint64_t now_ns = u->meter ? start_ns : 0;
	struct slot *used = NULL;
	bool going = true;
	while (going && !crew_stopping(&u->run->crew)) {
		const bool flying = c.begun > c.ended;
		const unsigned oldest = (unsigned)(c.ended % u->ring.places);
		if (flying && !used && ops->upload_finished(u->backend, oldest)) {
			used = copies_finish(&c, &now_ns);
			going = used != NULL;
			continue;
		}
		struct slot *const to =
			c.over ? NULL : upload_take_place(u, c.begun, !flying && !used, &now_ns);
		bool begun = false;
		if (to)
			going = copies_begin_next(&c, to, used, &begun, &now_ns);
		else if (used)
			exchange_release(&u->run->exchange, &u->seat, used, &now_ns);
		used = NULL;
		if (begun || !going)
			continue;
		if (c.begun > c.ended)
			going = (used = copies_finish(&c, &now_ns)) != NULL;
		else if (c.over)
			going = false;
	}
}

/* --- the thread ------------------------------------------------------------------------------ */

static void upload_end(struct upload *u)
{
	(void)pthread_mutex_lock(&u->lock);
	u->ended = true;
	upload_leave(u, &u->idle_step);
}

static void upload_batches(struct upload *u, uint64_t start_ns)
{
	struct thread_meter *const meter = u->meter;
	span_thread_start(meter, THREAD_STARVED, start_ns, u->run->segment_ns);
	if (u->run->plan.facts.step_has_memory)
		upload_by_device(u, start_ns);
	else
		upload_by_copying(u, start_ns);
	if (meter)
		state_clock_enter(&meter->clock, THREAD_STARVED, clock_now_ns());
}

static void *upload_run(void *context)
{
	struct upload *u = context;
	const struct pipeline_plan *const plan = &u->run->plan;
	(void)placement_bind(
		&u->run->placement, plan->decode_workers + plan->reader_threads + u->lane, 1);
	span_thread_begin(STAGE_UPLOAD, u->meter);
	uint64_t start_ns;
	if (crew_arrive(&u->run->crew, &start_ns))
		upload_batches(u, start_ns);
	upload_end(u);
	span_thread_end(u->meter);
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

/* The places, where they are host memory: those of a device lie together, batches, then labels. */
static void upload_open_places(struct upload *u)
{
	const struct pipeline_plan *const plan = &u->run->plan;
	const uint32_t samples = u->run->exchange.options.slot_samples;
	uint8_t *const memory = u->run->staging_block.data;
	for (uint32_t i = 0; i < u->ring.places; i++) {
		u->staging[i].index = i;
		if (!memory)
			continue;
		uint8_t *const own = memory + u->lane * (plan->staging_bytes / plan->devices);
		u->staging[i].data = own + (size_t)i * samples * plan->sample.bytes;
		u->staging[i].labels = own + plan_labels_at(plan, u->ring.places, samples) +
				       (size_t)i * samples * plan->sample.label_bytes;
	}
}

int upload_start(struct run *run, unsigned device, struct error *err)
{
	if (run->plan.staging_slots == 0)
		return 0;
	struct upload *u = aligned_alloc(_Alignof(struct upload), sizeof *u);
	if (!u)
		return error_set(err, -ENOMEM, "out of memory");
	*u = (struct upload){
		.run = run,
		.lane = device,
		.depth = run->plan.staging_slots - 1,
		.meter = run_meter(run, STAGE_UPLOAD, device),
		.queue_timeline = run_timeline_log(run, TIMELINE_QUEUE, "uploaded", device),
		.ring = {.places = run->plan.staging_slots},
	};
	if (run->plan.facts.step_has_memory)
		u->device_timeline =
			run_timeline_log(run, TIMELINE_DEVICE, "device upload", device);
	seat_open(&u->seat, u->meter);
	u->staging = calloc(u->ring.places, sizeof *u->staging);
	int code = u->staging ? pthread_mutex_init(&u->lock, NULL) : ENOMEM;
	if (code) {
		free(u->staging);
		free(u);
		return error_set_errno(err, code, "cannot make the staging queue");
	}
	run->devices.uploads[device] = u;
	upload_open_places(u);
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

/* --- the ring, as the step sees it ----------------------------------------------------------- */

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
static void upload_step_sleeps(struct upload *u, struct seat *seat, uint64_t *now_ns)
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
	while (!crew_stopping(&u->run->crew)) {
		slot = upload_take(u);
		if (slot || u->ended)
			break;
		upload_step_sleeps(u, seat, now_ns);
	}
	if (seat->clock)
		state_clock_enter(seat->clock, slot ? THREAD_WORKING : THREAD_STARVED, *now_ns);
	upload_set_meter(u, *now_ns);
	upload_leave(u, &u->idle_upload);
	return slot;
}

/* Waits for the uploader until until_ns at most, the lock held before and after. */
static void upload_doze(struct upload *u, struct seat *seat, uint64_t until_ns, uint64_t *now_ns)
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
static bool upload_is_here(
	const struct upload *u, struct seat *seat, uint64_t oldest, uint64_t now_ns)
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
	while (!crew_stopping(&u->run->crew)) {
		u->wanted = upload_is_here(u, seat, oldest, *now_ns) ? 0 : oldest + 1;
		slot = upload_take(u);
		if (slot || u->ended || until_ns == 0 || clock_now_ns() >= until_ns)
			break;
		upload_doze(u, seat, until_ns, now_ns);
	}
	u->wanted = 0;
	*over = !slot && (crew_stopping(&u->run->crew) || u->ended);
	upload_set_meter(u, *now_ns);
	upload_leave(u, &u->idle_upload);
	return slot;
}

void upload_wait_copy(struct upload *u, struct seat *seat, uint64_t oldest, uint64_t *now_ns)
{
	(void)pthread_mutex_lock(&u->lock);
	while (!crew_stopping(&u->run->crew) && !upload_is_here(u, seat, oldest, *now_ns)) {
		u->wanted = oldest + 1;
		upload_step_sleeps(u, seat, now_ns);
	}
	u->wanted = 0;
	upload_leave(u, &u->idle_upload);
}

void upload_start_meter(struct upload *u, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&u->lock);
	queue_meter_start(&u->waiting, now_ns);
	u->waiting.timeline = u->queue_timeline;
	(void)pthread_mutex_unlock(&u->lock);
}

uint32_t upload_read_queue(struct upload *u, uint64_t now_ns, struct queue_integrals *out)
{
	(void)pthread_mutex_lock(&u->lock);
	queue_meter_set(&u->waiting, u->waiting.depth, u->waiting.full, now_ns);
	*out = u->waiting.sums;
	const uint32_t depth = upload_waiting(u);
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
