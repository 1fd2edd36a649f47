/* Series over the windows of a repetition, where their levels change, and what was measured between
 * two changes. */
#include "harness/analyze/diagnose.h"

#include "harness/analyze/rates.h"
#include "harness/analyze/statistics.h"
#include "harness/analyze/summary.h"
#include "harness/base/array.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- change points ---------------------------------------------------------------------------- */

enum { RUNNING = 7, TRIM_SHARE = 10, EDGE_SHARE = 12 };

static const double CLIP_DEVIATIONS = 4;
static const double MEDIAN_TO_DEVIATION = 1.4826;
static const double CORRELATION_MAX = 0.6;
static const double NOISE_LEAST = 0.05; /* of the least change of interest */
/* Critical values of a difference of means, in its standard errors and in deviations of single
 * values: a stretch of 5 or more values that differs by so much is a level of its own whatever the
 * correlation. Found by simulation, see the test. */
static const double CRITICAL = 8.4;
static const double CRITICAL_VALUES = 4.6;
static const double CRITICAL_FEW = 12; /* is added to it, over the number of values */

struct part {
	size_t first, count;
};

/* A stretch with a level of its own. */
struct split {
	size_t from, to;
	double excess; /* statistic over critical value; 0: none */
};

/* --- clipping --------------------------------------------------------------------------------- */

static void running_medians(const double *x, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++) {
		const size_t first = i < RUNNING / 2 ? 0 : i - RUNNING / 2;
		const size_t last = first + RUNNING < n ? first + RUNNING : n;
		out[i] = statistics_median(x + first, last - first);
	}
}

static void clip_outliers(struct change_series *series, size_t n)
{
	double centre[CHANGE_VALUES_MAX];
	double away[CHANGE_VALUES_MAX] = {0};
	running_medians(series->values, n, centre);
	for (size_t i = 0; i < n; i++)
		away[i] = fabs(series->values[i] - centre[i]);
	const double most = CLIP_DEVIATIONS * fmax(MEDIAN_TO_DEVIATION * statistics_median(away, n),
						      NOISE_LEAST * series->least);
	for (size_t i = 0; i < n; i++)
		series->values[i] =
			fmin(fmax(series->values[i], centre[i] - most), centre[i] + most);
}

/* --- one split -------------------------------------------------------------------------------- */

/* Mean of the rest when a share of the largest squares of a normal variable is left out; up to a
 * fifth. */
static double kept_of(double share)
{
	static const double tenth = 0.623;
	static const double fifth = 0.4375;
	if (share <= 0.1)
		return 1 - (1 - tenth) * share / 0.1;
	return tenth - (tenth - fifth) * (fmin(share, 0.2) - 0.1) / 0.1;
}

/* Mean squared difference of values `lag` apart, without the largest tenth for each lag: as many
 * pairs may straddle a change. */
static double squared_difference_at(const double *x, size_t n, size_t lag)
{
	double squares[CHANGE_VALUES_MAX];
	size_t pairs = 0;
	for (size_t i = 0; i + lag < n; i++)
		squares[pairs++] = (x[i + lag] - x[i]) * (x[i + lag] - x[i]);
	if (pairs == 0)
		return 0;
	sort_doubles(squares, pairs);
	const size_t trimmed = lag * pairs / TRIM_SHARE;
	return statistics_mean(squares, pairs - trimmed) / kept_of((double)trimmed / (double)pairs);
}

/* Noise of a stretch: of one value, from differences, and n times the variance of a mean over n, by
 * first- order autocorrelation: D1 = 2 s^2 (1 - phi), D2 = 2 s^2 (1 - phi^2). */
struct noise {
	double value, long_run;
};

static struct noise noise_of_values(const double *x, size_t n, double least)
{
	const double d1 = squared_difference_at(x, n, 1);
	const double d2 = squared_difference_at(x, n, 2);
	const double phi = d1 > 0 ? fmin(fmax(d2 / d1 - 1, 0), CORRELATION_MAX) : 0;
	const double floor = NOISE_LEAST * least * (NOISE_LEAST * least);
	return (struct noise){.value = sqrt(fmax(d1 / 2, floor)),
		.long_run = fmax(d1 / 2 * (1 + phi) / ((1 - phi) * (1 - phi)), floor)};
}

/* Against the rest of the part: a stretch at one of its ends is a step, one inside it comes and
 * goes. */
