/* How exactly emulated steps end: the error against the deadline, on this machine as it is now (run
 * it with a core free).  The bar is a mean of 5 us and a p99 of 50 us at 0.375 ms.  Back-to-back
 * steps, as with data always waiting; rounds of the three step times alternate. */
#include "harness/base/clock.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/emulated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, CASES = 3, STEPS_MAX = 2000 };

struct timing {
	const char *time;
	uint32_t steps;
};

static const struct timing timings[CASES] = {{"375us", 2000}, {"3.5ms", 300}, {"35ms", 40}};

struct errors {
	double mean_us, p50_us, p99_us, max_us, spin_share, drift_us;
};

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static double us(uint64_t ns)
{
	return (double)ns / (double)NS_PER_US;
}

static int measure(const struct timing *timing, struct errors *errors)
{
	static uint64_t oversleeps[STEPS_MAX];
	struct config config;
	struct error err = {""};
	struct backend *backend = NULL;
	config_init(&config);
	if (config_set_key(&config, KEY_STEP_BACKEND, "emulated", &err) < 0 ||
		config_set_key(&config, KEY_STEP_TIME, timing->time, &err) < 0 ||
		backend_open(&backend,
			&(const struct backend_options){
				.config = &config, .sample_elements = 0, .class_count = 1},
			&err) < 0) {
		fprintf(stderr, "bench_emulated: %s\n", err.text);
		return -1;
	}
	const struct batch_view batch = {.size = backend->batch_size};
	struct step_result result;
	uint64_t sum = 0;
	const uint64_t begin = clock_now_ns(), cpu_begin = clock_thread_cpu_ns();
	for (uint32_t i = 0; i < timing->steps; i++) {
		(void)backend_step(backend, &batch, &result, NULL);
		oversleeps[i] = result.oversleep_ns;
		sum += result.oversleep_ns;
	}
	const uint64_t wall = clock_now_ns() - begin, cpu = clock_thread_cpu_ns() - cpu_begin;
	qsort(oversleeps, timing->steps, sizeof oversleeps[0], ascending);
	*errors = (struct errors){
		.mean_us = us(sum) / timing->steps,
		.p50_us = us(oversleeps[timing->steps / 2]),
		.p99_us = us(oversleeps[(size_t)timing->steps * 99 / 100]),
		.max_us = us(oversleeps[timing->steps - 1]),
		.spin_share = (double)cpu / (double)wall,
		.drift_us = ((double)wall - backend->nominal_step_ns * timing->steps) /
			    (double)NS_PER_US / timing->steps,
	};
	backend_close(backend);
	config_release(&config);
	return 0;
}

static int by_p99(const void *a, const void *b)
{
	const double x = ((const struct errors *)a)->p99_us, y = ((const struct errors *)b)->p99_us;
	return (x > y) - (x < y);
}

int main(void)
{
	static struct errors rounds[CASES][ROUNDS];
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < CASES; i++)
			if (measure(&timings[i], &rounds[i][round]) < 0)
				return 1;
	printf("oversleep of emulated steps, us; median round by p99 of %d [p99 min-max]\n",
		ROUNDS);
	printf("%8s %6s %8s %8s %8s %18s %9s %9s %12s\n", "step", "steps", "mean", "p50", "p99",
		"[min-max]", "max", "CPU", "drift a step");
	for (int i = 0; i < CASES; i++) {
		qsort(rounds[i], ROUNDS, sizeof rounds[i][0], by_p99);
		const struct errors *e = &rounds[i][ROUNDS / 2];
		printf("%8s %6u %8.2f %8.2f %8.2f %8.1f-%8.1f %10.1f %8.1f%% %12.3f\n",
			timings[i].time, timings[i].steps, e->mean_us, e->p50_us, e->p99_us,
			rounds[i][0].p99_us, rounds[i][ROUNDS - 1].p99_us, e->max_us,
			100 * e->spin_share, e->drift_us);
	}
	return 0;
}
