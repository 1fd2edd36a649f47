/* Growth of a memory series.  It is reduced to medians of blocks of windows, through which the Theil-Sen
 * slope goes; resampled residuals of the blocks give its interval. */
#include "harness/analyze/memory_growth.h"

#include "harness/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	WINDOWS_MIN = 16, /* for anything to be said */
	BLOCKS = 12,
	BLOCK_WINDOWS_MIN = 3,
	RESAMPLES = 200,
	THIRD = 3,
	TROUGHS_MIN = 3,
	SMOOTHED = 5,
};

static const double SECONDS_MIN = 2;
static const double GROWTH_LEAST = 2 << 20; /* bytes in all: less is an allocator's breath */
static const double SLOPE_LEAST = 16 << 10; /* bytes/s */
/* Growth of the troughs, of the fall to them: windows meet a trough at different moments. */
static const double TROUGHS_OF_FALL = 0.1;
static const double JUMP_OF_GROWTH = 0.6;
static const double LAST_OF_FIRST = 0.4;  /* rise of the last third over that of the first */
static const double FALL_OF_GROWTH = 0.3; /* a fall so large makes it a saw-tooth */
/* Median size of y - 2 y' + y'' of normal values of deviation 1: 0.6745 x sqrt(6). */
static const double SECOND_DIFFERENCE = 1.652;
static const double NOISE_TIMES = 4; /* that growth must exceed it */
static const double LEVEL = 0.90, SLOPE_QUANTILE = 0.05;

struct blocks {
	double t[BLOCKS], y[BLOCKS];
	size_t count;
};

static struct blocks blocks_of(const double *t, const double *y, size_t n)
{
	struct blocks b = {0};
	b.count = n / BLOCK_WINDOWS_MIN < BLOCKS ? n / BLOCK_WINDOWS_MIN : BLOCKS;
	for (size_t i = 0; i < b.count; i++) {
		const size_t first = i * n / b.count;
		const size_t last = (i + 1) * n / b.count;
		b.t[i] = statistics_median(t + first, last - first);
		b.y[i] = statistics_median(y + first, last - first);
	}
	return b;
}

/* Slopes of the line through resampled residuals. */
static struct interval slope_interval(const struct blocks *b, double slope, uint64_t seed)
{
	double residual[BLOCKS];
	double resampled[BLOCKS];
	double slopes[RESAMPLES];
	struct rng rng;
	rng_init(&rng, seed, b->count);
	for (size_t i = 0; i < b->count; i++)
		residual[i] = b->y[i] - slope * b->t[i];
	const double base = statistics_median(residual, b->count);
	for (size_t r = 0; r < RESAMPLES; r++) {
		for (size_t i = 0; i < b->count; i++)
			resampled[i] = slope * b->t[i] + base +
				       (residual[rng_below(&rng, b->count)] - base);
		slopes[r] = statistics_robust_slope(b->t, resampled, b->count);
	}
	return (struct interval){statistics_quantile(slopes, RESAMPLES, SLOPE_QUANTILE),
		statistics_quantile(slopes, RESAMPLES, LEVEL + SLOPE_QUANTILE)};
}

/* Rise over a third of the series: between the medians of the edges of that third. */
static double rise_of_third(const double *y, size_t n, size_t third)
{
	const size_t first = third * n / THIRD;
	const size_t last = (third + 1) * n / THIRD;
	const size_t edge = (last - first) / 8 + 1;
	return statistics_median(y + last - edge, edge) - statistics_median(y + first, edge);
}

/* Deviation of a block's level, from second differences: neither a slope nor a bend passes for it. */
static double noise_of(const struct blocks *b)
{
	double seconds[BLOCKS];
	size_t n = 0;
	for (size_t i = 1; i + 1 < b->count; i++)
		seconds[n++] = fabs(b->y[i - 1] - 2 * b->y[i] + b->y[i + 1]);
	return n > 0 ? statistics_median(seconds, n) / SECOND_DIFFERENCE : 0;
}

/* The largest fall from what was reached before, single windows aside. */
static double largest_fall(const struct blocks *fine)
{
	double most = 0;
	double top = -INFINITY;
	for (size_t i = 0; i < fine->count; i++) {
		top = fmax(top, fine->y[i]);
		most = fmax(most, top - fine->y[i]);
	}
	return most;
}

/* Troughs: where the series has fallen by `fall` from the top before, at its least until it has risen by as
 * much again.  Writes their places; returns how many. */
