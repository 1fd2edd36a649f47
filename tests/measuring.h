/* What depends on how fast or how quiet the machine is has no place in `make check`, which must hold anywhere: rates, shares of
 * time, and times with an upper bound.  `make bench` asks for them: it runs the programs with MLBENCH_MEASURING=1, alone. */
#ifndef MLBENCH_TESTS_MEASURING_H
#define MLBENCH_TESTS_MEASURING_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool measuring(void)
{
	return getenv("MLBENCH_MEASURING") != NULL;
}

#define assert_measured(expression) assert_true(!measuring() || (expression))

/* The tests of an array, and those of another, which only measure, where that is asked for. */
#define run_tests_and_measured(tests, measured)      \
	(cmocka_run_group_tests(tests, NULL, NULL) + \
		(measuring() ? cmocka_run_group_tests(measured, NULL, NULL) : 0))

#endif
