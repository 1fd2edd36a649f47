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

size_t compare_repeats_for(const struct difference *d, double distance, double level)
{
	const size_t least = d->a_count < d->b_count ? d->a_count : d->b_count;
	const double own = (double)d->a_count + (double)d->b_count - 2;
	/* From COMPARE_STALLS_REPEATS_LEAST on there are two tests. */
	const double tests = least < COMPARE_STALLS_REPEATS_LEAST ? 2 : (double)d->tests;
	return repeats_for(d, fmax(0, d->freedom - own), distance, level / tests, d->run_share);
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
	d->repeats_needed = repeats_for(d, shared_freedom, wanted,
		rules->significance / (double)(tests * d->tests), rules->run_share);
}

static double floor_of(double deviation, const struct difference_rules *rules)
{
	const double spread = isnan(deviation) ? 0 : deviation;
	return Z95 * sqrt(2) * fmax(sqrt(rules->run_share) * spread, rules->run_deviation);
}

static void set_interval(struct difference *d, double critical)
{
	d->critical = critical;
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
		.floor = NAN,
		.tests = 1};
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
	d.tests = compare_stalls_apply(samples, rules) ? 2 : 1;
	d.run_share = rules->run_share;
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
	const double level = rules->significance / (double)d.tests;
	set_interval(
		&d, compare_bootstrap_tells(bootstrap, level)
			    ? compare_bootstrap_critical(bootstrap, d.a_count, d.b_count, level)
			    : compare_student_quantile(1 - level / 2, d.freedom));
	return d;
}

/* Likewise without the worst repetitions. */
static struct difference undisturbed_of(
	const struct difference_samples *samples, const struct difference_rules *rules)
{
	struct difference d = compare_stalls_difference(samples, rules);
	d.tests = 2;
	d.run_share = rules->run_share;
	d.floor = floor_of(d.deviation, rules);
	d.p = two_sided(d.value / d.error, d.freedom);
	set_interval(&d, compare_student_quantile(1 - rules->significance / 4, d.freedom));
	return d;
}

/* p of the better of both tests, if there are two. */
static double joint_p(const struct difference *all, const struct difference *rest)
{
	return rest->tests > 0 ? fmin(1, (double)rest->tests * fmin(all->p, rest->p)) : all->p;
}

/* Settles p and the verdict, by the rest of the repetitions where these find a difference and find it more surely. */
static void settle(struct difference *all, const struct difference *rest, double adjusted,
	const struct difference_rules *rules)
{
	const double p = joint_p(all, rest);
	const bool rest_leads = rest->tests > 0 && rest->p < all->p;
	struct difference d = *rest;
	all->p = d.p = p;
	all->adjusted = d.adjusted = adjusted;
	all->verdict = verdict_of(all, rules);
	if (!rest_leads)
		return;
	d.verdict = verdict_of(&d, rules);
	if (d.verdict == DIFFERENCE_LESS || d.verdict == DIFFERENCE_MORE)
		*all = d;
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

/* Of several points, whose p and verdicts do not matter for it. */
static struct difference overall_of(const struct difference *points, size_t count,
	const struct difference_rules *rules, struct bootstrap *bootstrap, double common)
{
	const double level = rules->significance;
	struct difference overall = without();
	if (overall_means(&overall, points, count) == 0)
		return overall;
	overall.is_mean = true;
	overall.deviation = common;
	overall.floor = Z95 * sqrt(2) * fmax(isnan(common) ? 0 : common, rules->run_deviation);
	overall_error(&overall, points, count);
	if (isnan(overall.error))
		overall_by_spread(&overall, points, count, rules);
	else
		overall.critical =
			compare_bootstrap_tells(bootstrap, level)
				? compare_bootstrap_overall(bootstrap, points, count, level)
				: compare_student_quantile(1 - level / 2, overall.freedom);
	if (!isnan(overall.error)) {
		overall.p = two_sided(overall.value / overall.error, overall.freedom);
		set_interval(&overall, overall.critical);
	}
	overall.adjusted = overall.p;
	overall.verdict = verdict_of(&overall, rules);
	return overall;
}

static void judge(struct difference *out, const struct difference *rest, const double *adjusted,
	size_t count, const struct difference_rules *rules, double shared_freedom)
{
	size_t tests = 0;
	for (size_t i = 0; i < count; i++)
		tests += isnan(out[i].p) ? 0 : 1;
	for (size_t i = 0; i < count; i++) {
		settle(&out[i], &rest[i], adjusted[i], rules);
		advise(&out[i], rules, shared_freedom, tests > 0 ? tests : 1);
	}
}

/* What is kept for each point while all are compared. */
struct work {
	struct point *points;
	struct difference *rest; /* .tests == 0: none */
	double *adjusted;
	struct moderation shared;
	struct bootstrap bootstrap;
};

static void work_close(struct work *work)
{
	free(work->bootstrap.pool.values);
	free(work->bootstrap.t);
	free(work->adjusted);
	free(work->rest);
	free(work->points);
}

static int work_open(struct work *work, const struct difference_samples *samples, size_t count,
	const struct difference_rules *rules)
{
	work->points = calloc(count + 1, sizeof *work->points);
	work->rest = calloc(count + 1, sizeof *work->rest);
	work->adjusted = calloc(count + 1, sizeof *work->adjusted);
	work->bootstrap.t = calloc(COMPARE_RESAMPLES, sizeof *work->bootstrap.t);
	work->bootstrap.run_share = rules->run_share;
	work->bootstrap.wanted = rules->bootstrap;
	work->bootstrap.seed = rules->seed;
	if (!work->points || !work->rest || !work->adjusted || !work->bootstrap.t)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		work->points[i] = compare_point_of(&samples[i]);
	struct moderation shared = {0};
	struct pool pool = {0};
	int code = compare_shared_of(work->points, count, &shared);
	if (!code)
		code = compare_pool_open(&pool, samples, work->points, count, &shared);
	work->shared = shared;
	work->bootstrap.shared = (struct moderation){1, shared.freedom};
	work->bootstrap.pool = pool;
	return code;
}

int compare_differences(const struct difference_samples *samples, size_t count,
	const struct difference_rules *rules, struct difference *out, struct difference *overall)
{
	struct work work = {0};
	const int code = work_open(&work, samples, count, rules);
	for (size_t i = 0; !code && i < count; i++) {
		out[i] = difference_of(
			&samples[i], &work.points[i], rules, &work.bootstrap, &work.shared);
		if (out[i].tests > 1)
			work.rest[i] = undisturbed_of(&samples[i], rules);
		work.adjusted[i] = joint_p(&out[i], &work.rest[i]);
	}
	if (!code) {
		if (overall && count != 1)
			*overall = overall_of(out, count, rules, &work.bootstrap,
				common_deviation(samples, work.points, count));
		compare_holm(work.adjusted, count);
		judge(out, work.rest, work.adjusted, count, rules, work.shared.freedom);
	}
	if (!code && overall && count == 1)
		*overall = out[0];
	work_close(&work);
	return code;
}
