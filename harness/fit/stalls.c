#include "harness/fit/stalls.h"

#include "harness/analyze/statistics.h"

#include <math.h>
#include <stdlib.h>

static const double STALLS_FAR = 4;       /* times what three of four values are at most */
static const double STALLS_REGULAR = 0.7; /* of the distances are the usual one */
enum { STALLS_LEAST = 3, STALLS_EVERY_LEAST = 3 };

/* Whether most distances are the median, but for a place or a twentieth. */
static bool stalls_are_regular(double *distances, size_t count, double *every)
{
	size_t same = 0;
	*every = statistics_median(distances, count);
	for (size_t i = 0; i < count; i++)
		same += fabs(distances[i] - *every) <= fmax(1, *every / 20);
	return *every >= STALLS_EVERY_LEAST && (double)same >= STALLS_REGULAR * (double)count;
}

/* Of the values above an edge.  room: for three times as many.  False: they are too few, or come at no equal distances. */
static bool stalls_above(
	const double *values, size_t count, double edge, double *room, struct stalls *out)
{
	double *const far = room;
	double *const others = far + count;
	double *const distances = others + count;
	size_t stalls = 0;
	size_t rest = 0;
	size_t last = 0;
	for (size_t i = 0; i < count; i++) {
		if (!(values[i] > edge)) {
			others[rest++] = values[i];
			continue;
		}
		if (stalls > 0)
			distances[stalls - 1] = (double)(i - last);
		far[stalls++] = values[i];
		last = i;
	}
	if (stalls < STALLS_LEAST || rest == 0 ||
		!stalls_are_regular(distances, stalls - 1, &out->every))
		return false;
	out->each = statistics_median(far, stalls);
	out->usual = statistics_median(others, rest);
	return true;
}

bool stalls_find(const double *values, size_t count, double least, struct stalls *out)
{
	double *room = malloc((3 * count + 1) * sizeof *room);
	bool found = false;
	if (!room)
		return false;
	double edge = fmax(least, STALLS_FAR * statistics_quantile(values, count, 0.75));
	const double most = statistics_quantile(values, count, 1);
	/* What is only somewhat longer than usual comes at any distance: then the edge is higher. */
	for (; !found && edge < most; edge *= 2)
		found = stalls_above(values, count, edge, room, out);
	free(room);
	return found;
}
