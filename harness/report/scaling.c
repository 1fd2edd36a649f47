#include "harness/report/scaling.h"

#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/part.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char STAGE[] = STAGE_DECODE_NAME;

static const struct stage_summary *stage_of(const struct point_summary *point)
{
	return point ? summary_stage(point, STAGE) : NULL;
}

bool scaling_of_report(const struct report *report, struct scaling *scaling)
{
	return scaling_band(report, scaling, NULL, 0, NULL);
}

bool scaling_band(const struct report *report, struct scaling *scaling, const double *at,
	size_t count, struct interval *band)
{
	const struct record *record = report->record;
	*scaling = (struct scaling){0};
	for (size_t i = 0; i < record->config.axis_count; i++)
		if (!model_keeps_decode_cost(record->config.axes[i].key))
			return false;
	double *n = calloc(record->grid.points + 1, sizeof *n);
	double *x = calloc(record->grid.points + 1, sizeof *x);
	for (size_t i = 0; n && x && i < record->grid.points; i++) {
		const struct stage_summary *stage = stage_of(report->points[i]);
		if (!stage || report->points[i]->status != POINT_OK || !isfinite(stage->capacity))
			continue;
		n[scaling->points] = stage->workers;
		x[scaling->points++] = stage->capacity;
		scaling->most = stage->workers > scaling->most ? stage->workers : scaling->most;
		if (scaling->fewest == 0 || stage->workers < scaling->fewest)
			scaling->fewest = stage->workers;
	}
	const uint64_t seed = (uint64_t)config_integer(&record->config, KEY_RUN_SEED);
	const bool fits =
		n && x && usl_fit_band(n, x, scaling->points, seed, &scaling->fit, at, count, band);
	free(x);
	free(n);
	return fits;
}

json_t *scaling_to_json(const struct report *report)
{
	struct scaling scaling;
	if (!scaling_of_report(report, &scaling))
		return json_null();
	const struct usl_fit *fit = &scaling.fit;
	struct part part = part_open();
	part_put(&part, "stage", json_string(STAGE));
	part_put(&part, "points", json_integer((json_int_t)scaling.points));
	part_put(&part, "lambda", json_real(fit->lambda));
	part_put(&part, "lambda_90", fields_range(fit->lambda_90.low, fit->lambda_90.high));
	part_put(&part, "sigma", json_real(fit->sigma));
	part_put(&part, "sigma_90", fields_range(fit->sigma_90.low, fit->sigma_90.high));
	part_put(&part, "kappa", json_real(fit->kappa));
	part_put(&part, "kappa_90", fields_range(fit->kappa_90.low, fit->kappa_90.high));
	part_put(&part, "peak_workers", isfinite(fit->peak) ? json_real(fit->peak) : json_null());
	part_put(&part, "r_squared", json_real(fit->r_squared));
	return part_close(&part);
}

void scaling_describe(const struct report *report, struct buffer *out)
{
	struct scaling scaling;
	char rate[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (!scaling_of_report(report, &scaling))
		return;
	const struct usl_fit *fit = &scaling.fit;
	buffer_format(out,
		"%s over %u to %u workers: %s samples/s a worker (%s to %s), contention sigma %.3f "
		"(%.3f to %.3f), coherency kappa %.4f (%.4f to %.4f), R2 %.3f; ",
		STAGE, scaling.fewest, scaling.most, units_format_count(fit->lambda, rate),
		units_format_count(fit->lambda_90.low, low),
		units_format_count(fit->lambda_90.high, high), fit->sigma, fit->sigma_90.low,
		fit->sigma_90.high, fit->kappa, fit->kappa_90.low, fit->kappa_90.high,
		fit->r_squared);
	if (isfinite(fit->peak))
		buffer_format(out, "most at %.0f workers (USL, 90 %% intervals)", fit->peak);
	else
		buffer_format(out, "no peak (USL, 90 %% intervals)");
}
