/* Points of a grid that were not measured, predicted from those that were; and which to measure. */
#include "harness/analyze/adaptive.h"

#include "harness/base/array.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- forecasts -------------------------------------------------------------------------------- */

/* Weights the nearest calibrations and judges how far to trust them. */

/* A normal deviation's half-width at 90 %. */
static const double NORMAL_90 = 1.6448536269514722;
static const double PRIOR_ERRORS = 2;
/* Relative; prevents a division by an interval of no width. */
static const double LEAST_DEVIATION = 1e-4;
static const double LEAST_DISTANCE = 1e-3;
/* A factor: a replay of the very setting that was measured which is farther off predicts nothing. */
static const double MISS_MOST = 1.5;

double forecast_distance(const struct forecast_space *space, size_t a, size_t b)
{
	double sum = 0;
	for (size_t i = 0; i < space->dimensions; i++) {
		const double left = space->at[a * space->dimensions + i];
		const double right = space->at[b * space->dimensions + i];
		const double gap = space->is_choice[i] ? (left != right) : left - right;
		sum += gap * gap;
	}
	return sqrt(sum);
}

struct neighbour {
	size_t point;
	double distance;
};

/* Nearest first; among equals the lower number, so that the answer is unique. */
static size_t nearest(
	const struct forecast_input *input, size_t point, struct neighbour out[FORECAST_NEAREST])
{
	size_t count = 0;
	const size_t most = input->nearest > 0 && input->nearest < FORECAST_NEAREST
				    ? input->nearest
				    : FORECAST_NEAREST;
	for (size_t i = 0; i < input->space.points; i++) {
		if (i == point || !input->calibrated[i])
			continue;
		const double distance = forecast_distance(&input->space, i, point);
		size_t place = count;
		while (place > 0 && out[place - 1].distance > distance)
			place--;
		if (place == most)
			continue;
		count += count < most;
		memmove(&out[place + 1], &out[place], (count - place - 1) * sizeof out[0]);
		out[place] = (struct neighbour){.point = i, .distance = distance};
	}
	return count;
}

/* In logarithms.  Of a change: by how much it differs from the unchanged setting. */
struct estimate {
	double mean, deviation;
	double unchanged; /* what the replays give of the unchanged setting */
	size_t count;
	uint32_t from[FORECAST_NEAREST];
	struct error why;
};

static bool makes_sense(const struct forecast_guess *guess)
{
	return isfinite(guess->throughput) && guess->throughput > 0 && guess->interval.low > 0 &&
	       guess->interval.high >= guess->interval.low && isfinite(guess->interval.high);
}

static double deviation_of(const struct forecast_guess *guess)
{
	const double width = log(guess->interval.high / guess->interval.low);
	return fmax(width / 2 / NORMAL_90, LEAST_DEVIATION);
}

/* The unchanged setting's own calibration is asked in any case. */
static size_t include_base(const struct forecast_input *input, size_t point, size_t base,
	struct neighbour near[FORECAST_NEAREST], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (near[i].point == base)
			return count;
	if (!input->calibrated[base])
		return count;
	const size_t place = count < FORECAST_NEAREST ? count : count - 1;
	near[place] = (struct neighbour){
		.point = base, .distance = forecast_distance(&input->space, base, point)};
	return place + 1;
}

/* Of a change, base is the setting that is changed, and both are replayed from the same calibrations: what these miss of one
 * they miss of the other, too.  NO_BASE: of the setting alone. */
static const size_t NO_BASE = SIZE_MAX;

