/* How fast the replay is: events a second over several structures, and milliseconds a point over a grid
 * of the shape of configs/imagenet_like.ini (workers x depth x queue x batch), one core.  Bars: 3 million
 * events/s, 10 ms a point.
 *
 *   bench_replay         the above
 *   bench_replay lock    how far one lock goes: 256 workers and 8 devices that take a million samples a second */
#include "harness/analyze/replay.h"
#include "harness/base/clock.h"
#include "harness/base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 4096, REPEATS = 7, POINTS = 108 };
enum { SAMPLES_A_POINT = 8192, LONG_SAMPLES = 262144 };

struct structure {
	const char *name;
	unsigned readers, depth, workers;
	uint32_t batch, prefetch, staging;
	bool in_order;
	double cores;
	double mean_ns[COSTS];
	double slice_ns;
};

static const struct structure structures[] = {
	{"cpu-bound, unlimited cores", 1, 16, 4, 64, 2, 0, true, HUGE_VAL,
		{17e3, 0, 0, 900e3, 0, 0, 0, 0, 5e6}, 0},
	{"cpu-bound, 2 cores shared", 1, 16, 4, 64, 2, 0, true, 2,
		{17e3, 100e3, 0, 900e3, 0, 0, 0, 0, 5e6}, 0},
	{"latency-bound reads", 2, 8, 8, 64, 4, 0, true, 8, {17e3, 2e6, 0, 100e3, 0, 0, 0, 0, 1e6},
		0},
	{"one device, deep", 4, 64, 16, 64, 4, 0, false, 16,
		{10e3, 500e3, 90e3, 900e3, 0, 0, 0, 0, 5e6}, 0},
	{"64 workers on 16 cores", 4, 16, 64, 256, 4, 2, true, 16,
		{17e3, 300e3, 20e3, 900e3, 0, 0, 2e6, 1e6, 10e6}, 0},
	{"the same in slices of 4 ms", 4, 16, 64, 256, 4, 2, true, 16,
		{17e3, 300e3, 20e3, 900e3, 0, 0, 2e6, 1e6, 10e6}, 4e6},
	{"team lock and waits", 1, 16, 8, 64, 2, 0, true, 8,
		{17e3, 100e3, 0, 500e3, 200e3, 100e3, 0, 0, 5e6}, 0},
	{"tiny samples in chunks", 1, 64, 4, 256, 4, 0, true, 4, {200, 0, 0, 900, 0, 0, 0, 0, 50e3},
		0},
};

static float *draw(uint64_t stream)
{
	float *ns = malloc(ENTRIES * sizeof *ns);
	struct rng rng;
	rng_init(&rng, 1, stream);
	for (int i = 0; ns && i < ENTRIES; i++)
		ns[i] = (float)exp(0.4 * rng_normal(&rng) - 0.08);
	return ns;
}

static struct replay_model model_of(const struct structure *s, float *const *series)
{
	struct replay_model model = {
		.shape = {.reader_threads = s->readers,
			.read_depth = s->depth,
			.decode_workers = s->workers,
			.batch_size = s->batch,
			.prefetch_depth = s->prefetch,
			.slots = s->prefetch + (s->workers + s->batch - 1) / s->batch + 1,
			.staging_slots = s->staging,
			.in_order = s->in_order},
		.cores = s->cores,
		.slice_ns = s->slice_ns,
		.wake_ns = s->slice_ns > 0 ? 20e3 : 0,
	};
	const uint32_t blobs = s->readers * s->depth + 2 * s->workers;
	model.shape.blobs = blobs < 16 ? 16 : blobs;
	for (int cost = 0; cost < COSTS; cost++) {
		model.scale[cost] = s->mean_ns[cost];
		model.series[cost] = (struct replay_series){series[cost], ENTRIES};
	}
	return model;
}

