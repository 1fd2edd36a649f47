/* Samples over time and what is made of them. */
#include "harness/measure/nvml_series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

const struct nvml_group nvml_quick = {
	.list = {NVML_SM_CLOCK, NVML_MEMORY_CLOCK, NVML_POWER, NVML_TEMPERATURE, NVML_THROTTLES,
		NVML_ECC_CORRECTED, NVML_ECC_UNCORRECTED, NVML_MEMORY_USED, NVML_KERNEL_RESIDENT},
	.count = 9,
};
const struct nvml_group nvml_slow = {
	.list = {NVML_PCIE_TO_DEVICE, NVML_PCIE_FROM_DEVICE},
	.count = 2,
};

int nvml_series_open(struct nvml_series *series, const struct nvml_group *group)
{
	*series = (struct nvml_series){
		.group = group, .samples = calloc(NVML_SAMPLES_MAX, sizeof *series->samples)};
	for (size_t i = 0; i < group->count; i++)
		series->codes[i] = NVML_NOT_ASKED;
	return series->samples ? 0 : -ENOMEM;
}

void nvml_series_close(struct nvml_series *series)
{
	free(series->samples);
	series->samples = NULL;
}

bool nvml_series_add(struct nvml_series *series, const struct nvml_sample *sample, const int *codes)
{
	const bool full = series->count == NVML_SAMPLES_MAX;
	if (full) {
		for (size_t i = 0; i < NVML_SAMPLES_MAX / 2; i++)
			series->samples[i] = series->samples[2 * i];
		series->count = NVML_SAMPLES_MAX / 2;
	}
	series->samples[series->count++] = *sample;
	for (size_t i = 0; i < series->group->count; i++)
		if (codes[i] != NVML_OK || series->codes[i] == NVML_NOT_ASKED)
			series->codes[i] = codes[i];
	return full;
}

struct nvml_span nvml_series_span(
	const struct nvml_series *series, uint64_t from_ns, uint64_t to_ns)
{
	size_t first = 0;
	size_t end = series->count;
	while (first < end && series->samples[first].t_ns < from_ns)
		first++;
	while (end > first && series->samples[end - 1].t_ns > to_ns)
		end--;
	return (struct nvml_span){.first = series->samples + first, .count = end - first};
}

size_t nvml_group_place(const struct nvml_group *group, enum nvml_quantity quantity)
{
	size_t i = 0;
	while (i < group->count && group->list[i] != quantity)
		i++;
	return i;
}

struct device_range nvml_span_range(const struct nvml_span *span, size_t place)
{
	struct device_range range = {NAN, NAN, NAN};
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < span->count; i++) {
		const double value = span->first[i].values[place];
		if (isnan(value))
			continue;
		range.low = fmin(range.low, value); /* of a NAN and a number: the number */
		range.high = fmax(range.high, value);
		sum += value;
		known++;
	}
	range.mean = known > 0 ? sum / (double)known : NAN;
	return range;
}

double nvml_span_share(const struct nvml_span *span, size_t place, unsigned bit)
{
	size_t known = 0;
	size_t set = 0;
	for (size_t i = 0; i < span->count; i++) {
		const double value = span->first[i].values[place];
		if (isnan(value))
			continue;
		known++;
		set += (uint64_t)value >> bit & 1;
	}
	return known > 0 ? (double)set / (double)known : NAN;
}

double nvml_series_growth(
	const struct nvml_series *series, size_t place, uint64_t from_ns, uint64_t to_ns)
{
	double before = NAN;
	double after = NAN;
	for (size_t i = 0; i < series->count && series->samples[i].t_ns <= to_ns; i++) {
		const double value = series->samples[i].values[place];
		if (isnan(value))
			continue;
		if (isnan(before) || series->samples[i].t_ns <= from_ns)
			before = value;
		after = value;
	}
	return after >= before ? after - before : NAN;
}
