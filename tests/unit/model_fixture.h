/* A point whose truth is known: service times are drawn, the throughput is that of a replay of the truth,
 * and measurements and traces are what a run of it would have left. */
#ifndef MLBENCH_TESTS_MODEL_FIXTURE_H
#define MLBENCH_TESTS_MODEL_FIXTURE_H

#include "harness/analyze/point_model.h"
#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRUTH_REPEATS_MAX = 5, TRUTH_SAMPLES_MAX = 4096, TRUTH_BATCHES_MAX = 512 };

struct truth {
	const char *settings[12]; /* "decode.workers=2"; NULL ends */
	double read_cpu_us, read_latency_us;
	double decode_us, decode_cv, decode_wait_us, decode_lock_us; /* cpu, its spread, rest */
	double step_ms, host_us, upload_us;
	double slow_worker; /* worker 0; 0: not */
	double sync_ms;     /* an exchange, with step.devices > 1 */
	double slow_device; /* device 0; 0: not */
	double contention, outside;
	bool gpu; /* with step.backend=cuda: copies by the device, steps launched ahead */
	unsigned cores;
	size_t samples, repeats;
	uint64_t batch_bytes; /* 0: not known */
	double noise;         /* of a repetition's throughput */
	bool no_schedstat;
	double unmodelled; /* ln by which the run was slower than all that is recorded */
};

struct truth_run {
	struct config config;
	struct measurement measurements[TRUTH_REPEATS_MAX];
	struct traces traces[TRUTH_REPEATS_MAX];
	const struct measurement *repeat_list[TRUTH_REPEATS_MAX];
	const struct traces *traces_list[TRUTH_REPEATS_MAX];
	struct model_source source;
	double throughput; /* of the replay of the truth */
	struct replay_result result;
};

static inline float truth_draw(struct rng *rng, double mean_us, double cv)
{
	if (cv <= 0)
		return (float)(mean_us * 1e3);
	const double s2 = log1p(cv * cv);
	return (float)(mean_us * 1e3 * exp(sqrt(s2) * rng_normal(rng) - s2 / 2));
}

static inline struct stage_measurement *truth_stage(
	struct measurement *m, const char *name, unsigned workers, uint64_t items)
{
	struct stage_measurement *stage = &m->stages[m->stage_count++];
	*stage = (struct stage_measurement){.workers = workers, .items = items};
	(void)snprintf(stage->name, sizeof stage->name, "%s", name);
	stage->io_wait_seconds = NAN;
	stage->lock_wait_seconds = NAN;
	stage->lock_held_seconds = NAN;
	return stage;
}

static inline struct trace *truth_trace(struct traces *traces, const char *name, size_t count)
{
	struct trace *trace = &traces->stages[traces->stage_count++];
	(void)snprintf(trace->stage, sizeof trace->stage, "%s", name);
	trace->items = calloc(count, sizeof *trace->items);
	trace->count = count;
	trace->block = 64;
	for (size_t i = 0; i < count; i++)
		trace->items[i] = (struct trace_item){
			.number = i, .lock_wait_ns = NAN, .lock_hold_ns = NAN, .host_ns = NAN};
	return trace;
}

/* The replay of the truth itself; cpu: (samples). */
static inline void truth_replay(struct truth_run *run, const struct truth *t, const float *cpu)
{
	static float factor[64];
	static float device_factor[DEVICES_MAX];
	const float read_cpu = (float)(t->read_cpu_us * 1e3);
	const float latency = (float)(t->read_latency_us * 1e3);
	const float wait = (float)(t->decode_wait_us * 1e3);
	const float lock = (float)(t->decode_lock_us * 1e3);
	const float upload = (float)(t->upload_us * 1e3);
	const float host = (float)(t->host_us * 1e3);
	const float device = (float)(t->step_ms * 1e6);
	const float sync = (float)(t->sync_ms * 1e6);
	struct replay_model model = {
		.cores = t->cores, .outside = t->outside, .contention = t->contention};
	const struct shape_facts facts = {
		.samples = 100000, .workload = {.step_has_memory = t->gpu}};
	model.copies_off_cores = t->gpu;
	pipeline_shape_of(&run->config, &facts, &model.shape);
	const float *one[COSTS] = {[COST_READ_CPU] = &read_cpu,
		[COST_READ_LATENCY] = &latency,
		[COST_DECODE_WAIT] = &wait,
		[COST_DECODE_LOCK] = &lock,
		[COST_UPLOAD] = &upload,
		[COST_STEP_HOST] = &host,
		[COST_STEP_DEVICE] = &device,
		[COST_SYNC] = &sync};
	for (int c = 0; c < COSTS; c++) {
		model.scale[c] = 1;
		if (one[c] && *one[c] > 0)
			model.series[c] = (struct replay_series){one[c], 1};
	}
	model.series[COST_DECODE_CPU] = (struct replay_series){cpu, t->samples};
	for (unsigned w = 0; w < 64; w++)
		factor[w] = w == 0 && t->slow_worker > 0 ? (float)t->slow_worker : 1;
	model.worker_factor = factor;
	for (unsigned d = 0; d < DEVICES_MAX; d++)
		device_factor[d] = d == 0 && t->slow_device > 0 ? (float)t->slow_device : 1;
	model.device_factor = device_factor;
	const struct replay_options options = {
		.batches = 20 + t->samples / model.shape.batch_size, .warmup_batches = 20};
	struct error err = {""};
	if (replay_run(&model, &options, &run->result, &err))
		fail_msg("truth: %s", err.text);
	run->throughput = run->result.throughput * exp(-t->unmodelled);
}

