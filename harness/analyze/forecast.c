/* Weights the nearest calibrations and judges how far to trust them. */
#include "harness/analyze/forecast.h"

#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void forecast_errors_find(const struct forecast_input *input, struct forecast_errors *out)
{
	*out = (struct forecast_errors){.widening = 1, .median = NAN, .worst = NAN};
	double *list = calloc(input->space.points + 1, sizeof *list);
	double sum = 0;
	for (size_t i = 0; list && i < input->space.points; i++) {
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
		sum += ratio * ratio;
	}
	if (out->count > 0) {
		out->median = statistics_median(list, out->count);
		out->worst = statistics_quantile(list, out->count, 1);
	}
	out->widening = sqrt(fmax((PRIOR_ERRORS + sum) / (PRIOR_ERRORS + (double)out->count), 1));
	free(list);
}

static void forecast_take(
	const struct estimate *estimate, double widening, double measured, struct forecast *out)
{
	*out = (struct forecast){.half_width = HUGE_VAL, .throughput = NAN, .unchanged = NAN};
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
