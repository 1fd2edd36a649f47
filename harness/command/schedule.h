/* In which order repetitions run: block by block (repeat 0 of every point, then repeat 1, ...),
 * each block in a random order of its own, so that a drift of the node falls on all points alike.
 */
#ifndef MLBENCH_COMMAND_SCHEDULE_H
#define MLBENCH_COMMAND_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

struct schedule_item {
	uint32_t point, repeat;
	uint64_t warmup_ns; /* in place of measure.warmup; 0: as it is set */
};

/* points x repeats items, a function of the seed; NULL without memory; free it. */
struct schedule_item *schedule_make(size_t points, size_t repeats, uint64_t seed);

#endif