static struct replay_result replay(
	const struct replay_model *model, uint64_t samples, uint64_t block, double *seconds)
{
	const struct replay_options options = {
		.batches = samples / model->shape.batch_size,
		.block = block,
		.seed = 3,
		.events_max = 1ULL << 40,
	};
	struct replay_result result;
	struct error err = {""};
	const uint64_t begin = clock_now_ns();
	if (replay_run(model, &options, &result, &err)) {
		fprintf(stderr, "bench_replay: %s\n", err.text);
		exit(1);
	}
	*seconds = (double)(clock_now_ns() - begin) / 1e9;
	return result;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void bench_events(float *const *series)
{
	enum { COUNT = sizeof structures / sizeof *structures };
	static double rate[COUNT][REPEATS];
	struct replay_result last[COUNT];
	for (int repeat = 0; repeat < REPEATS; repeat++)
		for (int i = 0; i < COUNT; i++) {
			const struct replay_model model = model_of(&structures[i], series);
			double seconds;
			last[i] = replay(&model, LONG_SAMPLES, 64, &seconds);
			rate[i][repeat] = (double)last[i].events / seconds / 1e6;
		}
	printf("%-28s %10s %22s %12s %12s\n", "structure", "M events/s", "min .. max",
		"events/item", "ns/item");
	for (int i = 0; i < COUNT; i++) {
		qsort(rate[i], REPEATS, sizeof rate[i][0], by_value);
		const double events = (double)last[i].events / LONG_SAMPLES;
		printf("%-28s %10.2f %12.2f .. %6.2f %12.2f %12.0f\n", structures[i].name,
			rate[i][REPEATS / 2], rate[i][0], rate[i][REPEATS - 1], events,
			events / rate[i][REPEATS / 2] * 1e3);
	}
}

/* 1 .. 24 workers, batches of 32 to 256, prefetch of 1 to 8, on 8 cores. */
static double bench_grid(float *const *series)
{
	static const unsigned workers[] = {1, 2, 4, 8, 12, 16, 20, 24, 3};
	static const uint32_t batches[] = {32, 64, 128, 256};
	static const uint32_t prefetch[] = {1, 2, 8};
	double total = 0;
	for (int i = 0; i < POINTS; i++) {
		const struct structure s = {"", 1, 16, workers[i % 9], batches[i / 9 % 4],
			prefetch[i / 36], 0, true, 8, {17e3, 120e3, 10e3, 900e3, 0, 0, 0, 0, 3e6},
			4e6};
		const struct replay_model model = model_of(&s, series);
		double seconds;
		(void)replay(&model, SAMPLES_A_POINT, 0, &seconds);
		total += seconds;
	}
	return total * 1e3 / POINTS;
}

/* A sample takes 200 us of a worker, so that each is a visit of its own at the exchange, whose lock is served in order and
 * held for the time of a visit: some 50 ns where its lines are in the core's cache, more where they come from other cores, and
 * some 1,000 ns where most come from another socket. */
static void bench_lock(float *const *series)
{
	static const double visits_ns[] = {50, 100, 200, 400, 600, 800, 1000, 1500, 2000};
	enum { DEVICES = 8, SAMPLES = 1 << 20 };
	struct structure s = {"", 8, 256, 256, 1024, 16, 0, true, 320,
		{500, 500e3, 0, 200e3, 0, 0, 0, 0, 8192e3}, 0};
	printf("256 workers, 8 devices that take 1 M samples/s together, 320 cores\n"
	       "%14s  %12s  %8s  %8s\n",
		"lock, ns/visit", "M samples/s", "lock", "steps");
	for (size_t i = 0; i < sizeof visits_ns / sizeof *visits_ns; i++) {
		s.mean_ns[COST_DECODE_LOCK] = visits_ns[i];
		struct replay_model model = model_of(&s, series);
		model.shape.devices = DEVICES;
		model.shape.slots += DEVICES;
		model.series[COST_STEP_DEVICE] = (struct replay_series){(const float[]){1}, 1};
		double seconds;
		const struct replay_result result = replay(&model, SAMPLES, 0, &seconds);
		printf("%14.0f  %12.3f  %8.3f  %8.3f\n", visits_ns[i], result.throughput / 1e6,
			result.lock_utilisation, result.step_utilisation);
	}
}

int main(int argc, char **argv)
{
	float *series[COSTS];
	for (int cost = 0; cost < COSTS; cost++)
		if (!(series[cost] = draw((uint64_t)cost)))
			return 1;
	if (argc > 1 && strcmp(argv[1], "lock") == 0) {
		bench_lock(series);
		return 0;
	}
	bench_events(series);
	double ms[REPEATS];
	for (int repeat = 0; repeat < REPEATS; repeat++)
		ms[repeat] = bench_grid(series);
	qsort(ms, REPEATS, sizeof ms[0], by_value);
	printf("\ngrid of %d points, %d samples each: %.2f ms a point (%.2f .. %.2f), so %.1f s for 1,000\n",
		POINTS, SAMPLES_A_POINT, ms[REPEATS / 2], ms[0], ms[REPEATS - 1], ms[REPEATS / 2]);
	for (int cost = 0; cost < COSTS; cost++)
		free(series[cost]);
	return 0;
}
