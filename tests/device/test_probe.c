/* A device's probe: every quantity is there, in bounds, and ends when it is told to; random operands are what they are said to
 * be.  Built for the test double and for devices. */
#include "tests/device/fixture.h"
#include "tests/measuring.h"
#include "workloads/backend/cuda/device_probe.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FORMATTED = 5000, PATIENCE_S = 20 };

static struct cuda_probe_plan small_plan(void)
{
	return (struct cuda_probe_plan){.repeats = 3,
		.seconds = 120, /* no device is as slow; what is wanted takes a second */
		.copy_least = 4096,
		.copy_most = 65536,
		.model = "mlp",
		.batch_size = 16,
		.sample_elements = 48,
		.class_count = 10,
		.precision = STEP_PRECISION_BF16,
		.shapes_most = 2};
}

static struct cuda_probe *run(const struct cuda_probe_plan *plan, int expected)
{
	struct cuda_probe *out = malloc(sizeof *out);
	struct error err = {0};
	assert_non_null(out);
	const int code = probing_run(plan, out, &err);
	if (code != expected)
		fail_msg("%d, not %d: %s", code, expected, err.text);
	for (size_t i = 0; i < out->missing_count; i++)
		print_message("missing: %s\n", out->missing[i]);
	return out;
}

static void assert_series(const struct cuda_probe_series *series, const char *what)
{
	if (series->count == 0 || series->count > 3)
		fail_msg("%s: %u values", what, series->count);
	for (unsigned i = 0; i < series->count; i++)
		if (!(series->values[i] > 0) || !isfinite(series->values[i]))
			fail_msg("%s: %g", what, series->values[i]);
}

static void everything_is_there(void **state)
{
	(void)state;
	need_device();
	struct cuda_probe_plan plan = small_plan();
	size_t sizes = 3; /* 4, 16 and 64 KiB */
#ifndef MLBENCH_CUDA_DOUBLE
	plan.copy_most = 64 << 20; /* kernels are timed behind copies: they must last */
	sizes = 8;
#endif
	struct cuda_probe *out = run(&plan, 0);
	assert_int_equal(out->copy_count, sizes * 4);
	unsigned kinds = 0;
	for (size_t i = 0; i < out->copy_count; i++) {
		assert_series(&out->copies[i].bytes_per_s, "a copy");
		kinds |= 1U << (2 * out->copies[i].pinned + (unsigned)out->copies[i].direction);
	}
	assert_int_equal(kinds, 15);
	assert_int_equal(out->copies[sizes * 4 - 1].bytes, plan.copy_most);
	assert_series(&out->memory_bytes_per_s, "memory");
	assert_series(&out->launch_ns, "launch");
	assert_series(&out->kernel_ns, "kernel");
	assert_series(&out->graph_launch_ns, "kernel in a graph");
	assert_series(&out->round_trip_ns, "round trip");
	free(out);
}

/* Squares in at least four precisions (fp8 where the device has it), and the model's two largest products in one. */
static void products_are_there(void **state)
{
	(void)state;
	need_device();
	const struct cuda_probe_plan plan = small_plan();
	struct cuda_probe *out = run(&plan, 0);
	unsigned squares = 0;
	unsigned layers = 0;
	for (size_t i = 0; i < out->gemm_count; i++) {
		const struct cuda_probe_gemm *gemm = &out->gemms[i];
		assert_series(&gemm->flops, gemm->layer);
		if (strcmp(gemm->layer, "square") == 0) {
			squares |= 1U << gemm->precision;
			assert_true(gemm->m == gemm->n && gemm->n == gemm->k);
			continue;
		}
		layers++;
		assert_int_equal(gemm->precision, STEP_PRECISION_BF16);
		assert_true(gemm->m <= 16);
	}
	assert_int_equal(squares & 15, 15);
	/* On a slow device, 512 x 512 weights may be larger than the largest square. */
	if (layers == 0)
		assert_true(out->missing_count > 0);
	free(out);
}

static void an_unknown_model_is_said(void **state)
{
	(void)state;
	need_device();
	struct cuda_probe_plan plan = small_plan();
	plan.model = "nothing";
	struct cuda_probe *out = run(&plan, 0);
	bool said = false;
	for (size_t i = 0; i < out->missing_count; i++)
		said = said || strstr(out->missing[i], "'nothing'");
	assert_true(said);
	free(out);
}

static void *stop_soon(void *stop)
{
	clock_sleep_until_ns(clock_now_ns() + 300 * NS_PER_MS);
	atomic_store((atomic_bool *)stop, true);
	return NULL;
}

