/* When something happened on a device, in the host's monotonic clock.  A host clock around an asynchronous call measures the
 * call; an event measures the device, but only against other events.  The map is anchored where both are known to be close:
 * the host notes the time before it records an event on an idle stream and after it saw it done, and the shortest of several
 * such brackets wins; half its width is the error.  Between anchors (one a second or so) drift is interpolated.  Plain
 * arithmetic on given times: tests need no device. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_CLOCK_MAP_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_CLOCK_MAP_H

#include <stddef.h>
#include <stdint.h>

struct clock_anchor {
	double device_ns; /* since the first anchor's event */
	uint64_t host_ns; /* middle of the bracket */
	double error_ns;  /* half of it */
};

struct clock_map {
	struct clock_anchor first, last;
	size_t anchors;
};

void clock_map_add(struct clock_map *map, const struct clock_anchor *anchor);
/* 0 before the first anchor, with an error without end.  error_ns may be NULL. */
uint64_t clock_map_host_ns(const struct clock_map *map, double device_ns, double *error_ns);

#endif
