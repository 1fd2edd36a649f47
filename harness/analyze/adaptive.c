/* The order in which an adaptive sweep measures. */
#include "harness/analyze/adaptive.h"
#include "harness/base/array.h"

#include <math.h>
#include <stdlib.h>

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

/* The unmeasured point with the widest interval; points when all are measured. */
static size_t widest(const struct adaptive_input *input)
{
	size_t best = input->points;
	for (size_t i = 0; i < input->points; i++)
		if (input->state[i] == ADAPTIVE_UNMEASURED &&
			(best == input->points || forecast_width(&input->forecasts[i]) >
							  forecast_width(&input->forecasts[best])))
			best = i;
	return best;
}

/* The unmeasured point that would be recommended: the highest prediction, if it is worth having
 * beside the best measurement; input->points otherwise. */
static size_t unconfirmed(const struct adaptive_input *input)
{
	size_t best = input->points;
	double predicted = 0;
	double measured = 0;
	for (size_t i = 0; i < input->points; i++) {
		const bool known = input->state[i] != ADAPTIVE_UNMEASURED;
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

struct adaptive_choice adaptive_next(const struct adaptive_input *input)
{
	const size_t planned = next_of_design(input);
	if (planned < input->points)
		return measure_next(planned, ADAPTIVE_DESIGN);
	const size_t unsure = widest(input);
	if (unsure == input->points)
		return (struct adaptive_choice){
			.stop = true, .reason = ADAPTIVE_ALL, .point = input->points};
	if (!(forecast_width(&input->forecasts[unsure]) <= input->error))
		return measure_next(unsure, ADAPTIVE_UNSURE);
	if (input->surprised)
		return measure_next(unsure, ADAPTIVE_SURPRISE);
	const size_t best = unconfirmed(input);
	if (best < input->points)
		return measure_next(best, ADAPTIVE_CONFIRM);
	return (struct adaptive_choice){
		.stop = true, .reason = ADAPTIVE_SURE, .point = input->points};
}

const char *adaptive_reason_words(enum adaptive_reason reason)
{
	static const char *const words[] = {
		[ADAPTIVE_DESIGN] = "one of the first points, which span the grid",
		[ADAPTIVE_UNSURE] = "the least certain prediction",
		[ADAPTIVE_CONFIRM] = "predicted to be the best: to be confirmed",
		[ADAPTIVE_SURPRISE] = "the latest point missed its interval",
		[ADAPTIVE_SURE] =
			"every prediction is as certain as asked, and the best point is measured",
		[ADAPTIVE_ALL] = "every point is measured",
	};
	return words[reason];
}
