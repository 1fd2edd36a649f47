/* Robust statistics on small sets.  Everything sorts copies: the caller's values stay as they
 * are. */
#include "harness/analyze/statistics.h"

#include "harness/base/array.h"
#include "harness/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	BOOTSTRAP_RESAMPLES = 2000,
	INTERVAL_VALUES_MIN = 2,
	BOOTSTRAP_VALUES_MIN = 3,
	SLOPE_POINTS_MAX = 512
};

/* NULL without memory or values. */
static double *sorted_copy(const double *values, size_t count)
{
	double *copy = count > 0 ? malloc(count * sizeof *copy) : NULL;
	if (copy) {
		memcpy(copy, values, count * sizeof *copy);
		sort_doubles(copy, count);
	}
	return copy;
}

static double quantile_of_sorted(const double *sorted, size_t count, double quantile)
{
	const double place = fmin(fmax(quantile, 0), 1) * (double)(count - 1);
	const size_t below = (size_t)place;
	const size_t above = below + 1 < count ? below + 1 : below;
	return sorted[below] + (sorted[above] - sorted[below]) * (place - (double)below);
}

double statistics_mean(const double *values, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return count > 0 ? sum / (double)count : NAN;
}

void statistics_quantiles(
	const double *values, size_t count, const double *quantiles, size_t many, double *out)
{
	double *sorted = sorted_copy(values, count);
	for (size_t i = 0; i < many; i++)
		out[i] = sorted ? quantile_of_sorted(sorted, count, quantiles[i]) : NAN;
	free(sorted);
}

double statistics_quantile(const double *values, size_t count, double quantile)
{
	double value;
	statistics_quantiles(values, count, &quantile, 1, &value);
	return value;
}

double statistics_median(const double *values, size_t count)
{
	return statistics_quantile(values, count, 0.5);
}

double statistics_deviation(const double *values, size_t count)
{
	if (count < 2)
		return NAN;
	const double mean = statistics_mean(values, count);
	double squares = 0;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return sqrt(squares / (double)(count - 1));
}

double statistics_normal(double z)
{
	return 0.5 * erfc(-z * M_SQRT1_2);
}

uint64_t statistics_round_up(double n)
{
	const double unit = pow(10, floor(log10(fmax(n, 10))) - 1);
	return (uint64_t)(ceil(n / unit) * unit);
}

/* Medians of samples with replacement, one per resample. */
static void resample_medians(
	const double *values, size_t count, uint64_t seed, double *sample, double *medians)
{
	struct rng rng;
	rng_init(&rng, seed, count);
	for (size_t r = 0; r < BOOTSTRAP_RESAMPLES; r++) {
		for (size_t i = 0; i < count; i++)
			sample[i] = values[rng_below(&rng, count)];
		sort_doubles(sample, count);
		medians[r] = quantile_of_sorted(sample, count, 0.5);
	}
}

struct interval statistics_bootstrap_median(
	const double *values, size_t count, double level, uint64_t seed)
{
	if (count < INTERVAL_VALUES_MIN)
		return (struct interval){NAN, NAN};
	const struct interval range = {
		statistics_quantile(values, count, 0), statistics_quantile(values, count, 1)};
	double *work = count >= BOOTSTRAP_VALUES_MIN
			       ? malloc((count + BOOTSTRAP_RESAMPLES) * sizeof *work)
			       : NULL;
	if (!work)
		return range;
	double *medians = work + count;
	resample_medians(values, count, seed, work, medians);
	const struct interval interval = {
		statistics_quantile(medians, BOOTSTRAP_RESAMPLES, (1 - level) / 2),
		statistics_quantile(medians, BOOTSTRAP_RESAMPLES, (1 + level) / 2),
	};
	free(work);
	return interval;
}

/* Slopes between all pairs of at most SLOPE_POINTS_MAX evenly chosen points. */
static size_t pair_slopes(const double *x, const double *y, size_t count, double *slopes)
{
	const size_t used = count < SLOPE_POINTS_MAX ? count : SLOPE_POINTS_MAX;
	size_t pairs = 0;
	for (size_t i = 0; i < used; i++)
		for (size_t j = i + 1; j < used; j++) {
			const size_t a = i * count / used;
			const size_t b = j * count / used;
			if (x[b] != x[a])
				slopes[pairs++] = (y[b] - y[a]) / (x[b] - x[a]);
		}
	return pairs;
}

