/* A discrete simulation of the pipeline's line: readers with blobs, a team of decoders, slots given
 * to batches in order, a step.  It yields measurements whose true bottleneck is known, because the
 * service times are chosen.  Blocking comes before service, as in the pipeline: no blob, no read;
 * no slot, no decode. */
#ifndef MLBENCH_TESTS_LINE_SIMULATOR_H
#define MLBENCH_TESTS_LINE_SIMULATOR_H

#include "harness/base/rng.h"
#include "harness/record/measurement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WORKERS_MAX = 64, LINE_STAGES = 3 };

struct line {
	unsigned readers, decoders;
	unsigned blobs, slots; /* slots: batches being filled, waiting and in the step */
	unsigned batch;
	double read_s, decode_s; /* mean service time of a sample */
	double step_s;           /* of a batch */
	double read_cv, decode_cv, step_cv;
	double slow_share, slow_factor; /* of decoding; share 0: none */
	unsigned batches;
	uint64_t seed;
};

/* One worker's time since it was last free, told to the clock in pieces. */
struct line_clock {
	double from, to; /* what counts */
	double seconds[LINE_STAGES][THREAD_STATES];
	uint64_t items[LINE_STAGES];
};

static inline void line_spend(
	struct line_clock *clock, int stage, enum thread_state state, double from, double to)
{
	const double a = fmax(from, clock->from);
	const double b = fmin(to, clock->to);
	if (b > a)
		clock->seconds[stage][state] += b - a;
}

static inline double line_service(struct rng *rng, double mean, double cv)
{
	if (cv <= 0)
		return mean;
	const double sigma2 = log(1 + cv * cv);
	return mean * exp(sqrt(sigma2) * rng_normal(rng) - sigma2 / 2);
}

static inline unsigned line_first_free(const double *free_at, unsigned count)
{
	unsigned first = 0;
	for (unsigned i = 1; i < count; i++)
		if (free_at[i] < free_at[first])
			first = i;
	return first;
}

/* Waits of one item: starved until `ready`, then blocked until `room`, then work; returns its end.
 */
static inline double line_item(struct line_clock *clock, int stage, double free_at, double ready,
	double room, double service)
{
	const double fed = fmax(free_at, ready);
	const double start = fmax(fed, room);
	line_spend(clock, stage, THREAD_STARVED, free_at, fed);
	line_spend(clock, stage, THREAD_BLOCKED, fed, start);
	line_spend(clock, stage, THREAD_WORKING, start, start + service);
	if (start + service > clock->from && start + service <= clock->to)
		clock->items[stage]++;
	return start + service;
}

/* Runs the whole line; from and to bound what the clock counts. Returns the end of each batch. */
static inline void line_pass(
	const struct line *line, struct line_clock *clock, double *decoded, double *batch_end)
{
	struct rng rng;
	rng_init(&rng, line->seed, 77);
	double reader_free[LINE_WORKERS_MAX] = {0};
	double decoder_free[LINE_WORKERS_MAX] = {0};
	double step_free = 0;
	for (unsigned b = 0; b < line->batches; b++) {
		const double slot = b >= line->slots ? batch_end[b - line->slots] : 0;
		double full = 0;
		for (unsigned i = 0; i < line->batch; i++) {
			const size_t n = (size_t)b * line->batch + i;
			const unsigned r = line_first_free(reader_free, line->readers);
			const double blob = n >= line->blobs ? decoded[n - line->blobs] : 0;
			const double read = line_item(clock, 0, reader_free[r], 0, blob,
				line_service(&rng, line->read_s, line->read_cv));
			reader_free[r] = read;
			const bool slow = rng_uniform(&rng) < line->slow_share;
			const double service = line_service(&rng, line->decode_s, line->decode_cv) *
					       (slow ? line->slow_factor : 1);
			const unsigned d = line_first_free(decoder_free, line->decoders);
			decoded[n] = decoder_free[d] =
				line_item(clock, 1, decoder_free[d], read, slot, service);
			full = fmax(full, decoded[n]);
		}
		batch_end[b] = step_free = line_item(clock, 2, step_free, full, 0,
			line_service(&rng, line->step_s, line->step_cv));
	}
}

static inline void line_stage(struct stage_measurement *stage, const char *name, unsigned workers,
	const struct line_clock *clock, int at, double per_item)
{
	(void)snprintf(stage->name, sizeof stage->name, "%s", name);
	stage->workers = workers;
	stage->items = clock->items[at];
	memcpy(stage->seconds, clock->seconds[at], sizeof stage->seconds);
	const double working = stage->seconds[THREAD_WORKING];
	stage->cpu_seconds = (at == 0 ? 0.05 : 0.985) * working;
	stage->run_queue_seconds = 0.005 * working;
	stage->capacity = working > 0 ? (double)stage->items * per_item / working * workers : NAN;
	if (stage->items > 0)
		histogram_add(&stage->service, (uint64_t)(working / (double)stage->items * 1e9),
			(uint32_t)stage->items);
}

/* Fills m with what the pipeline would have measured after a warm-up of a fifth. */
static inline void line_measure(const struct line *line, struct measurement *m)
{
	const size_t samples = (size_t)line->batch * line->batches;
	double *decoded = malloc(samples * sizeof *decoded);
	double *batch_end = malloc(line->batches * sizeof *batch_end);
	if (!decoded || !batch_end)
		abort();
	struct line_clock clock = {.from = 0, .to = 0};
	line_pass(line, &clock, decoded, batch_end);
	const unsigned first = line->batches / 5;
	const unsigned last = line->batches - 1 - line->slots;
	clock = (struct line_clock){.from = batch_end[first], .to = batch_end[last]};
	line_pass(line, &clock, decoded, batch_end);
	*m = (struct measurement){.status = MEASUREMENT_OK, .accounted = 0.995};
	m->measured_seconds = clock.to - clock.from;
	m->batches = last - first;
	m->samples = m->batches * line->batch;
	m->throughput = (double)m->samples / m->measured_seconds;
	m->bytes_read_per_s = m->throughput * 1e5;
	m->cores_busy_outside = m->throttled_share = 0;
	m->page_cache_share = 0;
	m->stage_count = LINE_STAGES;
	line_stage(&m->stages[0], "read", line->readers, &clock, 0, 1);
	line_stage(&m->stages[1], "decode", line->decoders, &clock, 1, 1);
	line_stage(&m->stages[2], "step", 1, &clock, 2, line->batch);
	m->stages[2].per_batch = m->stages[2].device = true;
	m->step_utilisation = m->stages[2].seconds[THREAD_WORKING] / m->measured_seconds;
	m->step_wait_share = m->stages[2].seconds[THREAD_STARVED] / m->measured_seconds;
	free(decoded);
	free(batch_end);
}

#endif