static void try_stretch(struct split *best, const double *sums, const struct part *part,
	struct split stretch, const struct change_series *series, const struct noise *noise)
{
	const double inside = (double)(stretch.to - stretch.from);
	const double outside = (double)part->count - inside;
	const double sum = sums[stretch.to] - sums[stretch.from];
	const double gap = fabs(sum / inside - (sums[part->count] - sum) / outside);
	if (gap < series->least)
		return;
	const double error = sqrt(noise->long_run * (1 / inside + 1 / outside));
	stretch.excess = fmax(gap / error / CRITICAL,
		gap / noise->value / (CRITICAL_VALUES + CRITICAL_FEW / (double)part->count));
	if (stretch.excess > best->excess)
		*best = stretch;
}

static struct split best_of_series(const struct change_series *series, const struct part *part)
{
	const double *x = series->values + part->first;
	const size_t n = part->count;
	const size_t share = n / EDGE_SHARE;
	const size_t edge = share > CHANGE_SEGMENT_MIN ? share : CHANGE_SEGMENT_MIN;
	const struct noise noise = noise_of_values(x, n, series->least);
	double sums[CHANGE_VALUES_MAX + 1] = {0};
	struct split best = {0};
	for (size_t i = 0; i < n; i++)
		sums[i + 1] = sums[i] + x[i];
	for (size_t from = 0; from + edge <= n; from = from ? from + 1 : edge)
		for (size_t to = from + edge; to <= n; to = to + edge == n ? n : to + 1)
			if ((to == n || to + edge <= n) && (from > 0 || to < n))
				try_stretch(&best, sums, part,
					(struct split){.from = from, .to = to}, series, &noise);
	best.from += part->first;
	best.to += part->first;
	return best;
}

static struct split best_of_part(const struct change_set *set, const struct part *part)
{
	struct split best = {0};
	if (part->count < 2 * CHANGE_SEGMENT_MIN)
		return best;
	for (size_t i = 0; i < set->series_count; i++) {
		const struct split split = best_of_series(&set->series[i], part);
		if (split.excess > best.excess)
			best = split;
	}
	return best;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void insert_start(struct segmentation *out, size_t start)
{
	size_t i = out->count;
	for (; i > 0 && out->starts[i - 1] > start; i--)
		;
	if (out->count == CHANGE_SEGMENTS_MAX || (i > 0 && out->starts[i - 1] == start))
		return;
	memmove(&out->starts[i + 1], &out->starts[i], (out->count - i) * sizeof out->starts[0]);
	out->starts[i] = start;
	out->count++;
}

static struct part segment_at(const struct segmentation *s, size_t i, size_t count)
{
	const bool last = i + 1 >= s->count || i + 1 >= CHANGE_SEGMENTS_MAX;
	const size_t end = last ? count : s->starts[i + 1];
	return (struct part){.first = s->starts[i], .count = end - s->starts[i]};
}

/* The segments on both sides of a change differ by themselves, without what lies further away. */
static bool segments_differ(
	const struct change_set *set, const struct part *left, const struct part *right)
{
	for (size_t i = 0; i < set->series_count; i++) {
		const double *x = set->series[i].values;
		const double gap = statistics_mean(x + left->first, left->count) -
				   statistics_mean(x + right->first, right->count);
		if (fabs(gap) >= set->series[i].least)
			return true;
	}
	return false;
}

static void drop_equal_neighbours(const struct change_set *set, struct segmentation *out)
{
	for (size_t i = 1; i < out->count;) {
		const struct part left = segment_at(out, i - 1, set->count);
		const struct part right = segment_at(out, i, set->count);
		if (segments_differ(set, &left, &right)) {
			i++;
			continue;
		}
		out->count--;
		memmove(&out->starts[i], &out->starts[i + 1],
			(out->count - i) * sizeof out->starts[0]);
	}
}

void change_points_find(struct change_set *set, struct segmentation *out)
{
	*out = (struct segmentation){.count = 1};
	for (size_t i = 0; i < set->series_count; i++)
		clip_outliers(&set->series[i], set->count);
	while (out->count < CHANGE_SEGMENTS_MAX) {
		struct split best = {0};
		for (size_t i = 0; i < out->count; i++) {
			const struct part part = segment_at(out, i, set->count);
			const struct split split = best_of_part(set, &part);
			if (split.excess > best.excess)
				best = split;
		}
		if (best.excess < 1)
			break;
		insert_start(out, best.from);
		if (best.to < set->count)
			insert_start(out, best.to);
	}
	drop_equal_neighbours(set, out);
}

/* --- phases of a repetition ------------------------------------------------------------------- */

enum { STATE_SERIES = 2 }; /* of a stage: starved and blocked; the rest is work */

static const double SAME_BEGIN_S = 0.3; /* of a part, from that of what was measured */
static const double RATE_LEAST = 0.10;  /* of the mean throughput */
static const double SHARE_LEAST = 0.15; /* of a stage's time */
static const double STEPS_A_VALUE = 4;
static const double RATES_ALIKE = 0.20; /* of ln(throughput) */

/* A member of the windows that counts since the start, by its offset, at time t, interpolated.  All
 * are doubles, except for bytes_read. */
static double count_at(const struct measurement *m, size_t offset, double t)
{
	double t0 = 0;
	double s0 = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		const double t1 = m->windows[i].t;
		double s1 = (double)m->windows[i].bytes_read;
		if (offset != offsetof(struct window, bytes_read))
			memcpy(&s1, (const char *)&m->windows[i] + offset, sizeof s1);
		if (t < t1)
			return t1 > t0 ? s0 + (s1 - s0) * (t - t0) / (t1 - t0) : s0;
		t0 = t1;
		s0 = s1;
	}
	return s0;
}

