/* Small costs on a noisy machine: many short blocks in turn, each compared with its neighbours, and the mean of the
 * middle.  What holds a block up for a moment makes an outlier, which counts no more than any other beyond the middle;
 * what lasts longer than a block is in both of what is compared.  The interval tells what was resolved. */
#ifndef MLBENCH_TESTS_BENCH_PAIRS_H
#define MLBENCH_TESTS_BENCH_PAIRS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* Where the middle is, and 95 % confidence. */
struct bench_interval {
	double middle, low, high;
};

static inline int bench_pairs_order(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* The mean without the fifth at either end, and its interval from the Winsorised variance (Tukey and McLaughlin 1963;
 * Yuen 1974).  Sorts values; NAN below 10 of them. */
static inline struct bench_interval bench_middle(double *values, size_t count)
{
	const size_t cut = count / 5;
	const double kept = (double)(count - 2 * cut);
	double sum = 0;
	double squares = 0;
	if (count < 10)
		return (struct bench_interval){NAN, NAN, NAN};
	qsort(values, count, sizeof *values, bench_pairs_order);
	for (size_t i = cut; i < count - cut; i++)
		sum += values[i];
	const double ends = (double)cut * (values[cut] + values[count - cut - 1]);
	const double winsorised = (sum + ends) / (double)count;
	for (size_t i = 0; i < count; i++) {
		const size_t at = i < cut ? cut : i >= count - cut ? count - cut - 1 : i;
		squares += (values[at] - winsorised) * (values[at] - winsorised);
	}
	const double deviation = sqrt(squares / (double)(count - 1));
	const double error = deviation * sqrt((double)count) / kept;
	/* Student's t at 97.5 %, closely enough from 5 degrees of freedom on. */
	const double t = 1.96 + 2.5 / (kept - 1);
	return (struct bench_interval){sum / kept, sum / kept - t * error, sum / kept + t * error};
}

/* By how much more, %: a logarithm, because that of two that are the same is as often above zero as below by as much,
 * however skewed their noise is; a ratio's mean is not 1, nor is one against the mean of two. */
static inline double bench_change(double from, double to)
{
	return log(to / from) * 100;
}

/* On a core, of the calling thread, ns: others' turns and their waits are not in it. */
static inline double bench_thread_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline double bench_wall_s(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What a bar says of it.  An interval that is wider than the bar resolves nothing, wherever it lies. */
static inline const char *bench_verdict(struct bench_interval cost, double bar)
{
	if (!(cost.high - cost.low <= 2 * bar))
		return "not decided";
	return cost.high <= bar ? "held" : cost.low > bar ? "MISSED" : "not decided";
}

/* Ways in a new order, by a seed of the caller's. */
static inline void bench_shuffle(int *ways, int count, uint64_t *seed)
{
	for (int i = count - 1; i > 0; i--) {
		*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		const int j = (int)((*seed >> 33) % (uint64_t)(i + 1));
		const int way = ways[i];
		ways[i] = ways[j];
		ways[j] = way;
	}
}

#endif
