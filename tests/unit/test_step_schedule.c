/* Schedules of recorded steps: every phase of many schedules against a plain walk, and texts that are none. */
#include "harness/base/step_schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 60, MOST = 4 };

/* Step by step, as one would count on one's fingers. */
static void walk(const struct step_schedule *s, enum step_phase phases[STEPS])
{
	uint64_t step = 0;
	for (uint64_t i = 0; i < s->skip && step < STEPS; i++)
		phases[step++] = STEP_PHASE_IDLE;
	for (uint64_t cycle = 0; step < STEPS && (s->repeat == 0 || cycle < s->repeat); cycle++) {
		for (uint64_t i = 0; i < s->wait && step < STEPS; i++)
			phases[step++] = STEP_PHASE_IDLE;
		for (uint64_t i = 0; i < s->warmup && step < STEPS; i++)
			phases[step++] = STEP_PHASE_WARMUP;
		for (uint64_t i = 0; i < s->active && step < STEPS; i++)
			phases[step++] = STEP_PHASE_ACTIVE;
	}
	while (step < STEPS)
		phases[step++] = STEP_PHASE_IDLE;
}

static void check(const struct step_schedule *s)
{
	enum step_phase phases[STEPS];
	uint64_t kept = 0;
	walk(s, phases);
	for (uint64_t step = 0; step < STEPS; step++) {
		kept += phases[step] == STEP_PHASE_ACTIVE;
		if (step_schedule_phase(s, step) != phases[step])
			fail_msg("%u,%u,%u,%u,%u at step %u: %d, not %d", (unsigned)s->skip,
				(unsigned)s->wait, (unsigned)s->warmup, (unsigned)s->active,
				(unsigned)s->repeat, (unsigned)step, step_schedule_phase(s, step),
				phases[step]);
	}
	/* All of 4 x (4 + 4 + 4) + 4 steps are among those that were walked. */
	assert_int_equal(step_schedule_kept(s), s->repeat > 0 ? kept : UINT64_MAX);
}

static void every_phase_is_as_walked(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 5 * 5 * 5 * 4 * 5; n++) {
		const struct step_schedule s = {.skip = n % 5,
			.wait = n / 5 % 5,
			.warmup = n / 25 % 5,
			.active = 1 + n / 125 % MOST,
			.repeat = n / 500};
		check(&s);
	}
}

static void nothing_is_recorded_without_a_schedule(void **state)
{
	(void)state;
	const struct step_schedule none = {0};
	for (uint64_t step = 0; step < STEPS; step++)
		assert_int_equal(step_schedule_phase(&none, step), STEP_PHASE_IDLE);
	assert_int_equal(step_schedule_kept(&none), 0);
}

static void large_numbers_do_not_overflow(void **state)
{
	(void)state;
	struct step_schedule s;
	const char *text = "1000000000,1000000000,1000000000,1000000000,1000000000";
	assert_null(step_schedule_parse(text, &s));
	assert_int_equal(step_schedule_phase(&s, UINT64_C(3000000000) - 1), STEP_PHASE_WARMUP);
	assert_int_equal(step_schedule_phase(&s, UINT64_C(3000000000)), STEP_PHASE_ACTIVE);
	assert_int_equal(step_schedule_kept(&s), UINT64_C(1000000000000000000));
}

static void five_numbers_are_read(void **state)
{
	(void)state;
	struct step_schedule s;
	assert_null(step_schedule_parse(" 10, 1 ,2,3,\t4 ", &s));
	assert_int_equal(s.skip, 10);
	assert_int_equal(s.wait, 1);
	assert_int_equal(s.warmup, 2);
	assert_int_equal(s.active, 3);
	assert_int_equal(s.repeat, 4);
}

static void other_texts_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {"", " ", "1", "1,2,3", "1,2,3,4", "1,2,3,4,5,6",
		"1,2,3,4,", ",1,2,3,4", "1,2,3,4,-1", "1,2,3,4,+1", "1,2,3,4,1.5", "1,2,3,4,five",
		"1;2;3;4;5", "1,2,3,4 5", "0x1,2,3,4,5", "1,2,3,0,5", "1000000001,0,0,1,1",
		"99999999999999999999999,0,0,1,1", "1,2,3,4,5 steps"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct step_schedule s = {9, 9, 9, 9, 9};
		if (!step_schedule_parse(texts[i], &s))
			fail_msg("'%s' was taken", texts[i]);
		assert_int_equal(s.active, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_phase_is_as_walked),
		cmocka_unit_test(nothing_is_recorded_without_a_schedule),
		cmocka_unit_test(large_numbers_do_not_overflow),
		cmocka_unit_test(five_numbers_are_read),
		cmocka_unit_test(other_texts_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