double statistics_robust_slope(const double *x, const double *y, size_t count)
{
	const size_t used = count < SLOPE_POINTS_MAX ? count : SLOPE_POINTS_MAX;
	double *slopes = used >= 2 ? malloc(used * (used - 1) / 2 * sizeof *slopes) : NULL;
	if (!slopes)
		return NAN;
	const size_t pairs = pair_slopes(x, y, count, slopes);
	const double slope = statistics_median(slopes, pairs);
	free(slopes);
	return slope;
}

/* --- variances of several small samples, drawn towards what they share ------------------------ */

/* The asymptotic series (Abramowitz & Stegun 6.3.18, 6.4.12) is good to 1e-9 from here on. */
static const double SERIES_FROM = 10;
/* The logarithm of a zero variance does not exist; this is below any that a clock shows. */
static const double VARIANCE_LEAST = 1e-14;

double moderation_digamma(double x)
{
	double sum = 0;
	while (x < SERIES_FROM) {
		sum -= 1 / x;
		x += 1;
	}
	const double y = 1 / (x * x);
	return sum + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252));
}

double moderation_trigamma(double x)
{
	double sum = 0;
	while (x < SERIES_FROM) {
		sum += 1 / (x * x);
		x += 1;
	}
	const double y = 1 / (x * x);
	return sum + 1 / x + y / 2 + y / x * (1.0 / 6 - y * (1.0 / 30 - y / 42));
}

/* x with trigamma(x) = y, falling in x: bisection on a logarithmic scale. */
static double inverse_trigamma(double y)
{
	double low = 1e-3;
	double high = 1e3;
	enum { STEPS = 60 };
	for (int i = 0; i < STEPS; i++) {
		const double middle = sqrt(low * high);
		if (moderation_trigamma(middle) > y)
			low = middle;
		else
			high = middle;
	}
	return sqrt(low * high);
}

struct moderation moderation_of(const double *variances, const double *freedoms, size_t count)
{
	struct moderation shared = {0, 0};
	if (count < MODERATION_SAMPLES_LEAST)
		return shared;
	double mean = 0;
	double expected = 0;
	double square = 0;
	for (size_t i = 0; i < count; i++) {
		const double half = freedoms[i] / 2;
		const double e = log(fmax(variances[i], VARIANCE_LEAST)) -
				 moderation_digamma(half) + log(half);
		mean += e / (double)count;
		square += e * e;
		expected += moderation_trigamma(half) / (double)count;
	}
	const double spread =
		fmax(0, (square - (double)count * mean * mean) / (double)(count - 1) - expected);
	const double least = moderation_trigamma(MODERATION_FREEDOM_MOST / 2.0);
	const double half = inverse_trigamma(fmax(spread, least));
	shared.freedom = fmin(2 * half, MODERATION_FREEDOM_MOST);
	shared.variance = exp(mean + moderation_digamma(half) - log(half));
	return shared;
}

double moderation_apply(
	const struct moderation *shared, double variance, double freedom, double *moderated_freedom)
{
	*moderated_freedom = shared->freedom + freedom;
	if (*moderated_freedom <= 0)
		return NAN;
	return (shared->freedom * shared->variance + freedom * variance) / *moderated_freedom;
}

/* --- the universal scalability law ------------------------------------------------------------ */

/* The universal scalability law, made linear: with a = 1/lambda, b = sigma/lambda, c = kappa/lambda
 *     n / X = a + b (n - 1) + c n (n - 1),
 * solved by least squares of relative errors (throughputs scatter in proportion to themselves) with
 * b and c not below 0: the best of the four ways to leave them out. */

enum { TERMS = 3, SUBSETS = 4, RESAMPLES = 400, DISTINCT_MIN = 4 };

