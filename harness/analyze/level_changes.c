/* Change points in short series of values with unequal errors. */
#include "harness/analyze/level_changes.h"

#include "harness/analyze/statistics.h"
#include "harness/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
