/* What repetitions say about a device, merged; and means over all devices, the evidence for limits
 * that lie on the device itself. */
#include "harness/analyze/summary.h"

#include "harness/base/array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- published peaks of devices --------------------------------------------------------------- */

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
	for (size_t i = 0; i < COUNT(no_devices); i++)
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

/* --- what a device did ------------------------------------------------------------------------ */

/* Repetitions of one point, and which device of them. */
struct series {
	const struct measurement *const *repeats;
	size_t count, device;
};

static const struct device_measurement *device_at(const struct series *s, size_t repeat)
{
	const struct measurement *m = s->repeats[repeat];
	return s->device < m->device_count ? &m->devices[s->device] : NULL;
}

static const size_t mean_members[] = {
	offsetof(struct device_measurement, step_seconds),
	offsetof(struct device_measurement, upload_seconds),
	offsetof(struct device_measurement, sync_seconds),
	offsetof(struct device_measurement, sync_wait_seconds),
	offsetof(struct device_measurement, sync_hidden_share),
	offsetof(struct device_measurement, idle_share),
	offsetof(struct device_measurement, launch_ns),
	offsetof(struct device_measurement, upload_bytes),
	offsetof(struct device_measurement, flops_per_step),
	offsetof(struct device_measurement, achieved_flops),
	offsetof(struct device_measurement, peak_flops),
	offsetof(struct device_measurement, model_utilisation),
	offsetof(struct device_measurement, sm_clock_max_mhz),
	offsetof(struct device_measurement, busy_share),
};

static const size_t range_members[] = {
	offsetof(struct device_measurement, sm_clock_mhz),
	offsetof(struct device_measurement, memory_clock_mhz),
	offsetof(struct device_measurement, power_w),
	offsetof(struct device_measurement, temperature_c),
	offsetof(struct device_measurement, memory_used_bytes),
	offsetof(struct device_measurement, pcie_to_device_bytes_per_s),
	offsetof(struct device_measurement, pcie_from_device_bytes_per_s),
};

static double member(const struct device_measurement *device, size_t offset)
{
	double value;
	memcpy(&value, (const char *)device + offset, sizeof value);
	return value;
}

static double mean_over_repeats(const struct series *s, size_t offset)
{
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct device_measurement *device = device_at(s, i);
		const double value = device ? member(device, offset) : (double)NAN;
		if (isnan(value))
			continue;
		sum += value;
		known++;
	}
	return known > 0 ? sum / (double)known : (double)NAN;
}

static struct device_range range_over_repeats(const struct series *s, size_t offset)
{
	struct device_range out = {.low = NAN,
		.mean = mean_over_repeats(s, offset + offsetof(struct device_range, mean)),
		.high = NAN};
	for (size_t i = 0; i < s->count; i++) {
		const struct device_measurement *device = device_at(s, i);
		if (!device)
			continue;
		/* They pass over NAN. */
		out.low =
			fmin(out.low, member(device, offset + offsetof(struct device_range, low)));
		out.high = fmax(
			out.high, member(device, offset + offsetof(struct device_range, high)));
	}
	return out;
}

static double sum_of_known(double sum, double value)
{
	return isnan(value) ? sum : isnan(sum) ? value : sum + value;
}

static void add_throttle(struct device_measurement *all, const char *reason, double share)
{
	size_t i = 0;
	while (i < all->throttle_count && strcmp(all->throttles[i].reason, reason) != 0)
		i++;
	if (i == THROTTLES_MAX)
		return;
	if (i == all->throttle_count) {
		memcpy(all->throttles[i].reason, reason, sizeof all->throttles[i].reason);
		all->throttles[i].share = 0;
		all->throttle_count++;
	}
	all->throttles[i].share += share;
}

