/* The table of published peaks, and finding a device in it. */
#include "harness/analyze/peaks.h"

#include <math.h>
#include <string.h>

static const double TERA = 1e12;

/* Compared with public tables: B200, GB200, L40, L40S, H100 SXM.  The other rows, and the years of
 * the sheets, are still to be compared with the sheets that they name; H20 and B300 were compared
 * with tables of others who read them.  V100 and T4 are left out: the plug-in needs sm_80.  More
 * words before fewer.  Columns: fp32 without tensor cores, then dense tensor products. */
const struct device_peak peak_list[] = {
	/*                                     fp32   tf32   bf16    fp16    fp8 */
	{"GB200", {"GB200"}, {80, 1250, 2500, 2500, 5000},
		"NVIDIA GB200 NVL72 product specification, per GPU, halved for sparsity"},
	{"B300", {"B300"}, {75, 1125, 2250, 2250, 4500},
		"NVIDIA HGX B300 specification 2025, per GPU, halved for sparsity"},
	{"B200", {"B200"}, {75, 1100, 2250, 2250, 4500},
		"NVIDIA Blackwell data sheet 2025, HGX B200 per GPU, halved for sparsity"},
	{"H200 NVL", {"H200", "NVL"}, {60, 417.5, 835.5, 835.5, 1670.5},
		"NVIDIA H200 data sheet 2024, halved for sparsity"},
	{"H200 SXM", {"H200"}, {67, 494.5, 989.5, 989.5, 1979},
		"NVIDIA H200 data sheet 2024, halved for sparsity"},
	{"GH200", {"GH200"}, {67, 494.5, 989.5, 989.5, 1979},
		"NVIDIA GH200 data sheet 2023, halved for sparsity"},
	{"H100 NVL", {"H100", "NVL"}, {60, 417.5, 835.5, 835.5, 1670.5},
		"NVIDIA H100 data sheet 2024, halved for sparsity"},
	{"H100 PCIe", {"H100", "PCIe"}, {51, 378, 756.5, 756.5, 1513},
		"NVIDIA H100 data sheet 2023, halved for sparsity"},
	{"H100 SXM", {"H100", "HBM3"}, {67, 494.5, 989.5, 989.5, 1979},
		"NVIDIA H100 data sheet 2024, halved for sparsity"},
	{"H800 PCIe", {"H800", "PCIe"}, {51, 378, 756.5, 756.5, 1513},
		"NVIDIA H800 data sheet 2023, halved for sparsity: H100's but for fp64 and NVLink"},
	{"H800 SXM", {"H800"}, {67, 494.5, 989.5, 989.5, 1979},
		"NVIDIA H800 data sheet 2023, halved for sparsity: H100's but for fp64 and NVLink"},
	{"H20", {"H20"}, {44, 74, 148, 148, 296}, "NVIDIA H20 specification 2023"},
	{"A100", {"A100"}, {19.5, 156, 312, 312, 0}, "NVIDIA A100 data sheet 2021"},
	{"A40", {"A40"}, {37.4, 74.8, 149.7, 149.7, 0}, "NVIDIA A40 data sheet 2021"},
	{"A30", {"A30"}, {10.3, 82, 165, 165, 0}, "NVIDIA A30 data sheet 2022"},
	{"A10", {"A10"}, {31.2, 62.5, 125, 125, 0}, "NVIDIA A10 data sheet 2021"},
	{"L40S", {"L40S"}, {91.6, 183, 362.05, 362.05, 733}, "NVIDIA L40S data sheet 2023"},
	{"L40", {"L40"}, {90.5, 90.5, 181.05, 181.05, 362}, "NVIDIA L40 data sheet 2023"},
	{"L4", {"L4"}, {30.3, 60, 121, 121, 242.5},
		"NVIDIA L4 data sheet 2023, halved for sparsity"},
	{"RTX 5090", {"RTX", "5090"}, {104.8, 104.8, 209.5, 209.5, 419},
		"NVIDIA RTX Blackwell architecture white paper 2025, fp32 accumulation"},
	{"RTX 4090", {"RTX", "4090"}, {82.6, 82.6, 165.2, 165.2, 330.3},
		"NVIDIA Ada architecture white paper 2022, fp32 accumulation"},
	/* No CUDA devices: to compare with.  CDNA 4 has no tf32. */
	{"MI355X", {"MI355X"}, {157.3, 0, 2516.6, 2516.6, 5033.2},
		"AMD Instinct MI355X data sheet 2025"},
	{"MI325X", {"MI325X"}, {163.4, 653.7, 1307.4, 1307.4, 2614.9},
		"AMD Instinct MI325X data sheet 2024"},
	{"MI300X", {"MI300X"}, {163.4, 653.7, 1307.4, 1307.4, 2614.9},
		"AMD Instinct MI300X data sheet 2023"},
};
const size_t peak_count = sizeof peak_list / sizeof peak_list[0];

/* Words of a name stand between spaces and hyphens. */
static bool has_word(const char *name, const char *word)
{
	const size_t length = strlen(word);
	for (const char *at = name; *at;) {
		const size_t here = strcspn(at, " -");
		if (here == length && strncmp(at, word, length) == 0)
			return true;
		at += here;
		at += strspn(at, " -");
	}
	return false;
}

static bool matches(const struct device_peak *peak, const char *name)
{
	for (size_t i = 0; i < PEAK_WORDS && peak->words[i]; i++)
		if (!has_word(name, peak->words[i]))
			return false;
	return true;
}

const struct device_peak *peak_find(const char *name)
{
	static const char *const no_devices[] = {"MIG", "double", "emulated", "D", "Laptop"};
	for (size_t i = 0; i < sizeof no_devices / sizeof no_devices[0]; i++)
		if (has_word(name, no_devices[i]))
			return NULL;
	for (size_t i = 0; i < peak_count; i++)
		if (matches(&peak_list[i], name))
			return &peak_list[i];
	return NULL;
}

double peak_flops(const char *name, enum step_precision precision)
{
	const struct device_peak *peak = peak_find(name);
	const double teraflops = peak ? peak->teraflops[precision] : 0;
	return teraflops > 0 ? teraflops * TERA : (double)NAN;
}

static double peak_of(const struct device_measurement *device)
{
	static const char *const names[PEAK_PRECISIONS] = {
		[STEP_PRECISION_FP32] = "fp32",
		[STEP_PRECISION_TF32] = "tf32",
		[STEP_PRECISION_BF16] = "bf16",
		[STEP_PRECISION_FP16] = "fp16",
		[STEP_PRECISION_FP8] = "fp8",
	};
	for (int i = 0; i < PEAK_PRECISIONS && !device->emulated; i++)
		if (strcmp(device->precision, names[i]) == 0)
			return peak_flops(device->name, (enum step_precision)i);
	return NAN;
}

void peaks_fill(struct measurement *m)
{
	for (size_t i = 0; i < m->device_count; i++) {
		struct device_measurement *device = &m->devices[i];
		const double done = device->achieved_flops * device->step_seconds;
		device->peak_flops = peak_of(device);
		device->model_utilisation =
			m->measured_seconds > 0 && done > 0
				? done / m->measured_seconds / device->peak_flops
				: (double)NAN;
	}
}