static struct estimate estimate_point(const struct forecast_input *input, size_t point, size_t base)
{
	struct neighbour near[FORECAST_NEAREST];
	size_t count = nearest(input, point, near);
	struct estimate out = {0};
	double value[FORECAST_NEAREST] = {0};
	double unchanged[FORECAST_NEAREST] = {0};
	double own[FORECAST_NEAREST] = {0};
	double weight[FORECAST_NEAREST] = {0};
	double total = 0;
	if (base != NO_BASE)
		count = include_base(input, point, base, near, count);
	for (size_t i = 0; i < count; i++) {
		struct forecast_guess guess = {0};
		struct forecast_guess before = {.throughput = 1, .interval = {1, 1}};
		double distance = near[i].distance;
		int code = input->predict(input->context, near[i].point, point, &guess, &out.why);
		if (!code && base != NO_BASE) {
			code = input->predict(
				input->context, near[i].point, base, &before, &out.why);
			distance = hypot(
				distance, forecast_distance(&input->space, near[i].point, base));
		}
		if (code || !makes_sense(&guess) || !makes_sense(&before))
			continue;
		const size_t n = out.count++;
		distance = fmax(distance, LEAST_DISTANCE);
		out.from[n] = (uint32_t)near[i].point;
		unchanged[n] = log(before.throughput);
		value[n] = log(guess.throughput) - unchanged[n];
		own[n] = deviation_of(&guess);
		weight[n] = 1 / (distance * distance);
		total += weight[n];
	}
	double within = 0;
	double between = 0;
	for (size_t i = 0; i < out.count; i++) {
		out.mean += weight[i] / total * value[i];
		out.unchanged += weight[i] / total * unchanged[i];
	}
	for (size_t i = 0; i < out.count; i++) {
		const double share = weight[i] / total;
		const double off = value[i] - out.mean;
		within += share * own[i] * own[i];
		between += share * (off * off - (1 - share) * own[i] * own[i]);
	}
	out.deviation = sqrt(within + fmax(between, 0));
	return out;
}

/* The squared widening that errors give, sum of squares over their deviations, beside that of what is known before. */
static double square_of(double prior, double sum, size_t count)
{
	return fmax((PRIOR_ERRORS * prior + sum) / (PRIOR_ERRORS + (double)count), 1);
}

/* squares (points): of errors over their deviations; NAN: none.  sum, count: of all. */
static void widen_workloads(const struct forecast_input *input, const double *squares, double sum,
	size_t count, double *widenings)
{
	for (size_t i = 0; i < input->space.points; i++) {
		double own = 0;
		size_t has = 0;
		if (input->workload && input->workload[i] != i) {
			widenings[i] = widenings[input->workload[i]];
			continue;
		}
		for (size_t j = i; j < input->space.points; j++) {
			if (isnan(squares[j]) || (input->workload && input->workload[j] != i))
				continue;
			own += squares[j];
			has++;
		}
		const double others = square_of(1, sum - own, count - has);
		widenings[i] = sqrt(square_of(others, own, has));
	}
}

void forecast_errors_find(
	const struct forecast_input *input, struct forecast_errors *out, double *widenings)
{
	*out = (struct forecast_errors){.widening = 1, .median = NAN, .worst = NAN};
	double *list = calloc(input->space.points + 1, sizeof *list);
	double *squares = calloc(input->space.points + 1, sizeof *squares);
	double sum = 0;
	for (size_t i = 0; list && squares && i < input->space.points; i++) {
		squares[i] = NAN;
		const bool enough =
			out->count > 0 && input->enough && input->enough(input->context);
		if (enough || isnan(input->measured[i]) || input->measured[i] <= 0)
			continue;
		const struct estimate estimate = estimate_point(input, i, NO_BASE);
		if (estimate.count == 0)
			continue;
		const double error = estimate.mean - log(input->measured[i]);
		const double ratio = error / estimate.deviation;
		list[out->count++] = fabs(expm1(error));
		squares[i] = ratio * ratio;
		sum += squares[i];
	}
	if (out->count > 0) {
		out->median = statistics_median(list, out->count);
		out->worst = statistics_quantile(list, out->count, 1);
	}
	out->widening = sqrt(square_of(1, sum, out->count));
	if (widenings && squares)
		widen_workloads(input, squares, sum, out->count, widenings);
	free(squares);
	free(list);
}

