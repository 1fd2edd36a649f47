/* Tests, verdicts and advice for the differences of points and of their mean; the header says why these. */
#include "harness/analyze/compare_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const double POWER = 0.8;
static const double Z95 = 1.959964;

static double two_sided(double t, double freedom)
{
	return fmin(1, 2 * compare_student(-fabs(t), freedom));
}

/* Whether n repetitions a side find `wanted` with POWER at this level. */
static bool suffices(double n, const struct difference *d, double shared_freedom, double wanted,
	double significance, double run_share)
{
	const double freedom = shared_freedom + 2 * n - 2;
	const double t = compare_student_quantile(1 - significance / 2, freedom) +
			 compare_student_quantile(POWER, freedom);
	return t * d->deviation * sqrt(2 / n + 2 * run_share) <= wanted;
}

/* The least number that does, more than there are; 0: COMPARE_REPEATS_MOST do not. */
static size_t repeats_for(const struct difference *d, double shared_freedom, double wanted,
	double significance, double run_share)
{
	const size_t most = d->a_count > d->b_count ? d->a_count : d->b_count;
	size_t low = most < 1 ? 1 : most; /* does not */
	size_t high = COMPARE_REPEATS_MOST;
	if (!(d->deviation > 0) || !(wanted > 0) || low >= high ||
		!suffices((double)high, d, shared_freedom, wanted, significance, run_share))
		return 0;
	while (high - low > 1) {
		const size_t middle = (low + high) / 2;
		if (suffices((double)middle, d, shared_freedom, wanted, significance, run_share))
			high = middle;
		else
			low = middle;
	}
	return high;
}

static bool holds_zero(const struct interval *interval)
{
	return interval->low <= 0 && interval->high >= 0;
}

static enum difference_verdict verdict_of(
	const struct difference *d, const struct difference_rules *rules)
{
	const double within = fmax(d->floor, rules->resolution);
	if (isnan(d->value))
		return DIFFERENCE_MISSING;
	if (isnan(d->p))
		return DIFFERENCE_UNTOLD;
	if (d->adjusted > rules->significance || holds_zero(&d->interval))
		return d->interval.low >= -within && d->interval.high <= within ? DIFFERENCE_NONE
										: DIFFERENCE_UNSURE;
	if (fabs(d->value) <= d->floor)
		return DIFFERENCE_NOISE;
	return d->value < 0 ? DIFFERENCE_LESS : DIFFERENCE_MORE;
}

static void advise(struct difference *d, const struct difference_rules *rules,
	double shared_freedom, size_t tests)
{
	enum { REPEATS_TO_BEGIN = 3 };
	if (d->verdict == DIFFERENCE_UNTOLD)
		d->repeats_needed = REPEATS_TO_BEGIN;
	if (d->verdict != DIFFERENCE_UNSURE)
		return;
	const double seen = fabs(d->value);
	const double wanted = seen > d->floor ? seen : fmax(d->floor, rules->resolution);
	d->repeats_needed = repeats_for(
		d, shared_freedom, wanted, rules->significance / (double)tests, rules->run_share);
}

static double floor_of(double deviation, const struct difference_rules *rules)
{
	const double spread = isnan(deviation) ? 0 : deviation;
	return Z95 * sqrt(2) * fmax(sqrt(rules->run_share) * spread, rules->run_deviation);
}

static void set_interval(struct difference *d)
{
	d->interval = (struct interval){
		d->value - d->critical * d->error, d->value + d->critical * d->error};
}

static struct difference without(void)
{
	return (struct difference){.a = NAN,
		.b = NAN,
		.value = NAN,
		.error = NAN,
		.critical = NAN,
		.interval = {NAN, NAN},
		.p = NAN,
		.adjusted = NAN,
		.deviation = NAN,
		.floor = NAN};
}