static double count_between(const struct measurement *m, size_t offset, double from, double to)
{
	return count_at(m, offset, to) - count_at(m, offset, from);
}

/* Of one stage: a state's seconds, or a member with one double for each stage. */
static size_t state_offset(size_t stage, enum thread_state state)
{
	return offsetof(struct window, stage_seconds) +
	       (stage * THREAD_STATES + state) * sizeof(double);
}

#define STAGE_OFFSET(member, stage) (offsetof(struct window, member) + (stage) * sizeof(double))

static void add_state_series(struct change_set *set, const struct measurement *m, size_t stage,
	double from, double length)
{
	static const enum thread_state states[STATE_SERIES] = {THREAD_STARVED, THREAD_BLOCKED};
	const unsigned workers = m->stages[stage].workers;
	for (size_t k = 0; k < STATE_SERIES && set->series_count < CHANGE_SERIES_MAX; k++) {
		struct change_series *series = &set->series[set->series_count++];
		series->least = SHARE_LEAST;
		double before = count_at(m, state_offset(stage, states[k]), from);
		for (size_t i = 0; i < set->count; i++) {
			const double after = count_at(
				m, state_offset(stage, states[k]), from + (double)(i + 1) * length);
			series->values[i] = (after - before) / (length * fmax(workers, 1));
			before = after;
		}
	}
}

static bool all_finite(const struct change_set *set)
{
	for (size_t s = 0; s < set->series_count; s++)
		for (size_t i = 0; i < set->count; i++)
			if (!isfinite(set->series[s].values[i]))
				return false;
	return true;
}

/* False: too short to be cut. */
static bool phase_series(
	const struct measurement *m, double from, double to, struct change_set *set)
{
	*set = (struct change_set){.series_count = 1};
	set->count = rate_parts(m, from, to, STEPS_A_VALUE, CHANGE_VALUES_MAX);
	if (set->count < 2 * CHANGE_SEGMENT_MIN)
		return false;
	struct change_series *rate = &set->series[0];
	rate_series(m, from, to, set->count, rate->values);
	double mean = 0;
	for (size_t i = 0; i < set->count; i++)
		mean += rate->values[i] / (double)set->count;
	rate->least = RATE_LEAST * mean;
	for (size_t stage = 0; stage < m->stage_count; stage++)
		add_state_series(set, m, stage, from, (to - from) / (double)set->count);
	return mean > 0 && all_finite(set);
}

static double phases_rate(const struct measurement *m, const struct phase_cut *cut, size_t phase)
{
	const double from = cut->edges[phase];
	const double to = cut->edges[phase + 1];
	return to > from ? (rate_samples_at(m, to) - rate_samples_at(m, from)) / (to - from) : NAN;
}

bool phases_rates_alike(double a, double b)
{
	return fabs(log(b / a)) < RATES_ALIKE;
}

/* Cuts where a CPU quota changed and the rate with it: nobody need find these by the rates, which a quota makes uneven.
 * False: there is no such change. */
