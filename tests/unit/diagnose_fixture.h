/* A point as the pipeline would have measured it, made by the replay: configuration, service times, states,
 * windows.  What binds is known, because the costs are chosen. */
#ifndef MLBENCH_TESTS_DIAGNOSE_FIXTURE_H
#define MLBENCH_TESTS_DIAGNOSE_FIXTURE_H

#include "harness/analyze/diagnose.h"
#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	MADE_ITEMS = 2000,
	MADE_REPEATS = 3,
	MADE_WINDOWS = 60,
	MADE_SEED = 1618,
	MADE_STAGES = 3,
	MADE_SAMPLES = 500, /* that are read again and again */
	MADE_FOLDERS = 40,
};

/* Which items are slow: any, those of some samples, or those of one folder. */
enum made_slow { MADE_SLOW_ANY, MADE_SLOW_SAME, MADE_SLOW_FOLDER };

/* Mean costs, ns; what is 0 is nothing. */
struct made_plan {
	const char *set[8]; /* keys, "decode.workers=2", ended by NULL */
	double ns[COSTS];
	double variation;               /* of decode and read, log-normal */
	double slow_share, slow_factor; /* of decode items */
	double read_slow_share, read_slow_factor;
	enum made_slow slow; /* of both */
	double worker_0;     /* times as slow; 0: alike */
	bool reads_twice;    /* a point of the warm-up: twice the depth read twice as fast */
	unsigned cores;
	double seconds; /* measured; 0: as the replay took */
};

struct made_point {
	struct config config;
	struct measurement *repeats; /* (MADE_REPEATS), owned */
	struct traces traces[MADE_REPEATS];
	const struct measurement *repeat_list[MADE_REPEATS];
	const struct traces *traces_list[MADE_REPEATS];
	struct point_summary summary;
	struct point_facts facts;
	struct diagnose_input input;
};

static inline uint32_t made_sample(size_t item, uint64_t repeat)
{
	return (uint32_t)((item * 7919 + repeat * 31) % MADE_SAMPLES) + 1;
}

static inline bool made_is_slow(const struct made_plan *plan, enum replay_cost cost, double share,
	uint32_t sample, struct rng *rng)
{
	const double drawn = rng_uniform(rng);
	if (plan->slow == MADE_SLOW_SAME)
		return (double)(rng_mix(sample, (uint64_t)cost) >> 11) * 0x1.0p-53 < share;
	if (plan->slow == MADE_SLOW_FOLDER)
		return share > 0 && sample % MADE_FOLDERS == 3;
	return drawn < share;
}

static inline float *made_series(
	const struct made_plan *plan, enum replay_cost cost, uint64_t repeat)
{
	struct rng rng;
	const bool varies = cost != COST_STEP_DEVICE && cost != COST_STEP_HOST;
	const double sigma2 = varies ? log(1 + plan->variation * plan->variation) : 0;
	float *ns = calloc(MADE_ITEMS, sizeof *ns);
	assert_non_null(ns);
	rng_init(&rng, MADE_SEED + repeat, (uint64_t)cost);
	for (size_t i = 0; i < MADE_ITEMS; i++) {
		const double factor = exp(sqrt(sigma2) * rng_normal(&rng) - sigma2 / 2);
		const bool decodes = cost == COST_DECODE_CPU || cost == COST_DECODE_WAIT;
		const double share = decodes                     ? plan->slow_share
				     : cost == COST_READ_LATENCY ? plan->read_slow_share
								 : 0;
		const double slower = decodes ? plan->slow_factor : plan->read_slow_factor;
		const bool slow = (decodes || share > 0) &&
				  made_is_slow(plan, cost, share, made_sample(i, repeat), &rng);
		ns[i] = (float)(plan->ns[cost] * factor * (slow ? slower : 1));
	}
	return ns;
}

static inline void made_stage(struct measurement *m, enum replay_stage stage, const char *name,
	unsigned workers, const struct replay_result *result, double cpu, double asleep)
{
	struct stage_measurement *s = &m->stages[m->stage_count++];
	(void)snprintf(s->name, sizeof s->name, "%s", name);
	s->workers = workers;
	s->per_batch = s->device = stage == REPLAY_STEP;
	s->items = stage == REPLAY_STEP ? m->batches : m->samples;
	for (int state = 0; state < THREAD_STATES; state++)
		s->seconds[state] = result->share[stage][state] * m->measured_seconds * workers;
	const double working = s->seconds[THREAD_WORKING];
	const double known = cpu + asleep > 0 ? cpu + asleep : 1;
	s->cpu_seconds = working * cpu / known;
	s->run_queue_seconds = 0;
	s->io_wait_seconds = NAN;
	s->lock_wait_seconds = s->lock_held_seconds = 0;
	s->capacity = working > 0 ? (double)m->samples / working * workers : NAN;
}