/* Means over the repetitions that were sampled, the commonest first. */
static void merge_throttles(const struct series *s, struct device_measurement *all)
{
	double sampled = 0;
	all->throttle_count = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct device_measurement *device = device_at(s, i);
		if (!device || !(device->samples > 0))
			continue;
		sampled++;
		for (size_t k = 0; k < device->throttle_count; k++)
			add_throttle(all, device->throttles[k].reason, device->throttles[k].share);
	}
	for (size_t i = 0; i < all->throttle_count; i++)
		all->throttles[i].share /= sampled;
	for (size_t i = 1; i < all->throttle_count; i++)
		for (size_t k = i; k > 0 && all->throttles[k].share > all->throttles[k - 1].share;
			k--) {
			const __typeof__(all->throttles[0]) moved = all->throttles[k];
			all->throttles[k] = all->throttles[k - 1];
			all->throttles[k - 1] = moved;
		}
}

static void take_statistics(const struct device_measurement *from, struct device_measurement *all)
{
	if (isnan(from->gradient_norm) && isnan(from->nonfinite_share))
		return;
	all->gradient_norm = from->gradient_norm;
	all->nonfinite_share = from->nonfinite_share;
	all->activation_mean = from->activation_mean;
	all->activation_deviation = from->activation_deviation;
}

static void merge_others(const struct series *s, struct device_measurement *all)
{
	all->ecc_corrected = all->ecc_uncorrected = all->clock_map_error_ns = NAN;
	all->samples = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct device_measurement *device = device_at(s, i);
		if (!device)
			continue;
		all->ecc_corrected = sum_of_known(all->ecc_corrected, device->ecc_corrected);
		all->ecc_uncorrected = sum_of_known(all->ecc_uncorrected, device->ecc_uncorrected);
		all->clock_map_error_ns = fmax(all->clock_map_error_ns, device->clock_map_error_ns);
		all->deterministic = all->deterministic && device->deterministic;
		all->samples += device->samples;
		take_statistics(device, all);
	}
	merge_throttles(s, all);
}

/* Devices that train together make the same number of steps each. */
static void derive(const struct series *s, struct device_summary *out)
{
	double steps = 0;
	double step_seconds = 0;
	double measured = 0;
	double copied = 0;
	double copying = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct measurement *m = s->repeats[i];
		const struct device_measurement *device = device_at(s, i);
		if (!device)
			continue;
		steps += (double)m->batches / (double)m->device_count;
		measured += m->measured_seconds;
		step_seconds += device->step_seconds;
		copied += device->upload_bytes;
		copying += device->upload_seconds;
	}
	out->step_ns = steps > 0 && step_seconds > 0 ? step_seconds / steps * 1e9 : (double)NAN;
	out->step_share = measured > 0 ? step_seconds / measured : (double)NAN;
	out->upload_bytes_per_s = copying > 0 ? copied / copying : (double)NAN;
	out->peak_share = out->all.achieved_flops / out->all.peak_flops;
}

static void summarise_device(const struct series *s, struct device_summary *out)
{
	out->all = s->repeats[0]->devices[s->device];
	for (size_t i = 0; i < COUNT(mean_members); i++) {
		const double mean = mean_over_repeats(s, mean_members[i]);
		memcpy((char *)&out->all + mean_members[i], &mean, sizeof mean);
	}
	for (size_t i = 0; i < COUNT(range_members); i++) {
		const struct device_range range = range_over_repeats(s, range_members[i]);
		memcpy((char *)&out->all + range_members[i], &range, sizeof range);
	}
	merge_others(s, &out->all);
	derive(s, out);
}

size_t device_summaries(const struct measurement *const *repeats, size_t count,
	struct device_summary out[DEVICES_MAX])
{
	struct series s = {.repeats = repeats, .count = count};
	const size_t devices = count > 0 ? repeats[0]->device_count : 0;
	for (; s.device < devices; s.device++)
		summarise_device(&s, &out[s.device]);
	return devices;
}

enum same_results device_same_results(const struct measurement *const *repeats, size_t count)
{
	if (count < 2)
		return SAME_UNKNOWN;
	for (size_t i = 0; i < count; i++)
		if (isnan(repeats[i]->loss_first))
			return SAME_UNKNOWN;
	for (size_t i = 1; i < count; i++)
		if (repeats[i]->loss_first != repeats[0]->loss_first)
			return SAME_NO;
	return SAME_YES;
}