/* How many times as long a core takes on average while an item is decoded. */
static inline double truth_slowed(
	const struct truth *t, unsigned workers, const struct truth_run *run)
{
	const double busy = run->result.share[REPLAY_DECODE][THREAD_WORKING] * (workers - 1);
	return 1 + t->contention * busy;
}

static inline void truth_step(struct measurement *m, struct traces *traces, const struct truth *t,
	size_t batches, unsigned devices)
{
	struct trace *step = truth_trace(traces, "step", batches);
	struct stage_measurement *stage = truth_stage(m, "step", devices, batches);
	for (size_t i = 0; i < batches; i++) {
		struct trace_item *item = &step->items[i];
		item->worker = (uint32_t)(i % devices);
		const double slow = item->worker == 0 && t->slow_device > 0 ? t->slow_device : 1;
		item->service_ns = (float)(t->step_ms * 1e6 * slow);
		item->host_ns = (float)(t->host_us * 1e3);
		stage->seconds[THREAD_WORKING] += t->step_ms / 1e3 * slow + t->host_us / 1e6;
	}
	stage->per_batch = true;
	stage->device = true;
	stage->cpu_seconds = (double)batches * t->host_us / 1e6;
	/* A step in flight that waits for the one before it is nobody's lateness. */
	if (t->gpu)
		stage->seconds[THREAD_WORKING] *= 1.3;
	if (devices == 1)
		return;
	struct trace *sync = truth_trace(traces, "sync", batches);
	for (size_t i = 0; i < batches; i++) {
		sync->items[i].worker = (uint32_t)(i % devices);
		sync->items[i].service_ns = (float)(t->sync_ms * 1e6);
	}
	stage = truth_stage(m, "sync", devices, batches);
	stage->per_batch = true;
	stage->cpu_seconds = NAN;
	stage->seconds[THREAD_WORKING] = (double)batches * t->sync_ms / 1e3;
}

static inline void truth_repeat(
	struct truth_run *run, const struct truth *t, size_t r, const float *cpu)
{
	struct measurement *m = &run->measurements[r];
	struct traces *traces = &run->traces[r];
	const unsigned workers = (unsigned)config_integer(&run->config, KEY_DECODE_WORKERS);
	const size_t batch = (size_t)config_integer(&run->config, KEY_BATCH_SIZE);
	const double slowed = truth_slowed(t, workers, run);
	struct rng rng;
	rng_init(&rng, 5, r);
	m->throughput = run->throughput * (1 + t->noise * rng_normal(&rng));
	m->dataset_samples = 100000;
	m->batch_bytes = t->batch_bytes;
	(void)snprintf(m->engine, sizeof m->engine, "io_uring");
	m->measured_seconds = (double)t->samples / run->throughput;
	m->cores_busy_outside = t->outside;
	const double all = m->measured_seconds * workers;

