/* The step thread.  The backend is opened, used and closed here, since threads of a BLAS library belong
 * to the thread that first called it. */
#include "pipelines/stepper_parts.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLETIONS_ROOM = 16384 };

/* A refusal is no failure: copies are then those from pageable memory, and the run says so. */
static void pin(struct stepper *s)
{
	const struct stepper_options *o = &s->options;
	if (!o->pin_memory || config_integer(o->config, KEY_UPLOAD_MEMORY) != UPLOAD_MEMORY_PINNED)
		return;
	struct error err = {0};
	if (s->backend->ops->pin(s->backend, o->pin_memory, o->pin_bytes, &err))
		(void)snprintf(
			s->account.not_pinned, sizeof s->account.not_pinned, "%.250s", err.text);
}

/* The device's thread, as its step goes on. */
static void enter_phase(void *context, enum group_phase phase, uint64_t at_ns)
{
	const struct stepper *s = context;
	const bool computes = phase == GROUP_COMPUTES;
	if (s->options.sync_meter)
		state_clock_enter(&s->options.sync_meter->clock,
			phase == GROUP_EXCHANGES ? THREAD_WORKING : THREAD_STARVED, at_ns);
	state_clock_enter(
		&s->options.meter->clock, computes ? THREAD_WORKING : THREAD_BLOCKED, at_ns);
}

static int open_backend(struct stepper *s, struct error *err)
{
	const struct stepper_options *o = &s->options;
	const int code = backend_open(&s->backend,
		&(const struct backend_options){.config = o->config,
			.sample_elements = o->sizes.values,
			.class_count = o->sizes.classes,
			.stop = &o->crew->stopping,
			.choosing = &o->crew->choosing,
			.device_index = o->lane,
			.device_count = o->devices,
			.group = o->group,
			.watch = o->group && o->meter ? &s->watch : NULL,
			.staging_places = o->staging_places,
			.batch_room = o->batch_room},
		err);
	if (code)
		return code;
	s->account.emulated = s->backend->emulated;
	s->account.on_device = backend_is_device(s->backend->ops);
	s->account.flops_per_sample = s->backend->flops_per_sample;
	(void)snprintf(s->account.description, sizeof s->account.description, "%s",
		s->backend->description);
	atomic_store(&s->last_step_ns, (uint64_t)s->backend->nominal_step_ns);
	if (s->account.on_device)
		pin(s);
	if (o->upload)
		upload_use(o->upload, s->backend);
	return 0;
}

static struct slot *stepper_next_batch(struct stepper *s, struct slot *used, uint64_t *now_ns)
{
	const struct stepper_options *o = &s->options;
	return o->upload ? upload_next_batch(o->upload, &s->seat, used, now_ns)
			 : exchange_next_batch(o->exchange, o->lane, &s->seat, used, now_ns);
}

/* The backend's step, planted to take `factor` times as long. */
static int stepper_compute(struct stepper *s, const struct batch_view *view, double factor,
	uint64_t began_ns, struct step_result *result, struct error *err)
{
	s->backend->slowdown = factor;
	s->backend->exchange_slowdown = injection_exchange_factor(s->options.injection);
	const int code = backend_step(s->backend, view, result, err);
	if (s->backend->emulated || factor <= 1)
		return code;
	injection_end_step(factor, began_ns, &s->options.crew->stopping);
	result->device_ns = (uint64_t)(factor * (double)result->device_ns);
	return code;
}

/* False: the repetition is over. */
static bool step(struct stepper *s, const struct slot *slot, uint64_t *now_ns)
{
	const struct stepper_options *o = &s->options;
	const struct batch_view view = stepper_view(s, slot);
	first_epoch_hash(o->first, slot);
	struct step_result result = {.loss = NAN};
	struct error err = {0};
	const uint64_t began_ns = *now_ns;
	const double factor = injection_begin_step(o->injection, o->lane, &o->crew->stopping);
	const bool shown = timeline_is_on();
	const uint64_t called_ns = clock_now_ns();
	const int code = stepper_compute(s, &view, factor, called_ns, &result, &err);
	const uint64_t ended_ns = clock_now_ns();
	/* What follows is the exchange with other devices, in which the thread is blocked. */
	const uint64_t computed_ns = result.sync_begin_ns > 0 ? result.sync_begin_ns : ended_ns;
	timeline_span(
		TIMELINE_COMPUTE, shown ? called_ns : 0, computed_ns, slot->batch, slot->size);
	stepper_show_device(s, slot->batch, &result);
	/* A step that was cut short by the end of the run does not count. */
	if (crew_stopping(o->crew))
		return false;
	if (code) {
		stepper_fail(s, code, &err);
		return false;
	}
	*now_ns = ended_ns;
	const struct step_record record = {
		.seen_ns = ended_ns,
		/* An emulated device has ended when its time is over, however late its thread wakes up. */
		.ended_ns = s->account.emulated ? result.end_ns : ended_ns,
		.service_ns = s->account.emulated ? result.device_ns - result.sync_ns
						  : ended_ns - began_ns,
		.host_ns = called_ns - began_ns,
		.took_ns = ended_ns - began_ns,
	};
	return stepper_count(s, slot, &result, &record);
}