static bool cut_at_quotas(const struct measurement *m, struct phase_cut *cut)
{
	const double begin = cut->edges[0];
	const double end = cut->edges[1];
	struct phase_cut at = *cut;
	for (size_t i = 1; i < m->window_count && at.count < PHASES_MAX; i++) {
		const double before = m->windows[i - 1].quota_cores;
		const double now = m->windows[i].quota_cores;
		const double t = m->windows[i - 1].t;
		if (before == now || isnan(before) || isnan(now) || t <= begin || t >= end)
			continue;
		at.edges[at.count++] = t;
		at.edges[at.count] = end;
	}
	for (size_t i = 1; i < at.count;) {
		if (!phases_rates_alike(phases_rate(m, &at, i - 1), phases_rate(m, &at, i))) {
			i++;
			continue;
		}
		memmove(&at.edges[i], &at.edges[i + 1], (at.count - i) * sizeof at.edges[0]);
		at.count--;
	}
	if (at.count == 1)
		return false;
	*cut = at;
	cut->known = true;
	return true;
}

static struct phase_cut cut_one(const struct measurement *m, size_t repeat)
{
	struct phase_cut cut = {.repeat = repeat, .count = 1};
	const double end = m->cut_seconds + m->measured_seconds;
	/* fmin passes over NAN: an older result */
	const double from = m->status == MEASUREMENT_UNSTEADY
				    ? fmin(m->warmup_seconds, m->cut_seconds)
				    : m->cut_seconds;
	cut.edges[0] = from;
	cut.edges[1] = end;
	if (cut_at_quotas(m, &cut))
		return cut;
	struct change_set *set = malloc(sizeof *set);
	struct segmentation found = {.count = 1};
	if (set && phase_series(m, from, end, set))
		change_points_find(set, &found);
	const double length = set && set->count > 0 ? (end - from) / (double)set->count : 0;
	cut.count = found.count < PHASES_MAX ? found.count : PHASES_MAX;
	for (size_t i = 0; i < cut.count; i++)
		cut.edges[i] = from + (double)found.starts[i] * length;
	cut.edges[cut.count] = end;
	free(set);
	return cut;
}

/* Whether the change in that repetition lasted; fills `after`. */
static bool lasts(const struct measurement *const *repeats, size_t count,
	const struct phase_cut *cuts, struct phase_cut *cut)
{
	const double first = phases_rate(repeats[cut->repeat], cut, 0);
	const double last = phases_rate(repeats[cut->repeat], cut, cut->count - 1);
	if (cut->count == 1 || cut->repeat + 1 == count || phases_rates_alike(first, last))
		return false;
	for (size_t i = 0; i < count; i++) {
		const double like = i < cut->repeat ? first : last;
		const double rate =
			cut->known ? repeats[i]->throughput : phases_rate(repeats[i], &cuts[i], 0);
		const bool steady = cut->known ? !cuts[i].known : cuts[i].count == 1;
		if (i != cut->repeat && (!steady || !phases_rates_alike(rate, like)))
			return false;
	}
	cut->after = count - cut->repeat - 1;
	return true;
}

/* What is known needs no votes. Among equal votes the count with more phases wins, because a mean hides what a change did. */
static size_t most_voted(const struct phase_cut *cuts, size_t count)
{
	size_t votes[PHASES_MAX + 1] = {0};
	size_t most = 0;
	size_t chosen = 0;
	for (size_t i = 0; i < count; i++)
		if (cuts[i].known)
			return i;
	for (size_t i = 0; i < count; i++)
		votes[cuts[i].count]++;
	for (size_t n = 1; n <= PHASES_MAX; n++)
		most = votes[n] >= votes[most] ? n : most;
	while (chosen < count && cuts[chosen].count != most)
		chosen++;
	return chosen;
}

void phases_cut(const struct measurement *const *repeats, size_t count, struct phase_cut *out)
{
	struct phase_cut *cuts = calloc(count + 1, sizeof *cuts);
	*out = (struct phase_cut){.count = 1};
	for (size_t i = 0; cuts && i < count; i++)
		cuts[i] = cut_one(repeats[i], i);
	for (size_t i = 0; cuts && i < count; i++)
		if (lasts(repeats, count, cuts, &cuts[i])) {
			*out = cuts[i];
			free(cuts);
			return;
		}
	if (cuts && count > 0)
		*out = cuts[most_voted(cuts, count)];
	free(cuts);
}

/* --- regimes ---------------------------------------------------------------------------------- */