static const double SINGULAR = 1e-12;
static const double LEVERAGE_MAX = 0.95;

struct fit {
	double term[TERMS]; /* a, b, c */
	double loss;        /* HUGE_VAL: no solution */
	unsigned free_terms;
};

static void usl_row(double n, double x, double row[TERMS])
{
	const double weight = x / n;
	row[0] = weight;
	row[1] = weight * (n - 1);
	row[2] = weight * n * (n - 1);
}

/* Gauss with pivoting on the size x size part of a, which becomes its inverse times b; false:
 * singular. */
static bool usl_solve(double a[TERMS][TERMS + 1], unsigned size)
{
	for (unsigned k = 0; k < size; k++) {
		unsigned best = k;
		for (unsigned i = k + 1; i < size; i++)
			best = fabs(a[i][k]) > fabs(a[best][k]) ? i : best;
		if (!(fabs(a[best][k]) > SINGULAR * fabs(a[0][0]) + 1e-300))
			return false;
		for (unsigned j = 0; j <= TERMS; j++) {
			const double swap = a[k][j];
			a[k][j] = a[best][j];
			a[best][j] = swap;
		}
		for (unsigned i = 0; i < size; i++) {
			const double factor = i == k ? 0 : a[i][k] / a[k][k];
			for (unsigned j = k; j <= TERMS; j++)
				a[i][j] -= factor * a[k][j];
		}
	}
	for (unsigned k = 0; k < size; k++)
		a[k][TERMS] /= a[k][k];
	return true;
}

/* Sum over the points of rows' products, for the terms in use. */
static void normal_equations(const double *n, const double *x, size_t count,
	const unsigned terms[TERMS], unsigned used, double a[TERMS][TERMS + 1])
{
	for (unsigned i = 0; i < TERMS; i++)
		for (unsigned j = 0; j <= TERMS; j++)
			a[i][j] = 0;
	for (size_t p = 0; p < count; p++) {
		double row[TERMS];
		usl_row(n[p], x[p], row);
		for (unsigned i = 0; i < used; i++) {
			for (unsigned j = 0; j < used; j++)
				a[i][j] += row[terms[i]] * row[terms[j]];
			a[i][TERMS] += row[terms[i]];
		}
	}
}

static double loss_of(const double *n, const double *x, size_t count, const double term[TERMS])
{
	double loss = 0;
	for (size_t p = 0; p < count; p++) {
		double row[TERMS];
		usl_row(n[p], x[p], row);
		const double error = row[0] * term[0] + row[1] * term[1] + row[2] * term[2] - 1;
		loss += error * error;
	}
	return loss;
}

/* subset: bit 0 has b in, bit 1 has c in. */
static struct fit fit_subset(const double *n, const double *x, size_t count, unsigned subset)
{
	unsigned terms[TERMS] = {0};
	unsigned used = 1;
	for (unsigned t = 1; t < TERMS; t++)
		if (subset & (1U << (t - 1)))
			terms[used++] = t;
	double a[TERMS][TERMS + 1];
	normal_equations(n, x, count, terms, used, a);
	struct fit fit = {.loss = HUGE_VAL, .free_terms = used};
	if (!usl_solve(a, used))
		return fit;
	for (unsigned i = 0; i < used; i++) {
		if (a[i][TERMS] < 0)
			return fit;
		fit.term[terms[i]] = a[i][TERMS];
	}
	if (fit.term[0] > 0)
		fit.loss = loss_of(n, x, count, fit.term);
	return fit;
}

static struct fit fit_best(const double *n, const double *x, size_t count)
{
	struct fit best = {.loss = HUGE_VAL};
	for (unsigned subset = 0; subset < SUBSETS; subset++) {
		const struct fit fit = fit_subset(n, x, count, subset);
		/* A term more must be worth more than rounding. */
		if (fit.loss < best.loss - 1e-13 * (double)count)
			best = fit;
	}
	return best;
}

static double usl_value(const struct fit *fit, double n)
{
	return n / (fit->term[0] + fit->term[1] * (n - 1) + fit->term[2] * n * (n - 1));
}

