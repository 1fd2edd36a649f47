/* What the program makes of a plug-in's series: medians and ranges, the best square of each precision, what is missing; and
 * the reason when there is no device. */
#include "workloads/backend/probe_compute.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct cuda_probe probe;
	struct cuda_found found;
	struct cuda_plugin plugin;
	struct ceilings ceilings;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	if (!f)
		return -1;
	f->plugin.test_double = true;
	f->found.plugin = &f->plugin;
	f->found.ready = true;
	f->found.node.count = 2;
	f->found.node.driver = 13020;
	f->found.node.runtime = 12080;
	(void)snprintf(f->found.node.cublas, sizeof f->found.node.cublas, "13.1.0");
	struct cuda_device_facts *facts = &f->found.node.devices[1];
	(void)snprintf(facts->name, sizeof facts->name, "A GPU");
	facts->major = 9;
	facts->memory_bytes = 1ULL << 37;
	facts->l2_bytes = 50 << 20;
	ceilings_init(&f->ceilings);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static struct cuda_probe_series series(unsigned count, double first, double step)
{
	struct cuda_probe_series made = {.count = count};
	for (unsigned i = 0; i < count; i++) /* in no order: 0 2 4 1 3 */
		made.values[i] = first + step * (double)(i * 2 % (count | 1));
	return made;
}

static void add_gemm(struct fixture *f, enum step_precision precision, uint32_t m,
	const char *layer, struct cuda_probe_series flops)
{
	struct cuda_probe_gemm *gemm = &f->probe.gemms[f->probe.gemm_count++];
	*gemm = (struct cuda_probe_gemm){
		.precision = precision, .m = m, .n = 2 * m, .k = 3 * m, .flops = flops};
	(void)snprintf(gemm->layer, sizeof gemm->layer, "%s", layer);
}

static void medians_and_ranges(void **state)
{
	struct fixture *f = *state;
	const struct device_ceiling *device = &f->ceilings.device;
	f->probe.launch_ns = series(5, 2000, 10);
	f->probe.kernel_ns = series(3, 1000, 100);
	f->probe.memory_bytes_per_s = series(1, 3e12, 0);
	f->probe.copies[0] = (struct cuda_probe_copy){.direction = CUDA_COPY_FROM_DEVICE,
		.bytes = 4096,
		.bytes_per_s = series(5, 1e9, 1e6)};
	f->probe.copies[1] =
		(struct cuda_probe_copy){.pinned = true, .bytes = 16384}; /* no value */
	f->probe.copies[2] = (struct cuda_probe_copy){
		.pinned = true, .bytes = 65536, .bytes_per_s = series(5, 9e9, 1e6)};
	f->probe.copy_count = 3;
	probe_device_keep(&f->probe, &f->found, 1, &f->ceilings);
	assert_true(f->ceilings.has_device);
	assert_true(device->launch_ns == 2020);
	assert_true(device->launch_range.low == 2000 && device->launch_range.high == 2040);
	assert_int_equal(device->launch_range.repeats, 5);
	assert_true(device->kernel_ns == 1100);
	assert_true(device->memory_bytes_per_s == 3e12);
	assert_true(isnan(device->round_trip_ns) && isnan(device->graph_kernel_ns));
	assert_int_equal(device->copy_count, 2);
	assert_false(device->copies[0].to_device || device->copies[0].pinned);
	assert_true(device->copies[0].bytes_per_s == 1e9 + 2e6);
	assert_true(device->copies[1].to_device && device->copies[1].pinned);
	assert_true(device->copies[1].range.high == 9e9 + 4e6);
	assert_true(device->copies[1].bytes_per_s == 9e9 + 2e6);
}

static void facts(void **state)
{
	struct fixture *f = *state;
	const struct device_ceiling *device = &f->ceilings.device;
	probe_device_keep(&f->probe, &f->found, 1, &f->ceilings);
	assert_string_equal(device->name, "A GPU");
	assert_string_equal(device->capability, "9.0");
	assert_string_equal(device->versions, "driver for CUDA 13.2, runtime 12.8, cuBLAS 13.1.0");
	assert_int_equal(device->index, 1);
	assert_int_equal(device->count, 2);
	assert_true(device->test_double);
	assert_true(device->memory_bytes == 0x1p37);
}

static void best_squares(void **state)
{
	struct fixture *f = *state;
	const struct device_ceiling *device = &f->ceilings.device;
	add_gemm(f, STEP_PRECISION_BF16, 4096, "square", series(5, 7e14, 1e12));
	add_gemm(f, STEP_PRECISION_BF16, 8192, "square", series(5, 8e14, 1e12));
	add_gemm(f, STEP_PRECISION_FP32, 8192, "square", series(5, 5e13, 1e12));
	add_gemm(f, STEP_PRECISION_FP8, 8192, "square", series(0, 0, 0));
	add_gemm(f, STEP_PRECISION_BF16, 100, "conv1", series(5, 4.01e14, 0));
	add_gemm(f, STEP_PRECISION_FP16, 100, "fc", series(5, 1e14, 0));
	probe_device_keep(&f->probe, &f->found, 1, &f->ceilings);
	assert_int_equal(device->gemm_count, 4);
	assert_string_equal(device->gemms[0].precision, "fp32");
	assert_true(device->gemms[0].is_best && device->gemms[0].efficiency == 1);
	assert_string_equal(device->gemms[1].precision, "bf16");
	assert_int_equal(device->gemms[1].m, 8192);
	assert_int_equal(device->gemms[1].k, 3 * 8192);
	assert_true(device->gemms[1].flops == 8e14 + 2e12);
	assert_string_equal(device->gemms[2].name, "conv1");
	assert_false(device->gemms[2].is_best);
	assert_true(fabs(device->gemms[2].efficiency - 0.5) < 1e-12);
	/* no square in its precision: what it is to be compared with is not known */
	assert_string_equal(device->gemms[3].precision, "fp16");
	assert_true(isnan(device->gemms[3].efficiency));
	assert_true(ceilings_device_flops(&f->ceilings, "bf16") == 8e14 + 2e12);
	assert_true(isnan(ceilings_device_flops(&f->ceilings, "fp8")));
}

static void what_is_missing_is_said(void **state)
{
	struct fixture *f = *state;
	f->probe.missing_count = 2;
	(void)snprintf(f->probe.missing[0], sizeof f->probe.missing[0], "square in fp8: not there");
	(void)snprintf(f->probe.missing[1], sizeof f->probe.missing[1], "%0255d", 7);
	probe_device_keep(&f->probe, &f->found, 1, &f->ceilings);
	assert_int_equal(f->ceilings.missing_count, 2);
	assert_string_equal(f->ceilings.missing[0], "device: square in fp8: not there");
}

static void without_a_device(void **state)
{
	struct fixture *f = *state;
	const struct probe_device_plan plan = {.most_ns = 1};
	const struct probe_control control = {.rounds = 5};
	struct error err = {0};
	assert_int_equal(setenv("MLBENCH_CUDA_PLUGIN", "/nowhere/no.so", 1), 0);
	assert_int_equal(probe_device(&plan, &control, &f->ceilings, &err), -ENODEV);
	assert_non_null(strstr(err.text, "/nowhere/no.so"));
	assert_false(f->ceilings.has_device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(medians_and_ranges, set_up, tear_down),
		cmocka_unit_test_setup_teardown(facts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(best_squares, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_missing_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_device, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