static const double REGIME_LEAST = 0.34; /* of ln(rate): a factor of 1.4 */
/* Deviation of ln(rate) that repetitions of one state are assumed to have, as if so many of them had shown it. */
static const double REGIME_SPREAD = 0.15, REGIME_SPREAD_WEIGHT = 4;
/* Critical value, in standard errors; the second over the number of values is taken off it. By simulation. */
static const double REGIME_CRITICAL = 5.6, REGIME_CRITICAL_FEW = 4.6;
static const double REGIME_CRITICAL_TWO = 5.2;  /* a factor of three */
static const double REGIME_ERROR_UNKNOWN = 0.3; /* of a repetition with too few steps to tell */
enum { REGIME_FEW = 4 };

enum regime_part { REGIME_WHOLE, REGIME_FIRST_PART, REGIME_SECOND_PART };

/* A repetition, or one of the two parts of it.  sum and squares: of ln, of those before it. */
struct regime_value {
	double ln, sum, squares;
	size_t repeat;
	enum regime_part part;
	double begin_s, end_s;
};

/* In all that follows there is one value more behind the last one, for its sums. */

static double regime_mean(const struct regime_value *values, size_t from, size_t to)
{
	return (values[to].sum - values[from].sum) / (double)(to - from);
}

/* A stretch of a part against the rest of it. */
static void regime_try(struct split *best, const struct regime_value *values,
	const struct part *part, double spread2, struct split stretch)
{
	const size_t end = part->first + part->count;
	const double inside = (double)(stretch.to - stretch.from);
	const double outside = (double)part->count - inside;
	const double mean = regime_mean(values, stretch.from, stretch.to);
	const double all = regime_mean(values, part->first, end);
	const double rest = (all * (double)part->count - mean * inside) / outside;
	const double gap = fabs(mean - rest);
	if (gap < REGIME_LEAST)
		return;
	const double squares = values[end].squares - values[part->first].squares -
			       inside * mean * mean - outside * rest * rest;
	const double variance = (REGIME_SPREAD_WEIGHT * spread2 + fmax(squares, 0)) /
				(REGIME_SPREAD_WEIGHT + (double)part->count - 2);
	const double critical =
		part->count == 2 ? REGIME_CRITICAL_TWO
				 : REGIME_CRITICAL - REGIME_CRITICAL_FEW / (double)part->count;
	stretch.excess = gap / sqrt(variance * (1 / inside + 1 / outside)) / critical;
	if (stretch.excess > best->excess)
		*best = stretch;
}

static struct split regime_best(
	const struct regime_value *values, const struct part *part, double spread2)
{
	const size_t end = part->first + part->count;
	struct split best = {0};
	for (size_t from = part->first; from < end; from++)
		for (size_t to = from + 1; to <= end; to++)
			if (to - from < part->count)
				regime_try(&best, values, part, spread2,
					(struct split){.from = from, .to = to});
	return best;
}

/* Neighbours that a stretch further away set apart. */
static void regime_join_alike(
	const struct regime_value *values, size_t count, struct segmentation *cuts)
{
	for (size_t i = 1; i < cuts->count;) {
		const struct part left = segment_at(cuts, i - 1, count);
		const struct part right = segment_at(cuts, i, count);
		const double gap = regime_mean(values, left.first, left.first + left.count) -
				   regime_mean(values, right.first, right.first + right.count);
		if (fabs(gap) >= REGIME_LEAST) {
			i++;
			continue;
		}
		cuts->count--;
		memmove(&cuts->starts[i], &cuts->starts[i + 1],
			(cuts->count - i) * sizeof cuts->starts[0]);
	}
}

/* cuts begins as one segment. */
static void regime_segment(
	const struct regime_value *values, size_t count, double spread2, struct segmentation *cuts)
{
	while (cuts->count + 1 < CHANGE_SEGMENTS_MAX) {
		struct split best = {0};
		for (size_t i = 0; i < cuts->count; i++) {
			const struct part part = segment_at(cuts, i, count);
			const struct split split = regime_best(values, &part, spread2);
			if (split.excess > best.excess)
				best = split;
		}
		if (best.excess < 1)
			break;
		insert_start(cuts, best.from);
		if (best.to < count)
			insert_start(cuts, best.to);
	}
	regime_join_alike(values, count, cuts);
}

bool regimes_may_differ(const double *rates, size_t count)
{
	double least = HUGE_VAL;
	double most = 0;
	for (size_t i = 0; i < count; i++)
		if (rates[i] > 0) {
			least = fmin(least, rates[i]);
			most = fmax(most, rates[i]);
		}
	return most >= least * exp(REGIME_LEAST);
}

