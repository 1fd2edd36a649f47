/* The frontier of undominated settings. */
#include "harness/report/html/frontier.h"

#include <math.h>

enum order { ORDER_LESS, ORDER_SAME, ORDER_MORE, ORDER_NONE };

double frontier_rate(const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	const struct forecast *forecast = report_forecast(report, point);
	if (p && p->status != POINT_FAILED && !isnan(p->median))
		return p->median;
	return forecast ? forecast->throughput : (double)NAN;
}

static bool is_named(enum key_type type)
{
	return type == KEY_TYPE_TEXT || type == KEY_TYPE_CHOICE || type == KEY_TYPE_BOOLEAN;
}

static enum order compare(const struct report *report, size_t axis, size_t a, size_t b)
{
	const struct config_grid *grid = &report->record->grid;
	const struct config_axis *keys = &report->record->config.axes[axis];
	const size_t left = grid->choice[a * grid->axis_count + axis];
	const size_t right = grid->choice[b * grid->axis_count + axis];
	const enum key_type type = config_keys[keys->key].type;
	if (left == right)
		return ORDER_SAME;
	if (is_named(type))
		return ORDER_NONE;
	const bool real = type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE;
	const bool less = real ? keys->values[left].real < keys->values[right].real
			       : keys->values[left].integer < keys->values[right].integer;
	return less ? ORDER_LESS : ORDER_MORE;
}

/* Whether `other` gives as much as `point` with nothing larger. */
static bool dominates(const struct report *report, size_t other, size_t point)
{
	static const double AS_MUCH = 0.98;
	if (other == point ||
		!(frontier_rate(report, other) >= AS_MUCH * frontier_rate(report, point)))
		return false;
	for (size_t axis = 0; axis < report->record->config.axis_count; axis++) {
		const enum order order = compare(report, axis, other, point);
		if (order == ORDER_MORE || order == ORDER_NONE)
			return false;
	}
	return true;
}

void frontier_find(const struct report *report, bool *on)
{
	const size_t points = report->record->grid.points;
	for (size_t i = 0; i < points; i++) {
		on[i] = !isnan(frontier_rate(report, i));
		for (size_t other = 0; other < points && on[i]; other++)
			on[i] = !dominates(report, other, i);
	}
}
