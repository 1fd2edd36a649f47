/* Student's intervals of logarithms, at levels that allow for looking again after every round. */
#include "harness/analyze/stop_rule.h"

#include "harness/analyze/comparison.h"
#include "harness/analyze/statistics.h"
#include "harness/analyze/student.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Of each look: the level at which all looks from 3 to 20 together err in 5 % (bench_stop_rule). */
static const double ESTIMATE_LEVEL = 0.0075;
/* Repetitions that happen to agree are not known better than this. */
static const double DEVIATION_LEAST = 0.002;
/* Degrees of freedom that the variance of all points is worth for one of them, however much points differ. */
static const double POOLED_FREEDOM_LEAST = 5;
static const double EACH_LEVEL = 0.05; /* of a single comparison, both sides */

struct stop_estimate stop_rule_estimate(const double *rates, size_t count, double share)
{
	struct stop_estimate estimate = {.mean = (double)NAN, .half_width = HUGE_VAL};
	double sum = 0;
	double squares = 0;
	const double n = (double)count;
	for (size_t i = 0; i < count; i++)
		sum += log(rates[i]);
	for (size_t i = 0; i < count; i++)
		squares += pow(log(rates[i]) - sum / n, 2);
	if (count > 0)
		estimate.mean = exp(sum / n);
	if (count < STOP_ESTIMATE_LEAST)
		return estimate;
	const double deviation = fmax(sqrt(squares / (n - 1)), DEVIATION_LEAST);
	estimate.half_width =
		expm1(student_quantile(1 - ESTIMATE_LEVEL / 2, n - 1) * deviation / sqrt(n));
	estimate.enough = estimate.half_width <= share;
	return estimate;
}

/* --- the points of a sweep -------------------------------------------------------------------- */

const char *stop_state_name(enum stop_state state)
{
	static const char *const names[] = {[STOP_NOTHING] = "nothing",
		[STOP_FASTEST] = "fastest",
		[STOP_TIED] = "tied",
		[STOP_COVERED] = "covered",
		[STOP_WORSE] = "worse",
		[STOP_OPEN] = "open"};
	return names[state];
}

struct judged {
	const struct stop_sweep *sweep;
	struct stop_point *out;
	/* (points): of ln of the rates, NAN: none; the median, which one stall among three does not move */
	double *means, *medians;
	size_t *counts; /* (points) */
	double *logs;   /* (rounds): of the point at hand */
	double drop_level;
};

static const double STOP_ODD = 0.05;

static double rate_at(const struct stop_sweep *sweep, size_t point, size_t round)
{
	return sweep->rates[point * sweep->rounds + round];
}

/* Sum of squares around the mean. */
static double take_point(struct judged *of, size_t point)
{
	const struct stop_sweep *sweep = of->sweep;
	double sum = 0;
	double squares = 0;
	size_t count = 0;
	for (size_t round = 0; round < sweep->rounds; round++) {
		const double rate = rate_at(sweep, point, round);
		if (!(rate > 0))
			continue;
		of->logs[count++] = log(rate);
		sum += log(rate);
	}
	of->medians[point] = statistics_median(of->logs, count);
	of->counts[point] = count;
	of->means[point] = count > 0 ? sum / (double)count : (double)NAN;
	for (size_t i = 0; i < count; i++)
		squares += pow(of->logs[i] - of->means[point], 2);
	return squares;
}

static int take_deviations(struct judged *of)
{
	const size_t points = of->sweep->points;
	double *variances = calloc(points, sizeof *variances);
	double *freedoms = calloc(points, sizeof *freedoms);
	size_t several = 0;
	double pooled = STOP_PRIOR_FREEDOM * STOP_PRIOR_DEVIATION * STOP_PRIOR_DEVIATION;
	double pooled_freedom = STOP_PRIOR_FREEDOM;
	for (size_t i = 0; variances && freedoms && i < points; i++) {
		const double squares = take_point(of, i);
		const double freedom = of->counts[i] > 1 ? (double)of->counts[i] - 1 : 0;
		of->out[i] = (struct stop_point){.deviation = sqrt(squares), .freedom = freedom};
		if (freedom == 0)
			continue;
		pooled += squares;
		pooled_freedom += freedom;
		variances[several] = squares / freedom;
		freedoms[several++] = freedom;
	}
	/* What the points share is worth the more, the better their variances agree. */
	struct moderation shared = {0};
	if (variances && freedoms)
		shared = moderation_of(variances, freedoms, several);
	const double prior = fmin(fmax(POOLED_FREEDOM_LEAST, shared.freedom), pooled_freedom);
	for (size_t i = 0; variances && freedoms && i < points; i++) {
		struct stop_point *p = &of->out[i];
		const double own = p->deviation * p->deviation;
		const double variance =
			(own + prior * pooled / pooled_freedom) / (p->freedom + prior);
		p->deviation = fmax(sqrt(variance), DEVIATION_LEAST);
		p->freedom += prior;
	}
	const int code = variances && freedoms ? 0 : -ENOMEM;
	free(variances);
	free(freedoms);
	return code;
}

