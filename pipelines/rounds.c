/* Rounds of steps. */
#include "pipelines/rounds.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"

#include <errno.h>
#include <math.h>

enum { COMPLETIONS_ROOM = 16384 };

int rounds_open(struct rounds *r, unsigned devices, struct thread_meter *meters)
{
	*r = (struct rounds){.devices = devices, .meters = meters};
	const int code = completions_open(&r->completions, COMPLETIONS_ROOM);
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

static uint64_t beyond(uint64_t a, uint64_t b)
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

static void count_exchange(struct rounds *r, const struct round *round)
{
	uint64_t began_ns = 0;
	for (unsigned i = 0; i < r->devices; i++)
		began_ns = rounds_later(began_ns, round->steps[i].sync_begin_ns);
	for (unsigned i = 0; i < r->devices && began_ns > 0; i++) {
		const struct round_step *step = &round->steps[i];
		const uint64_t ended_ns = step->sync_begin_ns + step->sync_ns;
		const uint64_t exchange_ns = beyond(ended_ns, began_ns);
		r->sums[i].exchange_ns += exchange_ns;
		r->sums[i].waiting_ns += beyond(step->sync_ns, exchange_ns);
		if (r->meters)
			rounds_meter(r, i, step, exchange_ns);
	}
}

static void complete(struct rounds *r, const struct round *round)
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
	r->sum.t_ns = rounds_later(r->sum.t_ns, beyond(ended_ns, r->start_ns));
	completions_add(&r->completions, &r->sum);
	if (r->devices > 1)
		count_exchange(r, round);
}

void rounds_add(struct rounds *r, unsigned device, const struct round_step *step)
{
	(void)pthread_mutex_lock(&r->lock);
	struct round *const round = &r->open[r->steps[device]++ % ROUNDS_OPEN_MAX];
	round->steps[device] = *step;
	if (++round->arrived == r->devices) {
		complete(r, round);
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
