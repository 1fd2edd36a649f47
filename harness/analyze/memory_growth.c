/* Growth of a memory series.  It is reduced to medians of blocks of windows, through which the
 * Theil-Sen slope goes; resampled residuals of the blocks give its interval. */
#include "harness/analyze/memory_growth.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
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
/* Growth of the troughs over the depth of the falls: windows meet a trough at different moments. */
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

/* Deviation of a block's level, from second differences, so that neither a slope nor a bend counts
 * as noise. */
static double noise_of_blocks(const struct blocks *b)
{
	double seconds[BLOCKS];
	size_t n = 0;
	for (size_t i = 1; i + 1 < b->count; i++)
		seconds[n++] = fabs(b->y[i - 1] - 2 * b->y[i] + b->y[i + 1]);
	return n > 0 ? statistics_median(seconds, n) / SECOND_DIFFERENCE : 0;
}

/* The largest fall from the highest level before it; single windows do not count. */
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

/* Troughs: where the series has fallen by `fall` from the top before, at its least until it has
 * risen by as much again.  Writes their places; returns how many. */
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

/* All in one jump: allocated once and kept. */
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

/* Running medians of SMOOTHED windows, so that a passing allocation makes no trough; NULL without
 * memory. */
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
	if (significant(&g, seconds, noise_of_blocks(&b)) &&
		g.slope * seconds >= TROUGHS_OF_FALL * fall)
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
		g.shape = significant(&g, seconds, noise_of_blocks(&b)) ? GROWTH_ENDLESS
									: GROWTH_NONE;
	return g;
}

/* --- the memory of a point -------------------------------------------------------------------- */

static const double STAGE_SHARE = 0.30;  /* of the growth, for a stage to be named */
static const double ARENAS_SHARE = 0.70; /* of the growth, free inside the arenas */

enum { REPEATS_MAX = 64 };

/* One quantity over the windows after the warm-up. */
struct memory_series {
	double *t, *value; /* (count), one block; owned */
	size_t count;
};

typedef double of_window(const struct window *w, size_t stage);

static double anonymous(const struct window *w, size_t stage)
{
	(void)stage;
	return w->resident_bytes > w->file_bytes ? (double)(w->resident_bytes - w->file_bytes) : 0;
}

static double allocated(const struct window *w, size_t stage)
{
	return (double)w->stage_allocated[stage];
}

static double heap_free(const struct window *w, size_t stage)
{
	(void)stage;
	return w->heap_free_bytes;
}

static struct memory_series memory_series_of(
	const struct measurement *m, of_window *value, size_t stage)
{
	struct memory_series s = {.t = calloc(2 * m->window_count + 2, sizeof(double))};
	if (!s.t)
		return s;
	s.value = s.t + m->window_count + 1;
	for (size_t i = 0; i < m->window_count; i++) {
		const struct window *w = &m->windows[i];
		const double v = value(w, stage);
		if (w->t < m->cut_seconds || w->resident_bytes == 0 || !isfinite(v))
			continue;
		s.t[s.count] = w->t;
		s.value[s.count++] = v;
	}
	return s;
}

static double memory_slope(const struct measurement *m, of_window *value, size_t stage)
{
	struct memory_series s = memory_series_of(m, value, stage);
	const double slope = statistics_robust_slope(s.t, s.value, s.count);
	free(s.t);
	return slope;
}

static struct growth growth_of_repeat(const struct measurement *m, uint64_t seed)
{
	struct memory_series s = memory_series_of(m, anonymous, 0);
	const struct growth g = growth_of(s.t, s.value, s.count, seed);
	free(s.t);
	return g;
}

/* What the repetitions say together. */
struct tally {
	size_t shapes[GROWTH_ENDLESS + 1], told;
	double slopes[REPEATS_MAX], lows[REPEATS_MAX], highs[REPEATS_MAX];
	const struct measurement *example; /* the last one that shows what the majority does */
};

static enum growth_shape majority(const struct tally *tally)
{
	if (2 * tally->shapes[GROWTH_ENDLESS] > tally->told)
		return GROWTH_ENDLESS;
	if (tally->told == 0)
		return GROWTH_TOO_SHORT;
	enum growth_shape most = GROWTH_NONE;
	for (int shape = GROWTH_NONE; shape < GROWTH_ENDLESS; shape++)
		if (tally->shapes[shape] > tally->shapes[most])
			most = (enum growth_shape)shape;
	return most;
}

