/* Numbers of workers from a sweep's points.  Decode workers: the law is fitted to what decoding alone could give, over all
 * points; other workers: to the throughput where all else is as at the best point. */
#include "harness/report/html/scaling_view.h"

#include "harness/report/scaling.h"

#include <math.h>
#include <string.h>

static const double KNEE_GAIN = 0.05; /* as model_knee's */

/* In this order of preference. */
static const enum key_id worker_keys[] = {
	KEY_DECODE_WORKERS, KEY_READ_THREADS, KEY_STEP_THREADS, KEY_STEP_DEVICES, KEY_READ_DEPTH};

static size_t find_axis(const struct config *config)
{
	for (size_t k = 0; k < PARTS_COUNT(worker_keys); k++)
		for (size_t axis = 0; axis < config->axis_count; axis++)
			if (config->axes[axis].key == worker_keys[k] &&
				config->axes[axis].count > 1)
				return axis;
	return config->axis_count;
}

void scaling_view_choose(struct scaling_view *view)
{
	const struct config *config = &view->report->record->config;
	view->axis = find_axis(config);
	const enum key_id key =
		view->axis < config->axis_count ? config->axes[view->axis].key : KEY_DECODE_WORKERS;
	(void)config_key_name(key, view->key);
	view->decodes = key == KEY_DECODE_WORKERS;
}

static size_t choice_of(const struct report *report, size_t point, size_t axis)
{
	return report->record->grid.choice[point * report->record->grid.axis_count + axis];
}

static double workers_at(const struct scaling_view *view, size_t point)
{
	const struct config_axis *axis = &view->report->record->config.axes[view->axis];
	return (double)axis->values[choice_of(view->report, point, view->axis)].integer;
}

/* Keys that are zipped together are one dimension. */
static size_t leader(const struct config *config, size_t axis)
{
	return config->axes[axis].zip_with;
}

static bool same_but_workers(const struct scaling_view *view, size_t a, size_t b)
{
	const struct config *config = &view->report->record->config;
	for (size_t axis = 0; axis < config->axis_count; axis++)
		if (leader(config, axis) != leader(config, view->axis) &&
			choice_of(view->report, a, axis) != choice_of(view->report, b, axis))
			return false;
	return true;
}

bool scaling_view_has(const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	return p && p->status != POINT_FAILED && isfinite(p->median);
}

/* The place of n, made where it is missing; NULL: more numbers than there is room for. */
static struct scaling_number *number_of(struct scaling_view *view, double n)
{
	size_t at = 0;
	while (at < view->count && view->numbers[at].n < n)
		at++;
	if (at < view->count && view->numbers[at].n == n)
		return &view->numbers[at];
	if (view->count == SCALING_NUMBERS_MAX)
		return NULL;
	memmove(&view->numbers[at + 1], &view->numbers[at],
		(view->count - at) * sizeof view->numbers[0]);
	view->count++;
	const size_t none = view->report->record->grid.points;
	view->numbers[at] = (struct scaling_number){n, none, none};
	return &view->numbers[at];
}

void scaling_view_find(struct scaling_view *view)
{
	const struct report *report = view->report;
	const size_t points = report->record->grid.points;
	for (size_t i = 0; i < points; i++) {
		struct scaling_number *number =
			scaling_view_has(report, i) ? number_of(view, workers_at(view, i)) : NULL;
		if (!number)
			continue;
		if (same_but_workers(view, i, report->best))
			number->held = i;
		if (number->best == points ||
			report->points[i]->median > report->points[number->best]->median)
			number->best = i;
	}
}

double scaling_view_held(const struct scaling_view *view, size_t i)
{
	return view->numbers[i].held < view->report->record->grid.points
		       ? view->report->points[view->numbers[i].held]->median
		       : (double)NAN;
}

/* The least number whose doubling was measured, and gained too little. */
static void find_measured_knee(struct scaling_view *view)
{
	view->measured_knee = view->count;
	for (size_t i = 0; i < view->count; i++)
		for (size_t k = i + 1; k < view->count; k++)
			if (view->numbers[k].n == 2 * view->numbers[i].n &&
				scaling_view_held(view, k) <
					(1 + KNEE_GAIN) * scaling_view_held(view, i)) {
				view->measured_knee = i;
				return;
			}
}

/* --- the law --------------------------------------------------------------------------------------------- */

static void place_curve(struct scaling_view *view)
{
	const double first = view->numbers[0].n;
	const double last = view->numbers[view->count - 1].n;
	for (size_t i = 0; i < SCALING_CURVE_POINTS; i++)
		view->at[i] = first + (last - first) * (double)i / (SCALING_CURVE_POINTS - 1);
	for (size_t i = 0; i < view->count; i++)
		view->at[SCALING_CURVE_POINTS + i] = view->numbers[i].n;
}

static bool fit_held(struct scaling_view *view)
{
	double n[SCALING_NUMBERS_MAX];
	double x[SCALING_NUMBERS_MAX];
	size_t count = 0;
	const uint64_t seed = (uint64_t)config_integer(&view->report->record->config, KEY_RUN_SEED);
	for (size_t i = 0; i < view->count; i++)
		if (isfinite(scaling_view_held(view, i))) {
			n[count] = view->numbers[i].n;
			x[count++] = scaling_view_held(view, i);
		}
	return usl_fit_band(n, x, count, seed, &view->fit, view->at,
		SCALING_CURVE_POINTS + view->count, view->band);
}

void scaling_view_fit(struct scaling_view *view)
{
	struct scaling scaling;
	find_measured_knee(view);
	place_curve(view);
	view->fit_of = view->decodes ? "capacity of decode" : "throughput";
	view->fitted = view->decodes ? scaling_band(view->report, &scaling, view->at,
					       SCALING_CURVE_POINTS + view->count, view->band)
				     : fit_held(view);
	if (view->decodes && view->fitted)
		view->fit = scaling.fit;
}