static void it_stops(void **state)
{
	(void)state;
	need_device();
	atomic_bool stop = true;
	struct cuda_probe_plan plan = small_plan();
	plan.stop = &stop;
	plan.seconds = 3600;
	plan.repeats = CUDA_PROBE_REPEATS_MAX;
	uint64_t begin = clock_now_ns();
	free(run(&plan, -EINTR));
	assert_measured(clock_now_ns() - begin < PATIENCE_S * NS_PER_S);
	pthread_t thread;
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stop), 0);
	begin = clock_now_ns();
	free(run(&plan, -EINTR));
	assert_measured(clock_now_ns() - begin < PATIENCE_S * NS_PER_S);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Time over: fewer rounds, and what was never visited is said. */
static void no_time(void **state)
{
	(void)state;
	need_device();
	struct cuda_probe_plan plan = small_plan();
	plan.seconds = 0;
	struct cuda_probe *out = run(&plan, 0);
	bool said = false;
	for (size_t i = 0; i < out->missing_count; i++)
		said = said || strstr(out->missing[i], "out of time");
	assert_true(said);
	free(out);
}

static void no_such_device(void **state)
{
	(void)state;
	need_device();
	struct cuda_probe_plan plan = small_plan();
	plan.device = 99;
	free(run(&plan, -ENODEV));
}

/* --- formats ------------------------------------------------------------------------------------------ */

static double as_float(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return (double)value;
}

static void known_values(void **state)
{
	(void)state;
	static const struct {
		enum element type;
		uint32_t bits;
		double value;
	} cases[] = {
		{ELEMENT_F32, 0x3f800000, 1},
		{ELEMENT_F32, 0xc0490fdb, -3.14159274101257324},
		{ELEMENT_F32, 0, 0},
		{ELEMENT_F32, 1, 0x1p-149},
		{ELEMENT_BF16, 0x3f80, 1},
		{ELEMENT_BF16, 0xbfc0, -1.5},
		{ELEMENT_F16, 0x3c00, 1},
		{ELEMENT_F16, 0x7bff, 65504},
		{ELEMENT_F16, 0x0001, 0x1p-24},
		{ELEMENT_F16, 0xfc00, -INFINITY},
		{ELEMENT_E4M3, 0x38, 1},
		{ELEMENT_E4M3, 0x7e, 448},
		{ELEMENT_E4M3, 0x81, -0x1p-9},
		{ELEMENT_E5M2, 0x3c, 1},
		{ELEMENT_E5M2, 0x7b, 57344},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const double value = formats_value(cases[i].type, &cases[i].bits, 0);
		if (value != cases[i].value)
			fail_msg("%#x is %.17g, not %.17g", cases[i].bits, value, cases[i].value);
	}
	const uint32_t nans[] = {0x7fc00000, 0x7fc0, 0x7e00, 0x7f};
	const enum element types[] = {ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16, ELEMENT_E4M3};
	for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++)
		assert_true(isnan(formats_value(types[i], &nans[i], 0)));
	for (uint32_t i = 1; i < 1000; i++) {
		const uint32_t bits = i * 2654435761U;
		if (isfinite(as_float(bits)))
			assert_true(formats_value(ELEMENT_F32, &bits, 0) == as_float(bits));
	}
}

static void random_operands(void **state)
{
	(void)state;
	for (int type = ELEMENT_F32; type <= ELEMENT_E5M2; type++) {
		unsigned char data[FORMATTED * sizeof(float)];
		unsigned char again[FORMATTED * sizeof(float)];
		const size_t bytes = FORMATTED * element_bytes((enum element)type);
		unsigned negative = 0;
		double least = HUGE_VAL;
		double most = 0;
		formats_fill((enum element)type, data, FORMATTED);
		formats_fill((enum element)type, again, FORMATTED);
		assert_memory_equal(data, again, bytes);
		for (size_t i = 0; i < FORMATTED; i++) {
			const double value = formats_value((enum element)type, data, i);
			negative += value < 0;
			least = fmin(least, fabs(value));
			most = fmax(most, fabs(value));
		}
		assert_true(least >= 0x1p-4 && least < 0x1.2p-4);
		assert_true(most < 1 && most > 0.85);
		assert_in_range(negative, FORMATTED * 2 / 5, FORMATTED * 3 / 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_there),
		cmocka_unit_test(products_are_there),
		cmocka_unit_test(an_unknown_model_is_said),
		cmocka_unit_test(it_stops),
		cmocka_unit_test(no_time),
		cmocka_unit_test(no_such_device),
		cmocka_unit_test(known_values),
		cmocka_unit_test(random_operands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