static struct tally tally_repeats(
	const struct measurement *const *repeats, size_t count, uint64_t seed)
{
	struct tally tally = {0};
	for (size_t i = 0; i < count && tally.told < REPEATS_MAX; i++) {
		const struct growth g = growth_of_repeat(repeats[i], seed + i);
		tally.shapes[g.shape]++;
		if (g.shape == GROWTH_TOO_SHORT)
			continue;
		tally.slopes[tally.told] = g.slope;
		tally.lows[tally.told] = g.interval.low;
		tally.highs[tally.told++] = g.interval.high;
		if (g.shape == GROWTH_ENDLESS || !tally.example)
			tally.example = repeats[i];
	}
	return tally;
}

/* The stage whose own allocations make up most of the growth; "" when none does. */
static void name_stage(const struct measurement *m, struct memory_finding *out)
{
	double most = STAGE_SHARE * out->bytes_per_s;
	for (size_t i = 0; i < m->stage_count; i++) {
		const double slope = memory_slope(m, allocated, i);
		if (!(slope > most))
			continue;
		most = slope;
		memcpy(out->stage, m->stages[i].name, sizeof out->stage);
	}
}

static double bytes_at_end(const struct measurement *m)
{
	return m->window_count > 0 ? anonymous(&m->windows[m->window_count - 1], 0) : NAN;
}

static void describe_leak(struct memory_finding *out)
{
	char rate[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	char left[UNITS_BYTES];
	char full[64] = "";
	if (isfinite(out->seconds_to_full))
		(void)snprintf(full, sizeof full, "; memory is full in %s",
			units_format_duration(out->seconds_to_full * (double)NS_PER_S, left));
	(void)snprintf(out->words, sizeof out->words,
		"memory grows by %s (90 %% CI %s to %s) after the warm-up and does not level "
		"off%s%s%s",
		units_format_rate(out->bytes_per_s, rate),
		units_format_rate(out->interval.low, low),
		units_format_rate(out->interval.high, high),
		out->stage[0] ? ": allocations of " : "", out->stage, full);
}

static void judge_endless(
	const struct measurement *m, const struct point_facts *facts, struct memory_finding *out)
{
	const double in_arenas = memory_slope(m, heap_free, 0);
	char rate[UNITS_BYTES];
	if (in_arenas >= ARENAS_SHARE * out->bytes_per_s) {
		(void)snprintf(out->words, sizeof out->words,
			"memory grows by %s, but most of it is free inside the allocator's arenas: "
			"fragmentation, not a leak",
			units_format_rate(out->bytes_per_s, rate));
		return;
	}
	out->leaks = true;
	name_stage(m, out);
	if (facts->memory_limit_bytes > 0)
		out->seconds_to_full =
			fmax(facts->memory_limit_bytes - bytes_at_end(m), 0) / out->bytes_per_s;
	else
		out->seconds_to_full = NAN;
	describe_leak(out);
}

void memory_find(const struct measurement *const *repeats, size_t count,
	const struct point_facts *facts, struct memory_finding *out)
{
	static const char *const words[] = {
		[GROWTH_TOO_SHORT] = "unknown: the run was too short, or memory was not sampled",
		[GROWTH_NONE] = "memory does not grow after the warm-up",
		[GROWTH_LEVELS_OFF] =
			"memory grows after the warm-up and levels off: pools and arenas fill up",
		[GROWTH_RETURNS] = "memory grows and is given back",
		[GROWTH_ENDLESS] = "",
	};
	*out = (struct memory_finding){
		.bytes_per_s = NAN, .interval = {NAN, NAN}, .seconds_to_full = NAN};
	const struct tally tally = tally_repeats(repeats, count, facts->seed);
	const enum growth_shape shape = majority(&tally);
	(void)snprintf(out->words, sizeof out->words, "%s", words[shape]);
	if (shape == GROWTH_TOO_SHORT)
		return;
	out->bytes_per_s = statistics_median(tally.slopes, tally.told);
	out->interval = (struct interval){statistics_median(tally.lows, tally.told),
		statistics_median(tally.highs, tally.told)};
	out->seconds_to_full = HUGE_VAL;
	if (shape == GROWTH_ENDLESS && tally.example)
		judge_endless(tally.example, facts, out);
}
