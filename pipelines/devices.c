/* Sums over devices, and rounds of steps. */
#include "pipelines/devices.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"

#include <errno.h>
#include <math.h>

enum { ROUNDS_COMPLETIONS = 16384 };

/* --- sums ------------------------------------------------------------------------------------ */

struct step_progress devices_progress(const struct devices *d)
{
	struct step_progress all = {0};
	for (unsigned i = 0; i < d->count; i++) {
		if (!d->steppers[i])
			continue;
		const struct step_progress one = stepper_progress(d->steppers[i]);
		all.samples += one.samples;
		all.batches += one.batches;
		if (one.last_step_ns > all.last_step_ns)
			all.last_step_ns = one.last_step_ns;
	}
	return all;
}

bool devices_do_stage(const struct devices *d, enum stage_id id)
{
	const struct step_account *const step = stepper_account(d->steppers[0]);
	return ((id == STAGE_STEP || id == STAGE_SYNC) && (step->emulated || step->on_device)) ||
	       (id == STAGE_UPLOAD && step->on_device);
}

void devices_read_uploads(const struct devices *d, struct upload_totals *out)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->uploads[i])
			out[i] = upload_read_totals(d->uploads[i]);
}

void devices_start_meters(const struct devices *d, uint64_t now_ns)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->uploads[i])
			upload_start_meter(d->uploads[i], now_ns);
}

uint32_t devices_read_queues(const struct devices *d, uint64_t now_ns, struct queue_integrals *out)
{
	uint32_t depth = 0;
	*out = (struct queue_integrals){0};
	for (unsigned i = 0; i < d->count; i++) {
		struct queue_integrals one;
		if (!d->uploads[i])
			continue;
		depth += upload_read_queue(d->uploads[i], now_ns, &one);
		out->depth_ns += one.depth_ns;
		out->empty_ns += one.empty_ns / d->count;
		out->full_ns += one.full_ns / d->count;
		out->total_ns += one.total_ns / d->count;
	}
	return depth;
}

void devices_wake(const struct devices *d)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->uploads[i])
			upload_wake(d->uploads[i]);
}

bool devices_join(const struct devices *d, uint64_t deadline_ns)
{
	bool all = true;
	for (unsigned i = 0; i < d->count; i++)
		all = upload_join(d->uploads[i], deadline_ns) && all;
	for (unsigned i = 0; i < d->count; i++)
		all = stepper_join(d->steppers[i], deadline_ns) && all;
	return all;
}

void devices_free(struct devices *d)
{
	for (unsigned i = 0; i < d->count; i++) {
		stepper_free(d->steppers[i]);
		upload_free(d->uploads[i]);
	}
	*d = (struct devices){0};
}

/* --- rounds ---------------------------------------------------------------------------------- */

int rounds_open(struct rounds *r, unsigned devices, struct thread_meter *meters)
{
	*r = (struct rounds){.devices = devices, .meters = meters};
	const int code = completions_open(&r->completions, ROUNDS_COMPLETIONS);
	if (code)
		return code;
	if (pthread_mutex_init(&r->lock, NULL)) {
		completions_close(&r->completions);
		return -ENOMEM;
	}
	r->is_open = true;
	return 0;
}

void rounds_close(struct rounds *r)
{
	if (!r->is_open)
		return;
	(void)pthread_mutex_destroy(&r->lock);
	completions_close(&r->completions);
	*r = (struct rounds){0};
}

static uint64_t rounds_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t rounds_beyond(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void rounds_meter(const struct rounds *r, unsigned device, const struct round_step *step,
	uint64_t exchange_ns)
{
	struct thread_meter *const m = &r->meters[device];
	const uint64_t ended_ns = step->sync_begin_ns + step->sync_ns;
	const struct trace_entry item = {
		.number = step->batch,
		.end_ns = ended_ns,
		.service_ns = (float)exchange_ns,
		.host_ns = NAN,
	};
	span_item(m, ended_ns, exchange_ns, &item);
	if (!r->live)
		state_clock_move(
			&m->clock, THREAD_STARVED, THREAD_WORKING, exchange_ns, clock_now_ns());
}

static void rounds_count_exchange(struct rounds *r, const struct round *round)
{
	uint64_t began_ns = 0;
	for (unsigned i = 0; i < r->devices; i++)
		began_ns = rounds_later(began_ns, round->steps[i].sync_begin_ns);
	for (unsigned i = 0; i < r->devices && began_ns > 0; i++) {
		const struct round_step *step = &round->steps[i];
		const uint64_t ended_ns = step->sync_begin_ns + step->sync_ns;
		const uint64_t exchange_ns = rounds_beyond(ended_ns, began_ns);
		r->sums[i].exchange_ns += exchange_ns;
		r->sums[i].waiting_ns += rounds_beyond(step->sync_ns, exchange_ns);
		if (r->meters)
			rounds_meter(r, i, step, exchange_ns);
	}
}

static void rounds_complete(struct rounds *r, const struct round *round)
{
	uint64_t ended_ns = 0;
	for (unsigned i = 0; i < r->devices; i++) {
		const struct round_step *step = &round->steps[i];
		ended_ns = rounds_later(ended_ns, step->ended_ns);
		r->sum.samples += step->samples;
		r->sum.stepped += step->stepped;
		r->sum.device_ns += step->compute_ns;
		r->sum.oversleep_ns += step->oversleep_ns;
	}
	r->sum.batches += r->devices;
	r->sum.t_ns = rounds_later(r->sum.t_ns, rounds_beyond(ended_ns, r->start_ns));
	completions_add(&r->completions, &r->sum);
	if (r->devices > 1)
		rounds_count_exchange(r, round);
}

void rounds_add(struct rounds *r, unsigned device, const struct round_step *step)
{
	(void)pthread_mutex_lock(&r->lock);
	struct round *const round = &r->open[r->steps[device]++ % ROUNDS_OPEN_MAX];
	round->steps[device] = *step;
	if (++round->arrived == r->devices) {
		rounds_complete(r, round);
		round->arrived = 0;
	}
	(void)pthread_mutex_unlock(&r->lock);
}

void rounds_read(struct rounds *r, struct round_sums *out)
{
	(void)pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < r->devices; i++)
		out[i] = r->sums[i];
	(void)pthread_mutex_unlock(&r->lock);
}
