/* Models for tests of the replay: costs drawn from known distributions, and intervals from independent
 * replications (other series each), which is what closed forms are held against. */
#ifndef MLBENCH_TESTS_REPLAY_FIXTURE_H
#define MLBENCH_TESTS_REPLAY_FIXTURE_H

#include "harness/analyze/replay.h"
#include "harness/base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 1 << 15, REPLICATIONS = 20 };
/* Student's t with 19 degrees of freedom: 99.8 % of intervals hold the true mean. */
static const double T_998 = 3.579;
static const double MS = 1e6; /* ns */

enum law { CONSTANT, EXPONENTIAL, HYPEREXPONENTIAL };

struct cost_law {
	enum law law;
	double mean_ns;
};

/* A model whose costs are drawn anew for each replication. */
struct case_model {
	struct replay_model model;
	struct cost_law laws[COSTS];
};

/* One reader, one worker, batches of one, plenty of buffers, unlimited cores. */
static inline struct case_model case_plain(void)
{
	struct case_model c = {.model = {
				       .shape = {.reader_threads = 1,
					       .read_depth = 1,
					       .blobs = 64,
					       .decode_workers = 1,
					       .batch_size = 1,
					       .prefetch_depth = 64,
					       .slots = 66,
					       .in_order = true},
				       .cores = HUGE_VAL,
			       }};
	for (int cost = 0; cost < COSTS; cost++)
		c.model.scale[cost] = 1;
	return c;
}

static inline void case_set(
	struct case_model *c, enum replay_cost cost, enum law law, double mean_ns)
{
	c->laws[cost] = (struct cost_law){law, mean_ns};
}

/* Hyperexponential: a tenth of the draws is long, squared coefficient of variation 6.3. */
static inline double case_draw(const struct cost_law *law, struct rng *rng)
{
	switch (law->law) {
	case CONSTANT:
		return law->mean_ns;
	case EXPONENTIAL:
		return law->mean_ns * rng_exponential(rng);
	default:
		return law->mean_ns * rng_exponential(rng) * (rng_uniform(rng) < 0.1 ? 5.5 : 0.5);
	}
}

/* series: COSTS of them, to be freed with case_release. */
static inline void case_series(struct case_model *c, float *series[COSTS], uint64_t seed)
{
	for (int cost = 0; cost < COSTS; cost++) {
		struct rng rng;
		rng_init(&rng, seed, (uint64_t)cost);
		const size_t count = c->laws[cost].law == CONSTANT ? 1 : ENTRIES;
		series[cost] = malloc(count * sizeof(float));
		if (!series[cost])
			abort();
		for (size_t i = 0; i < count; i++)
			series[cost][i] = (float)case_draw(&c->laws[cost], &rng);
		c->model.series[cost] =
			(struct replay_series){series[cost], c->laws[cost].mean_ns > 0 ? count : 0};
	}
}

static inline struct replay_result case_run(struct case_model *c, uint64_t seed, uint64_t batches)
{
	float *series[COSTS];
	case_series(c, series, seed);
	const struct replay_options options = {
		.batches = batches, .warmup_batches = batches / 8, .seed = seed};
	struct replay_result result;
	struct error err = {""};
	if (replay_run(&c->model, &options, &result, &err)) {
		fprintf(stderr, "replay: %s\n", err.text);
		abort();
	}
	for (int cost = 0; cost < COSTS; cost++)
		free(series[cost]);
	return result;
}

struct estimate {
	double mean, half_width;
};

struct estimates {
	struct estimate throughput, samples_waiting;
};

static inline struct estimate estimate_of(const double values[REPLICATIONS])
{
	double mean = 0;
	double squares = 0;
	for (int i = 0; i < REPLICATIONS; i++)
		mean += values[i] / REPLICATIONS;
	for (int i = 0; i < REPLICATIONS; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return (struct estimate){mean, T_998 * sqrt(squares / (REPLICATIONS - 1) / REPLICATIONS)};
}

static inline struct estimates case_estimate(struct case_model *c, uint64_t batches)
{
	double throughput[REPLICATIONS];
	double waiting[REPLICATIONS];
	for (int i = 0; i < REPLICATIONS; i++) {
		const struct replay_result result = case_run(c, 100 + (uint64_t)i, batches);
		throughput[i] = result.throughput;
		waiting[i] = result.samples_waiting;
	}
	return (struct estimates){estimate_of(throughput), estimate_of(waiting)};
}

/* The truth lies in the interval, and the interval is narrow enough to mean something. */
#define assert_estimates(given, truth, narrow)                                       \
	do {                                                                         \
		const struct estimate e_ = (given);                                  \
		const double t_ = (truth);                                           \
		if (!(fabs(e_.mean - t_) <= e_.half_width + 1e-9 * t_) ||            \
			!(e_.half_width <= (narrow)*t_))                             \
			fail_msg("%s: %.6g +- %.2g, expected %.6g", #given, e_.mean, \
				e_.half_width, t_);                                  \
	} while (0)

#define assert_close(value, truth, tolerance)                                 \
	do {                                                                  \
		const double v_ = (value);                                    \
		const double t_ = (truth);                                    \
		if (!(fabs(v_ - t_) <= (tolerance) * (fabs(t_) + 1e-300)))    \
			fail_msg("%s = %.9g, expected %.9g", #value, v_, t_); \
	} while (0)

#endif
