/* Spread of the ratio of two stages' busy shares, between repetitions and by batch means within them. */
#include "harness/analyze/margin.h"

#include "harness/analyze/rate_series.h"
#include "harness/analyze/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MOST = 20, PARTS_LEAST = 4 };

static const double STEPS_A_PART = 2;
/* What the capacity of one stage varies by from one repetition to the next where nothing is known of it; as heavy as
 * two repetitions. */
static const double USUAL = 0.01;
static const double USUAL_WEIGHT = 2;

/* A stage, as the margin sees it. */
struct taken {
	size_t stage; /* stage_count: not there */
	bool shared;  /* its devices do something else in turn: taken while it is not starved */
};

static bool takes_turns(const char *name)
{
	return stage_is(name, STAGE_STEP) || stage_is(name, STAGE_SYNC);
}

/* Step and exchange of the same devices are taken as long as both together, but to each other they are two. */
static struct taken taken_of(const struct measurement *m, const char *name, const char *other)
{
	const bool shared = takes_turns(name) && !takes_turns(other) &&
			    measurement_stage_at(m, STAGE_SYNC_NAME) < m->stage_count;
	return (struct taken){.stage = measurement_stage_at(m, shared ? STAGE_STEP_NAME : name),
		.shared = shared};
}

static double taken_seconds(const struct taken *of, const double seconds[THREAD_STATES])
{
	return seconds[THREAD_WORKING] + (of->shared ? seconds[THREAD_BLOCKED] : 0);
}

/* Interpolated between windows. */
static double taken_until(const struct measurement *m, const struct taken *of, double t)
{
	double t0 = 0;
	double s0 = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		const double t1 = m->windows[i].t;
		const double s1 = taken_seconds(of, m->windows[i].stage_seconds[of->stage]);
		if (t < t1)
			return t1 > t0 ? s0 + (s1 - s0) * (t - t0) / (t1 - t0) : s0;
		t0 = t1;
		s0 = s1;
	}
	return s0;
}

static void take_parts(
	const struct measurement *m, const struct taken *of, size_t parts, double *out)
{
	double before = taken_until(m, of, m->cut_seconds);
	for (size_t i = 0; i < parts; i++) {
		const double share = (double)(i + 1) / (double)parts;
		const double after =
			taken_until(m, of, m->cut_seconds + share * m->measured_seconds);
		out[i] = after - before;
		before = after;
	}
}

/* Squared standard error of the ratio within one repetition, as that of a ratio of means; 0: too few parts. */
static double error_within(
	const struct measurement *m, const struct taken *one, const struct taken *other)
{
	double first[PARTS_MOST];
	double second[PARTS_MOST];
	const double end = m->cut_seconds + m->measured_seconds;
	const size_t parts = rate_parts(m, m->cut_seconds, end, STEPS_A_PART, PARTS_MOST);
	if (parts < PARTS_LEAST)
		return 0;
	take_parts(m, one, parts, first);
	take_parts(m, other, parts, second);
	const double mean_first = statistics_mean(first, parts);
	const double mean_second = statistics_mean(second, parts);
	if (!(mean_first > 0) || !(mean_second > 0))
		return 0;
	for (size_t i = 0; i < parts; i++)
		first[i] = first[i] / mean_first - second[i] / mean_second;
	const double deviation = statistics_deviation(first, parts);
	return deviation * deviation / (double)parts;
}

static double error_between(const double *ln_ratios, size_t count)
{
	const double usual = 2 * USUAL * USUAL; /* of either of the two */
	const double runs = fmax((double)count, 1);
	if (count < 2)
		return usual;
	const double deviation = statistics_deviation(ln_ratios, count);
	const double squares = (runs - 1) * deviation * deviation;
	return (USUAL_WEIGHT * usual + squares) / (USUAL_WEIGHT + runs - 1) / runs;
}

double margin_noise(const struct measurement *const *repeats, size_t count, const char *stage,
	const char *other)
{
	double *ln_ratios = calloc(count + 1, sizeof *ln_ratios);
	double within = 0;
	size_t known = 0;
	for (size_t i = 0; i < count && ln_ratios; i++) {
		const struct measurement *m = repeats[i];
		const struct taken a = taken_of(m, stage, other);
		const struct taken b = taken_of(m, other, stage);
		if (a.stage == m->stage_count || b.stage == m->stage_count)
			continue;
		const double ratio = taken_seconds(&b, m->stages[b.stage].seconds) /
				     taken_seconds(&a, m->stages[a.stage].seconds);
		if (!(ratio > 0) || !isfinite(ratio))
			continue;
		ln_ratios[known++] = log(ratio);
		within += error_within(m, &a, &b);
	}
	const double runs = fmax((double)known, 1);
	const double between = error_between(ln_ratios, known);
	free(ln_ratios);
	return sqrt(fmax(between, within / (runs * runs)));
}
