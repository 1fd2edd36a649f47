/* Growth of memory on synthetic series: leaks of 0.1 MB/s are found within a minute whatever their shape, and
 * nothing that stays, levels off or is given back passes for one. */
#include "harness/analyze/diagnose.h"

#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 4711, WINDOWS = 512, TRIALS = 50 };

static const double MB = 1e6;
static const double LEAK = 0.1e6; /* bytes/s */

struct made {
	double t[WINDOWS], y[WINDOWS];
	size_t n;
};

typedef double shape_of(double t, double seconds, double rate);

static double flat(double t, double seconds, double rate)
{
	(void)t;
	(void)seconds;
	(void)rate;
	return 0;
}

static double ramp(double t, double seconds, double rate)
{
	(void)seconds;
	return rate * t;
}

/* A leak that shows in jumps of 1 MB. */
static double stairs(double t, double seconds, double rate)
{
	(void)seconds;
	return floor(rate * t / MB) * MB;
}

static double fills_up(double t, double seconds, double rate)
{
	return rate * seconds * (1 - exp(-4 * t / seconds));
}

static double fills_then_full(double t, double seconds, double rate)
{
	return rate * fmin(t, seconds / 2);
}

static double one_jump(double t, double seconds, double rate)
{
	return t > 0.55 * seconds ? rate * seconds : 0;
}

/* Garbage that is collected five times. */
static double saw_tooth(double t, double seconds, double rate)
{
	return 4 * rate * fmod(t, seconds / 5.3);
}

/* And the same over a leak. */
static double leaking_saw_tooth(double t, double seconds, double rate)
{
	return rate * t + saw_tooth(t, seconds, rate);
}

static void make(struct made *made, shape_of *shape, double seconds, double rate, double noise,
	uint64_t stream)
{
	struct rng rng;
	double wander = 0;
	rng_init(&rng, SEED, stream);
	made->n = WINDOWS;
	for (size_t i = 0; i < made->n; i++) {
		made->t[i] = 1 + seconds * (double)i / (double)(made->n - 1);
		wander = 0.9 * wander + noise * 0.44 * rng_normal(&rng);
		/* Windows with a passing allocation. */
		const double passing = rng_uniform(&rng) < 0.02 ? 3 * MB : 0;
		made->y[i] = 300 * MB + shape(made->t[i] - 1, seconds, rate) + wander + passing;
	}
}

static size_t endless(shape_of *shape, double seconds, double rate, double noise)
{
	struct made made;
	size_t found = 0;
	for (uint64_t i = 0; i < TRIALS; i++) {
		make(&made, shape, seconds, rate, noise, i);
		const struct growth g = growth_of(made.t, made.y, made.n, i);
		found += g.shape == GROWTH_ENDLESS;
		if (shape == ramp && g.shape == GROWTH_ENDLESS) {
			assert_true(g.slope > 0.8 * rate && g.slope < 1.2 * rate);
			assert_true(g.interval.low <= g.slope && g.slope <= g.interval.high);
		}
	}
	if (found != 0 && found != TRIALS)
		print_message("seed %d, %.0f s, %.2g bytes/s, noise %.2g: %zu of %d\n", SEED,
			seconds, rate, noise, found, TRIALS);
	return found;
}

static void a_small_leak_is_found_within_a_minute(void **state)
{
	(void)state;
	assert_int_equal(endless(ramp, 60, LEAK, 0.1 * MB), TRIALS);
	assert_true(endless(ramp, 60, LEAK, 0.3 * MB) >= TRIALS - 2);
	assert_true(endless(ramp, 30, LEAK, 0.1 * MB) >= TRIALS - 2);
	assert_true(endless(stairs, 60, LEAK, 0.05 * MB) >= TRIALS - 2);
	assert_true(endless(leaking_saw_tooth, 60, 4 * LEAK, 0.1 * MB) >= TRIALS - 5);
	/* The larger, the sooner. */
	assert_int_equal(endless(ramp, 3, 4 * MB, 0.1 * MB), TRIALS);
}

static void what_is_no_leak_is_not_found(void **state)
{
	(void)state;
	static shape_of *const shapes[] = {flat, fills_up, fills_then_full, one_jump, saw_tooth};
	static const double seconds[] = {3, 20, 60};
	for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
		for (size_t k = 0; k < 3; k++) {
			if (endless(shapes[s], seconds[k], 3 * MB, 0.1 * MB) != 0)
				fail_msg("shape %zu, %.0f s", s, seconds[k]);
			if (endless(shapes[s], seconds[k], LEAK, 0.3 * MB) > 2)
				fail_msg("noisy shape %zu, %.0f s", s, seconds[k]);
		}
}

