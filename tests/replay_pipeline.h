/* From a run of the real pipeline to a model for the replay of it, without the calibration of
 * harness/analyze/point_model.h: only the structure and the recorded times, so that what differs is the
 * replay's own error.  For the test and the benchmark of its fidelity. */
#ifndef MLBENCH_TESTS_REPLAY_PIPELINE_H
#define MLBENCH_TESTS_REPLAY_PIPELINE_H

#include "harness/analyze/replay.h"
#include "harness/config/shape.h"
#include "tests/pipeline_fixture.h"

#include <math.h>
#include <unistd.h>

/* Of plain hardware: from waking a thread until it runs; a tick at HZ = 250. */
static const double REPLAYED_WAKE_NS = 20e3, REPLAYED_SLICE_NS = 4e6;

struct replayed {
	struct replay_model model;
	float *series[COSTS];
	float *factor;
};

/* What is known of a run beside its traces. */
struct replayed_facts {
	double device_ns;  /* of a file, where reading has a device; else 0 */
	bool on_cores;     /* decoding computes; else its times are all waits */
	bool slow_workers; /* workers differ */
};

static inline void replayed_set(struct replayed *b, enum replay_cost cost, float *ns, size_t count)
{
	b->series[cost] = ns;
	b->model.series[cost] = (struct replay_series){ns, count};
}

static inline float *replayed_column(const struct trace *trace)
{
	float *ns = calloc(trace->count + 1, sizeof *ns);
	if (!ns)
		fixture_die("out of memory");
	return ns;
}

/* How long each worker's items take in the mean, against all. */
static inline void replayed_factors(struct replayed *b, const struct trace *trace)
{
	const unsigned workers = b->model.shape.decode_workers;
	double *sum = calloc(2 * (size_t)workers, sizeof *sum);
	b->factor = calloc(workers, sizeof *b->factor);
	if (!sum || !b->factor)
		fixture_die("out of memory");
	double all = 0;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		const double ns = (double)(item->service_ns - item->lock_wait_ns);
		sum[item->worker] += ns;
		sum[workers + item->worker]++;
		all += ns / (double)trace->count;
	}
	for (unsigned w = 0; w < workers; w++)
		b->factor[w] = sum[workers + w] > 0 ? (float)(sum[w] / sum[workers + w] / all) : 1;
	b->model.worker_factor = b->factor;
	free(sum);
}

static inline void replayed_decode_waits(struct replayed *b, const struct trace *trace)
{
	float *wait = replayed_column(trace);
	float *lock = replayed_column(trace);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		const float factor = b->factor ? b->factor[item->worker] : 1;
		const float rest = item->service_ns - item->lock_wait_ns - item->lock_hold_ns;
		lock[i] = item->lock_hold_ns / factor;
		wait[i] = rest > 0 ? rest / factor : 0;
	}
	replayed_set(b, COST_DECODE_WAIT, wait, trace->count);
	replayed_set(b, COST_DECODE_LOCK, lock, trace->count);
}

static inline const struct stage_measurement *replayed_stage(
	const struct measurement *m, const char *name)
{
	for (size_t i = 0; i < m->stage_count; i++)
		if (strcmp(m->stages[i].name, name) == 0)
			return &m->stages[i];
	fixture_die("no such stage");
	return NULL;
}

/* The time of an item less its planned wait, scaled to the CPU time that there was in all. */
static inline void replayed_decode_on_cores(struct replayed *b, const struct config *config,
	const struct measurement *m, const struct trace *trace)
{
	const float planned = (float)config_integer(config, KEY_INJECT_DECODE_WAIT);
	const struct stage_measurement *stage = replayed_stage(m, "decode");
	float *wait = replayed_column(trace);
	float *cpu = replayed_column(trace);
	double sum = 0;
	for (size_t i = 0; i < trace->count; i++) {
		wait[i] = planned;
		cpu[i] = fmaxf(trace->items[i].service_ns - planned, 0);
		sum += (double)cpu[i] / (double)trace->count;
	}
	replayed_set(b, COST_DECODE_WAIT, wait, trace->count);
	replayed_set(b, COST_DECODE_CPU, cpu, trace->count);
	b->model.scale[COST_DECODE_CPU] = stage->cpu_seconds / (double)stage->items * 1e9 / sum;
	b->model.cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
	b->model.slice_ns = REPLAYED_SLICE_NS;
}