static void step_in_turn(struct stepper *s)
{
	uint64_t now_ns = s->start_ns;
	/* Untimed, the time is kept here alone: the exchange then keeps none. */
	uint64_t untimed_ns = 0;
	uint64_t *const visit_ns = s->options.meter ? &now_ns : &untimed_ns;
	struct slot *slot = NULL;
	while ((slot = stepper_next_batch(s, slot, visit_ns)) && step(s, slot, &now_ns))
		continue;
}

static void run_steps(struct stepper *s)
{
	if (s->account.on_device)
		step_by_device(s);
	else
		step_in_turn(s);
	if (s->options.meter)
		state_clock_enter(&s->options.meter->clock, THREAD_STARVED, clock_now_ns());
	crew_finish(s->options.crew);
}

/* What the backend says of its device, beside what was sampled of the steps. */
static void stepper_describe_device(struct stepper *s)
{
	struct device_measurement told;
	device_measurement_init(&told);
	s->backend->ops->describe(s->backend, &told);
	const struct device_measurement *const sampled = &s->account.device;
	if (!isnan(sampled->gradient_norm) || !isnan(sampled->nonfinite_share)) {
		told.gradient_norm = sampled->gradient_norm;
		told.nonfinite_share = sampled->nonfinite_share;
		told.activation_mean = sampled->activation_mean;
		told.activation_deviation = sampled->activation_deviation;
	}
	s->account.device = told;
	s->account.described = true;
}

/* The uploader uses the backend, too. */
static void close_backend(struct stepper *s)
{
	struct backend *const backend = s->backend;
	if (s->options.upload)
		upload_wait_end(s->options.upload, &s->seat);
	if (backend && backend->ops->describe)
		stepper_describe_device(s);
	backend_close(backend);
}

/* It has no thread of its own: what this one allocates is the step's. */
static void start_sync(const struct stepper *s)
{
	struct thread_meter *const meter = s->options.sync_meter;
	service_log_start(&meter->service, s->start_ns, s->options.segment_ns);
	state_clock_start(&meter->clock, THREAD_STARVED, s->start_ns);
}

static void *stepper_run(void *context)
{
	struct stepper *s = context;
	const struct stepper_options *o = &s->options;
	struct error err = {0};
	(void)placement_bind(o->placement, o->first_place, o->places);
	span_thread_begin(STAGE_STEP, o->meter);
	const int code = open_backend(s, &err);
	if (code)
		stepper_fail(s, code, &err);
	else if (s->backend->ops->describe)
		stepper_describe_device(
			s); /* which one it is; again at the end, with what came of it */
	if (crew_arrive(o->crew, &s->start_ns)) {
		span_thread_start(o->meter, THREAD_STARVED, s->start_ns, o->segment_ns);
		if (o->sync_meter)
			start_sync(s);
		run_steps(s);
	}
	close_backend(s);
	span_thread_end(o->meter);
	return NULL;
}

static int open_account(struct stepper *s)
{
	s->account.loss_first = NAN;
	s->account.loss_last = NAN;
	device_measurement_init(&s->account.device);
	return completions_open(&s->account.completions, COMPLETIONS_ROOM);
}

int stepper_start(struct stepper **out, const struct stepper_options *options, struct error *err)
{
	struct stepper *s = aligned_alloc(_Alignof(struct stepper), sizeof *s);
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	memset(s, 0, sizeof *s);
	*out = s;
	s->options = *options;
	s->watch = (struct group_watch){enter_phase, s};
	s->seat.clock = options->meter ? &options->meter->clock : NULL;
	s->seat.lock = options->meter ? &options->meter->lock : NULL;
	int code = open_account(s);
	if (code)
		return error_set(err, code, "out of memory");
	code = pthread_create(&s->thread, NULL, stepper_run, s);
	if (code)
		return error_set_errno(err, code, "cannot start the step thread");
	s->started = true;
	char name[16] = "mlb-step";
	if (options->devices > 1)
		(void)snprintf(name, sizeof name, "mlb-step-%u", options->lane % 100);
	(void)pthread_setname_np(s->thread, name);
	return 0;
}

bool stepper_join(struct stepper *s, uint64_t deadline_ns)
{
	if (s && s->started && crew_join(s->thread, deadline_ns))
		s->started = false;
	return !s || !s->started;
}

void stepper_free(struct stepper *s)
{
	if (!s)
		return;
	completions_close(&s->account.completions);
	free(s);
}

const struct step_account *stepper_account(const struct stepper *s)
{
	return &s->account;
}

struct step_progress stepper_progress(const struct stepper *s)
{
	return (struct step_progress){
		.samples = atomic_load_explicit(&s->samples, memory_order_relaxed),
		.batches = atomic_load_explicit(&s->batches, memory_order_relaxed),
		.last_step_ns = atomic_load_explicit(&s->last_step_ns, memory_order_relaxed),
	};
}
