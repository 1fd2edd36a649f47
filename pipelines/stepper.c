/* The step thread.  The backend is opened, used and closed here, since threads of a BLAS library belong
 * to the thread that first called it. */
#include "pipelines/stepper.h"

#include "harness/base/clock.h"
#include "harness/base/hash.h"
#include "workloads/backend/backend.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLETIONS_ROOM = 16384 };

struct stepper {
	struct stepper_options options;
	pthread_t thread;
	bool started;
	struct seat seat;
	struct backend *backend;
	struct step_account account;
	struct completion sum;
	uint64_t start_ns;
	uint64_t first_epoch_batches, first_epoch_good;
	uint64_t *hashes; /* (batches_per_epoch) of epoch 0, with run.verify; owned */
	atomic_uint_least64_t samples, batches, last_step_ns;
};

static int open_backend(struct stepper *s, struct error *err)
{
	const struct stepper_options *o = &s->options;
	const size_t element =
		config_integer(o->config, KEY_AUGMENT_TYPE) == AUGMENT_TYPE_UINT8 ? 1 : 4;
	const int code = backend_open(&s->backend,
		&(const struct backend_options){.config = o->config,
			.sample_elements = (uint32_t)(o->sample_bytes / element),
			.class_count = (uint32_t)o->dataset->class_count,
			.stop = &o->crew->stopping},
		err);
	if (code)
		return code;
	s->account.emulated = s->backend->emulated;
	(void)snprintf(s->account.description, sizeof s->account.description, "%s",
		s->backend->description);
	atomic_store(&s->last_step_ns, (uint64_t)s->backend->nominal_step_ns);
	return 0;
}

static struct slot *next_batch(struct stepper *s, struct slot *used, uint64_t *now_ns)
{
	const struct stepper_options *o = &s->options;
	return o->upload ? upload_next_batch(o->upload, &s->seat, used, now_ns)
			 : exchange_next_batch(o->exchange, 0, &s->seat, used, now_ns);
}

/* With run.verify: batches of epoch 0, wherever they come, are combined in their own order. */
static void verify(struct stepper *s, const struct slot *slot)
{
	if (!s->hashes || slot->batch >= s->options.batches_per_epoch)
		return;
	const uint64_t pixels =
		hash_bytes(slot->data, slot->size * s->options.sample_bytes, slot->size);
	s->hashes[slot->batch] =
		hash_bytes(slot->labels, slot->size * sizeof *slot->labels, pixels);
}

static void finish_verify(struct stepper *s)
{
	if (!s->hashes)
		return;
	s->account.checksum =
		hash_bytes(s->hashes, s->options.batches_per_epoch * sizeof *s->hashes, 0);
	s->account.has_checksum = true;
}

/* The first epoch without a single good sample ends the run. */
static bool count_first_epoch(struct stepper *s, const struct slot *slot)
{
	if (slot->batch >= s->options.batches_per_epoch)
		return true;
	s->first_epoch_good += slot->size - slot->bad;
	if (++s->first_epoch_batches < s->options.batches_per_epoch)
		return true;
	finish_verify(s);
	if (s->first_epoch_good > 0)
		return true;
	struct error err;
	crew_fail(s->options.crew,
		error_set(
			&err, -EIO, "not one sample of the first epoch could be read and decoded"),
		&err);
	return false;
}

/* When a step had its batch, when the backend was called, and when it was done. */
struct step_times {
	uint64_t began_ns, called_ns, ended_ns;
};

static void meter(struct stepper *s, const struct slot *slot, const struct step_result *result,
	const struct step_times *times)
{
	const uint64_t service_ns =
		s->account.emulated ? result->device_ns : times->ended_ns - times->began_ns;
	struct thread_meter *const meter = s->options.meter;
	thread_meter_add(meter, times->ended_ns, service_ns, 1);
	struct trace_entry *const entry = trace_log_next(&meter->trace, slot->batch);
	if (entry)
		*entry = (struct trace_entry){
			.number = slot->batch,
			.end_ns = times->ended_ns,
			.service_ns = (float)service_ns,
			.host_ns = (float)(times->called_ns - times->began_ns),
		};
}