static void forecast_take(
	const struct estimate *estimate, double widening, double measured, struct forecast *out)
{
	*out = (struct forecast){
		.half_width = HUGE_VAL, .throughput = NAN, .unchanged = NAN, .noise = NAN};
	if (estimate->count == 0) {
		(void)snprintf(out->why, sizeof out->why, "%.*s", FORECAST_WHY_BYTES - 1,
			estimate->why.text[0] ? estimate->why.text
					      : "no measured point could be calibrated from");
		return;
	}
	const double half = NORMAL_90 * widening * estimate->deviation;
	out->known = true;
	out->throughput = measured * exp(estimate->mean);
	out->interval.low = measured * exp(estimate->mean - half);
	out->interval.high = measured * exp(estimate->mean + half);
	out->half_width = (out->interval.high - out->interval.low) / 2 / out->throughput;
	out->from_count = estimate->count;
	memcpy(out->from, estimate->from, sizeof out->from);
}

void forecast_point(
	const struct forecast_input *input, double widening, size_t point, struct forecast *out)
{
	const struct estimate estimate = estimate_point(input, point, NO_BASE);
	forecast_take(&estimate, widening, 1, out);
}

void forecast_change(const struct forecast_input *input, double widening, size_t base, size_t point,
	struct forecast *out)
{
	const double measured = input->measured[base];
	struct estimate estimate = estimate_point(input, point, base);
	struct forecast_guess own;
	if (estimate.count > 0 && input->calibrated[base] &&
		input->predict(input->context, base, base, &own, NULL) == 0 && makes_sense(&own))
		estimate.unchanged = log(own.throughput);
	const double miss = fabs(estimate.unchanged - log(measured));
	/* What the replay misses where it was calibrated, it may miss of the change. */
	estimate.deviation = hypot(estimate.deviation, miss);
	forecast_take(&estimate, widening, measured, out);
	if (!out->known)
		return;
	out->unchanged = exp(estimate.unchanged);
	out->known = miss <= log(MISS_MOST);
	if (!out->known)
		(void)snprintf(out->why, sizeof out->why,
			"the replay of the unchanged setting gives %s samples/s where %s were measured (%+.0f %%): such a model predicts no change of it; measure the change instead",
			UNITS_PLAIN(out->unchanged, 4), UNITS_PLAIN(measured, 4),
			100 * (out->unchanged / measured - 1));
}

/* --- adaptive sweeps -------------------------------------------------------------------------- */

enum { RUNS_FEW = 4, RUNS_MANY = ADAPTIVE_DESIGN_MAX - 1, FEW_DIMENSIONS_MAX = 3 };

/* A measured setting is recommended before an unmeasured one, unless the prediction is so much
 * higher: on a plateau noise would otherwise ask for one measurement after another. */
static const double WORTH_HAVING = 1.01;

/* Each point's rank among the distinct values of a dimension, scaled to 0..1. */
static void rank_dimension(
	const struct forecast_space *space, size_t dimension, double *sorted, double *ranks)
{
	size_t distinct = 0;
	for (size_t i = 0; i < space->points; i++)
		sorted[i] = space->at[i * space->dimensions + dimension];
	sort_doubles(sorted, space->points);
	for (size_t i = 0; i < space->points; i++)
		if (distinct == 0 || sorted[i] > sorted[distinct - 1])
			sorted[distinct++] = sorted[i];
	for (size_t i = 0; i < space->points; i++) {
		const size_t at = i * space->dimensions + dimension;
		const double *found =
			bsearch(&space->at[at], sorted, distinct, sizeof *sorted, order_doubles);
		ranks[at] = found && distinct > 1
				    ? (double)(found - sorted) / (double)(distinct - 1)
				    : 0;
	}
}

static double *ranks_of(const struct forecast_space *space)
{
	double *ranks = calloc(space->points * space->dimensions + 1, sizeof *ranks);
	double *sorted = calloc(space->points + 1, sizeof *sorted);
	for (size_t d = 0; ranks && sorted && d < space->dimensions; d++)
		rank_dimension(space, d, sorted, ranks);
	if (!sorted) {
		free(ranks);
		ranks = NULL;
	}
	free(sorted);
	return ranks;
}

