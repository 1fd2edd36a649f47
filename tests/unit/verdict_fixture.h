/* A hand-made point of a node with 2 decode workers and an emulated step, whose shares a test sets. */
#ifndef MLBENCH_TESTS_VERDICT_FIXTURE_H
#define MLBENCH_TESTS_VERDICT_FIXTURE_H

#include "harness/analyze/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { HAND_STAGES = 3 };

static const char *const hand_stages[HAND_STAGES] = {"read", "decode", "step"};

struct shares {
	double busy, starved, blocked;
};

/* A 10 s repetition of a node with 2 decode workers and an emulated step. */
static inline void hand_made(
	struct measurement *m, struct shares read, struct shares decode, struct shares step)
{
	const struct shares shares[HAND_STAGES] = {read, decode, step};
	static const unsigned workers[HAND_STAGES] = {1, 2, 1};
	*m = (struct measurement){.status = MEASUREMENT_OK,
		.accounted = 0.998,
		.measured_seconds = 10,
		.samples = 11900,
		.batches = 186,
		.throughput = 1190,
		.bytes_read_per_s = 1190 * 1e5,
		.page_cache_share = 0,
		.stage_count = HAND_STAGES};
	for (size_t i = 0; i < HAND_STAGES; i++) {
		struct stage_measurement *stage = &m->stages[i];
		const double total = 10 * workers[i];
		(void)snprintf(stage->name, sizeof stage->name, "%s", hand_stages[i]);
		stage->workers = workers[i];
		stage->per_batch = stage->device = i == 2;
		stage->items = i == 2 ? 186 : 11900;
		stage->seconds[THREAD_WORKING] = shares[i].busy * total;
		stage->seconds[THREAD_STARVED] = shares[i].starved * total;
		stage->seconds[THREAD_BLOCKED] = shares[i].blocked * total;
		stage->cpu_seconds = stage->seconds[THREAD_WORKING] * (i == 1 ? 0.98 : 0.05);
		stage->run_queue_seconds = stage->seconds[THREAD_WORKING] * 0.01;
		stage->io_wait_seconds = stage->lock_wait_seconds = stage->lock_held_seconds = NAN;
		stage->capacity = 1190 / shares[i].busy;
		const double ns = stage->seconds[THREAD_WORKING] / (double)stage->items * 1e9;
		histogram_add(&stage->service, (uint64_t)ns, (uint32_t)stage->items);
	}
}

static inline struct point_facts hand_facts(void)
{
	return (struct point_facts){.cores = 2,
		.decode_workers = 2,
		.read_threads = 1,
		.read_depth = 16,
		.step_threads = 0,
		.batch_size = 64,
		.prefetch_depth = 2,
		.step_emulated = true};
}

static inline void decode_bound(struct measurement *m)
{
	hand_made(m, (struct shares){0.29, 0, 0.71}, (struct shares){0.987, 0.01, 0.003},
		(struct shares){0.66, 0.34, 0});
}

static inline struct verdict judge(const struct measurement *m, const struct point_facts *facts)
{
	static struct point_summary point;
	const struct measurement *repeats[] = {m, m, m};
	struct error err;
	assert_int_equal(summary_of_point(repeats, 3, facts, &point, &err), 0);
	const struct verdict v = point.verdict;
	point_summary_release(&point);
	return v;
}

static inline void expect(const struct verdict *v, const char *stage, const char *resource)
{
	if (strcmp(v->stage, stage) != 0 || strcmp(v->resource, resource) != 0)
		fail_msg("got %s/%s (%s), expected %s/%s", v->stage, v->resource, v->evidence[0],
			stage, resource);
	assert_true(v->confidence > 0 && v->confidence < 1);
	assert_true(v->evidence_count >= 1);
}

static inline bool says(const struct verdict *v, const char *text)
{
	for (size_t i = 0; i < v->evidence_count; i++)
		if (strstr(v->evidence[i], text))
			return true;
	return strstr(v->advice, text) != NULL;
}

/* 14 ms a file at 1190 files/s: 16.7 in flight of the 16 that may be. */
static inline void set_read_latency(struct measurement *m, double seconds)
{
	memset(&m->stages[0].service, 0, sizeof m->stages[0].service);
	histogram_add(&m->stages[0].service, (uint64_t)(seconds * 1e9), 11900);
}

static inline void read_bound(struct measurement *m)
{
	hand_made(m, (struct shares){0.99, 0, 0.01}, (struct shares){0.4, 0.6, 0},
		(struct shares){0.5, 0.5, 0});
	set_read_latency(m, 0.0134);
}

#endif