static size_t distinct(const double *n, size_t count)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		size_t j = 0;
		while (j < i && n[j] != n[i])
			j++;
		found += j == i;
	}
	return found;
}

/* Student's 95 % point over the normal's: few residuals say little about their spread. */
static double widening(size_t freedom)
{
	static const double t95[] = {6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81};
	const size_t known = sizeof t95 / sizeof t95[0];
	if (freedom == 0)
		return t95[0] / 1.645;
	return freedom <= known ? t95[freedom - 1] / 1.645 : 1 + 1.5 / (double)freedom;
}

/* Relative residuals, each enlarged by as much as its point's leverage has hidden. */
static void spread_residuals(
	const double *n, const double *x, size_t count, const struct fit *fit, double *residual)
{
	static const unsigned all[TERMS] = {0, 1, 2};
	const size_t freedom = count > fit->free_terms ? count - fit->free_terms : 0;
	const double wide = widening(freedom);
	for (size_t p = 0; p < count; p++) {
		double row[TERMS];
		double a[TERMS][TERMS + 1];
		usl_row(n[p], x[p], row);
		normal_equations(n, x, count, all, TERMS, a);
		for (unsigned i = 0; i < TERMS; i++)
			a[i][TERMS] = row[i];
		double leverage = LEVERAGE_MAX;
		if (usl_solve(a, TERMS))
			leverage =
				row[0] * a[0][TERMS] + row[1] * a[1][TERMS] + row[2] * a[2][TERMS];
		leverage = fmin(fmax(leverage, 0), LEVERAGE_MAX);
		residual[p] = wide * (x[p] / usl_value(fit, n[p]) - 1) / sqrt(1 - leverage);
	}
}

static struct interval usl_interval(const double *values, size_t count)
{
	return (struct interval){
		statistics_quantile(values, count, 0.05), statistics_quantile(values, count, 0.95)};
}

/* Coefficients of fits to resampled data. */
struct resampled {
	double *lambda, *sigma, *kappa; /* (RESAMPLES) each */
};

/* work: (2 count + 3 RESAMPLES), which *out points into */
static void bootstrap(const double *n, const double *x, size_t count, const struct fit *fit,
	uint64_t seed, double *work, struct resampled *out)
{
	double *const residual = work;
	double *const drawn = work + count;
	struct rng rng;
	*out = (struct resampled){.lambda = drawn + count,
		.sigma = drawn + count + RESAMPLES,
		.kappa = drawn + count + 2 * (size_t)RESAMPLES};
	rng_init(&rng, seed, count);
	spread_residuals(n, x, count, fit, residual);
	for (size_t r = 0; r < RESAMPLES; r++) {
		for (size_t p = 0; p < count; p++) {
			const double error = residual[rng_below(&rng, count)];
			drawn[p] = usl_value(fit, n[p]) * fmax(1 + error, 0.01);
		}
		const struct fit again = fit_best(n, drawn, count);
		out->lambda[r] = 1 / again.term[0];
		out->sigma[r] = again.term[1] / again.term[0];
		out->kappa[r] = again.term[2] / again.term[0];
	}
}

static double law_at(double lambda, double sigma, double kappa, double n)
{
	return lambda * n / (1 + sigma * (n - 1) + kappa * n * (n - 1));
}

double usl_at(const struct usl_fit *fit, double n)
{
	return law_at(fit->lambda, fit->sigma, fit->kappa, n);
}

/* The 90 % band of the resampled fits at each n. */
static void band_of(
	const struct resampled *resampled, const double *at, size_t count, struct interval *band)
{
	double values[RESAMPLES];
	for (size_t i = 0; i < count; i++) {
		for (size_t r = 0; r < RESAMPLES; r++)
			values[r] = law_at(resampled->lambda[r], resampled->sigma[r],
				resampled->kappa[r], at[i]);
		band[i] = usl_interval(values, RESAMPLES);
	}
}

static double determination(const double *n, const double *x, size_t count, const struct fit *fit)
{
	const double mean = statistics_mean(x, count);
	double rest = 0;
	double total = 0;
	for (size_t p = 0; p < count; p++) {
		const double error = x[p] - usl_value(fit, n[p]);
		rest += error * error;
		total += (x[p] - mean) * (x[p] - mean);
	}
	return total > 0 ? 1 - rest / total : 1;
}

