/* Samples of one group of quantities of one device, in bounded memory: when all places are used, every
 * second sample is dropped.  Internal to measure. */
#ifndef MLBENCH_MEASURE_NVML_SERIES_H
#define MLBENCH_MEASURE_NVML_SERIES_H

#include "harness/measure/nvml_library.h"

enum { NVML_SAMPLES_MAX = 1024, NVML_GROUP_MAX = 9 };

/* Quantities that are asked together. */
struct nvml_group {
	enum nvml_quantity list[NVML_GROUP_MAX];
	size_t count;
};
extern const struct nvml_group nvml_quick, nvml_slow; /* slow: PCIe throughput */

struct nvml_sample {
	uint64_t t_ns;
	double values[NVML_GROUP_MAX]; /* in the group's order; NAN: not known */
};

struct nvml_series {
	const struct nvml_group *group;
	struct nvml_sample *samples; /* (NVML_SAMPLES_MAX); owned */
	size_t count;
	int codes[NVML_GROUP_MAX]; /* the latest that was not OK, or OK */
};

int nvml_series_open(struct nvml_series *series, const struct nvml_group *group); /* 0 or -ENOMEM */
void nvml_series_close(struct nvml_series *series);                               /* safe on {0} */
/* True: every second one was dropped to make room. */
bool nvml_series_add(
	struct nvml_series *series, const struct nvml_sample *sample, const int *codes);

/* Those between two moments. */
struct nvml_span {
	const struct nvml_sample *first;
	size_t count;
};
struct nvml_span nvml_series_span(
	const struct nvml_series *series, uint64_t from_ns, uint64_t to_ns);

/* Where a quantity is in a group; the group's count: nowhere. */
size_t nvml_group_place(const struct nvml_group *group, enum nvml_quantity quantity);

struct device_range nvml_span_range(const struct nvml_span *span, size_t place);
/* Share of the known samples that have a bit set; NAN: none is known. */
double nvml_span_share(const struct nvml_span *span, size_t place, unsigned bit);
/* What a count grew by from the last sample before from_ns (or the first there is) to the last before
 * to_ns; NAN: not known, or it went backwards. */
double nvml_series_growth(
	const struct nvml_series *series, size_t place, uint64_t from_ns, uint64_t to_ns);

#endif