struct stop_difference {
	double d;     /* of ln(a / b) over the rounds of both; NAN: there are none */
	double error; /* its standard error */
	double freedom;
	size_t rounds;
};

static struct stop_difference difference_of(const struct judged *of, size_t a, size_t b)
{
	double sum = 0;
	struct stop_difference difference = {.d = (double)NAN};
	for (size_t round = 0; round < of->sweep->rounds; round++) {
		const double mine = rate_at(of->sweep, a, round);
		const double other = rate_at(of->sweep, b, round);
		if (!(mine > 0 && other > 0))
			continue;
		sum += log(mine / other);
		difference.rounds++;
	}
	const struct stop_point *p = &of->out[a];
	const struct stop_point *q = &of->out[b];
	if (difference.rounds == 0)
		return difference;
	const double n = (double)difference.rounds;
	const double one = p->deviation * p->deviation / n;
	const double two = q->deviation * q->deviation / n;
	difference.d = sum / n;
	difference.error = sqrt(one + two);
	/* Welch and Satterthwaite's. */
	difference.freedom =
		(one + two) * (one + two) / (one * one / p->freedom + two * two / q->freedom);
	return difference;
}

static double reach_of(const struct stop_difference *difference, double level)
{
	return student_quantile(1 - level, difference->freedom) * difference->error;
}

/* Whether d is above `least` by its own interval.  Of thousands of pairs most are plain: Student's quantile lies between the
 * normal one and that of the prior's degrees of freedom. */
static bool is_above(double d, double least, const struct stop_difference *of)
{
	static const double FEWEST = 1.95, MOST = 3.19; /* of EACH_LEVEL, with 3 degrees at least */
	if (d - FEWEST * of->error <= least || d - MOST * of->error > least)
		return d - MOST * of->error > least;
	return d - reach_of(of, EACH_LEVEL / 2) > least;
}

static bool is_more_than(const struct stop_difference *difference, double least)
{
	return is_above(difference->d, least, difference);
}

static bool is_less_than(const struct stop_difference *difference, double most)
{
	return is_above(-difference->d, -most, difference);
}

/* How a point compares with the fastest of its workload. */
static enum stop_state state_beside(const struct judged *of, size_t point, size_t fastest)
{
	if (point == fastest)
		return STOP_FASTEST;
	const struct stop_difference d = difference_of(of, point, fastest);
	if (d.rounds == 0)
		return STOP_OPEN;
	const bool far = d.d < log1p(-STOP_FAR);
	if ((far || d.rounds > 1) && d.d + reach_of(&d, of->drop_level) < 0)
		return STOP_WORSE;
	return d.rounds > 1 && is_more_than(&d, -STOP_DIFFERENCE) ? STOP_TIED : STOP_OPEN;
}

static bool comparable(const struct judged *of, size_t a, size_t b)
{
	return a != b && of->sweep->workload[a] == of->sweep->workload[b] && of->counts[a] > 0 &&
	       of->counts[b] > 0 && of->sweep->smaller(of->sweep->context, a, b);
}

/* Smaller settings that may be the answer in place of an open one. */
static bool is_covered(const struct judged *of, size_t point)
{
	for (size_t other = 0; other < of->sweep->points; other++) {
		if (!comparable(of, other, point) || of->out[other].state == STOP_WORSE)
			continue;
		const struct stop_difference d = difference_of(of, point, other);
		if (d.rounds > 1 && is_less_than(&d, STOP_DIFFERENCE))
			return true;
	}
	return false;
}

static void judge_states(struct judged *of, size_t first)
{
	const size_t points = of->sweep->points;
	size_t fastest = points;
	for (size_t i = 0; i < points; i++)
		if (of->sweep->workload[i] == first && of->counts[i] > 0 &&
			(fastest == points || of->medians[i] > of->medians[fastest]))
			fastest = i;
	for (size_t i = 0; i < points; i++)
		if (of->sweep->workload[i] == first && of->counts[i] > 0)
			of->out[i].state = state_beside(of, i, fastest);
	for (size_t i = 0; i < points; i++)
		if (of->sweep->workload[i] == first && of->out[i].state == STOP_OPEN &&
			is_covered(of, i))
			of->out[i].state = STOP_COVERED;
}

