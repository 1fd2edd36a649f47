/* The driver's view of the devices that compute (nvml.h), over one repetition. */
#ifndef MLBENCH_PIPELINES_DEVICE_WATCH_H
#define MLBENCH_PIPELINES_DEVICE_WATCH_H

#include "harness/config/config.h"
#include "harness/record/measurement.h"

#include <stdint.h>

struct nvml_watch;

/* Begins to watch, on threads of its own, the real devices of a list.  NULL: there is none, measure.device or
 * measure.profiler is off, or it cannot; of a device, a note of m then says so. */
struct nvml_watch *device_watch_start(const struct config *config,
	const struct device_measurement *const *devices, size_t count, uint64_t window_ns,
	struct measurement *m);

/* Within a second, whatever the driver does.  NULL is fine. */
void device_watch_stop(struct nvml_watch *watch);

/* What was sampled between two moments, into m's devices; NULL: nothing is known. */
void device_watch_fill(
	struct nvml_watch *watch, uint64_t from_ns, uint64_t to_ns, struct measurement *m);

/* The first device at a moment; NULL: nothing is known. */
void device_watch_window(struct nvml_watch *watch, uint64_t t_ns, struct window *window);

#endif
