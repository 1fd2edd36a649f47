/* The memory of a point: growth of its anonymous memory, whose it is, and until when it lasts. */
#include "harness/analyze/memory_growth.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static struct memory_series series_of(const struct measurement *m, of_window *value, size_t stage)
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

static double slope_of(const struct measurement *m, of_window *value, size_t stage)
{
	struct memory_series s = series_of(m, value, stage);
	const double slope = statistics_robust_slope(s.t, s.value, s.count);
	free(s.t);
	return slope;
}

static struct growth growth_of_repeat(const struct measurement *m, uint64_t seed)
{
	struct memory_series s = series_of(m, anonymous, 0);
	const struct growth g = growth_of(s.t, s.value, s.count, seed);
	free(s.t);
	return g;
}

/* What the repeats say together. */
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
		const double slope = slope_of(m, allocated, i);
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
		"memory grows by %s (90 %%: %s to %s) after the warm-up and does not level off%s%s%s",
		units_format_rate(out->bytes_per_s, rate),
		units_format_rate(out->interval.low, low),
		units_format_rate(out->interval.high, high),
		out->stage[0] ? ": allocations of " : "", out->stage, full);
}

static void judge_endless(
	const struct measurement *m, const struct point_facts *facts, struct memory_finding *out)
{
	const double in_arenas = slope_of(m, heap_free, 0);
	char rate[UNITS_BYTES];
	if (in_arenas >= ARENAS_SHARE * out->bytes_per_s) {
		(void)snprintf(out->words, sizeof out->words,
			"memory grows by %s, of which most is free inside the allocator's arenas: "
			"fragmentation, no leak",
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
		[GROWTH_TOO_SHORT] = "too short, or memory was not sampled: growth cannot be told",
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
