/* Which points of two sweeps are the same: by the values of every key that either of them sweeps, whatever the order
 * of axes and values.  Pure functions. */
#ifndef MLBENCH_ANALYZE_COMPARE_MATCH_H
#define MLBENCH_ANALYZE_COMPARE_MATCH_H

#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>

struct point_pair {
	size_t a, b; /* points of the grids */
};

struct point_match {
	bool swept
		[KEY_COUNT]; /* keys that points are matched by; none: two single runs are a pair */
	struct point_pair *pairs; /* in the order of a's points; owned */
	size_t pair_count;
	size_t *only_a, *only_b; /* points without a partner; owned */
	size_t only_a_count, only_b_count;
};

/* 0 or -ENOMEM. */
int point_match(const struct config *a, const struct config_grid *a_grid, const struct config *b,
	const struct config_grid *b_grid, struct point_match *match);
void point_match_release(struct point_match *match); /* safe on {0} */

/* The value of a key at a point of a grid. */
const struct config_value *point_value(
	const struct config *config, const struct config_grid *grid, size_t point, enum key_id key);

/* Whether two values of a key are the same. */
bool config_value_same(enum key_id key, const struct config_value *a, const struct config_value *b);

#endif