/* --- all devices ------------------------------------------------------------------------------ */

/* Reasons of a slow-down come in three kinds: harm that the device avoids, the power cap that large
 * products reach on healthy devices, and what is no slow-down at all. */

/* The members of a view that are means of what devices of repetitions know. */
static const size_t view_members[] = {
	offsetof(struct device_view, busy),
	offsetof(struct device_view, launch_share),
	offsetof(struct device_view, idle),
	offsetof(struct device_view, copy_share),
	offsetof(struct device_view, copying),
	offsetof(struct device_view, copy_rate),
	offsetof(struct device_view, utilisation),
	offsetof(struct device_view, clock_share),
	offsetof(struct device_view, slowed),
	offsetof(struct device_view, capped),
};

struct view_sums {
	double sum[COUNT(view_members)];
	size_t known[COUNT(view_members)];
};

static double view_ratio(double value, double of)
{
	return of > 0 ? value / of : (double)NAN;
}

/* Clocks that were requested, or that are low because the device idles. */
static bool is_no_slow_down(const char *reason)
{
	static const char *const harmless[] = {
		"idle", "application clocks", "display clocks", "sync boost"};
	for (size_t i = 0; i < COUNT(harmless); i++)
		if (strcmp(reason, harmless[i]) == 0)
			return true;
	return false;
}

/* Share of the samples that a device slowed down in, and that its power cap was reached in; NAN: it
 * was not sampled.  Reasons overlap in time, so the commonest one stands for all. */
static void view_throttles(const struct device_measurement *device, double *slowed, double *capped,
	struct device_view *out)
{
	*slowed = *capped = device->samples > 0 ? 0 : (double)NAN;
	for (size_t i = 0; device->samples > 0 && i < device->throttle_count; i++) {
		const char *reason = device->throttles[i].reason;
		const double share = device->throttles[i].share;
		if (strcmp(reason, "power cap") == 0) {
			*capped = share;
		} else if (!is_no_slow_down(reason) && share > *slowed) {
			*slowed = share;
			(void)snprintf(out->reason, sizeof out->reason, "%s", reason);
		}
	}
}

static void view_add_device(const struct measurement *m, const struct device_measurement *device,
	struct view_sums *sums, struct device_view *out)
{
	const double steps = m->batches > 0 && m->device_count > 0
				     ? (double)m->batches / (double)m->device_count
				     : (double)NAN;
	double slowed;
	double capped;
	out->any = true;
	(void)snprintf(out->name, sizeof out->name, "%s", device->name);
	view_throttles(device, &slowed, &capped, out);
	const double values[COUNT(view_members)] = {
		view_ratio(device->step_seconds, m->measured_seconds),
		view_ratio(device->launch_ns * steps / 1e9, device->step_seconds),
		device->idle_share,
		view_ratio(device->upload_seconds, device->step_seconds),
		view_ratio(device->upload_seconds, m->measured_seconds),
		view_ratio(device->upload_bytes, device->upload_seconds),
		device->model_utilisation,
		view_ratio(device->sm_clock_mhz.mean, device->sm_clock_max_mhz),
		slowed,
		capped,
	};
	for (size_t i = 0; i < COUNT(values); i++)
		if (isfinite(values[i])) {
			sums->sum[i] += values[i];
			sums->known[i]++;
		}
}

struct device_view device_view_of(const struct measurement *const *repeats, size_t count)
{
	struct device_view out = {0};
	struct view_sums sums = {0};
	for (size_t i = 0; i < count; i++)
		for (size_t d = 0; d < repeats[i]->device_count; d++)
			if (!repeats[i]->devices[d].emulated)
				view_add_device(repeats[i], &repeats[i]->devices[d], &sums, &out);
	for (size_t i = 0; i < COUNT(view_members); i++) {
		const double mean = sums.known[i] > 0 ? sums.sum[i] / (double)sums.known[i] : NAN;
		memcpy((char *)&out + view_members[i], &mean, sizeof mean);
	}
	return out;
}
