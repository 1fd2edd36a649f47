/* The probe on a device whose speeds are known, and one whose calls fail: what is measured is what was set, and whatever
 * fails, nothing is left behind. */
#include "tests/device/double/double.h"
#include "tests/device/fixture.h"
#include "tests/measuring.h"
#include "workloads/backend/cuda/device_probe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 8 };

static const char *const variables[] = {"MLBENCH_DOUBLE_H2D", "MLBENCH_DOUBLE_D2H",
	"MLBENCH_DOUBLE_PAGEABLE", "MLBENCH_DOUBLE_KERNEL_NS", "MLBENCH_DOUBLE_LAUNCH_NS",
	"MLBENCH_DOUBLE_FAIL", "MLBENCH_DOUBLE_CAPABILITY", "MLBENCH_DOUBLE_MEMORY"};

static int forget(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
		(void)unsetenv(variables[i]);
	double_configure();
	return 0;
}

static void set(const char *variable, const char *value)
{
	assert_int_equal(setenv(variable, value, 1), 0);
	double_configure();
}

static struct cuda_probe_plan small_plan(void)
{
	return (struct cuda_probe_plan){.repeats = 3,
		.seconds = measuring() ? 0.3 : 60,
		.copy_least = 65536,
		.copy_most = 1 << 20};
}

static int by_value(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;
	return (left > right) - (left < right);
}

static double middle(const struct cuda_probe_series *series)
{
	struct cuda_probe_series sorted = *series;
	assert_in_range(series->count, 1, 3);
	qsort(sorted.values, sorted.count, sizeof(double), by_value);
	return sorted.values[sorted.count / 2];
}

static int run(const struct cuda_probe_plan *plan, struct cuda_probe *out, struct error *err)
{
	const int code = probing_run(plan, out, err);
	if (double_complaints() > 0)
		fail_msg("misuse: %s", double_complaint());
	assert_int_equal(double_allocated(), 0);
	assert_int_equal(double_live(), 0);
	return code;
}

/* Never faster than it was set; whether it is not much slower is measured, and the best of a few tries counts. */
static bool is_about(const char *what, double value, double least, double most, bool faster_is_more)
{
	if (faster_is_more ? value > most : value < least)
		fail_msg("%s: %g is faster than it can be", what, value);
	const bool close = value >= least && value <= most;
	if (!close)
		print_message("%s: %g, not %g to %g\n", what, value, least, most);
	return close;
}

static bool copies_are_close(const struct cuda_probe *out)
{
	bool close = true;
	for (size_t i = 0; i < out->copy_count; i++) {
		const struct cuda_probe_copy *copy = &out->copies[i];
		const bool there = copy->direction == CUDA_COPY_TO_DEVICE;
		/* Staging is the slower part of the way there. */
		const double want = copy->pinned ? (there ? 4e8 : 2e8) : there ? 1e8 : 2e8;
		close = is_about(copy->pinned ? "pinned" : "pageable", middle(&copy->bytes_per_s),
				want * 0.2, want * 1.1, true) &&
			close;
	}
	return close;
}

/* The device's own time is told from the host's, whichever is longer; of a host that launches more slowly than it works there may be
 * none. */
static bool launches_are_close(const struct cuda_probe *out)
{
	const bool host = is_about("launch", middle(&out->launch_ns), 10000, 60000, false);
	const bool kernel = out->kernel_ns.count > 0 &&
			    is_about("kernel", middle(&out->kernel_ns), 195000, 400000, false);
	const bool graph = is_about("graph", middle(&out->graph_launch_ns), 195000, 400000, false);
	const bool trip = is_about("trip", middle(&out->round_trip_ns), 200000, 800000, false);
	return host && kernel && graph && trip;
}

static void try_until(bool (*are_close)(const struct cuda_probe *out))
{
	struct cuda_probe *out = malloc(sizeof *out);
	const struct cuda_probe_plan plan = small_plan();
	struct error err = {0};
	bool close = false;
	assert_non_null(out);
	for (int i = 0; i < (measuring() ? TRIES : 1) && !close; i++) {
		assert_int_equal(run(&plan, out, &err), 0);
		close = are_close(out);
	}
	assert_measured(close);
	free(out);
}

static void copies_are_as_fast_as_they_were_set(void **state)
{
	(void)state;
	set("MLBENCH_DOUBLE_H2D", "400000000");
	set("MLBENCH_DOUBLE_D2H", "200000000");
	set("MLBENCH_DOUBLE_PAGEABLE", "100000000");
	try_until(copies_are_close);
}

static void launches_are_as_slow_as_they_were_set(void **state)
{
	(void)state;
	set("MLBENCH_DOUBLE_KERNEL_NS", "200000");
	set("MLBENCH_DOUBLE_LAUNCH_NS", "10000");
	try_until(launches_are_close);
}

static bool says(const struct cuda_probe *out, const char *text)
{
	for (size_t i = 0; i < out->missing_count; i++)
		if (strstr(out->missing[i], text))
			return true;
	return false;
}

/* The first test: which plans there are is kept for the life of a process. */
static void no_fp8_here(void **state)
{
	(void)state;
	struct cuda_probe *out = malloc(sizeof *out);
	const struct cuda_probe_plan plan = small_plan();
	struct error err = {0};
	assert_non_null(out);
	set("MLBENCH_DOUBLE_CAPABILITY", "80");
	assert_int_equal(run(&plan, out, &err), 0);
	assert_true(says(out, "square in fp8:"));
	for (size_t i = 0; i < out->gemm_count; i++)
		assert_int_not_equal(out->gemms[i].precision, STEP_PRECISION_FP8);
	free(out);
}

