/* From a device's clock to the host's, by two anchors: a straight line through the first and the last.  A rate that the two
 * cannot tell well enough is taken as 1, with what two clocks may differ by. */
#include "workloads/backend/cuda/clock_map.h"

#include <math.h>

/* Largest difference of rates that is believed: what adjtimex may slew the host's clock by (500 ppm) and a crystal's tolerance
 * (100 ppm). */
static const double DRIFT_MAX = 600e-6;

void clock_map_add(struct clock_map *map, const struct clock_anchor *anchor)
{
	if (map->anchors == 0)
		map->first = *anchor;
	map->last = *anchor;
	map->anchors++;
}

/* Host ns per device ns, less 1, and how far it may be off. */
static double drift(const struct clock_map *map, double *uncertainty)
{
	const double device = map->last.device_ns - map->first.device_ns;
	*uncertainty = DRIFT_MAX;
	if (map->anchors < 2 || !(device > 0) || map->last.host_ns <= map->first.host_ns)
		return 0;
	const double bracket = (map->first.error_ns + map->last.error_ns) / device;
	if (bracket >= DRIFT_MAX)
		return 0;
	*uncertainty = bracket;
	return ((double)(map->last.host_ns - map->first.host_ns) - device) / device;
}

uint64_t clock_map_host_ns(const struct clock_map *map, double device_ns, double *error_ns)
{
	if (error_ns)
		*error_ns = INFINITY;
	if (map->anchors == 0)
		return 0;
	const double since = device_ns - map->last.device_ns;
	double uncertainty;
	const double rate = 1 + drift(map, &uncertainty);
	if (error_ns)
		*error_ns = map->last.error_ns + fabs(since) * uncertainty;
	const double offset = since * rate;
	if (offset < 0 && -offset >= (double)map->last.host_ns)
		return 0;
	return map->last.host_ns + (uint64_t)(int64_t)llround(offset);
}
