/* When something happened on a device, in the host's monotonic clock: a trace shows host threads and streams side by side.  A
 * host clock around an asynchronous call measures the call; an event measures the device, but only against other events.  So
 * the host reads its clock, records an event on a stream that is always idle, polls until it has come, and reads its clock
 * again: the device's moment lies somewhere in that bracket.  The narrowest of several such brackets is an anchor, and half its
 * width is its error.  There is one at the start and one a second from then on; between and after them the two clocks are
 * taken to run evenly, with what the anchors leave open, or 600 parts per million, as further error.  The largest error of any
 * time that was mapped is in every result (clock_map_error_us).  Durations are not affected by it, only positions.
 *
 * Plain arithmetic on given times: tests need no device. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_CLOCK_MAP_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_CLOCK_MAP_H

#include <math.h>
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

/* A straight line through the first and the last anchor.  A rate that the two do not determine well enough is taken as 1, with
 * the largest difference of rates that two clocks may have: what adjtimex may slew the host's clock by (500 ppm) and a
 * crystal's tolerance (100 ppm). */
#define CLOCK_DRIFT_MAX 600e-6

static inline void clock_map_add(struct clock_map *map, const struct clock_anchor *anchor)
{
	if (map->anchors == 0)
		map->first = *anchor;
	map->last = *anchor;
	map->anchors++;
}

/* Host ns per device ns, less 1, and how far it may be off. */
static inline double clock_map_drift(const struct clock_map *map, double *uncertainty)
{
	const double device = map->last.device_ns - map->first.device_ns;
	*uncertainty = CLOCK_DRIFT_MAX;
	if (map->anchors < 2 || !(device > 0) || map->last.host_ns <= map->first.host_ns)
		return 0;
	const double bracket = (map->first.error_ns + map->last.error_ns) / device;
	if (bracket >= CLOCK_DRIFT_MAX)
		return 0;
	*uncertainty = bracket;
	return ((double)(map->last.host_ns - map->first.host_ns) - device) / device;
}

/* 0 before the first anchor, with an error without end.  error_ns may be NULL. */
static inline uint64_t clock_map_host_ns(
	const struct clock_map *map, double device_ns, double *error_ns)
{
	if (error_ns)
		*error_ns = INFINITY;
	if (map->anchors == 0)
		return 0;
	const double since = device_ns - map->last.device_ns;
	double uncertainty;
	const double rate = 1 + clock_map_drift(map, &uncertainty);
	if (error_ns)
		*error_ns = map->last.error_ns + fabs(since) * uncertainty;
	const double offset = since * rate;
	if (offset < 0 && -offset >= (double)map->last.host_ns)
		return 0;
	return map->last.host_ns + (uint64_t)(int64_t)llround(offset);
}

#endif