/* Copies become smaller, which is said. */
static void little_memory(void **state)
{
	(void)state;
	struct cuda_probe *out = malloc(sizeof *out);
	struct cuda_probe_plan plan = small_plan();
	struct error err = {0};
	assert_non_null(out);
	plan.copy_most = 64 << 20;
	set("MLBENCH_DOUBLE_MEMORY", "67108864");
	assert_int_equal(run(&plan, out, &err), 0);
	assert_true(says(out, "not enough free memory"));
	for (size_t i = 0; i < out->copy_count; i++)
		assert_true(out->copies[i].bytes <= 16 << 20);
	free(out);
}

/* The call that is to fail, and how often it is called in vain.  Either the whole fails, or a line says what is missing. */
static void whatever_fails(void **state)
{
	(void)state;
	static const char *const calls[] = {"cudaStreamCreateWithFlags", "cudaEventCreate",
		"cudaMalloc", "cudaMallocHost", "cudaMemcpyAsync", "cudaMemGetInfo",
		"cudaEventRecord", "cudaEventSynchronize", "cudaStreamSynchronize",
		"cudaStreamBeginCapture", "cudaGraphInstantiate", "cudaGraphLaunch",
		"cublasLtCreate", "cublasLtMatmul", "cudaMemsetAsync", "cudaSetDevice"};
	struct cuda_probe *out = malloc(sizeof *out);
	struct cuda_probe_plan plan = small_plan();
	assert_non_null(out);
	plan.seconds = 0.02;
	plan.copy_most = 65536;
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		for (unsigned nth = 1; nth <= 3; nth += 2) {
			char fault[64];
			struct error err = {0};
			(void)snprintf(fault, sizeof fault, "%s:%u", calls[i], nth);
			set("MLBENCH_DOUBLE_FAIL", fault);
			const int code = run(&plan, out, &err);
			if (double_calls(calls[i]) < nth)
				continue; /* it was not called so often */
			if (code == 0 && out->missing_count == 0)
				fail_msg("%s: nothing is said", fault);
			if (code != 0)
				assert_true(err.text[0] != '\0');
		}
	free(out);
}

/* --- the same products again and again -------------------------------------------------------- */

enum { REPEAT_TIMES = 3, REPEAT_EDGE = 64 };

struct taken {
	unsigned count[STEP_PRECISION_FP8 + 1], others;
	atomic_uint_least64_t done;
	uint8_t first[STEP_PRECISION_FP8 + 1][REPEAT_EDGE * REPEAT_EDGE * sizeof(float)];
};

static void take(
	void *context, enum step_precision precision, const void *result, size_t element_bytes)
{
	struct taken *taken = context;
	const size_t bytes = (size_t)REPEAT_EDGE * REPEAT_EDGE * element_bytes;
	if (taken->count[precision]++ == 0)
		memcpy(taken->first[precision], result, bytes);
	taken->others += memcmp(taken->first[precision], result, bytes) != 0;
}

static int repeat(struct taken *taken, const atomic_bool *stop, struct error *err)
{
	const struct cuda_repeat_plan plan = {.precisions = ~0U,
		.times = REPEAT_TIMES,
		.between = 2,
		.done = &taken->done,
		.edge = REPEAT_EDGE,
		.stop = stop,
		.take = take,
		.context = taken};
	*taken = (struct taken){.others = 0};
	const int code = probing_repeat(&plan, err);
	if (double_complaints() > 0)
		fail_msg("misuse: %s", double_complaint());
	assert_int_equal(double_allocated(), 0);
	assert_int_equal(double_live(), 0);
	return code;
}

static void products_repeat(void **state)
{
	(void)state;
	static const atomic_bool stop = true;
	struct taken *taken = malloc(sizeof *taken);
	struct error err;
	assert_non_null(taken);
	assert_int_equal(repeat(taken, NULL, &err), 0);
	for (int i = STEP_PRECISION_FP32; i <= STEP_PRECISION_FP8; i++)
		assert_int_equal(taken->count[i], REPEAT_TIMES);
	assert_int_equal(taken->others, 0);
	/* Two that nobody looks at after each. */
	assert_int_equal(taken->done, 3 * REPEAT_TIMES * (STEP_PRECISION_FP8 + 1));
	assert_true(
		memcmp(taken->first[STEP_PRECISION_BF16], taken->first[STEP_PRECISION_FP16], 64));
	assert_int_equal(repeat(taken, &stop, &err), 0);
	assert_int_equal(taken->count[STEP_PRECISION_FP32], 0);
	/* One that the device does not compute is left out. */
	set("MLBENCH_DOUBLE_CAPABILITY", "80");
	if (repeat(taken, NULL, &err))
		fail_msg("%s", err.text);
	assert_int_equal(taken->count[STEP_PRECISION_FP8], 0);
	set("MLBENCH_DOUBLE_FAIL", "cudaMemcpyAsync:3");
	assert_true(repeat(taken, NULL, &err) < 0);
	free(taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_fp8_here, forget, forget),
		cmocka_unit_test_setup_teardown(
			copies_are_as_fast_as_they_were_set, forget, forget),
		cmocka_unit_test_setup_teardown(
			launches_are_as_slow_as_they_were_set, forget, forget),
		cmocka_unit_test_setup_teardown(little_memory, forget, forget),
		cmocka_unit_test_setup_teardown(whatever_fails, forget, forget),
		cmocka_unit_test_setup_teardown(products_repeat, forget, forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
