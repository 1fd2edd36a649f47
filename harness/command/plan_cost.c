/* Estimates of time, and the bound on memory: pools, and what the process has beside them. */
#include "harness/command/plan_cost.h"

#include "harness/base/clock.h"
#include "harness/command/step_facts.h"
#include "harness/measure/process_usage.h"
#include "pipelines/conduct.h"
#include "pipelines/dither.h"
#include "workloads/backend/cuda_load.h"

#include <math.h>
#include <string.h>

/* What the program takes beside its pools, at least: the promise of docs/ARCHITECTURE.md. */
static const uint64_t PROGRAM_BYTES = 64ULL << 20;
/* To come, beside what is resident before a run: recorders, results, the page. */
static const uint64_t LATER_BYTES = 32ULL << 20;
/* Of each thread: touched stack, meters, what its C library keeps for it. */
static const uint64_t THREAD_BYTES = 128ULL << 10;
/* OpenBLAS maps so much for each of its threads, and touches what the sizes of the products ask for. */
static const uint64_t BLAS_THREAD_BYTES = 32ULL << 20;

static double seconds_of(const struct config *config, enum key_id key)
{
	return (double)config_integer(config, key) / (double)NS_PER_S;
}

/* Between two batches, over all devices, where an emulated step is the limit; NAN: it is not known. */
static double batch_seconds(const struct config *config)
{
	const uint32_t batch = (uint32_t)config_integer(config, KEY_BATCH_SIZE);
	const double step_ns = step_facts_time(config, batch);
	const double devices = config_real(config, KEY_STEP_DEVICES);
	const double exchange_ns = devices > 1 ? step_facts_exchange(config) : 0;
	return (step_ns * config_real(config, KEY_INJECT_STEP_FACTOR) +
		       (isnan(exchange_ns) ? 0 : exchange_ns)) /
	       devices / (double)NS_PER_S;
}

static void note_short(
	struct plan_cost *cost, const struct config *config, double duration_s, double batch_s)
{
	const double least = config_real(config, KEY_MEASURE_MIN_BATCHES);
	if (!(duration_s < least * batch_s))
		return;
	cost->short_points++;
	if (batch_s <= cost->short_worst.batch_s)
		return;
	cost->short_worst.duration_s = duration_s;
	cost->short_worst.batch_s = batch_s;
	cost->short_worst.batches_least = least;
	cost->short_worst.hopeless = CONDUCT_EXTENSION * duration_s < (least + 1) * batch_s;
}

void plan_cost_add_time(struct plan_cost *cost, const struct config *config)
{
	const double duration_s = seconds_of(config, KEY_MEASURE_DURATION);
	const double batch_s = batch_seconds(config);
	/* As the conductor has it: one batch more, since time is measured from the first to the last. */
	const double wanted_s = (config_real(config, KEY_MEASURE_MIN_BATCHES) + 1) * batch_s;
	const double longer_s = (double)dither_longer_ns(config) / (double)NS_PER_S;
	double measured_s = duration_s;
	cost->points++;
	if (config_integer(config, KEY_MEASURE_EPOCHS) > 0)
		return;
	if (wanted_s > duration_s) /* not where it is NAN */
		measured_s = fmin(wanted_s, CONDUCT_EXTENSION * duration_s);
	note_short(cost, config, duration_s, batch_s);
	const double seconds = seconds_of(config, KEY_MEASURE_WARMUP) + longer_s + measured_s;
	cost->seconds_sum += seconds;
	cost->seconds_most = fmax(cost->seconds_most, seconds);
}

/* Libraries that are loaded are resident by now, the plug-in's among them: where there is a device, every run opens it to
 * say in its result what the node has. */
static uint64_t resident_now(void)
{
	struct process_usage usage;
	(void)cuda_find();
	process_usage_read(&usage);
	return isnan(usage.resident_bytes) ? 0 : (uint64_t)usage.resident_bytes;
}

static uint64_t program_bytes(uint64_t resident, const struct pipeline_plan *planned)
{
	const bool blas = planned->facts.step_on_cores;
	const uint64_t threads =
		planned->reader_threads + planned->decode_workers + 2 * (uint64_t)planned->devices;
	const uint64_t bytes = resident + LATER_BYTES + threads * THREAD_BYTES +
			       (blas ? planned->step_threads * BLAS_THREAD_BYTES : 0);
	return bytes > PROGRAM_BYTES ? bytes : PROGRAM_BYTES;
}

void plan_cost_add_memory(struct plan_cost *cost, const struct pipeline_plan *planned, bool limit)
{
	if (cost->resident_bytes == 0)
		cost->resident_bytes = resident_now();
	const uint64_t bound = planned->pool_bytes + program_bytes(cost->resident_bytes, planned);
	if (limit && planned->pool_bytes > cost->limit_pool_bytes)
		cost->limit_pool_bytes = planned->pool_bytes;
	if (bound > cost->bound_bytes)
		cost->bound_bytes = bound;
}
