/* Change points: steady noise gives none, whatever its correlation; planted changes of throughput or of state
 * shares are found where they are. */
#include "harness/analyze/diagnose.h"

#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 60606, TRIALS = 400, SERIES = 9 };

struct noise {
	double deviation, phi, outliers;
};

/* Level of a series at place i of n. */
typedef double level_at(size_t series, size_t i, size_t n);

static double steady(size_t series, size_t i, size_t n)
{
	(void)series;
	(void)i;
	(void)n;
	return 0.5;
}

/* The middle third is slow; a share of states answers. */
static double slow_middle(size_t series, size_t i, size_t n)
{
	const bool middle = 3 * i >= n && 3 * i < 2 * n;
	if (series == 0)
		return middle ? 0.5 : 1;
	return series == 1 && middle ? 0.95 : 0.4;
}

/* The throughput stays, but another stage is busy. */
static double other_stage(size_t series, size_t i, size_t n)
{
	return series == 3 && 2 * i >= n ? 0.8 : 0.5;
}

static void make(
	struct change_set *set, level_at *level, size_t n, struct noise noise, uint64_t stream)
{
	struct rng rng;
	rng_init(&rng, SEED, stream);
	*set = (struct change_set){.series_count = SERIES, .count = n};
	for (size_t s = 0; s < SERIES; s++) {
		double wander = rng_normal(&rng);
		set->series[s].least = 0.1;
		for (size_t i = 0; i < n; i++) {
			wander = noise.phi * wander +
				 sqrt(1 - noise.phi * noise.phi) * rng_normal(&rng);
			const bool out = rng_uniform(&rng) < noise.outliers;
			set->series[s].values[i] = level(s, i, n) + noise.deviation * wander +
						   (out ? 20 * noise.deviation : 0);
		}
	}
}

static double false_alarms(size_t n, struct noise noise)
{
	size_t wrong = 0;
	for (uint64_t i = 0; i < TRIALS; i++) {
		struct change_set set;
		struct segmentation found;
		make(&set, steady, n, noise, i);
		change_points_find(&set, &found);
		assert_true(found.count >= 1 && found.starts[0] == 0);
		wrong += found.count > 1;
	}
	print_message(
		"seed %d, %zu values, deviation %.2f, phi %.1f, outliers %.2f: %zu of %d cut\n",
		SEED, n, noise.deviation, noise.phi, noise.outliers, wrong, TRIALS);
	return (double)wrong / TRIALS;
}

static void steady_runs_are_not_cut(void **state)
{
	(void)state;
	static const struct noise noises[] = {{0.02, 0, 0}, {0.1, 0, 0}, {0.3, 0, 0}, {0.1, 0.5, 0},
		{0.3, 0.5, 0}, {0.1, 0, 0.03}};
	static const size_t lengths[] = {16, 30, 60, 128};
	for (size_t l = 0; l < 4; l++)
		for (size_t i = 0; i < sizeof noises / sizeof *noises; i++)
			assert_true(false_alarms(lengths[l], noises[i]) <= 0.02);
}

static void expect_near(size_t got, size_t expected, size_t slack)
{
	assert_true(got + slack >= expected && got <= expected + slack);
}

static void a_slow_middle_gives_three_phases(void **state)
{
	(void)state;
	static const size_t lengths[] = {24, 60, 120};
	for (size_t l = 0; l < 3; l++) {
		const size_t n = lengths[l];
		size_t exact = 0;
		for (uint64_t i = 0; i < 50; i++) {
			struct change_set set;
			struct segmentation found;
			make(&set, slow_middle, n, (struct noise){0.05, 0.3, 0.01}, 1000 + i);
			change_points_find(&set, &found);
			if (found.count != 3)
				continue;
			exact++;
			expect_near(found.starts[1], n / 3, 1);
			expect_near(found.starts[2], 2 * n / 3, 1);
		}
		print_message("seed %d, %zu values: %zu of 50 cut in three\n", SEED, n, exact);
		assert_true(exact >= 48);
	}
}

static void another_stage_is_another_phase(void **state)
{
	(void)state;
	struct change_set set;
	struct segmentation found;
	make(&set, other_stage, 60, (struct noise){0.05, 0, 0}, 7);
	change_points_find(&set, &found);
	assert_int_equal(found.count, 2);
	expect_near(found.starts[1], 30, 1);
}

static void what_is_too_short_or_flat_is_one_phase(void **state)
{
	(void)state;
	struct change_set set;
	struct segmentation found;
	for (size_t n = 0; n < 2 * CHANGE_SEGMENT_MIN; n++) {
		make(&set, slow_middle, n, (struct noise){0}, 1);
		change_points_find(&set, &found);
		assert_int_equal(found.count, 1);
	}
	make(&set, steady, 50, (struct noise){0}, 1);
	change_points_find(&set, &found);
	assert_int_equal(found.count, 1);
	make(&set, slow_middle, 60, (struct noise){0}, 1);
	change_points_find(&set, &found);
	assert_int_equal(found.count, 3);
	assert_int_equal(found.starts[1], 20);
}

/* --- regimes ---------------------------------------------------------------------------------- */

enum { REPETITIONS_MAX = 30, REGIME_TRIALS = 20000 };

static void regimes_of(const double *rates, size_t count, struct regimes *out)
{
	static struct measurement repeats[REPETITIONS_MAX];
	const struct measurement *list[REPETITIONS_MAX];
	for (size_t i = 0; i < count; i++) {
		repeats[i] = (struct measurement){.status = MEASUREMENT_OK,
			.throughput = rates[i],
			.repeat = (uint32_t)i,
			.cut_seconds = 0.2,
			.measured_seconds = 1};
		list[i] = &repeats[i];
	}
	regimes_find(list, count, out);
}