static size_t regime_add(const struct measurement *m, size_t repeat, struct regime_value *value)
{
	const struct phase_cut cut = cut_one(m, repeat);
	const double first = log(phases_rate(m, &cut, 0));
	const double second = cut.count == 2 ? log(phases_rate(m, &cut, 1)) : NAN;
	if (!(isfinite(first) && fabs(second - first) >= REGIME_LEAST)) {
		*value = (struct regime_value){.ln = log(m->throughput),
			.repeat = repeat,
			.begin_s = m->cut_seconds,
			.end_s = m->cut_seconds + m->measured_seconds};
		return 1;
	}
	for (size_t i = 0; i < 2; i++)
		value[i] = (struct regime_value){.ln = i ? second : first,
			.repeat = repeat,
			.part = i ? REGIME_SECOND_PART : REGIME_FIRST_PART,
			.begin_s = cut.edges[i],
			.end_s = cut.edges[i + 1]};
	return 2;
}

/* Returns how many.  Those without a rate, or with none at all, are taken to be like the one before. */
static size_t regime_values(
	const struct measurement *const *repeats, size_t count, struct regime_value *values)
{
	size_t known = 0;
	for (size_t i = 0; i < count; i++)
		known += regime_add(repeats[i], i, &values[known]);
	for (size_t i = 1; i < known; i++)
		values[i].ln = isfinite(values[i].ln) ? values[i].ln : values[i - 1].ln;
	for (size_t i = known - 1; i-- > 0;) /* one of them has a rate */
		values[i].ln = isfinite(values[i].ln) ? values[i].ln : values[i + 1].ln;
	for (size_t i = 0; i < known; i++) {
		values[i + 1].sum = values[i].sum + values[i].ln;
		values[i + 1].squares = values[i].squares + values[i].ln * values[i].ln;
	}
	return known;
}

static void regime_fill(
	const struct regime_value *values, const struct part *part, struct regime *out)
{
	const struct regime_value *first = &values[part->first];
	const struct regime_value *last = &values[part->first + part->count - 1];
	const bool begins = first->part == REGIME_WHOLE ||
			    (first->part == REGIME_FIRST_PART && part->count > 1);
	*out = (struct regime){.first = first->repeat,
		.last = last->repeat,
		.whole = first->repeat + (begins ? 0 : 1),
		.whole_end = last->repeat + (last->part == REGIME_FIRST_PART ? 0 : 1),
		.begin_s = first->begin_s,
		.end_s = last->end_s,
		.rate = exp(regime_mean(values, part->first, part->first + part->count))};
}

static void regimes_choose_lasting(struct regimes *out, size_t values_in_last, size_t values)
{
	const struct regime *last = &out->of[out->count - 1];
	const bool part = last->whole >= last->whole_end;
	size_t like = out->count - 1;
	bool came_back = false;
	for (size_t i = 0; i + 1 < out->count; i++)
		came_back |= fabs(log(out->of[i].rate / last->rate)) < REGIME_LEAST;
	out->open = !came_back && (part || (values_in_last == 1 && values >= REGIME_FEW));
	like -= out->open ? 1 : 0;
	size_t whole = 0;
	for (size_t i = 0; i < out->count; i++) {
		struct regime *r = &out->of[i];
		r->lasts = fabs(log(r->rate / out->of[like].rate)) < REGIME_LEAST;
		whole += r->lasts && r->whole < r->whole_end;
	}
	out->count = whole > 0 ? out->count : 1;
}

/* Of ln(rate): what repetitions of one state scatter by, and what is known of none better than that. */
static double regime_spread2(const struct measurement *const *repeats, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++) {
		double known = rate_squared_error(repeats[i]);
		if (isnan(known)) /* few steps: files come in between them, too */
			known = rate_read_squared_error(repeats[i]);
		const bool older = repeats[i]->window_count == 0;
		sum += !isnan(known) ? known
		       : older       ? 0
				     : REGIME_ERROR_UNKNOWN * REGIME_ERROR_UNKNOWN;
	}
	return REGIME_SPREAD * REGIME_SPREAD + sum / (double)count;
}

void regimes_find(const struct measurement *const *repeats, size_t count, struct regimes *out)
{
	struct segmentation cuts = {.count = 1};
	*out = (struct regimes){.count = 1};
	double *rates = calloc(count + 1, sizeof *rates);
	for (size_t i = 0; rates && i < count; i++)
		rates[i] = repeats[i]->throughput;
	const bool differ = rates && count > 1 && regimes_may_differ(rates, count);
	free(rates);
	struct regime_value *values = differ ? calloc(2 * count + 1, sizeof *values) : NULL;
	if (!values)
		return;
	const size_t known = regime_values(repeats, count, values);
	regime_segment(values, known, regime_spread2(repeats, count), &cuts);
	out->count = cuts.count;
	struct part part = {0};
	for (size_t i = 0; i < cuts.count; i++) {
		part = segment_at(&cuts, i, known);
		regime_fill(values, &part, &out->of[i]);
	}
	if (out->count > 1)
		regimes_choose_lasting(out, part.count, known);
	free(values);
}

