/* The series of the costs, item by item: as they are, or in blocks drawn at random.  Costs of one stage
 * draw the same blocks, so that what was recorded of one item stays together. */
#ifndef MLBENCH_ANALYZE_REPLAY_COSTS_H
#define MLBENCH_ANALYZE_REPLAY_COSTS_H

#include "harness/analyze/replay.h"

struct replay_cursor {
	const float *ns;
	size_t count;          /* 0: the cost is nothing */
	size_t at, left;       /* next entry; entries left of the block */
	size_t block, offset;  /* block 0: the sequence as it is */
	uint64_t stream, next; /* random numbers of the stage; number of the next block */
	double scale;
};

void replay_cursor_open(struct replay_cursor *cursor, const struct replay_model *model,
	const struct replay_options *options, enum replay_cost cost);
/* Draws the next block; for replay_cursor_next. */
void replay_cursor_draw(struct replay_cursor *cursor);

/* ns of the next item. */
static inline double replay_cursor_next(struct replay_cursor *cursor)
{
	if (cursor->count == 0)
		return 0;
	const double ns = (double)cursor->ns[cursor->at] * cursor->scale;
	if (++cursor->at == cursor->count)
		cursor->at = 0;
	if (cursor->block > 0 && --cursor->left == 0)
		replay_cursor_draw(cursor);
	return ns;
}

#endif