/* How many of a thousand runs are cut whose repetitions only scatter. */
static double scatter_cut(size_t count, double deviation)
{
	struct rng rng;
	size_t wrong = 0;
	rng_init(&rng, SEED, count);
	for (size_t i = 0; i < REGIME_TRIALS; i++) {
		double rates[REPETITIONS_MAX];
		struct regimes found;
		for (size_t k = 0; k < count; k++)
			rates[k] = 500 * exp(deviation * rng_normal(&rng));
		regimes_of(rates, count, &found);
		wrong += found.count > 1;
	}
	return 1000.0 * (double)wrong / REGIME_TRIALS;
}

static void repetitions_that_scatter_are_one_regime(void **state)
{
	(void)state;
	static const size_t counts[] = {2, 3, 4, 5, 6, 8, 10, 12, 20, 30};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		const double ten = scatter_cut(counts[i], 0.10);
		const double fifteen = scatter_cut(counts[i], 0.15);
		const double twenty = scatter_cut(counts[i], 0.20);
		print_message(
			"seed %d, %zu repetitions: cut of 1000 at 10 %%: %.2f, 15 %%: %.2f, 20 %%: %.2f\n",
			SEED, counts[i], ten, fifteen, twenty);
		assert_true(ten <= 0.2);
		assert_true(fifteen <= 1.5); /* one, and what 20,000 trials scatter by */
		assert_true(twenty <= 12);
	}
}

static void expect_regimes(const double *rates, size_t count, size_t regimes, const char *lasting)
{
	struct regimes found;
	regimes_of(rates, count, &found);
	assert_int_equal(found.count, regimes);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(regimes_last(&found, i), lasting[i] == '+');
}

static void a_changed_rate_is_another_regime(void **state)
{
	(void)state;
	static const double credit[] = {483, 114, 112};
	static const double late[] = {480, 471, 118};
	static const double two[] = {483, 114};
	static const double two_near[] = {240, 114};
	static const double half[] = {240, 118, 121, 119, 122, 117};
	static const double again[] = {480, 475, 112, 117, 490, 470, 482, 477};
	static const double thrice[] = {900, 880, 300, 310, 305, 100, 99, 104};
	static const double last[] = {480, 471, 476, 488, 491, 480, 110};
	static const double drift[] = {500, 480, 460, 440, 430, 420, 410, 400};
	static const double none[] = {NAN, 114, 112, 118};
	struct regimes found;
	expect_regimes(credit, 3, 2, "-++");
	expect_regimes(late, 3, 2, "--+");
	expect_regimes(two, 2, 2, "-+");
	expect_regimes(two_near, 2, 1, "++");
	expect_regimes(half, 6, 2, "-+++++");
	expect_regimes(again, 8, 3, "++--++++");
	expect_regimes(thrice, 8, 3, "-----+++");
	/* A single one at the end may be anything. */
	expect_regimes(last, 7, 2, "++++++-");
	regimes_of(last, 7, &found);
	assert_true(found.open);
	expect_regimes(drift, 8, 1, "++++++++");
	expect_regimes(none, 4, 1, "++++");
	regimes_of(credit, 3, &found);
	assert_int_equal(found.of[0].last, 0);
	assert_int_equal(found.of[1].first, 1);
	assert_true(fabs(found.of[1].rate - sqrt(114 * 112)) < 1e-6);
	assert_false(found.open);
}

/* Of a few steps the windows tell nothing, but of the bytes that come in between: steady ones, or half of them in each other. */
static void bytes_tell_how_steady_few_steps_were(void **state)
{
	(void)state;
	enum { WINDOWS = 12 };
	static const double rates[] = {640, 228, 225};
	for (int uneven = 0; uneven < 2; uneven++) {
		struct window windows[3][WINDOWS] = {0};
		struct measurement repeats[3];
		const struct measurement *list[3];
		struct regimes found;
		for (size_t r = 0; r < 3; r++) {
			uint64_t bytes = 0;
			for (size_t i = 0; i < WINDOWS; i++) {
				const bool more = uneven && i % 4 == 0;
				bytes += (uint64_t)(rates[r] * (more ? 15e3 : uneven ? 1e3 : 4e3));
				windows[r][i].t = 0.1 * (double)(i + 1);
				windows[r][i].bytes_read = bytes;
			}
			repeats[r] = (struct measurement){.status = MEASUREMENT_OK,
				.throughput = rates[r],
				.batches = 3,
				.samples = 192,
				.windows = windows[r],
				.window_count = WINDOWS,
				.cut_seconds = 0.2,
				.measured_seconds = 1};
			list[r] = &repeats[r];
		}
		regimes_find(list, 3, &found);
		assert_int_equal(found.count, uneven ? 1 : 2);
		assert_int_equal(regimes_last(&found, 0), uneven);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady_runs_are_not_cut),
		cmocka_unit_test(a_slow_middle_gives_three_phases),
		cmocka_unit_test(another_stage_is_another_phase),
		cmocka_unit_test(what_is_too_short_or_flat_is_one_phase),
		cmocka_unit_test(repetitions_that_scatter_are_one_regime),
		cmocka_unit_test(a_changed_rate_is_another_regime),
		cmocka_unit_test(bytes_tell_how_steady_few_steps_were),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