/* The point nearest to a place in the cube of ranks, of equals the first. */
static size_t find_nearest(
	const struct forecast_space *space, const double *ranks, const double *place)
{
	size_t best = 0;
	double least = HUGE_VAL;
	for (size_t i = 0; i < space->points; i++) {
		double sum = 0;
		for (size_t d = 0; d < space->dimensions; d++) {
			const double gap = ranks[i * space->dimensions + d] - place[d];
			sum += gap * gap;
		}
		if (sum < least) {
			least = sum;
			best = i;
		}
	}
	return best;
}

static size_t add_once(size_t *design, size_t count, size_t point)
{
	for (size_t i = 0; i < count; i++)
		if (design[i] == point)
			return count;
	design[count] = point;
	return count + 1;
}

/* Whether run `run` has dimension `d` at its high end: the parity of a Hadamard column. */
static bool is_high(unsigned run, size_t d, unsigned runs)
{
	static const unsigned few[] = {1, 2, 3};
	static const unsigned many[] = {1, 2, 4, 7, 3, 5, 6};
	const unsigned column =
		runs == RUNS_FEW ? few[d] : many[d % (sizeof many / sizeof many[0])];
	return __builtin_popcount(run & column) % 2 == 1;
}

size_t adaptive_design(const struct forecast_space *space, size_t design[ADAPTIVE_DESIGN_MAX])
{
	const size_t dimensions = space->dimensions;
	const unsigned runs = dimensions <= FEW_DIMENSIONS_MAX ? RUNS_FEW : RUNS_MANY;
	double *ranks = ranks_of(space);
	double *place = calloc(dimensions + 1, sizeof *place);
	size_t count = 0;
	if (ranks && place) {
		for (size_t d = 0; d < dimensions; d++)
			place[d] = 0.5;
		count = add_once(design, count, find_nearest(space, ranks, place));
	}
	for (unsigned run = 0; ranks && place && run < runs; run++) {
		for (size_t d = 0; d < dimensions; d++)
			place[d] = is_high(run, d, runs);
		count = add_once(design, count, find_nearest(space, ranks, place));
	}
	free(place);
	free(ranks);
	return count;
}

/* Medians of chi with that many degrees of freedom, over the root of it. */
static double usual_deviation(size_t repeats)
{
	static const double medians[] = {0.674, 0.833, 0.888, 0.916};
	const size_t freedom = repeats - 1;
	return freedom <= COUNT(medians) ? medians[freedom - 1] : 1 - 1 / (3.0 * (double)freedom);
}

/* Of one workload, or, like = points, of all. */
static double noise_of(const double *deviations, const size_t *workload, size_t points, size_t like,
	size_t repeats)
{
	double *known = calloc(points + 1, sizeof *known);
	size_t has = 0;
	for (size_t i = 0; known && i < points; i++)
		if (!isnan(deviations[i]) && (like == points || !workload || workload[i] == like))
			known[has++] = deviations[i];
	const double usual = known && has >= ADAPTIVE_NOISE_POINTS && repeats > 1
				     ? statistics_median(known, has) / usual_deviation(repeats)
				     : (double)NAN;
	free(known);
	/* The median of three and more varies by root of pi / 2 more than their mean. */
	return NORMAL_90 * usual * sqrt((repeats > 2 ? M_PI_2 : 1) / (double)repeats);
}

void adaptive_noises(const double *deviations, const size_t *workload, size_t points,
	size_t repeats, double *noises)
{
	const double all = noise_of(deviations, workload, points, points, repeats);
	for (size_t i = 0; i < points; i++) {
		if (workload && workload[i] == i)
			noises[i] = noise_of(deviations, workload, points, i, repeats);
		else
			noises[i] = workload ? noises[workload[i]] : all;
		noises[i] = isnan(noises[i]) ? all : noises[i];
	}
}

static size_t next_of_design(const struct adaptive_input *input)
{
	for (size_t i = 0; i < input->design_count; i++)
		if (input->state[input->design[i]] == ADAPTIVE_UNMEASURED)
			return input->design[i];
	return input->points;
}

static double forecast_width(const struct forecast *forecast)
{
	return forecast->known ? forecast->half_width : HUGE_VAL;
}

