/* Sweeps whose true rates are known, measured in rounds as the rule of harness/analyze/stop_rule.h
 * asks: for its test and its bench. */
#ifndef MLBENCH_TESTS_SWEEP_SIMULATOR_H
#define MLBENCH_TESTS_SWEEP_SIMULATOR_H

#include "harness/analyze/stop_rule.h"
#include "harness/base/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { SIMULATED_WORKERS = 4, SIMULATED_DEPTHS = 3, SIMULATED_POINTS = 12 };

/* Workers 1, 2, 4, 8 times three prefetch depths, in the order of points. */
struct simulated_grid {
	const char *name;
	double rates[SIMULATED_POINTS];
};

static const struct simulated_grid simulated_grids[] = {
	{"one clear best", {100, 104, 106, 190, 198, 202, 340, 356, 364, 520, 560, 620}},
	{"best by 5 %", {100, 100, 100, 200, 200, 200, 380, 380, 380, 400, 400, 420}},
	{"best by 2 %", {100, 100, 100, 200, 200, 200, 390, 390, 390, 392, 392, 400}},
	{"plateau of six ties", {100, 100, 100, 200, 200, 200, 400, 400, 400, 400, 400, 400}},
	{"all tied", {400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400}},
	{"slow slope", {360, 364, 368, 372, 376, 380, 384, 388, 392, 396, 400, 404}},
};
enum { SIMULATED_GRIDS = sizeof simulated_grids / sizeof *simulated_grids };

enum simulated_noise { SIMULATED_NORMAL, SIMULATED_MIXED, SIMULATED_STALLS, SIMULATED_DRIFT };

struct simulated_end {
	struct stop_point points[SIMULATED_POINTS];
	size_t repetitions;
	size_t rounds;
	/* The only fastest point was called worse; some point that is as fast as the fastest was. */
	bool best_dropped, tie_told;
	/* The smallest setting that is fastest, tied or covered gives less than the best by more than this. */
	double answer_lacks;
};

static bool simulated_smaller(const void *context, size_t a, size_t b)
{
	(void)context;
	return a != b && a / SIMULATED_DEPTHS <= b / SIMULATED_DEPTHS &&
	       a % SIMULATED_DEPTHS <= b % SIMULATED_DEPTHS;
}

/* ln of a repetition over the truth.  MIXED: points differ in their noise, by up to four times. */
static double simulated_draw(
	struct rng *rng, enum simulated_noise noise, double deviation, size_t point, double drift)
{
	static const double times[] = {0.5, 1, 2};
	double e = deviation * (noise == SIMULATED_MIXED ? times[point % 3] : 1) * rng_normal(rng);
	if (noise == SIMULATED_STALLS && rng_uniform(rng) < 0.05)
		e += log(1 - 0.6 * rng_uniform(rng));
	return noise == SIMULATED_DRIFT ? e + drift : e;
}

static struct simulated_end simulate_sweep(const struct simulated_grid *grid,
	enum simulated_noise noise, double deviation, struct rng *rng)
{
	double rates[SIMULATED_POINTS * STOP_ROUNDS_MOST];
	size_t workload[SIMULATED_POINTS] = {0};
	struct simulated_end end = {0};
	double all[SIMULATED_POINTS][STOP_ROUNDS_MOST];
	for (size_t i = 0; i < SIMULATED_POINTS; i++)
		for (size_t r = 0; r < STOP_ROUNDS_MOST; r++)
			all[i][r] = (double)NAN;
	for (;; end.rounds++) {
		const struct stop_sweep sweep = {.points = SIMULATED_POINTS,
			.rounds = end.rounds,
			.rounds_most = STOP_ROUNDS_MOST,
			.rates = rates,
			.workload = workload,
			.smaller = simulated_smaller};
		for (size_t i = 0; i < SIMULATED_POINTS; i++)
			for (size_t r = 0; r < end.rounds; r++)
				rates[i * end.rounds + r] = all[i][r];
		const int wanted = stop_rule_judge(&sweep, end.points);
		assert(wanted >= 0 && end.rounds <= STOP_ROUNDS_MOST);
		if (wanted <= 0)
			break;
		const double drift = 2 * deviation * rng_normal(rng);
		for (size_t i = 0; i < SIMULATED_POINTS; i++) {
			if (!end.points[i].more)
				continue;
			all[i][end.rounds] = grid->rates[i] *
					     exp(simulated_draw(rng, noise, deviation, i, drift));
			end.repetitions++;
		}
	}
	double most = 0;
	size_t best = 0;
	size_t answer = SIMULATED_POINTS;
	for (size_t i = 0; i < SIMULATED_POINTS; i++)
		most = fmax(most, grid->rates[i]);
	for (size_t i = 0; i < SIMULATED_POINTS; i++) {
		const bool worse = end.points[i].state == STOP_WORSE;
		best += grid->rates[i] >= most;
		if (grid->rates[i] >= most && worse)
			end.tie_told = true;
		if (answer == SIMULATED_POINTS &&
			(end.points[i].state == STOP_FASTEST || end.points[i].state == STOP_TIED))
			answer = i;
	}
	end.best_dropped = best == 1 && end.tie_told;
	end.tie_told = best > 1 && end.tie_told;
	end.answer_lacks = 1 - grid->rates[answer] / most;
	return end;
}

#endif