static inline void made_trace(struct traces *traces, const char *name)
{
	struct trace *trace = &traces->stages[traces->stage_count++];
	(void)snprintf(trace->stage, sizeof trace->stage, "%s", name);
	trace->items = calloc(MADE_ITEMS, sizeof *trace->items);
	assert_non_null(trace->items);
	trace->count = MADE_ITEMS;
	trace->block = MADE_ITEMS;
}

static inline void made_item(struct trace_item *item, size_t i, double end_s, double service)
{
	*item = (struct trace_item){.number = i,
		.end_s = end_s,
		.service_ns = (float)service,
		.lock_wait_ns = 0,
		.lock_hold_ns = 0,
		.in_flight = 1,
		.host_ns = NAN};
}

static inline int made_slower(const void *a, const void *b)
{
	const struct trace_item *const one = a;
	const struct trace_item *const other = b;
	return (one->service_ns < other->service_ns) - (one->service_ns > other->service_ns);
}

/* Of the slowest, as a run would have them. */
static inline void made_names(struct trace *trace)
{
	struct trace_item *sorted = calloc(trace->count, sizeof *sorted);
	trace->names = calloc(TRACE_NAMES_MAX, sizeof *trace->names);
	assert_true(sorted && trace->names);
	memcpy(sorted, trace->items, trace->count * sizeof *sorted);
	qsort(sorted, trace->count, sizeof *sorted, made_slower);
	for (size_t i = 0; i < trace->count && trace->name_count < TRACE_NAMES_MAX; i++) {
		bool has = false;
		for (size_t k = 0; k < trace->name_count; k++)
			has = has || trace->names[k].sample == sorted[i].sample;
		struct trace_name *name = &trace->names[trace->name_count];
		if (has)
			continue;
		trace->name_count++;
		name->sample = sorted[i].sample;
		(void)snprintf(name->path, sizeof name->path, "folder_%02u/%04u.jpg",
			name->sample % MADE_FOLDERS, name->sample);
	}
	free(sorted);
}

/* Times of the whole run, item after item at the measured rate: only the service times matter. */
static inline void made_traces(struct traces *traces, const struct made_plan *plan,
	const struct pipeline_shape *shape, float *const series[COSTS], const struct measurement *m,
	uint64_t repeat)
{
	static const char *const names[] = {"read", "decode", "step"};
	*traces = (struct traces){
		.begin_s = m->cut_seconds, .end_s = m->cut_seconds + m->measured_seconds};
	for (size_t s = 0; s < MADE_STAGES; s++)
		made_trace(traces, names[s]);
	for (size_t i = 0; i < MADE_ITEMS; i++) {
		const double at = m->cut_seconds + m->measured_seconds * (double)i / MADE_ITEMS;
		const unsigned worker = (unsigned)(i % shape->decode_workers);
		const double slower = worker == 0 && plan->worker_0 > 0 ? plan->worker_0 : 1;
		made_item(&traces->stages[0].items[i], i, at,
			(double)series[COST_READ_LATENCY][i] + (double)series[COST_READ_CPU][i]);
		traces->stages[0].items[i].bytes = 100000;
		made_item(&traces->stages[1].items[i], i, at,
			slower *
				(double)(series[COST_DECODE_CPU][i] + series[COST_DECODE_WAIT][i]));
		traces->stages[1].items[i].worker = worker;
		made_item(&traces->stages[2].items[i], i, at, (double)series[COST_STEP_DEVICE][i]);
		traces->stages[2].items[i].host_ns = series[COST_STEP_HOST][i];
		for (size_t s = 0; s < 2; s++) {
			struct trace_item *item = &traces->stages[s].items[i];
			item->sample = made_sample(i, repeat);
			item->place = item->sample % MADE_FOLDERS + 1;
		}
	}
	made_names(&traces->stages[0]);
	made_names(&traces->stages[1]);
}

static inline void made_windows(struct measurement *m)
{
	m->windows = calloc(MADE_WINDOWS, sizeof *m->windows);
	assert_non_null(m->windows);
	m->window_count = MADE_WINDOWS;
	const double whole = m->cut_seconds + m->measured_seconds;
	for (size_t i = 0; i < MADE_WINDOWS; i++) {
		struct window *w = &m->windows[i];
		w->t = whole * (double)(i + 1) / MADE_WINDOWS;
		w->samples = (uint64_t)(m->throughput * w->t);
		w->resident_bytes = 100 << 20;
		w->heap_used_bytes = w->heap_free_bytes = NAN;
		for (size_t s = 0; s < m->stage_count; s++) {
			for (int state = 0; state < THREAD_STATES; state++)
				w->stage_seconds[s][state] =
					m->stages[s].seconds[state] / m->measured_seconds * w->t;
			w->stage_cpu[s] = m->stages[s].cpu_seconds / m->measured_seconds * w->t;
		}
	}
}