static bool can_fit(const double *n, const double *x, size_t count)
{
	for (size_t p = 0; p < count; p++)
		if (!(n[p] > 0) || !(x[p] > 0))
			return false;
	return distinct(n, count) >= DISTINCT_MIN;
}

bool usl_fit(const double *n, const double *x, size_t count, uint64_t seed, struct usl_fit *out)
{
	return usl_fit_band(n, x, count, seed, out, NULL, 0, NULL);
}

bool usl_fit_band(const double *n, const double *x, size_t count, uint64_t seed,
	struct usl_fit *out, const double *at, size_t at_count, struct interval *band)
{
	struct resampled resampled;
	if (!can_fit(n, x, count))
		return false;
	const struct fit fit = fit_best(n, x, count);
	double *work = malloc((2 * count + 3 * (size_t)RESAMPLES) * sizeof *work);
	if (!work || fit.loss == HUGE_VAL) {
		free(work);
		return false;
	}
	*out = (struct usl_fit){
		.lambda = 1 / fit.term[0],
		.sigma = fit.term[1] / fit.term[0],
		.kappa = fit.term[2] / fit.term[0],
		.r_squared = determination(n, x, count, &fit),
	};
	out->peak = out->kappa > 0 ? fmax(sqrt(fmax(1 - out->sigma, 0) / out->kappa), 1) : HUGE_VAL;
	bootstrap(n, x, count, &fit, seed, work, &resampled);
	out->lambda_90 = usl_interval(resampled.lambda, RESAMPLES);
	out->sigma_90 = usl_interval(resampled.sigma, RESAMPLES);
	out->kappa_90 = usl_interval(resampled.kappa, RESAMPLES);
	band_of(&resampled, at, at_count, band);
	free(work);
	return true;
}

/* --- where a series of results moves to another level ----------------------------------------- */

enum { EDGE = 2, INSIDE = 3, SIMULATIONS = 1999 };

static const uint64_t SEED = 20041;
/* Correlation of a result with the next one; FRESH keeps the variance constant. */
static const double CORRELATION = 0.3;
static const double FRESH = 0.9539392014169456; /* sqrt(1 - 0.3 * 0.3) */

/* A series on the scale on which its noise adds. */
struct series {
	double x[LEVEL_VALUES_MAX];
	double weight[LEVEL_VALUES_MAX]; /* one over the relative variance */
	double error[LEVEL_VALUES_MAX];  /* its own, on that scale; NAN */
};

struct part {
	size_t first, count;
};

/* A stretch with its own level: at the beginning (from = 0: a step) or inside. */
struct cut {
	size_t from, to; /* to 0: there is none */
	double t, gap;
};

/* Prefix sums over a part, for levels and residuals of any stretch. */
struct sums {
	double w[LEVEL_VALUES_MAX + 1], wx[LEVEL_VALUES_MAX + 1], wxx[LEVEL_VALUES_MAX + 1];
};

/* The scatter between runs is unknown and at least about as large as within them; the median of the
 * values' own errors stands in for it, so that no value counts more than twice as much as a typical
 * one. */
static void weigh_values(struct series *s, size_t count)
{
	double known[LEVEL_VALUES_MAX];
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		if (isfinite(s->error[i]) && s->error[i] > 0)
			known[n++] = s->error[i];
	const double usual = n > 0 ? statistics_median(known, n) : 1;
	for (size_t i = 0; i < count; i++) {
		const double own = isfinite(s->error[i]) ? s->error[i] : usual;
		s->weight[i] = 2 * usual * usual / (usual * usual + own * own);
	}
}

static void transform(
	const struct level_value *values, size_t count, enum level_scale scale, struct series *s)
{
	for (size_t i = 0; i < count; i++) {
		const double v = values[i].value;
		s->x[i] = scale == LEVEL_RATIO ? log(v) : v;
		s->error[i] = scale == LEVEL_RATIO ? values[i].error / v : values[i].error;
	}
	weigh_values(s, count);
}

