/* The sign test, and what else criteria are judged by. */
#include "harness/accept/judge.h"

#include "harness/accept/baseline.h"
#include "harness/base/array.h"
#include "harness/base/rng.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { JUDGE_RESAMPLES = 1000, JUDGE_VALUES_MAX = 4096, JUDGE_SPREAD_LEAST = 4 };

unsigned judge_repeats(double rate)
{
	return (unsigned)ceil(log2(2.0 / rate));
}

/* C(n, i) / 2^n, by logarithms: n may be thousands. */
static double judge_term(size_t n, size_t i)
{
	return exp(lgamma((double)n + 1) - lgamma((double)i + 1) - lgamma((double)(n - i) + 1) -
		   (double)n * log(2.0));
}

double judge_tail(size_t n, size_t k)
{
	double sum = 0;
	for (size_t i = k; i <= n; i++)
		sum += judge_term(n, i);
	return sum > 1 ? 1 : sum;
}

/* One side: good of n on the good one. */
static enum judgement judge_side(size_t good, size_t n, const struct judge_rates *rates)
{
	const double share = ldexp(1.0, -(int)rates->look);
	if (judge_tail(n, good) <= rates->pass * share)
		return JUDGED_HOLDS;
	return judge_tail(n, n - good) <= rates->fail * share ? JUDGED_BROKEN : JUDGED_OPEN;
}

enum judgement judge_median(const double *values, size_t count, double low, double high, bool open,
	const struct judge_rates *rates)
{
	size_t above = 0;
	size_t below = 0;
	for (size_t i = 0; i < count; i++) {
		above += open ? values[i] > low : values[i] >= low;
		below += open ? values[i] < high : values[i] <= high;
	}
	const enum judgement lower =
		low > -(double)INFINITY ? judge_side(above, count, rates) : JUDGED_HOLDS;
	const enum judgement upper =
		high < (double)INFINITY ? judge_side(below, count, rates) : JUDGED_HOLDS;
	return lower > upper ? lower : upper;
}

struct interval judge_interval(const double *values, size_t count, double rate)
{
	struct interval interval = {(double)NAN, (double)NAN};
	double *sorted = count > 0 ? malloc(count * sizeof *sorted) : NULL;
	if (!sorted)
		return interval;
	memcpy(sorted, values, count * sizeof *sorted);
	sort_doubles(sorted, count);
	/* The k-th from either end: P(fewer than k below the median) <= rate, which is the sum of the terms of less. */
	size_t k = 1;
	double tail = judge_term(count, count);
	while (2 * (k + 1) <= count && (tail += judge_term(count, count - k)) <= rate)
		k++;
	interval = (struct interval){sorted[k - 1], sorted[count - k]};
	free(sorted);
	return interval;
}

/* --- statistics that have no sign ------------------------------------------------------------- */

double judge_spread(const double *values, size_t count)
{
	static const double quantiles[] = {0.16, 0.5, 0.84};
	double at[COUNT(quantiles)];
	if (count < 2)
		return (double)NAN;
	statistics_quantiles(values, count, quantiles, COUNT(quantiles), at);
	return at[1] != 0 ? (at[2] - at[0]) / 2 / fabs(at[1]) : (double)NAN;
}

/* What a statistic of the values is judged by. */
struct judged_statistic {
	double (*of)(const double *values, size_t count, const void *context);
	const void *context;
};

/* Percentiles at rate and 1 - rate of the statistic over resampled values: the same ones for the same values. */
static struct interval judge_bootstrap(
	const double *values, size_t count, const struct judged_statistic *statistic, double rate)
{
	struct interval interval = {(double)NAN, (double)NAN};
	double drawn[JUDGE_RESAMPLES];
	if (count > JUDGE_VALUES_MAX)
		count = JUDGE_VALUES_MAX;
	double *sample = malloc((count + 1) * sizeof *sample);
	if (!sample || count == 0) {
		free(sample);
		return interval;
	}
	struct rng rng;
	rng_init(&rng, 1, count);
	for (size_t i = 0; i < JUDGE_RESAMPLES; i++) {
		for (size_t at = 0; at < count; at++)
			sample[at] = values[rng_below(&rng, count)];
		drawn[i] = statistic->of(sample, count, statistic->context);
	}
	free(sample);
	interval.low = statistics_quantile(drawn, JUDGE_RESAMPLES, rate);
	interval.high = statistics_quantile(drawn, JUDGE_RESAMPLES, 1 - rate);
	return interval;
}

double judge_look_rate(const struct judge_rates *rates)
{
	return (rates->pass < rates->fail ? rates->pass : rates->fail) *
	       ldexp(1.0, -(int)rates->look);
}

/* The interval at the rate of the stricter claim, and what it shows of `bad is above the limit`. */
static enum judgement judge_above(const struct interval *interval, double limit)
{
	if (!isfinite(interval->low) || !isfinite(interval->high))
		return JUDGED_OPEN;
	if (interval->high <= limit)
		return JUDGED_HOLDS;
	return interval->low > limit ? JUDGED_BROKEN : JUDGED_OPEN;
}

static double spread_statistic(const double *values, size_t count, const void *context)
{
	(void)context;
	return judge_spread(values, count);
}

enum judgement judge_spread_within(const double *values, size_t count, double limit,
	const struct judge_rates *rates, struct interval *interval)
{
	const struct judged_statistic spread = {spread_statistic, NULL};
	*interval = judge_bootstrap(values, count, &spread, judge_look_rate(rates));
	return count < JUDGE_SPREAD_LEAST ? JUDGED_OPEN : judge_above(interval, limit);
}

struct similar_to {
	const double *values;
	size_t count;
	bool more_is_better;
};

static double difference_statistic(const double *values, size_t count, const void *context)
{
	const struct similar_to *to = context;
	return 1 -
	       baseline_similarity(to->values, to->count, values, count, true, to->more_is_better);
}

enum judgement judge_similar(const double *values, size_t count, const double *baseline,
	size_t baseline_count, bool more_is_better, double limit, const struct judge_rates *rates,
	double *similarity, struct interval *interval)
{
	const struct similar_to to = {baseline, baseline_count, more_is_better};
	const struct judged_statistic difference = {difference_statistic, &to};
	*similarity = 1 - difference_statistic(values, count, &to);
	const struct interval away =
		judge_bootstrap(values, count, &difference, judge_look_rate(rates));
	*interval = (struct interval){1 - away.high, 1 - away.low};
	return count < JUDGE_SPREAD_LEAST ? JUDGED_OPEN : judge_above(&away, 1 - limit);
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Whether one of the words of text, which blanks and commas separate, is of the glob. */
static bool text_has(const char *text, const char *glob)
{
	char word[256];
	while (*text) {
		text += strspn(text, ", \t\n");
		const size_t length = strcspn(text, ", \t\n");
		if (length > 0 && length < sizeof word) {
			memcpy(word, text, length);
			word[length] = '\0';
			if (fnmatch(glob, word, 0) == 0)
				return true;
		}
		text += length;
	}
	return false;
}

bool judge_text(const struct clause *clause, const char *text)
{
	for (size_t i = 0; i < clause->word_count; i++) {
		const bool is = clause->kind == CLAUSE_HAS
					? text_has(text, clause->words[i])
					: fnmatch(clause->words[i], text, 0) == 0;
		if (clause->kind == CLAUSE_HAS && !is)
			return false;
		if (clause->kind != CLAUSE_HAS && is)
			return clause->kind == CLAUSE_IS;
	}
	return clause->kind != CLAUSE_IS;
}
