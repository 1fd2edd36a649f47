/* Robust level and scale of the nodes of a fleet, and what is out of line. */
#include "harness/accept/spread.h"

#include "harness/analyze/statistics.h"
#include "harness/analyze/student.h"
#include "harness/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MAD_OF_NORMAL = 1.4826;
static const double SET_ASIDE = 3;      /* MADs from the median */
static const double TRUNCATED = 1.0149; /* deviation of what is left of a normal one */
static const double FREEDOM_EACH = 0.7, FREEDOM_LOST = 2.5, FREEDOM_LEAST = 0.5, FREEDOM_MOST = 20;
static const double MEDIAN_ERROR = 1.2533; /* sqrt(pi / 2): of a median over that of a mean */
static const double SCALE_LEAST =
	0.002; /* of the level, or of a share: nodes that agree better prove nothing */
static const double SCALE_LEAST_COUNT = 0.1;
static const double APART_LEAST = 0.01; /* of the level, or of a share */
static const double APART_LEAST_COUNT = 1;
static const double REACH_LEVEL = 0.995; /* one side of 99 % */
static const double CLEAR = 2; /* scales about the level that a node's interval must be clear of */

struct spread_value spread_value_of(double *values, size_t count)
{
	struct spread_value of = {.error = NAN, .reach = NAN};
	sort_doubles(values, count);
	of.value = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
	if (count < 3)
		return of;
	of.error = MEDIAN_ERROR * statistics_deviation(values, count) / sqrt((double)count);
	of.reach = of.error * student_quantile(REACH_LEVEL, (double)(count - 1));
	return of;
}

/* Of the sample size: what makes the MAD of few normal values unbiased. */
static double mad_correction(size_t count)
{
	static const double few[] = {0, 0, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};
	return count < COUNT(few) ? few[count] : (double)count / ((double)count - 0.8);
}

static double least_of(enum figure_unit unit, double level, double least, double least_count)
{
	if (unit == FIGURE_SHARE)
		return least;
	return unit == FIGURE_COUNT ? least_count : least * fabs(level);
}

/* values: sorted by the caller's copy. */
static double deviation_of_most(const double *values, size_t count, double centre, double least)
{
	double *apart = malloc(count * sizeof *apart);
	double *kept = malloc(count * sizeof *kept);
	double scale = least;
	size_t left = 0;
	for (size_t i = 0; apart && i < count; i++)
		apart[i] = fabs(values[i] - centre);
	if (apart && kept) {
		const double mad =
			MAD_OF_NORMAL * mad_correction(count) * statistics_median(apart, count);
		for (size_t i = 0; i < count; i++)
			if (apart[i] <= SET_ASIDE * fmax(mad, least))
				kept[left++] = values[i];
		if (left > 1)
			scale = fmax(least, TRUNCATED * statistics_deviation(kept, left));
	} else {
		scale = INFINITY; /* without memory nothing is called an outlier */
	}
	free(apart);
	free(kept);
	return scale;
}

/* Degrees of freedom of so many values. */
static double spread_freedom(size_t count)
{
	const double freedom = FREEDOM_EACH * (double)count - FREEDOM_LOST;
	return count < 2 ? 0 : fmax(FREEDOM_LEAST, fmin(FREEDOM_MOST, freedom));
}

void spread_fit(struct spread *spread, const struct spread_value *values, size_t count,
	enum figure_unit unit)
{
	double *list = malloc((count + 1) * sizeof *list);
	size_t known = 0;
	*spread = (struct spread){.count = count, .centre = NAN, .scale = NAN};
	if (!list || count == 0) {
		free(list);
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (isfinite(values[i].error))
			list[known++] = values[i].error;
	spread->noise = known ? statistics_median(list, known) : 0;
	for (size_t i = 0; i < count; i++)
		list[i] = values[i].value;
	spread->centre = statistics_median(list, count);
	spread->scale = deviation_of_most(list, count, spread->centre,
		least_of(unit, spread->centre, SCALE_LEAST, SCALE_LEAST_COUNT));
	spread->freedom = spread_freedom(count);
	free(list);
}

/* The scatter of nodes has their typical error in it; what a node's own is beyond that counts in addition. */
double spread_z(const struct spread *spread, const struct spread_value *value)
{
	const double error = isfinite(value->error) ? value->error : spread->noise;
	const double more = fmax(0, error * error - spread->noise * spread->noise);
	const double level = M_PI_2 / (double)(spread->count ? spread->count : 1);
	return (value->value - spread->centre) /
	       sqrt(spread->scale * spread->scale * (1 + level) + more);
}

double spread_limit(const struct spread *spread, double rate, size_t tests)
{
	if (spread->count < SPREAD_NODES_LEAST || tests == 0)
		return INFINITY;
	return student_quantile(1 - rate / 2 / (double)tests, spread->freedom);
}

bool spread_is_outlier(const struct spread *spread, const struct spread_value *value,
	enum figure_unit unit, double rate, size_t tests)
{
	const double apart = fabs(value->value - spread->centre);
	const double reach = isfinite(value->reach) ? value->reach : 0;
	if (!(apart >= least_of(unit, spread->centre, APART_LEAST, APART_LEAST_COUNT)))
		return false;
	if (!(apart - reach > CLEAR * spread->scale))
		return false;
	return fabs(spread_z(spread, value)) > spread_limit(spread, rate, tests);
}

void spread_range(const struct spread *spread, double rate, double *low, double *high)
{
	double apart = INFINITY;
	if (spread->freedom > 0)
		apart = student_quantile(1 - rate, spread->freedom) * spread->scale *
			sqrt(1 + M_PI_2 / (double)spread->count);
	*low = spread->centre - apart;
	*high = spread->centre + apart;
}
