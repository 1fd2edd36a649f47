/* What a measurement says of the devices that computed steps. */
#ifndef MLBENCH_PIPELINES_COLLECT_DEVICE_H
#define MLBENCH_PIPELINES_COLLECT_DEVICE_H

#include "pipelines/collect.h"

/* Fills m->devices from what the backends said of themselves and from the devices' own times between the
 * span's edges.  What NVML samples of them is not known here: it stays unknown. */
void collect_devices(
	const struct recorded *recorded, const struct span *span, struct measurement *m);

#endif