static struct difference difference_of(const struct difference_samples *samples,
	const struct point *point, const struct difference_rules *rules,
	struct bootstrap *bootstrap, const struct moderation *shared)
{
	struct difference d = without();
	d.a_count = samples->a_count;
	d.b_count = samples->b_count;
	d.a = point->a.mean;
	d.b = point->b.mean;
	if (!compare_is_there(samples))
		return d;
	d.value = d.b - d.a;
	double freedom;
	const double square = compare_error_squared(point, shared, (double)samples->a_count,
		(double)samples->b_count, rules->run_share, &d.freedom);
	d.deviation = sqrt(moderation_apply(shared, point->variance, point->freedom, &freedom));
	d.floor = floor_of(d.deviation, rules);
	if (!(d.freedom > 0))
		return d;
	d.error = sqrt(fmax(square, COMPARE_VARIANCE_LEAST));
	d.p = two_sided(d.value / d.error, d.freedom);
	d.critical = compare_bootstrap_tells(bootstrap)
			     ? compare_bootstrap_critical(bootstrap, d.a_count, d.b_count)
			     : compare_student_quantile(1 - rules->significance / 2, d.freedom);
	set_interval(&d);
	return d;
}

static void adjust(struct difference *out, size_t count, double *p)
{
	for (size_t i = 0; i < count; i++)
		p[i] = out[i].p;
	compare_holm(p, count);
	for (size_t i = 0; i < count; i++)
		out[i].adjusted = p[i];
}

/* --- all points together ------------------------------------------------------------------------------------ */

/* Deviation of what the n-th repetitions of all points have in common, from both sides: the sweep's rounds are
 * apart in time as runs are.  NAN: not known. */
static double common_deviation(
	const struct difference_samples *samples, const struct point *points, size_t count)
{
	enum { ROUNDS_MOST = 64 };
	double sums[2][ROUNDS_MOST] = {{0}};
	size_t rounds = ROUNDS_MOST;
	size_t used = 0;
	double within = 0;
	for (size_t i = 0; i < count; i++) {
		const size_t least = samples[i].a_count < samples[i].b_count ? samples[i].a_count
									     : samples[i].b_count;
		rounds = compare_is_there(&samples[i]) && least < rounds ? least : rounds;
	}
	for (size_t i = 0; i < count && rounds > 1; i++) {
		if (!compare_is_there(&samples[i]))
			continue;
		used++;
		within += points[i].variance;
		for (size_t r = 0; r < rounds; r++) {
			sums[0][r] += samples[i].a[r] - points[i].a.mean;
			sums[1][r] += samples[i].b[r] - points[i].b.mean;
		}
	}
	if (used == 0 || rounds < 2)
		return NAN;
	double variance = 0;
	for (size_t side = 0; side < 2; side++) {
		const double d = statistics_deviation(sums[side], rounds) / (double)used;
		variance += d * d / 2;
	}
	const double expected = within / (double)used / (double)used;
	return sqrt(used > 1 ? fmax(0, variance - expected) : variance);
}

/* Without repetitions: the points' differences are the sample. */
static void overall_by_spread(struct difference *overall, const struct difference *points,
	size_t count, const struct difference_rules *rules)
{
	double *values = calloc(count + 1, sizeof *values);
	size_t known = 0;
	for (size_t i = 0; values && i < count; i++)
		if (!isnan(points[i].value))
			values[known++] = points[i].value;
	if (known >= COMPARE_POINTS_LEAST) {
		overall->freedom = (double)known - 1;
		overall->error =
			fmax(statistics_deviation(values, known), sqrt(COMPARE_VARIANCE_LEAST)) /
			sqrt((double)known);
		overall->critical =
			compare_student_quantile(1 - rules->significance / 2, overall->freedom);
	}
	free(values);
}

