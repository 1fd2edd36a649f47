/* Weights the nearest calibrations and judges how far to trust them. */
#include "harness/analyze/forecast.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A normal deviation's half-width at 90 %. */
static const double NORMAL_90 = 1.6448536269514722;
static const double PRIOR_ERRORS = 2;
/* Relative; prevents a division by an interval of no width. */
static const double LEAST_DEVIATION = 1e-4;
static const double LEAST_DISTANCE = 1e-3;

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

/* In logarithms. */
struct estimate {
	double mean, deviation;
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

static struct estimate estimate_point(const struct forecast_input *input, size_t point)
{
	struct neighbour near[FORECAST_NEAREST];
	const size_t count = nearest(input, point, near);
	struct estimate out = {0};
	double value[FORECAST_NEAREST] = {0};
	double own[FORECAST_NEAREST] = {0};
	double weight[FORECAST_NEAREST] = {0};
	double total = 0;
	for (size_t i = 0; i < count; i++) {
		struct forecast_guess guess = {0};
		const int code =
			input->predict(input->context, near[i].point, point, &guess, &out.why);
		if (code || !makes_sense(&guess))
			continue;
		const double distance = fmax(near[i].distance, LEAST_DISTANCE);
		const size_t n = out.count++;
		out.from[n] = (uint32_t)near[i].point;
		value[n] = log(guess.throughput);
		own[n] = deviation_of(&guess);
		weight[n] = 1 / (distance * distance);
		total += weight[n];
	}
	double within = 0;
	double between = 0;
	for (size_t i = 0; i < out.count; i++)
		out.mean += weight[i] / total * value[i];
	for (size_t i = 0; i < out.count; i++) {
		const double share = weight[i] / total;
		const double off = value[i] - out.mean;
		within += share * own[i] * own[i];
		between += share * (off * off - (1 - share) * own[i] * own[i]);
	}
	out.deviation = sqrt(within + fmax(between, 0));
	return out;
}

static void add_error(struct forecast_errors *out, double *list, double error, double ratio)
{
	list[out->count++] = fabs(expm1(error));
	out->widening += ratio * ratio;
}

void forecast_errors_find(const struct forecast_input *input, struct forecast_errors *out)
{
	*out = (struct forecast_errors){.median = NAN, .worst = NAN};
	double *list = calloc(input->space.points + 1, sizeof *list);
	for (size_t i = 0; list && i < input->space.points; i++) {
		if (isnan(input->measured[i]) || input->measured[i] <= 0)
			continue;
		const struct estimate estimate = estimate_point(input, i);
		if (estimate.count == 0)
			continue;
		const double error = estimate.mean - log(input->measured[i]);
		add_error(out, list, error, error / estimate.deviation);
	}
	if (out->count > 0) {
		out->median = statistics_median(list, out->count);
		out->worst = statistics_quantile(list, out->count, 1);
	}
	const double square = (PRIOR_ERRORS + out->widening) / (PRIOR_ERRORS + (double)out->count);
	out->widening = sqrt(fmax(square, 1));
	free(list);
}

void forecast_point(const struct forecast_input *input, const struct forecast_errors *errors,
	size_t point, struct forecast *out)
{
	const struct estimate estimate = estimate_point(input, point);
	*out = (struct forecast){.half_width = HUGE_VAL, .throughput = NAN};
	if (estimate.count == 0) {
		(void)snprintf(out->why, sizeof out->why, "%.*s", FORECAST_WHY_BYTES - 1,
			estimate.why.text[0] ? estimate.why.text
					     : "no measured point could be calibrated from");
		return;
	}
	const double half = NORMAL_90 * errors->widening * estimate.deviation;
	out->known = true;
	out->throughput = exp(estimate.mean);
	out->interval.low = exp(estimate.mean - half);
	out->interval.high = exp(estimate.mean + half);
	out->half_width = (out->interval.high - out->interval.low) / 2 / out->throughput;
	out->from_count = estimate.count;
	memcpy(out->from, estimate.from, sizeof out->from);
}