/* Whether it is open that a smaller setting gives as much; the one that it depends on, or points. */
static size_t frontier_rival(const struct judged *of, size_t point)
{
	const size_t points = of->sweep->points;
	size_t rival = points;
	for (size_t other = 0; other < points; other++) {
		if (!comparable(of, other, point))
			continue;
		const struct stop_difference d = difference_of(of, point, other);
		if (d.rounds == 0)
			continue;
		if (is_less_than(&d, STOP_DIFFERENCE))
			return points;
		if (!is_more_than(&d, 0) &&
			(rival == points || of->means[other] > of->means[rival]))
			rival = other;
	}
	return rival;
}

static bool is_far(const struct judged *of, size_t point, size_t fastest)
{
	return of->medians[point] < of->medians[fastest] + log1p(-STOP_FAR);
}

static void want(struct judged *of, size_t point, size_t most)
{
	if (of->sweep->rounds < of->sweep->rounds_most && of->counts[point] < most)
		of->out[point].more = true;
}

/* The answer so far: of those that are not worse, one that is smaller than the fastest and than the others. */
static size_t answer_so_far(const struct judged *of, size_t fastest)
{
	size_t answer = fastest;
	for (size_t i = 0; i < of->sweep->points; i++)
		if (of->out[i].state == STOP_TIED && comparable(of, i, answer))
			answer = i;
	return answer;
}

static void want_near_frontier(struct judged *of, size_t fastest)
{
	for (size_t i = 0; i < of->sweep->points; i++) {
		struct stop_point *p = &of->out[i];
		if (of->sweep->workload[i] != of->sweep->workload[fastest] ||
			p->state != STOP_WORSE || is_far(of, i, fastest))
			continue;
		const size_t rival = frontier_rival(of, i);
		p->frontier_open = rival < of->sweep->points;
		if (!p->frontier_open || of->counts[i] >= STOP_FRONTIER_ROUNDS)
			continue;
		want(of, i, STOP_FRONTIER_ROUNDS);
		want(of, rival, of->sweep->rounds_most); /* in the same round */
	}
}

static void want_more(struct judged *of, size_t fastest)
{
	bool open = false;
	for (size_t i = 0; i < of->sweep->points; i++) {
		const bool mine = of->sweep->workload[i] == of->sweep->workload[fastest];
		if (!mine || of->out[i].state != STOP_OPEN)
			continue;
		want(of, i, of->sweep->rounds_most);
		open = true;
	}
	if (open)
		want(of, fastest, of->sweep->rounds_most);
	want(of, fastest, STOP_BEST_ROUNDS);
	want(of, answer_so_far(of, fastest), STOP_BEST_ROUNDS);
	want_near_frontier(of, fastest);
}

/* A single repetition below that of a smaller setting: contention, or a stall. */
static bool is_odd(const struct judged *of, size_t point)
{
	for (size_t other = 0; other < of->sweep->points && of->counts[point] == 1; other++)
		if (comparable(of, other, point) &&
			of->means[point] < of->means[other] + log1p(-STOP_ODD))
			return true;
	return false;
}

static int judge_all(struct judged *of)
{
	const struct stop_sweep *sweep = of->sweep;
	int wanted = 0;
	const int code = take_deviations(of);
	if (code)
		return code;
	const double pairs = (double)sweep->points * ((double)sweep->points - 1) / 2;
	of->drop_level = STOP_ERROR / fmax(pairs, 1) / fmax((double)sweep->rounds_most - 1, 1);
	for (size_t i = 0; i < sweep->points; i++)
		if (sweep->workload[i] == i)
			judge_states(of, i);
	for (size_t i = 0; i < sweep->points; i++)
		if (of->out[i].state == STOP_FASTEST)
			want_more(of, i);
	for (size_t i = 0; i < sweep->points; i++) {
		const bool unsteady = sweep->unsteady && sweep->unsteady[i];
		if (sweep->rounds == 0 || (unsteady && of->counts[i] > 0))
			want(of, i, STOP_FRONTIER_ROUNDS);
		else if (is_odd(of, i))
			want(of, i, 2);
		wanted += of->out[i].more;
	}
	return wanted;
}

int stop_rule_judge(const struct stop_sweep *sweep, struct stop_point *out)
{
	struct judged of = {.sweep = sweep,
		.out = out,
		.means = calloc(sweep->points + 1, sizeof *of.means),
		.medians = calloc(sweep->points + 1, sizeof *of.medians),
		.counts = calloc(sweep->points + 1, sizeof *of.counts),
		.logs = calloc(sweep->rounds + 1, sizeof *of.logs)};
	const bool whole = of.means && of.medians && of.counts && of.logs;
	const int wanted = whole ? judge_all(&of) : -ENOMEM;
	free(of.logs);
	free(of.medians);
	free(of.means);
	free(of.counts);
	return wanted;
}

double stop_rule_half_width(const struct stop_point *point, size_t count)
{
	if (count == 0)
		return (double)NAN;
	return expm1(student_quantile(1 - EACH_LEVEL / 2, point->freedom) * point->deviation /
		     sqrt((double)count));
}