static inline void made_measure(struct measurement *m, const struct made_plan *plan,
	const struct pipeline_shape *shape, const struct replay_result *result)
{
	*m = (struct measurement){.status = MEASUREMENT_OK,
		.accounted = 1,
		.cut_seconds = 1,
		.measured_seconds = plan->seconds > 0 ? plan->seconds : result->seconds,
		.throughput = result->throughput,
		.dataset_samples = 100000,
		.file_bytes_mean = 100000,
		.page_cache_share = 0,
		.oversleep_mean_ns = NAN,
		.steal_share = NAN};
	(void)snprintf(m->engine, sizeof m->engine, "io_uring");
	m->samples = (uint64_t)(m->throughput * m->measured_seconds);
	m->batches = m->samples / shape->batch_size;
	m->bytes_read_per_s = m->throughput * 100000;
	made_stage(m, REPLAY_READ, "read", shape->reader_threads, result, plan->ns[COST_READ_CPU],
		plan->ns[COST_READ_LATENCY]);
	made_stage(m, REPLAY_DECODE, "decode", shape->decode_workers, result,
		plan->ns[COST_DECODE_CPU], plan->ns[COST_DECODE_WAIT]);
	made_stage(m, REPLAY_STEP, "step", 1, result, 1, 0);
	made_windows(m);
	if (plan->reads_twice) {
		const double rate = 2 * m->throughput;
		const unsigned depth = 2 * shape->reader_threads * shape->read_depth;
		m->read_points[m->read_point_count++] = (struct read_point){.depth = depth,
			.seconds = 1,
			.files = (uint64_t)rate,
			.latency_mean_ns = depth / rate * 1e9,
			.rate_error = 0.03};
	}
}

static inline void made_repeat(struct made_point *p, const struct made_plan *plan, size_t repeat)
{
	struct replay_model replay = {.cores = plan->cores};
	float *series[COSTS];
	float factor[64];
	struct replay_result result;
	struct error err;
	const struct shape_facts facts = {.samples = 100000};
	pipeline_shape_of(&p->config, &facts, &replay.shape);
	for (int c = 0; c < COSTS; c++) {
		series[c] = made_series(plan, (enum replay_cost)c, repeat);
		replay.scale[c] = 1;
		if (plan->ns[c] > 0)
			replay.series[c] = (struct replay_series){series[c], MADE_ITEMS};
	}
	for (unsigned w = 0; w < 64; w++)
		factor[w] = w == 0 && plan->worker_0 > 0 ? (float)plan->worker_0 : 1;
	replay.worker_factor = factor;
	const struct replay_options options = {.batches = 1000, .warmup_batches = 50};
	assert_int_equal(replay_run(&replay, &options, &result, &err), 0);
	made_measure(&p->repeats[repeat], plan, &replay.shape, &result);
	made_traces(&p->traces[repeat], plan, &replay.shape, series, &p->repeats[repeat], repeat);
	for (int c = 0; c < COSTS; c++)
		free(series[c]);
}

static inline void made_open(struct made_point *p, const struct made_plan *plan)
{
	struct error err;
	*p = (struct made_point){.repeats = calloc(MADE_REPEATS, sizeof *p->repeats)};
	assert_non_null(p->repeats);
	config_init(&p->config);
	assert_int_equal(config_set(&p->config, "step.backend=emulated", &err), 0);
	for (size_t i = 0; plan->set[i]; i++)
		if (config_set(&p->config, plan->set[i], &err))
			fail_msg("%s", err.text);
	for (size_t r = 0; r < MADE_REPEATS; r++) {
		made_repeat(p, plan, r);
		p->repeats[r].facts.step_emulated = true;
		p->repeat_list[r] = &p->repeats[r];
		p->traces_list[r] = &p->traces[r];
	}
	p->facts = (struct point_facts){.cores = plan->cores,
		.decode_workers = (unsigned)config_integer(&p->config, KEY_DECODE_WORKERS),
		.read_threads = shape_readers(&p->config),
		.read_depth = shape_read_depth(&p->config),
		.by_workers = shape_by_workers(&p->config),
		.turns = config_integer(&p->config, KEY_PREFETCH_DEPTH) == 0,
		.batch_size = (uint32_t)config_integer(&p->config, KEY_BATCH_SIZE),
		.prefetch_depth = (uint32_t)config_integer(&p->config, KEY_PREFETCH_DEPTH),
		.step_emulated = true,
		.seed = MADE_SEED};
	assert_int_equal(
		summary_of_point(p->repeat_list, MADE_REPEATS, &p->facts, &p->summary, &err), 0);
	p->input = (struct diagnose_input){.point = &p->summary,
		.facts = &p->facts,
		.source = {.config = &p->config,
			.repeats = p->repeat_list,
			.traces = p->traces_list,
			.count = MADE_REPEATS,
			.cores = plan->cores,
			.contention = NAN}};
}

static inline void made_close(struct made_point *p)
{
	for (size_t r = 0; r < MADE_REPEATS; r++) {
		measurement_release(&p->repeats[r]);
		traces_release(&p->traces[r]);
	}
	free(p->repeats);
	point_summary_release(&p->summary);
	config_release(&p->config);
}

#endif