static inline void replayed_services(
	struct replayed *b, enum replay_cost cost, const struct trace *trace, double constant_ns)
{
	float *ns = replayed_column(trace);
	for (size_t i = 0; i < trace->count; i++)
		ns[i] = constant_ns > 0 ? (float)constant_ns : trace->items[i].service_ns;
	replayed_set(b, cost, ns, trace->count);
}

/* The emulated device's time is the nominal one; with what it came late, it is the step's working time. */
static inline void replayed_step(
	struct replayed *b, const struct measurement *m, const struct trace *trace)
{
	double mean = 0;
	replayed_services(b, COST_STEP_DEVICE, trace, 0);
	for (size_t i = 0; i < trace->count; i++)
		mean += (double)trace->items[i].service_ns / (double)trace->count;
	const struct stage_measurement *stage = replayed_stage(m, "step");
	b->model.scale[COST_STEP_DEVICE] =
		stage->seconds[THREAD_WORKING] * 1e9 / (double)stage->items / mean;
}

/* Until replayed_release. */
static inline void replayed_build(struct replayed *b, const struct pipeline_fixture *f,
	const struct replayed_facts *facts, const struct measurement *m,
	const struct traces *traces)
{
	const struct shape_facts known = {
		.samples = f->dataset.count, .workload = {.reads_memory = true}};
	*b = (struct replayed){.model = {.cores = HUGE_VAL, .wake_ns = REPLAYED_WAKE_NS}};
	pipeline_shape_of(&f->config, &known, &b->model.shape);
	for (int cost = 0; cost < COSTS; cost++)
		b->model.scale[cost] = 1;
	const struct trace *read = traces_find(traces, "read");
	const struct trace *decode = traces_find(traces, "decode");
	const struct trace *upload = traces_find(traces, "upload");
	const struct trace *step = traces_find(traces, "step");
	if (!read || !decode || !step)
		fixture_die("no traces");
	replayed_services(b, facts->device_ns > 0 ? COST_READ_DEVICE : COST_READ_LATENCY, read,
		facts->device_ns);
	if (facts->slow_workers)
		replayed_factors(b, decode);
	if (facts->on_cores)
		replayed_decode_on_cores(b, &f->config, m, decode);
	else
		replayed_decode_waits(b, decode);
	if (upload)
		replayed_services(b, COST_UPLOAD, upload, 0);
	replayed_step(b, m, step);
}

static inline void replayed_release(struct replayed *b)
{
	for (int cost = 0; cost < COSTS; cost++)
		free(b->series[cost]);
	free(b->factor);
}

/* Runs the pipeline as configured and replays it; of the structure alone, what the machine gives. */
static inline struct replay_result replayed_run(
	struct pipeline_fixture *f, const struct replayed_facts *facts, struct measurement *m)
{
	struct traces traces = {0};
	struct error err = {""};
	const struct pipeline_control control = {.traces = &traces};
	if (pipeline_run(&f->config, &f->dataset, &control, m, &err))
		fixture_die(err.text);
	struct replayed b;
	replayed_build(&b, f, facts, m, &traces);
	const struct replay_options options = {
		.batches = m->batches, .warmup_batches = m->batches / 10};
	struct replay_result result;
	if (replay_run(&b.model, &options, &result, &err))
		fixture_die(err.text);
	replayed_release(&b);
	traces_release(&traces);
	return result;
}

/* Emulated step, small pictures, batches of 8; wants a step.time. */
static inline void replayed_configure(struct pipeline_fixture *f, const char *seconds)
{
	config_release(&f->config);
	config_init(&f->config);
	fixture_set(f, KEY_DATASET_PATH, f->root);
	fixture_set(f, KEY_READ_ENGINE, "memory");
	fixture_set(f, KEY_STEP_BACKEND, "emulated");
	fixture_set(f, KEY_STEP_DEVICE, "custom");
	fixture_set(f, KEY_STEP_MODEL, "custom");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_BATCH_DROP_LAST, "on");
	fixture_set(f, KEY_MEASURE_WARMUP, "300ms");
	fixture_set(f, KEY_MEASURE_DURATION, seconds);
	fixture_set(f, KEY_MEASURE_MIN_BATCHES, "10");
}

#endif
