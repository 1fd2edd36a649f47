/* The factors of a verdict's confidence; each is a function that a test holds to its formula. */
#include "harness/analyze/confidence.h"

#include <math.h>

enum { REPEATS_WANTED = 3 };

static const double MOST = 0.97;
static const double MOST_FEW_REPEATS = 0.90;
static const double DISAGREE_FACTOR = 0.65;
static const double BUSY_FULL = 0.90, BUSY_SLOPE = 1.5, BUSY_LEAST = 0.5;
static const double PAIR_FACTOR = 0.60;
static const double CO_BINDING_RATIO =
	1.05;                           /* of capacities; a stage that is nearer binds as much */
static const double ALONE_LEAST = 0.90; /* to name one of the two only */
static const double UNMODELLED_FREE = 0.05, UNMODELLED_SLOPE = 2, UNMODELLED_LEAST = 0.3;

double confidence_normal(double z)
{
	return 0.5 * erfc(-z * M_SQRT1_2);
}

double confidence_stage(double arrows, double replay, bool agree)
{
	if (isnan(replay))
		return arrows;
	return agree ? 1 - (1 - arrows) * (1 - replay) : DISAGREE_FACTOR * replay;
}

double confidence_busy(double busy)
{
	return fmax(1 - BUSY_SLOPE * fmax(BUSY_FULL - busy, 0), BUSY_LEAST);
}

double confidence_pair(bool pair, double alone)
{
	return pair ? PAIR_FACTOR : alone;
}

double confidence_alone(double ratio, double deviation)
{
	return confidence_normal(log(ratio / CO_BINDING_RATIO) / deviation);
}

bool confidence_is_pair(double alone)
{
	return alone < ALONE_LEAST;
}

double confidence_completeness(double unmodelled)
{
	if (isnan(unmodelled))
		return 1;
	const double beyond = fmax(fabs(unmodelled) - UNMODELLED_FREE, 0);
	return fmax(1 - UNMODELLED_SLOPE * beyond, UNMODELLED_LEAST);
}

double confidence_most(size_t repeats)
{
	return repeats < REPEATS_WANTED ? MOST_FEW_REPEATS : MOST;
}

double confidence_failed(double confidence, double divisor)
{
	static const double CERTAIN = 1 - 1e-9;
	const double odds = confidence / (1 - fmin(confidence, CERTAIN)) / divisor;
	return odds / (1 + odds);
}
