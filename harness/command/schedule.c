/* The seeded, interleaved order of repetitions. */
#include "harness/command/schedule.h"

#include "harness/base/rng.h"

#include <stdlib.h>

static const uint64_t SCHEDULE_STREAM =
	0x5343484544554c45ULL; /* apart from other uses of run.seed */

struct schedule_item *schedule_make(size_t points, size_t repeats, uint64_t seed)
{
	struct schedule_item *items = calloc(points * repeats, sizeof *items);
	uint32_t *order = calloc(points, sizeof *order);
	for (size_t repeat = 0; items && order && repeat < repeats; repeat++) {
		struct rng rng;
		rng_init(&rng, seed, SCHEDULE_STREAM + repeat);
		rng_permutation(&rng, order, (uint32_t)points);
		for (size_t i = 0; i < points; i++)
			items[repeat * points + i] = (struct schedule_item){
				.point = order[i], .repeat = (uint32_t)repeat};
	}
	if (!order) {
		free(items);
		items = NULL;
	}
	free(order);
	return items;
}