bool regimes_last(const struct regimes *regimes, size_t repetition)
{
	for (size_t i = 0; i < regimes->count; i++) {
		const struct regime *r = &regimes->of[i];
		if (r->lasts && repetition >= r->whole && repetition < r->whole_end)
			return true;
	}
	return regimes->count == 1;
}

/* --- slices ----------------------------------------------------------------------------------- */

/* The share of the whole run's off-CPU working time that a wait takes. */
static double off_share(double part, const struct stage_measurement *whole)
{
	const double off = whole->seconds[THREAD_WORKING] - whole->cpu_seconds;
	return off > 0 ? fmin(part / off, 1) : 0;
}

static void slice_stage(const struct measurement *m, size_t stage, double from, double to,
	const struct measurement *slice, struct stage_measurement *out)
{
	const struct stage_measurement *whole = &m->stages[stage];
	for (int s = 0; s < THREAD_STATES; s++)
		out->seconds[s] =
			count_between(m, state_offset(stage, (enum thread_state)s), from, to);
	const double working = out->seconds[THREAD_WORKING];
	out->cpu_seconds = count_between(m, STAGE_OFFSET(stage_cpu, stage), from, to);
	const double off = fmax(working - out->cpu_seconds, 0);
	out->run_queue_seconds = count_between(m, STAGE_OFFSET(stage_run_queue, stage), from, to);
	if (isnan(out->run_queue_seconds)) /* windows of an older result */
		out->run_queue_seconds = off * off_share(whole->run_queue_seconds, whole);
	out->io_wait_seconds = off * off_share(whole->io_wait_seconds, whole);
	out->lock_wait_seconds = off * off_share(whole->lock_wait_seconds, whole);
	out->lock_held_seconds =
		whole->seconds[THREAD_WORKING] > 0
			? whole->lock_held_seconds * working / whole->seconds[THREAD_WORKING]
			: NAN;
	out->overhead_seconds =
		whole->seconds[THREAD_WORKING] > 0
			? whole->overhead_seconds * working / whole->seconds[THREAD_WORKING]
			: NAN;
	out->items = whole->per_batch ? slice->batches : slice->samples;
	const double overlap = stage_is(whole->name, STAGE_READ);
	const double samples = (double)slice->samples;
	const double busy = overlap > 0 ? slice->measured_seconds - out->seconds[THREAD_BLOCKED] /
									    fmax(out->workers, 1)
					: working / fmax(out->workers, 1);
	/* What an emulated device can give is what it is told to take, in any part, however long its thread was away. */
	if (m->facts.step_emulated && stage_is(whole->name, STAGE_STEP))
		out->capacity = whole->capacity;
	else
		out->capacity = busy > 0 ? samples / busy : NAN;
}

static void fill_service(struct histogram *service, const struct trace *trace)
{
	*service = (struct histogram){0};
	for (size_t i = 0; trace && i < trace->count; i++) {
		const double ns = (double)trace->items[i].service_ns;
		if (ns >= 0 && ns < 1e13)
			histogram_add(service, (uint64_t)ns, 1);
	}
}

void phase_slice_traces(const struct traces *traces, double from, double to, struct traces *out)
{
	*out = *traces;
	out->begin_s = from;
	out->end_s = to;
	for (size_t s = 0; s < out->stage_count; s++) {
		struct trace *trace = &out->stages[s];
		/* The first files of the repetition are those of its first part: they met the store
		 * as it was then. */
		if (strcmp(trace->stage, TRACE_READ_RAMP) == 0) {
			trace->count = from > traces->begin_s + SAME_BEGIN_S ? 0 : trace->count;
			continue;
		}
		size_t first = 0;
		while (first < trace->count && trace->items[first].end_s < from)
			first++;
		size_t last = first;
		while (last < trace->count && trace->items[last].end_s < to)
			last++;
		trace->items += first;
		trace->count = last - first;
	}
}

