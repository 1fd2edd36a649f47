/* How often `mlbench reproduce` errs on throughput, and how soon it decides: its interval at each of its looks beside Student's
 * t at 99 % a look, under noise without and with stalled repetitions.
 *
 *	build/release/bench/bench_looks [SERIES]
 *
 * Reported: 600 samples/s (580 to 620).  False: the truth (the median of repetitions) lies on an edge of the band, where it errs
 * most, and the twin is called within, or beyond the edge.  Found: the truth is the reported rate, and it is called within. */
#include "harness/analyze/comparison.h"
#include "harness/analyze/reproduction.h"
#include "harness/analyze/student.h"
#include "harness/base/rng.h"
#include "tests/unit/real_repetitions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum looks_noise { LOOKS_NORMAL, LOOKS_STALLS, LOOKS_MORE_STALLS, LOOKS_REAL, LOOKS_NOISES };
static const double LOOKS_BAR = 0.05; /* that the test of pairs may err by */
enum { LOOKS_SEED = 20261126, LOOKS_SHOWN = 4 };

/* ln of one repetition over the truth. */
static double looks_draw(struct rng *rng, enum looks_noise noise, double deviation)
{
	static const double share[] = {
		[LOOKS_STALLS] = 0.05, [LOOKS_MORE_STALLS] = 0.10, [LOOKS_REAL] = 0};
	if (noise == LOOKS_REAL) { /* around their median */
		const double *repeats = real_repetitions[rng_below(rng, REAL_RUNS)][0][0];
		return log(repeats[rng_below(rng, REAL_REPEATS)] / 433.5);
	}
	const double e = deviation * rng_normal(rng);
	return rng_uniform(rng) < share[noise] ? e + log(1 - 0.6 * rng_uniform(rng)) : e;
}

/* What it was before: the mean of logarithms with Student's t. */
static enum reproduction_rate looks_by_student(const struct reproduction *r)
{
	const double n = (double)r->rate_count;
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < r->rate_count; i++)
		sum += log(r->rates[i]);
	for (size_t i = 0; i < r->rate_count; i++)
		squares += pow(log(r->rates[i]) - sum / n, 2);
	const double half = hypot(student_quantile(0.995, n - 1) * sqrt(squares / (n - 1) / n),
		1.959964 * COMPARE_RUN_DEVIATION);
	const double low = exp(sum / n - half);
	const double high = exp(sum / n + half);
	return low >= r->band.low && high <= r->band.high ? RATE_WITHIN
	       : high < r->band.low                       ? RATE_BELOW
	       : low > r->band.high                       ? RATE_ABOVE
							  : RATE_OPEN;
}

struct looks_end {
	enum reproduction_rate rate;
	size_t repeats;
};

static struct looks_end looks_of(
	double truth, enum looks_noise noise, double deviation, bool student, uint64_t stream)
{
	struct reproduction r = {.reported = {.rate = 600, .interval = {580, 620}},
		.tolerance = REPRODUCTION_TOLERANCE};
	struct rng rng;
	rng_init(&rng, LOOKS_SEED, stream);
	reproduction_judge(&r);
	while (r.rate_count < REPRODUCTION_REPEATS_MAX) {
		r.rates[r.rate_count++] = truth * exp(looks_draw(&rng, noise, deviation));
		if (!reproduction_is_look(r.rate_count))
			continue;
		if (!student)
			reproduction_judge(&r);
		const enum reproduction_rate rate = student ? looks_by_student(&r) : r.rate;
		if (rate != RATE_OPEN)
			return (struct looks_end){rate, r.rate_count};
	}
	return (struct looks_end){RATE_OPEN, r.rate_count};
}

/* Returns the largest of its rates of error, a share. */
static double looks_row(
	enum looks_noise noise, double deviation, bool student, unsigned long series)
{
	static const char *const names[] = {"normal", "5 % stalls", "10 % stalls", "real"};
	static const size_t shown[LOOKS_SHOWN] = {4, 6, 9, 14};
	const double edges[] = {
		580 * (1 - REPRODUCTION_TOLERANCE), 620 * (1 + REPRODUCTION_TOLERANCE)};
	size_t within[2] = {0};
	size_t beyond[2] = {0};
	size_t found[LOOKS_SHOWN] = {0};
	for (unsigned long i = 0; i < series; i++) {
		for (size_t edge = 0; edge < 2; edge++) {
			const struct looks_end end =
				looks_of(edges[edge], noise, deviation, student, i);
			within[edge] += end.rate == RATE_WITHIN;
			beyond[edge] += end.rate == (edge ? RATE_ABOVE : RATE_BELOW);
		}
		const struct looks_end same = looks_of(600, noise, deviation, student, i);
		for (size_t k = 0; k < LOOKS_SHOWN; k++)
			found[k] += same.rate == RATE_WITHIN && same.repeats <= shown[k];
	}
	const double percent = 100 / (double)series;
	printf("| %s, %.1f %% | %s | %.2f %.2f | %.2f %.2f | %.0f %.0f %.0f %.0f |\n", names[noise],
		100 * deviation, student ? "Student's t" : "test of pairs",
		percent * (double)within[0], percent * (double)within[1],
		percent * (double)beyond[0], percent * (double)beyond[1],
		percent * (double)found[0], percent * (double)found[1], percent * (double)found[2],
		percent * (double)found[3]);
	(void)fflush(stdout);
	return percent / 100 *
	       fmax(fmax((double)within[0], (double)within[1]),
		       fmax((double)beyond[0], (double)beyond[1]));
}

int main(int argc, char **argv)
{
	static const double deviations[] = {0.003, 0.02, 0.06};
	const unsigned long series = argc > 1 ? strtoul(argv[1], NULL, 10) : 300;
	double most = 0;
	if (series == 0)
		return 2;
	printf("| noise | interval | false within, %%, lower and upper edge | false beyond, %% | found, %%, by 4, 6, 9, 14 repetitions |\n");
	printf("|---|---|---|---|---|\n");
	for (int noise = 0; noise < LOOKS_NOISES; noise++)
		for (size_t k = 0; k < sizeof deviations / sizeof deviations[0]; k++) {
			if (noise == LOOKS_REAL && k > 0)
				continue;
			const double deviation = noise == LOOKS_REAL ? 0.047 : deviations[k];
			(void)looks_row((enum looks_noise)noise, deviation, true, series);
			most = fmax(
				most, looks_row((enum looks_noise)noise, deviation, false, series));
		}
	return most <= LOOKS_BAR ? 0 : 1;
}
