/* What the NVIDIA driver says of the devices of a run (nvml.h), over its time.
 *
 * Two threads of its own ask, ten times a second and, for PCIe (a call that takes 20 ms by design),
 * once a second; where the calls take more than a tenth of the time, less often. What they cost is
 * measured and noted. A run never waits for them: what has not come back one second after the end
 * is given up, said, and nothing more is asked while it hangs. Samples are cut to the measured part
 * like everything else; memory errors are counted as what came in during it. Each quantity may be
 * missing, with the driver's reason. NVML's utilisation says in what share of the driver's own
 * sample period some kernel was resident, one thread of one block being enough: a device can show
 * 100 % at a twentieth of its speed. It is kept as kernel_resident_share, and no verdict looks at
 * it. How busy a device is, is said by FLOPs: those of the model's products are known exactly, and
 * their rate is compared with the published dense peak of that device at that precision
 * (harness/analyze/device_summary.c, each with its source), within a step (peak_share) and over all
 * time (model_utilisation). A device that is not in the table has no peak, and no share is printed. */
#ifndef MLBENCH_MEASURE_NVML_WATCH_H
#define MLBENCH_MEASURE_NVML_WATCH_H

#include "harness/base/error.h"
#include "harness/measure/nvml.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NVML_PERIOD_MS = 100,       /* of a sample, at least */
	NVML_PCIE_PERIOD_MS = 1000, /* of PCIe throughput, which takes 40 ms a device */
	NVML_STOP_PATIENCE_MS = 1000,
};

struct nvml_watch_options {
	char buses[DEVICES_MAX][32]; /* PCI addresses of the devices to watch */
	size_t count;                /* at most DEVICES_MAX */
	uint64_t period_ns, pcie_period_ns;
};

struct nvml_watch;

/* Begins to sample, on threads of its own; returns at once: that NVML is not there is found out there, and
 * said by nvml_watch_fill.  -ENOMEM, -EAGAIN (no thread); *out is NULL then. */
int nvml_watch_start(
	struct nvml_watch **out, const struct nvml_watch_options *options, struct error *err);

/* Ends the sampling; at the latest after patience_ns, whatever a call does.  Once, by the thread that
 * started. */
void nvml_watch_stop(struct nvml_watch *watch, uint64_t patience_ns);

/* After the stop.  Fills NVML's part of each device of m whose bus is watched, from the samples between
 * two moments; what is missing becomes NAN, and a note says why.  Also notes what the sampling cost. */
void nvml_watch_fill(
	struct nvml_watch *watch, uint64_t from_ns, uint64_t to_ns, struct measurement *m);

/* A quantity of the quick group, of the device whose bus is the index-th of the options, between two moments: seconds since
 * from_ns, and values.  Where it was not known there is nothing; of more than room, evenly many.  Returns how many. */
size_t nvml_watch_series(struct nvml_watch *watch, size_t index, enum nvml_quantity quantity,
	uint64_t from_ns, uint64_t to_ns, double *t_s, double *values, size_t room);

/* After the stop.  The first device's latest sample before t_ns, as far as it is not too old. */
void nvml_watch_window(struct nvml_watch *watch, uint64_t t_ns, struct window *window);

void nvml_watch_free(struct nvml_watch *watch); /* NULL is fine */

/* NVML's part of a device, all unknown. */
void nvml_forget(struct device_measurement *device);

/* --- within measure: samples ------------------------------------------------------------------ */

/* Samples of one group of quantities of one device, in bounded memory: when all places are used, every
 * second sample is dropped. */

enum { NVML_SAMPLES_MAX = 1024, NVML_GROUP_MAX = 9 };

/* Quantities that are asked together. */
struct nvml_group {
	enum nvml_quantity list[NVML_GROUP_MAX];
	size_t count;
};
extern const struct nvml_group nvml_slow; /* PCIe throughput */

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

struct device_range nvml_span_range(const struct nvml_span *span, size_t place);
/* Share of the known samples that have a bit set; NAN: none is known. */
double nvml_span_share(const struct nvml_span *span, size_t place, unsigned bit);
/* What a count grew by from the last sample before from_ns (or the first there is) to the last before
 * to_ns; NAN: not known, or it went backwards. */
double nvml_series_growth(
	const struct nvml_series *series, size_t place, uint64_t from_ns, uint64_t to_ns);

#endif