/* The quota that was in force where it throttled most, else the last; NAN: none.  That of the whole run in an older result. */
static double quota_between(const struct measurement *m, double from, double to)
{
	double cores = NAN;
	double most = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		const struct window *const w = &m->windows[i];
		const struct window *const before = i > 0 ? w - 1 : w;
		const double throttled = w->quota_throttled - before->quota_throttled;
		if (isnan(w->quota_cores))
			return m->quota_cores;
		const double middle = (before->t + w->t) / 2;
		if (middle < from || middle >= to || throttled < most)
			continue;
		most = throttled;
		/* It changed within the window. */
		const bool tighter = throttled > 0 && before->quota_cores > 0 &&
				     before->quota_cores < w->quota_cores;
		cores = tighter || w->quota_cores <= 0 ? before->quota_cores : w->quota_cores;
	}
	return cores > 0 ? cores : (double)NAN;
}

/* Load, steal and throttling of the phase. Windows of an older result do not have them; then the
 * whole run stands in for the phase. */
static void slice_load(
	const struct measurement *m, double from, double to, struct measurement *slice)
{
#define BETWEEN(member) count_between(m, offsetof(struct window, member), from, to)
	const double own = BETWEEN(own_cpu);
	const double outside = (BETWEEN(machine_cpu) - own) / (to - from);
	const double stolen = BETWEEN(machine_steal) / BETWEEN(machine_time);
	const double periods = BETWEEN(quota_periods);
	const double throttled = BETWEEN(quota_throttled) / periods;
	slice->cpu_seconds = isnan(own) ? m->cpu_seconds * (to - from) / m->measured_seconds : own;
	slice->cores_busy_outside = isnan(outside) ? m->cores_busy_outside : fmax(outside, 0);
	slice->steal_share = isfinite(stolen) ? stolen : m->steal_share;
	slice->quota_cores = quota_between(m, from, to);
	const double used = BETWEEN(quota_used) / (to - from);
	if (isfinite(used))
		slice->quota_used = used;
	if (!isnan(periods)) {
		slice->throttled_share = periods > 0 ? throttled : 0;
		slice->throttled_seconds = BETWEEN(throttled_seconds);
	}
#undef BETWEEN
}

/* The kernel's disk counts are not kept per window: reads are scaled by the bytes, and how busy the
 * disk was is unknown. */
static void slice_store(const struct measurement *m, struct measurement *slice)
{
	struct store_measurement *store = &slice->store;
	const double share = slice->bytes_read_per_s / m->bytes_read_per_s;
	store->reads_per_s *= share;
	store->bytes_per_s *= share;
	store->bytes_used *= share;
	store->requests_used *= share;
	store->busy_share = NAN;
}

/* Nor are the calls of a network file system's client. */
static void slice_network(struct measurement *slice)
{
	struct network_measurement *const network = &slice->network;
	if (!network->protocol[0])
		return;
	(void)snprintf(network->why, sizeof network->why,
		"they are known of the whole run only, not of a part of it");
	network->call_count = 0;
	network->seconds = NAN;
}

void phase_slice(const struct measurement *m, const struct traces *traces, double from, double to,
	struct measurement *out)
{
	struct traces part = {0};
	if (traces)
		phase_slice_traces(traces, from, to, &part);
	const double before = rate_samples_at(m, from);
	const double samples = rate_samples_at(m, to) - before;
	const double share = m->samples > 0 ? samples / (double)m->samples : 0;
	*out = *m;
	out->status = MEASUREMENT_OK;
	/* Other depths were read before: beside a later phase they would be of another time. */
	if (from > m->cut_seconds)
		out->read_point_count = 0;
	out->windows = NULL;
	out->window_count = 0;
	out->cut_seconds = from;
	out->measured_seconds = to - from;
	out->samples = (uint64_t)samples;
	out->batches = (uint64_t)(share * (double)m->batches);
	out->throughput = to > from ? samples / (to - from) : NAN;
	out->bytes_read =
		(uint64_t)fmax(count_between(m, offsetof(struct window, bytes_read), from, to), 0);
	out->read_requests = (uint64_t)(share * (double)m->read_requests);
	out->bytes_read_per_s = to > from ? (double)out->bytes_read / (to - from) : NAN;
	slice_load(m, from, to, out);
	slice_store(m, out);
	slice_network(out);
	for (size_t s = 0; s < m->stage_count; s++) {
		slice_stage(m, s, from, to, out, &out->stages[s]);
		fill_service(&out->stages[s].service,
			traces ? traces_find(&part, m->stages[s].name) : NULL);
	}
}
