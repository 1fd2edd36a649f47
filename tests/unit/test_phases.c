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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady_runs_are_not_cut),
		cmocka_unit_test(a_slow_middle_gives_three_phases),
		cmocka_unit_test(another_stage_is_another_phase),
		cmocka_unit_test(what_is_too_short_or_flat_is_one_phase),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