static void prefix_sums(const double *x, const double *weight, size_t count, struct sums *sums)
{
	sums->w[0] = sums->wx[0] = sums->wxx[0] = 0;
	for (size_t i = 0; i < count; i++) {
		sums->w[i + 1] = sums->w[i] + weight[i];
		sums->wx[i + 1] = sums->wx[i] + weight[i] * x[i];
		sums->wxx[i + 1] = sums->wxx[i] + weight[i] * x[i] * x[i];
	}
}

static double residual_of(double w, double wx, double wxx)
{
	return fmax(wxx - wx * wx / w, 0);
}

/* t is the difference of the levels over its standard error, from the scatter about both levels;
 * that is at least `least` (a variance at weight 1). */
static void try_cut(
	struct cut *best, const struct sums *sums, size_t count, struct cut cut, double least)
{
	const double w = sums->w[cut.to] - sums->w[cut.from];
	const double wx = sums->wx[cut.to] - sums->wx[cut.from];
	const double wxx = sums->wxx[cut.to] - sums->wxx[cut.from];
	const double rest = sums->w[count] - w;
	const double rest_x = sums->wx[count] - wx;
	const double residual =
		residual_of(w, wx, wxx) + residual_of(rest, rest_x, sums->wxx[count] - wxx);
	const double scatter = fmax(residual / (double)(count - 2), least);
	const double error = sqrt(scatter * (1 / w + 1 / rest));
	cut.gap = fabs(wx / w - rest_x / rest);
	cut.t = error > 0 ? cut.gap / error : cut.gap > 0 ? (double)INFINITY : 0;
	if (cut.t > best->t)
		*best = cut;
}

static struct cut clearest(const struct sums *sums, size_t count, double least)
{
	struct cut best = {0};
	for (size_t to = EDGE; to + EDGE <= count; to++)
		try_cut(&best, sums, count, (struct cut){.to = to}, least);
	for (size_t from = EDGE; from + INSIDE + EDGE <= count; from++)
		for (size_t to = from + INSIDE; to + EDGE <= count; to++)
			try_cut(&best, sums, count, (struct cut){.from = from, .to = to}, least);
	return best;
}

/* Student's t with 4 degrees of freedom: a normal over the root of a chi-square over 4. */
static double heavy_noise(struct rng *rng)
{
	return rng_normal(rng) / sqrt((rng_exponential(rng) + rng_exponential(rng)) / 2);
}

/* How often a series without a change has a cut as clear; 1 as soon as that exceeds `enough`. */
static double significance_of(double t, const double *weight, size_t count, double enough)
{
	struct rng rng;
	struct sums sums;
	double x[LEVEL_VALUES_MAX];
	unsigned clearer = 0;
	rng_init(&rng, SEED, count);
	for (unsigned i = 0; i < SIMULATIONS; i++) {
		double noise = heavy_noise(&rng);
		for (size_t j = 0; j < count; j++) {
			x[j] = noise / sqrt(weight[j]);
			noise = CORRELATION * noise + FRESH * heavy_noise(&rng);
		}
		prefix_sums(x, weight, count, &sums);
		clearer += clearest(&sums, count, 0).t >= t;
		if (1.0 + clearer > enough * (1.0 + SIMULATIONS))
			return 1;
	}
	return (1.0 + clearer) / (1.0 + SIMULATIONS);
}

/* Mean variance of the values' own errors, at weight 1: the scatter between runs cannot be less. */
static double own_variance(const struct series *s, const struct part *part)
{
	double sum = 0;
	size_t n = 0;
	for (size_t i = part->first; i < part->first + part->count; i++)
		if (isfinite(s->error[i])) {
			sum += s->error[i] * s->error[i] * s->weight[i];
			n++;
		}
	return n > 0 ? sum / (double)n : 0;
}

/* Positions are those of the whole series; .to is 0 when no change is significant and large
 * enough. */
