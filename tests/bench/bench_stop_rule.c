/* How often the rules of harness/analyze/stop_rule.h err, and what they save, by simulation.
 *
 *	build/release/bench/bench_stop_rule [SERIES]      10,000 unless given
 *
 * Sweeps of 12 points (tests/unit/sweep_simulator.h).  Dropped: the best point was called worse than another.  Told: one of
 * several that are equally fast was.  Lost: the smallest setting that is fastest or tied gives over 3 % less than the best.
 * Time is against three repetitions of 4 s of every point, with 1.5 s for each repetition of the rule. */
#include "tests/unit/sweep_simulator.h"

#include <stdio.h>
#include <stdlib.h>

static const double REPETITION_S = 1.5, FIXED_S = 12, LOST = 0.03;

static void bench_sweeps(uint64_t series)
{
	static const struct {
		const char *name;
		enum simulated_noise noise;
		double deviation;
	} noises[] = {{"0.5 %", SIMULATED_NORMAL, 0.005}, {"1 %", SIMULATED_NORMAL, 0.01},
		{"3 %", SIMULATED_NORMAL, 0.03}, {"0.5 to 2 %, by point", SIMULATED_MIXED, 0.01},
		{"1 %, stalls in 5 %", SIMULATED_STALLS, 0.01},
		{"1 %, rounds drift by 2 %", SIMULATED_DRIFT, 0.01}};
	printf("%-20s %-26s %8s %8s %8s %12s %6s\n", "grid", "noise", "dropped", "told", "lost",
		"repetitions", "time");
	for (size_t g = 0; g < SIMULATED_GRIDS; g++)
		for (size_t k = 0; k < sizeof noises / sizeof *noises; k++) {
			uint64_t dropped = 0;
			uint64_t told = 0;
			uint64_t lost = 0;
			uint64_t repetitions = 0;
			for (uint64_t i = 0; i < series; i++) {
				struct rng rng;
				rng_init(&rng, 20261129 + 100 * g + k, i);
				const struct simulated_end end = simulate_sweep(&simulated_grids[g],
					noises[k].noise, noises[k].deviation, &rng);
				dropped += end.best_dropped;
				told += end.tie_told;
				lost += end.answer_lacks > LOST;
				repetitions += end.repetitions;
			}
			const double each = (double)repetitions / (double)series / SIMULATED_POINTS;
			printf("%-20s %-26s %7.2f%% %7.2f%% %7.2f%% %12.2f %5.0f%%\n",
				simulated_grids[g].name, noises[k].name,
				100.0 * (double)dropped / (double)series,
				100.0 * (double)told / (double)series,
				100.0 * (double)lost / (double)series, each,
				100 * each * REPETITION_S / FIXED_S);
		}
}

/* One setting, looked at from the third repetition to the 20th. */
static void bench_estimates(uint64_t series)
{
	static const double deviations[] = {0.005, 0.01, 0.02, 0.04};
	static const double SHARE = 0.05;
	printf("\n%-12s %-8s %10s %12s %10s %14s\n", "deviation", "stalls", "stopped",
		"repetitions", "wrong", "missed, any look");
	for (size_t k = 0; k < 2 * sizeof deviations / sizeof *deviations; k++) {
		const double deviation = deviations[k / 2];
		uint64_t stopped = 0;
		uint64_t repetitions = 0;
		uint64_t wrong = 0;
		uint64_t missed = 0;
		for (uint64_t i = 0; i < series; i++) {
			struct rng rng;
			double rates[STOP_ESTIMATE_MOST];
			size_t count = 0;
			bool is_over = false;
			bool outside = false;
			rng_init(&rng, 35 + k, i);
			while (count < STOP_ESTIMATE_MOST) {
				rates[count++] = exp(simulated_draw(&rng,
					k % 2 ? SIMULATED_STALLS : SIMULATED_NORMAL, deviation, 0,
					0));
				const struct stop_estimate e =
					stop_rule_estimate(rates, count, SHARE);
				outside =
					outside || (count >= STOP_ESTIMATE_LEAST &&
							   fabs(log(e.mean)) > log1p(e.half_width));
				if (is_over || !e.enough)
					continue;
				is_over = true;
				stopped++;
				repetitions += count;
				wrong += fabs(log(e.mean)) > log1p(SHARE);
			}
			missed += outside;
		}
		printf("%10.1f %% %-8s %9.1f%% %12.2f %9.2f%% %14.2f%%\n", 100 * deviation,
			k % 2 ? "5 %" : "none", 100.0 * (double)stopped / (double)series,
			stopped ? (double)repetitions / (double)stopped : 0,
			100.0 * (double)wrong / (double)series,
			100.0 * (double)missed / (double)series);
	}
}

int main(int argc, char **argv)
{
	const unsigned long long series = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000;
	bench_sweeps(series);
	bench_estimates(series);
	return 0;
}