static void count(struct stepper *s, const struct slot *slot, const struct step_result *result,
	const struct step_times *times)
{
	const uint64_t now_ns = times->ended_ns;
	s->sum.t_ns = now_ns - s->start_ns;
	s->sum.samples += slot->size - slot->bad;
	s->sum.batches++;
	s->sum.device_ns += result->device_ns;
	s->sum.oversleep_ns += result->oversleep_ns;
	completions_add(&s->account.completions, &s->sum);
	s->account.epochs = s->sum.batches / s->options.batches_per_epoch;
	if (s->sum.t_ns >= s->options.warmup_ns &&
		result->oversleep_ns > s->account.oversleep_max_ns)
		s->account.oversleep_max_ns = result->oversleep_ns;
	if (isnan(s->account.loss_first))
		s->account.loss_first = result->loss;
	s->account.loss_last = result->loss;
	if (s->options.meter)
		meter(s, slot, result, times);
	atomic_store_explicit(&s->samples, s->sum.samples, memory_order_relaxed);
	atomic_store_explicit(&s->batches, s->sum.batches, memory_order_relaxed);
	atomic_store_explicit(&s->last_step_ns, now_ns - times->began_ns, memory_order_relaxed);
}

/* The backend's step, planted to take `factor` times as long. */
static int compute(struct stepper *s, const struct batch_view *view, double factor,
	uint64_t began_ns, struct step_result *result, struct error *err)
{
	s->backend->slowdown = factor;
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
	const struct batch_view view = {
		.data = slot->data,
		.labels = slot->labels,
		.size = slot->size,
		.sample_bytes = o->sample_bytes,
		.type = (enum augment_type)config_integer(o->config, KEY_AUGMENT_TYPE),
		.index = slot->batch,
	};
	verify(s, slot);
	struct step_result result = {.loss = NAN};
	struct error err = {0};
	struct step_times times = {.began_ns = *now_ns};
	const double factor = injection_begin_step(o->injection, &o->crew->stopping);
	times.called_ns = clock_now_ns();
	const int code = compute(s, &view, factor, times.called_ns, &result, &err);
	times.ended_ns = clock_now_ns();
	/* A step that was cut short by the end of the run does not count. */
	if (crew_stopping(o->crew))
		return false;
	if (code) {
		crew_fail(o->crew, code, &err);
		return false;
	}
	count(s, slot, &result, &times);
	*now_ns = times.ended_ns;
	return count_first_epoch(s, slot);
}

static void run_steps(struct stepper *s)
{
	uint64_t now_ns = s->start_ns;
	/* Untimed, the time is kept here alone: the exchange then keeps none. */
	uint64_t untimed_ns = 0;
	uint64_t *const visit_ns = s->options.meter ? &now_ns : &untimed_ns;
	struct slot *slot = NULL;
	while ((slot = next_batch(s, slot, visit_ns)) && step(s, slot, &now_ns))
		continue;
	if (s->options.meter)
		state_clock_enter(&s->options.meter->clock, THREAD_STARVED, clock_now_ns());
	crew_finish(s->options.crew);
}

static void *run(void *context)
{
	struct stepper *s = context;
	const struct stepper_options *o = &s->options;
	struct error err = {0};
	(void)placement_bind(o->placement, o->first_place, o->places);
	if (o->meter)
		thread_meter_attach(o->meter);
	const int code = open_backend(s, &err);
	if (code)
		crew_fail(o->crew, code, &err);
	if (crew_arrive(o->crew, &s->start_ns)) {
		if (o->meter)
			thread_meter_start(o->meter, THREAD_STARVED, s->start_ns, o->segment_ns);
		run_steps(s);
	}
	backend_close(s->backend);
	if (o->meter)
		thread_meter_detach(o->meter);
	return NULL;
}

static int open_account(struct stepper *s)
{
	s->account.loss_first = NAN;
	s->account.loss_last = NAN;
	if (completions_open(&s->account.completions, COMPLETIONS_ROOM))
		return -ENOMEM;
	if (!config_on(s->options.config, KEY_RUN_VERIFY))
		return 0;
	s->hashes = calloc(s->options.batches_per_epoch, sizeof *s->hashes);
	return s->hashes ? 0 : -ENOMEM;
}

int stepper_start(struct stepper **out, const struct stepper_options *options, struct error *err)
{
	struct stepper *s = aligned_alloc(_Alignof(struct stepper), sizeof *s);
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	memset(s, 0, sizeof *s);
	*out = s;
	s->options = *options;
	s->seat.clock = options->meter ? &options->meter->clock : NULL;
	s->seat.lock = options->meter ? &options->meter->lock : NULL;
	int code = open_account(s);
	if (code)
		return error_set(err, code, "out of memory");
	code = pthread_create(&s->thread, NULL, run, s);
	if (code)
		return error_set_errno(err, code, "cannot start the step thread");
	s->started = true;
	(void)pthread_setname_np(s->thread, "mlb-step");
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
	free(s->hashes);
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
