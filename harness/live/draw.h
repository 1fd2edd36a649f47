/* The view of a run on a canvas of any size: what matters most comes first, and what has no room is left out. */
#ifndef MLBENCH_LIVE_DRAW_H
#define MLBENCH_LIVE_DRAW_H

#include "harness/live/canvas.h"
#include "harness/live/recent.h"
#include "harness/live/stall.h"

struct scene {
	const struct live_view *view; /* NULL: nothing was shown yet */
	const struct history *history;
	const struct live_verdict *verdict;
	const struct stall *stall;
	const char *log; /* lines */
	bool own;        /* the run is this process: q stops it */
	bool paused, help, stopping, over;
	uint64_t now_ns;
};

void draw_scene(struct canvas *canvas, const struct scene *scene);

#endif