static void overall_error(struct difference *overall, const struct difference *points, size_t count)
{
	double square = 0;
	double quarter = 0;
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		if (isnan(points[i].value))
			continue;
		const double part = points[i].error * points[i].error; /* NAN: spreads */
		square += part;
		quarter += part * part / points[i].freedom;
		used++;
	}
	const double common = isnan(overall->deviation) ? 0 : overall->deviation;
	overall->freedom = square * square / quarter;
	overall->error = sqrt(square / (double)used / (double)used + 2 * common * common);
}

static size_t overall_means(
	struct difference *overall, const struct difference *points, size_t count)
{
	double a = 0;
	double b = 0;
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		if (isnan(points[i].value))
			continue;
		a += points[i].a;
		b += points[i].b;
		if (used == 0 || points[i].a_count < overall->a_count)
			overall->a_count = points[i].a_count;
		if (used == 0 || points[i].b_count < overall->b_count)
			overall->b_count = points[i].b_count;
		used++;
	}
	if (used == 0)
		return 0;
	overall->a = a / (double)used;
	overall->b = b / (double)used;
	overall->value = overall->b - overall->a;
	return used;
}

static struct difference overall_of(const struct difference *points, size_t count,
	const struct difference_rules *rules, struct bootstrap *bootstrap, double common)
{
	struct difference overall = without();
	if (count == 1) {
		overall = points[0];
		overall.adjusted = overall.p;
		return overall;
	}
	if (overall_means(&overall, points, count) == 0)
		return overall;
	overall.is_mean = true;
	overall.deviation = common;
	overall.floor = floor_of(common / sqrt(rules->run_share), rules);
	overall_error(&overall, points, count);
	if (isnan(overall.error))
		overall_by_spread(&overall, points, count, rules);
	else
		overall.critical = compare_bootstrap_tells(bootstrap)
					   ? compare_bootstrap_overall(bootstrap, points, count)
					   : compare_student_quantile(
						     1 - rules->significance / 2, overall.freedom);
	if (!isnan(overall.error)) {
		overall.p = two_sided(overall.value / overall.error, overall.freedom);
		set_interval(&overall);
	}
	overall.adjusted = overall.p;
	overall.verdict = verdict_of(&overall, rules);
	return overall;
}

static void judge(struct difference *out, size_t count, const struct difference_rules *rules,
	double shared_freedom)
{
	size_t tests = 0;
	for (size_t i = 0; i < count; i++)
		tests += isnan(out[i].p) ? 0 : 1;
	for (size_t i = 0; i < count; i++) {
		out[i].verdict = verdict_of(&out[i], rules);
		advise(&out[i], rules, shared_freedom, tests > 0 ? tests : 1);
	}
}

int compare_differences(const struct difference_samples *samples, size_t count,
	const struct difference_rules *rules, struct difference *out, struct difference *overall)
{
	struct moderation shared = {0};
	struct bootstrap bootstrap = {.significance = rules->significance,
		.run_share = rules->run_share,
		.wanted = rules->bootstrap,
		.seed = rules->seed};
	struct point *points = calloc(count + 1, sizeof *points);
	double *p = calloc(count + 1, sizeof *p);
	bootstrap.t = calloc(COMPARE_RESAMPLES, sizeof *bootstrap.t);
	int code = points && p && bootstrap.t ? 0 : -ENOMEM;
	for (size_t i = 0; !code && i < count; i++)
		points[i] = compare_point_of(&samples[i]);
	if (!code)
		code = compare_shared_of(points, count, &shared);
	if (!code)
		code = compare_pool_open(&bootstrap.pool, samples, points, count, &shared);
	if (!code) {
		bootstrap.shared = (struct moderation){1, shared.freedom};
		for (size_t i = 0; i < count; i++)
			out[i] = difference_of(&samples[i], &points[i], rules, &bootstrap, &shared);
		adjust(out, count, p);
		judge(out, count, rules, shared.freedom);
		if (overall)
			*overall = overall_of(out, count, rules, &bootstrap,
				common_deviation(samples, points, count));
	}
	free(bootstrap.pool.values);
	free(bootstrap.t);
	free(p);
	free(points);
	return code;
}
