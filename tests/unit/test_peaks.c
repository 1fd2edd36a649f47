/* Published peaks: found by the names that drivers give, never by half a name. */
#include "harness/analyze/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the others */
#include <cmocka.h>

static void assert_device(const char *name, const char *device)
{
	const struct device_peak *peak = peak_find(name);
	if (!peak || !device)
		assert_true(!peak && !device);
	else
		assert_string_equal(peak->device, device);
}

static void names_of_drivers_are_known(void **state)
{
	(void)state;
	assert_device("NVIDIA B200", "B200");
	assert_device("NVIDIA GB200", "GB200");
	assert_device("NVIDIA H200", "H200 SXM");
	assert_device("NVIDIA H200 NVL", "H200 NVL");
	assert_device("NVIDIA GH200 480GB", "GH200");
	assert_device("NVIDIA GH200 144G HBM3e", "GH200");
	assert_device("NVIDIA H100 80GB HBM3", "H100 SXM");
	assert_device("NVIDIA H100 PCIe", "H100 PCIe");
	assert_device("NVIDIA H100 NVL", "H100 NVL");
	assert_device("NVIDIA A100-SXM4-80GB", "A100");
	assert_device("NVIDIA A100 80GB PCIe", "A100");
	assert_device("NVIDIA A100-PCIE-40GB", "A100");
	assert_device("A100-SXM4-40GB", "A100");
	assert_device("NVIDIA A10", "A10");
	assert_device("NVIDIA L4", "L4");
	assert_device("NVIDIA L40S", "L40S");
	assert_device("NVIDIA L40", "L40");
	assert_device("NVIDIA H800", "H800 SXM");
	assert_device("NVIDIA H800 PCIe", "H800 PCIe");
	assert_device("NVIDIA H20", "H20");
	assert_device("NVIDIA B300 SXM6 AC", "B300");
	assert_device("NVIDIA GeForce RTX 4090", "RTX 4090");
	assert_device("NVIDIA GeForce RTX 5090", "RTX 5090");
}

static void others_are_unknown(void **state)
{
	(void)state;
	assert_device("NVIDIA A10G", NULL); /* a cut-down A10 */
	assert_device("NVIDIA H100", NULL); /* which of them? */
	assert_device("NVIDIA H100 80GB HBM3 MIG 1g.10gb", NULL);
	assert_device("test double NVIDIA H200", NULL);
	assert_device("emulated H200", NULL);
	assert_device("NVIDIA GeForce RTX 4090 D", NULL); /* cut down, too */
	assert_device("NVIDIA GeForce RTX 4090 Laptop GPU", NULL);
	assert_device("Tesla V100-SXM2-16GB", NULL); /* the plug-in does not run there */
	assert_device("Tesla T4", NULL);
	assert_device("", NULL);
	assert_true(isnan(peak_flops("NVIDIA A10G", STEP_PRECISION_BF16)));
	/* Known, but not in this. */
	assert_true(isnan(peak_flops("NVIDIA A100-SXM4-80GB", STEP_PRECISION_FP8)));
}

static void peaks_are_dense(void **state)
{
	(void)state;
	assert_true(peak_flops("NVIDIA H200", STEP_PRECISION_BF16) == 989.5e12);
	assert_true(peak_flops("NVIDIA H200", STEP_PRECISION_FP32) == 67e12);
	assert_true(peak_flops("NVIDIA A100-SXM4-80GB", STEP_PRECISION_TF32) == 156e12);
	for (size_t i = 0; i < peak_count; i++) {
		const double *t = peak_list[i].teraflops;
		assert_true(t[STEP_PRECISION_FP32] > 0);
		assert_true(strlen(peak_list[i].source) > 10);
		assert_non_null(peak_list[i].words[0]);
		/* Halving the width doubles the rate, in every generation (a figure with sparsity among dense
		 * ones breaks this); data sheets round. */
		if (t[STEP_PRECISION_BF16] > 0) {
			assert_true(t[STEP_PRECISION_BF16] == t[STEP_PRECISION_FP16]);
			assert_true(
				t[STEP_PRECISION_TF32] <= 0 ||
				fabs(t[STEP_PRECISION_BF16] / t[STEP_PRECISION_TF32] - 2) < 0.05);
		}
		if (t[STEP_PRECISION_FP8] > 0)
			assert_true(
				fabs(t[STEP_PRECISION_FP8] / t[STEP_PRECISION_BF16] - 2) < 0.05);
	}
}

static struct measurement m;

static struct device_measurement *measured(const char *name, const char *precision)
{
	m = (struct measurement){.measured_seconds = 10, .device_count = 1};
	struct device_measurement *device = &m.devices[0];
	device_measurement_init(device);
	(void)snprintf(device->name, sizeof device->name, "%s", name);
	(void)snprintf(device->precision, sizeof device->precision, "%s", precision);
	/* 80 % of the time in steps, at 500 TFLOP/s. */
	device->step_seconds = 8;
	device->achieved_flops = 500e12;
	return device;
}

static void utilisation_is_of_the_whole_time(void **state)
{
	(void)state;
	const struct device_measurement *device = measured("NVIDIA H200", "bf16");
	peaks_fill(&m);
	assert_true(device->peak_flops == 989.5e12);
	assert_true(fabs(device->model_utilisation - 400e12 / 989.5e12) < 1e-12);
}

static void nothing_is_made_up(void **state)
{
	(void)state;
	const struct device_measurement *unknown = measured("NVIDIA A10G", "bf16");
	peaks_fill(&m);
	assert_true(isnan(unknown->peak_flops) && isnan(unknown->model_utilisation));
	const struct device_measurement *strange = measured("NVIDIA H200", "int4");
	peaks_fill(&m);
	assert_true(isnan(strange->peak_flops));
	measured("NVIDIA H200", "bf16")->emulated = true;
	peaks_fill(&m);
	assert_true(isnan(m.devices[0].peak_flops));
	measured("NVIDIA H200", "bf16")->achieved_flops = NAN;
	peaks_fill(&m);
	assert_true(m.devices[0].peak_flops > 0 && isnan(m.devices[0].model_utilisation));
	measured("NVIDIA H200", "bf16");
	m.measured_seconds = 0;
	peaks_fill(&m);
	assert_true(isnan(m.devices[0].model_utilisation));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_drivers_are_known),
		cmocka_unit_test(others_are_unknown),
		cmocka_unit_test(peaks_are_dense),
		cmocka_unit_test(utilisation_is_of_the_whole_time),
		cmocka_unit_test(nothing_is_made_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