static size_t find_troughs(const double *y, size_t n, double fall, size_t *places, size_t room)
{
	size_t count = 0;
	size_t low = 0;
	double top = y[0];
	bool falling = false;
	for (size_t i = 1; i < n; i++) {
		if (falling && y[i] < y[low])
			low = i;
		if (falling && y[i] >= y[low] + fall / 2) {
			if (count < room)
				places[count++] = low;
			falling = false;
			top = y[i];
		}
		if (!falling && y[i] <= top - fall / 2) {
			falling = true;
			low = i;
		}
		top = fmax(top, y[i]);
	}
	if (falling && count < room)
		places[count++] = low;
	return count;
}

/* All in one jump: something was taken once, and kept. */
static bool is_one_jump(const struct blocks *b)
{
	double most = 0;
	for (size_t i = 1; i < b->count; i++)
		most = fmax(most, b->y[i] - b->y[i - 1]);
	return most > JUMP_OF_GROWTH * (b->y[b->count - 1] - b->y[0]);
}

static bool significant(const struct growth *g, double seconds, double noise)
{
	return g->interval.low > 0 && g->slope >= SLOPE_LEAST &&
	       g->slope * seconds >= fmax(GROWTH_LEAST, NOISE_TIMES * noise);
}

enum { TROUGHS_MAX = 256 };

/* Running medians of SMOOTHED windows, so that a passing allocation makes no trough; NULL without memory. */
static double *smoothed(const double *y, size_t n)
{
	double *out = malloc(n * sizeof *out);
	for (size_t i = 0; out && i < n; i++) {
		const size_t first = i < SMOOTHED / 2 ? 0 : i - SMOOTHED / 2;
		const size_t last = first + SMOOTHED < n ? first + SMOOTHED : n;
		out[i] = statistics_median(y + first, last - first);
	}
	return out;
}

/* Memory that is given back: a leak only if the troughs rise. */
static struct growth growth_of_troughs(
	const double *t, const double *y, size_t n, double fall, uint64_t seed)
{
	struct growth g = {.shape = GROWTH_RETURNS, .interval = {0, 0}};
	size_t places[TROUGHS_MAX];
	double lt[TROUGHS_MAX];
	double ly[TROUGHS_MAX];
	const size_t count = find_troughs(y, n, fall, places, TROUGHS_MAX);
	if (count < TROUGHS_MIN)
		return g;
	for (size_t i = 0; i < count; i++) {
		lt[i] = t[places[i]];
		ly[i] = y[places[i]];
	}
	struct blocks b = {.count = count < BLOCKS ? count : BLOCKS};
	for (size_t i = 0; i < b.count; i++) {
		const size_t first = i * count / b.count;
		const size_t last = (i + 1) * count / b.count;
		b.t[i] = statistics_median(lt + first, last - first);
		b.y[i] = statistics_median(ly + first, last - first);
	}
	g.slope = statistics_robust_slope(b.t, b.y, b.count);
	g.interval = slope_interval(&b, g.slope, seed);
	const double seconds = lt[count - 1] - lt[0];
	if (significant(&g, seconds, noise_of(&b)) && g.slope * seconds >= TROUGHS_OF_FALL * fall)
		g.shape = GROWTH_ENDLESS;
	return g;
}

static struct growth growth_that_returns(
	const double *t, const double *bytes, size_t count, double fall, uint64_t seed)
{
	struct growth g = {.shape = GROWTH_RETURNS, .interval = {0, 0}};
	double *smooth = smoothed(bytes, count);
	if (smooth)
		g = growth_of_troughs(t, smooth, count, fall, seed);
	free(smooth);
	return g;
}

struct growth growth_of(const double *t, const double *bytes, size_t count, uint64_t seed)
{
	struct growth g = {.shape = GROWTH_TOO_SHORT, .slope = NAN, .interval = {NAN, NAN}};
	if (count < WINDOWS_MIN || t[count - 1] - t[0] < SECONDS_MIN)
		return g;
	const struct blocks b = blocks_of(t, bytes, count);
	const double seconds = t[count - 1] - t[0];
	const double fall = largest_fall(&b);
	g.slope = statistics_robust_slope(b.t, b.y, b.count);
	if (fall > GROWTH_LEAST / 2 && fall > FALL_OF_GROWTH * fabs(g.slope) * seconds)
		return growth_that_returns(t, bytes, count, fall, seed);
	g.interval = slope_interval(&b, g.slope, seed);
	const double first = rise_of_third(bytes, count, 0);
	const double last = rise_of_third(bytes, count, THIRD - 1);
	const double usual = fmax(first, g.slope * seconds / THIRD);
	const bool grew = b.y[b.count - 1] - b.y[0] >= GROWTH_LEAST;
	if (is_one_jump(&b) || last < LAST_OF_FIRST * usual)
		g.shape = grew ? GROWTH_LEVELS_OFF : GROWTH_NONE;
	else
		g.shape = significant(&g, seconds, noise_of(&b)) ? GROWTH_ENDLESS : GROWTH_NONE;
	return g;
}