/* Times what is allowed: as wide as asked, or as the noise of the node lets it be. */
static double excess(const struct adaptive_input *input, size_t point)
{
	const struct forecast *forecast = &input->forecasts[point];
	return forecast_width(forecast) /
	       fmax(input->error, ADAPTIVE_NOISE_TIMES * forecast->noise);
}

static size_t workload_of(const struct adaptive_input *input, size_t point)
{
	return input->workload ? input->workload[point] : 0;
}

/* The unmeasured point whose interval exceeds what is allowed by the most; points when all are measured.  like: of the workload
 * of this point alone; points: of all. */
static size_t widest(const struct adaptive_input *input, size_t like)
{
	size_t best = input->points;
	for (size_t i = 0; i < input->points; i++)
		if (input->state[i] == ADAPTIVE_UNMEASURED &&
			(like == input->points ||
				workload_of(input, i) == workload_of(input, like)) &&
			(best == input->points || excess(input, i) > excess(input, best)))
			best = i;
	return best;
}

/* The unmeasured point of that workload that would be recommended: the highest prediction, if it is worth having beside the best
 * measurement; input->points otherwise. */
static size_t unconfirmed(const struct adaptive_input *input, size_t workload)
{
	size_t best = input->points;
	double predicted = 0;
	double measured = 0;
	for (size_t i = 0; i < input->points; i++) {
		const bool known = input->state[i] != ADAPTIVE_UNMEASURED;
		if (workload_of(input, i) != workload)
			continue;
		if (known && input->measured[i] > measured) /* false for NAN */
			measured = input->measured[i];
		if (!known && input->forecasts[i].throughput > predicted) {
			predicted = input->forecasts[i].throughput;
			best = i;
		}
	}
	return predicted > WORTH_HAVING * measured ? best : input->points;
}

static struct adaptive_choice measure_next(size_t point, enum adaptive_reason reason)
{
	return (struct adaptive_choice){.point = point, .reason = reason};
}

static struct adaptive_choice stop_now(
	const struct adaptive_input *input, enum adaptive_reason reason)
{
	return (struct adaptive_choice){.stop = true, .point = input->points, .reason = reason};
}

struct adaptive_choice adaptive_next(const struct adaptive_input *input)
{
	const size_t planned = next_of_design(input);
	if (planned < input->points)
		return measure_next(planned, ADAPTIVE_DESIGN);
	const size_t unsure = widest(input, input->points);
	if (unsure == input->points)
		return stop_now(input, ADAPTIVE_ALL);
	if (!(excess(input, unsure) <= 1))
		return measure_next(unsure, ADAPTIVE_UNSURE);
	const size_t beside =
		input->surprise < input->points ? widest(input, input->surprise) : input->points;
	if (beside < input->points)
		return measure_next(beside, ADAPTIVE_SURPRISE);
	enum adaptive_reason reason = ADAPTIVE_SURE;
	for (size_t i = 0; i < input->points; i++) {
		const size_t best =
			workload_of(input, i) == i ? unconfirmed(input, i) : input->points;
		if (best < input->points)
			return measure_next(best, ADAPTIVE_CONFIRM);
		if (input->state[i] == ADAPTIVE_UNMEASURED &&
			forecast_width(&input->forecasts[i]) > input->error)
			reason = ADAPTIVE_NOISE;
	}
	return stop_now(input, reason);
}

const char *adaptive_reason_words(enum adaptive_reason reason)
{
	static const char *const words[] = {
		[ADAPTIVE_DESIGN] = "one of the first points, which span the grid",
		[ADAPTIVE_UNSURE] = "the least certain prediction",
		[ADAPTIVE_CONFIRM] = "predicted to be the best of its workload: to be confirmed",
		[ADAPTIVE_SURPRISE] = "the latest point missed its interval",
		[ADAPTIVE_SURE] =
			"every prediction is as certain as asked, and the points predicted to be best are measured",
		[ADAPTIVE_NOISE] =
			"measuring more points would not make predictions more certain: repetitions on this node differ too much",
		[ADAPTIVE_ALL] = "every point is measured",
	};
	return words[reason];
}