static void too_short_is_said(void **state)
{
	(void)state;
	struct made made;
	make(&made, ramp, 60, LEAK, 0, 1);
	assert_int_equal(growth_of(made.t, made.y, 15, 1).shape, GROWTH_TOO_SHORT);
	make(&made, ramp, 1, LEAK, 0, 1);
	const struct growth g = growth_of(made.t, made.y, made.n, 1);
	assert_int_equal(g.shape, GROWTH_TOO_SHORT);
	assert_true(isnan(g.slope));
}

/* --- whole measurements ------------------------------------------------------------------------ */

struct memory_plan {
	shape_of *anonymous, *file, *allocated, *free_in_heap;
	double seconds, rate;
};

static void measure(struct measurement *m, const struct memory_plan *plan, uint64_t stream)
{
	struct made made;
	make(&made, plan->anonymous, plan->seconds, plan->rate, 0.1 * MB, stream);
	*m = (struct measurement){.cut_seconds = 1, .stage_count = 3, .window_count = WINDOWS};
	(void)snprintf(m->stages[0].name, NAME_BYTES, "read");
	(void)snprintf(m->stages[1].name, NAME_BYTES, "decode");
	(void)snprintf(m->stages[2].name, NAME_BYTES, "step");
	m->windows = calloc(WINDOWS, sizeof *m->windows);
	assert_non_null(m->windows);
	for (size_t i = 0; i < WINDOWS; i++) {
		struct window *w = &m->windows[i];
		const double t = made.t[i] - 1;
		w->t = made.t[i];
		w->file_bytes = (uint64_t)(20 * MB + plan->file(t, plan->seconds, 50 * plan->rate));
		w->resident_bytes = (uint64_t)made.y[i] + w->file_bytes;
		w->stage_allocated[1] = (uint64_t)plan->allocated(t, plan->seconds, plan->rate);
		w->heap_used_bytes = 50 * MB + plan->allocated(t, plan->seconds, plan->rate);
		w->heap_free_bytes = plan->free_in_heap(t, plan->seconds, plan->rate);
	}
}

static struct memory_finding find(const struct memory_plan *plan, uint64_t stream)
{
	struct measurement m[3];
	const struct measurement *repeats[] = {&m[0], &m[1], &m[2]};
	const struct point_facts facts = {.memory_limit_bytes = 1300 * MB};
	struct memory_finding finding;
	for (uint64_t i = 0; i < 3; i++)
		measure(&m[i], plan, 3 * stream + i);
	memory_find(repeats, 3, &facts, &finding);
	for (size_t i = 0; i < 3; i++)
		measurement_release(&m[i]);
	return finding;
}

static void the_leaking_stage_is_named(void **state)
{
	(void)state;
	const struct memory_plan plan = {ramp, flat, ramp, flat, 60, LEAK};
	const struct memory_finding f = find(&plan, 1);
	assert_true(f.leaks);
	assert_string_equal(f.stage, "decode");
	assert_true(fabs(f.bytes_per_s - LEAK) < 0.1 * LEAK);
	/* 1300 MB less 306 MB, at 0.1 MB/s. */
	assert_true(fabs(f.seconds_to_full - 9940) < 1200);
	assert_non_null(strstr(f.words, "allocations of decode; memory is full in"));
}

static void a_growing_page_cache_is_no_leak(void **state)
{
	(void)state;
	const struct memory_plan plan = {flat, ramp, flat, flat, 60, LEAK};
	for (uint64_t i = 0; i < TRIALS; i++) {
		const struct memory_finding f = find(&plan, i);
		assert_false(f.leaks);
		assert_true(isinf(f.seconds_to_full));
	}
}

static void unknown_owner_and_limit_are_left_open(void **state)
{
	(void)state;
	const struct memory_plan plan = {ramp, flat, flat, flat, 60, LEAK};
	struct memory_finding f = find(&plan, 2);
	assert_true(f.leaks);
	assert_string_equal(f.stage, "");
	struct measurement m;
	const struct measurement *one = &m;
	const struct point_facts facts = {0};
	measure(&m, &plan, 3);
	memory_find(&one, 1, &facts, &f);
	assert_true(f.leaks && isnan(f.seconds_to_full));
	m.window_count = 3;
	memory_find(&one, 1, &facts, &f);
	assert_true(!f.leaks && isnan(f.bytes_per_s) && f.words[0]);
	measurement_release(&m);
}

static void fragmentation_is_told_apart(void **state)
{
	(void)state;
	const struct memory_plan plan = {ramp, flat, flat, ramp, 60, LEAK};
	const struct memory_finding f = find(&plan, 4);
	assert_false(f.leaks);
	assert_non_null(strstr(f.words, "fragmentation"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_leak_is_found_within_a_minute),
		cmocka_unit_test(what_is_no_leak_is_not_found),
		cmocka_unit_test(too_short_is_said),
		cmocka_unit_test(the_leaking_stage_is_named),
		cmocka_unit_test(a_growing_page_cache_is_no_leak),
		cmocka_unit_test(unknown_owner_and_limit_are_left_open),
		cmocka_unit_test(fragmentation_is_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