	struct trace *read = truth_trace(traces, "read", t->samples);
	struct trace *decode = truth_trace(traces, "decode", t->samples);
	double decoding = 0;
	double on_core = 0;
	double waited = 0;
	for (size_t i = 0; i < t->samples; i++) {
		struct trace_item *item = &decode->items[i];
		item->worker = (uint32_t)(i % workers);
		const double slow = item->worker == 0 && t->slow_worker > 0 ? t->slow_worker : 1;
		const double lock_ns = t->decode_lock_us * 1e3 * slow;
		const double cpu_ns = (double)cpu[i] * slow * slowed;
		item->service_ns = (float)(cpu_ns + 1.5 * lock_ns + t->decode_wait_us * 1e3 * slow);
		if (t->decode_lock_us > 0) {
			item->lock_hold_ns = (float)lock_ns;
			item->lock_wait_ns = (float)(lock_ns / 2);
		}
		decoding += (double)item->service_ns / 1e9;
		on_core += (cpu_ns + lock_ns) / 1e9;
		waited += lock_ns / 2e9;
		read->items[i].bytes = 100000;
		read->items[i].in_flight = 4;
		read->items[i].end_s = (double)i / run->throughput;
		read->items[i].service_ns = (float)((t->read_cpu_us + t->read_latency_us) * 1e3);
	}
	struct stage_measurement *stage = truth_stage(m, "read", 1, t->samples);
	stage->cpu_seconds = (double)t->samples * t->read_cpu_us / 1e6;
	stage->seconds[THREAD_WORKING] = 0.5 * m->measured_seconds;
	stage->seconds[THREAD_BLOCKED] = 0.5 * m->measured_seconds;
	stage->run_queue_seconds = 0;
	m->cpu_seconds = stage->cpu_seconds;
	stage = truth_stage(m, "decode", workers, t->samples);
	stage->cpu_seconds = t->no_schedstat ? (double)NAN : on_core;
	stage->run_queue_seconds = t->no_schedstat ? (double)NAN : 0;
	stage->seconds[THREAD_WORKING] = decoding;
	stage->seconds[THREAD_STARVED] = all - decoding;
	if (t->decode_lock_us > 0)
		stage->lock_wait_seconds = waited;
	m->cpu_seconds += on_core;

	const size_t batches = t->samples / batch > 0 ? t->samples / batch : 1;
	if (t->upload_us > 0) {
		struct trace *upload = truth_trace(traces, "upload", batches);
		for (size_t i = 0; i < batches; i++)
			upload->items[i].service_ns = (float)(t->upload_us * 1e3);
		stage = truth_stage(m, "upload", 1, batches);
		stage->per_batch = true;
		stage->seconds[THREAD_WORKING] = (double)batches * t->upload_us / 1e6;
		stage->cpu_seconds = t->gpu ? 0 : stage->seconds[THREAD_WORKING];
	}
	truth_step(m, traces, t, batches, (unsigned)config_integer(&run->config, KEY_STEP_DEVICES));
}

static inline struct truth_run *truth_make(const struct truth *t)
{
	static float cpu[TRUTH_SAMPLES_MAX];
	struct truth_run *run = calloc(1, sizeof *run);
	struct error err = {""};
	config_init(&run->config);
	if (config_set(&run->config, "step.backend=emulated", &err) ||
		config_set(&run->config, "batch.size=16", &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; t->settings[i]; i++)
		if (config_set(&run->config, t->settings[i], &err))
			fail_msg("%s", err.text);
	struct rng rng;
	rng_init(&rng, 3, 0);
	for (size_t i = 0; i < t->samples; i++)
		cpu[i] = truth_draw(&rng, t->decode_us, t->decode_cv);
	truth_replay(run, t, cpu);
	const size_t repeats = t->repeats > 0 ? t->repeats : 1;
	for (size_t r = 0; r < repeats; r++) {
		truth_repeat(run, t, r, cpu);
		run->measurements[r].facts = (struct workload_facts){
			.step_emulated = !t->gpu, .step_has_memory = t->gpu};
		run->repeat_list[r] = &run->measurements[r];
		run->traces_list[r] = &run->traces[r];
	}
	run->source = (struct model_source){
		.config = &run->config,
		.repeats = run->repeat_list,
		.traces = run->traces_list,
		.count = repeats,
		.cores = t->cores,
		.contention = t->contention,
	};
	return run;
}

static inline void truth_free(struct truth_run *run)
{
	for (size_t r = 0; r < TRUTH_REPEATS_MAX; r++) {
		measurement_release(&run->measurements[r]);
		traces_release(&run->traces[r]);
	}
	config_release(&run->config);
	free(run);
}

static inline void truth_open(struct model *model, const struct truth_run *run)
{
	struct error err = {""};
	if (model_open(model, &run->source, &err))
		fail_msg("model_open: %s", err.text);
}

/* A copy of the configuration with settings, NULL at the end. */
static inline void truth_configure(
	struct config *config, const struct truth_run *run, const char *const *settings)
{
	struct error err = {""};
	if (config_copy(config, &run->config, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; settings[i]; i++)
		if (config_set(config, settings[i], &err))
			fail_msg("%s", err.text);
}

static inline double truth_mean(const struct model *model, enum replay_cost cost)
{
	const struct replay_series *series = &model->replay.series[cost];
	double sum = 0;
	for (size_t i = 0; i < series->count; i++)
		sum += (double)series->ns[i];
	return series->count > 0 ? model->replay.scale[cost] * sum / (double)series->count / 1e3
				 : 0;
}

static inline void assert_about(double got, double expected, double tolerance)
{
	if (!(fabs(got - expected) <= tolerance * fmax(fabs(expected), 1e-9)))
		fail_msg("got %.6g, expected %.6g within %.1f %%", got, expected, 100 * tolerance);
}

#endif
