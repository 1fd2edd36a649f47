/* The one rule for which repetitions count. */
#include "harness/record/point.h"

enum point_status point_status_of(const size_t with_status[MEASUREMENT_STATUSES])
{
	const size_t good = with_status[MEASUREMENT_OK];
	const size_t unsteady = with_status[MEASUREMENT_UNSTEADY];
	const size_t lost = with_status[MEASUREMENT_FAILED] + with_status[MEASUREMENT_INTERRUPTED];
	if (good + unsteady == 0)
		return with_status[MEASUREMENT_FAILED] > 0 ? POINT_FAILED : POINT_INTERRUPTED;
	return unsteady == 0 || good >= unsteady + lost ? POINT_OK : POINT_UNSTEADY;
}

bool point_counts(enum point_status point, enum measurement_status repetition)
{
	return repetition == MEASUREMENT_OK ||
	       (point == POINT_UNSTEADY && repetition == MEASUREMENT_UNSTEADY);
}

const char *point_status_name(enum point_status status)
{
	static const char *const names[POINT_STATUSES] = {
		[POINT_OK] = "ok",
		[POINT_UNSTEADY] = "unsteady",
		[POINT_FAILED] = "failed",
		[POINT_INTERRUPTED] = "interrupted",
	};
	return names[status];
}
