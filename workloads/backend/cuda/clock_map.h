/* When something happened on a device, in the host's monotonic clock.  A host clock around an asynchronous call measures the
 * call; an event measures the device, but only against other events.  The map is anchored where both are known to be close:
 * the host notes the time before it records an event on an idle stream and after it saw it done, and the shortest of several
 * such brackets wins; half its width is the error.  Between anchors (one a second or so) drift is interpolated.  Plain
 * arithmetic on given times: tests need no device.
 *
 * One clock for all. A trace shows host threads and streams side by side, so an event's time must
 * become a time of the monotonic clock. The host reads its clock, records an event on a stream
 * that is always idle, looks until it has come, and reads its clock again: the device's moment
 * lies somewhere in that bracket. The narrowest of several such brackets is an anchor, and half
 * its width is its error. There is one at the start and one a second from then on; between and
 * after them the two clocks are taken to run evenly, with what the anchors leave open, or 600
 * parts per million, as further error. The largest error of
 * any time that was mapped is in every result (clock_map_error_us). Lengths are never affected by
 * it, only positions. */
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