static struct cut find_level_cut(
	const struct series *s, const struct part *part, double significance, double *p)
{
	static const struct cut none;
	struct sums sums;
	double x[LEVEL_VALUES_MAX];
	if (part->count < LEVEL_VALUES_MIN)
		return none;
	/* Sums of squares about the first value: levels may be large beside what they scatter
	 * by. */
	for (size_t i = 0; i < part->count; i++)
		x[i] = s->x[part->first + i] - s->x[part->first];
	prefix_sums(x, s->weight + part->first, part->count, &sums);
	struct cut cut = clearest(&sums, part->count, own_variance(s, part));
	if (cut.to == 0 || cut.gap < LEVEL_LEAST)
		return none;
	*p = significance_of(cut.t, s->weight + part->first, part->count, significance);
	cut.from += part->first;
	cut.to += part->first;
	return *p <= significance ? cut : none;
}

struct search {
	const struct series *series;
	double significance;
	struct level_change *changes;
	size_t count;
};

static void search_add_change(struct search *search, size_t at, double p)
{
	if (search->count < LEVEL_CHANGES_MAX)
		search->changes[search->count++] = (struct level_change){.at = at, .p = p};
}

/* Searches what lies before a cut first, so that changes come out in order. */
static void search_part(struct search *search, struct part part)
{
	double p = 1;
	const struct cut cut = find_level_cut(search->series, &part, search->significance, &p);
	if (cut.to == 0)
		return;
	if (cut.from > part.first) {
		search_part(search, (struct part){part.first, cut.from - part.first});
		search_add_change(search, cut.from, p);
	}
	search_part(search, (struct part){cut.from, cut.to - cut.from});
	search_add_change(search, cut.to, p);
	search_part(search, (struct part){cut.to, part.first + part.count - cut.to});
}

static double level_in(const struct series *s, size_t first, size_t last, enum level_scale scale)
{
	double w = 0;
	double wx = 0;
	for (size_t i = first; i < last; i++) {
		w += s->weight[i];
		wx += s->weight[i] * s->x[i];
	}
	return scale == LEVEL_RATIO ? exp(wx / w) : wx / w;
}

/* Neighbours that differed only from what lies further away are one level. */
static void drop_equal(struct search *search, size_t count, enum level_scale scale)
{
	struct level_change *changes = search->changes;
	for (size_t i = 0; i < search->count;) {
		const size_t first = i > 0 ? changes[i - 1].at : 0;
		const size_t last = i + 1 < search->count ? changes[i + 1].at : count;
		const double before = level_in(search->series, first, changes[i].at, scale);
		const double after = level_in(search->series, changes[i].at, last, scale);
		const double gap = scale == LEVEL_RATIO ? log(after / before) : after - before;
		if (fabs(gap) >= LEVEL_LEAST) {
			i++;
			continue;
		}
		search->count--;
		memmove(&changes[i], &changes[i + 1], (search->count - i) * sizeof *changes);
	}
}

size_t level_changes_find(const struct level_value *values, size_t count, enum level_scale scale,
	double significance, struct level_change changes[LEVEL_CHANGES_MAX])
{
	struct series *s = count <= LEVEL_VALUES_MAX ? malloc(sizeof *s) : NULL;
	if (!s)
		return 0;
	transform(values, count, scale, s);
	struct search search = {.series = s, .significance = significance, .changes = changes};
	search_part(&search, (struct part){0, count});
	drop_equal(&search, count, scale);
	for (size_t i = 0; i < search.count; i++) {
		const size_t first = i > 0 ? changes[i - 1].at : 0;
		const size_t last = i + 1 < search.count ? changes[i + 1].at : count;
		changes[i].before = level_in(s, first, changes[i].at, scale);
		changes[i].after = level_in(s, changes[i].at, last, scale);
	}
	free(s);
	return search.count;
}

double level_of(const struct level_value *values, size_t first, size_t last, enum level_scale scale)
{
	struct series *s = last <= LEVEL_VALUES_MAX && first < last ? malloc(sizeof *s) : NULL;
	if (!s)
		return NAN;
	transform(values, last, scale, s);
	const double level = level_in(s, first, last, scale);
	free(s);
	return level;
}
