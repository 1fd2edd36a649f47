/* Bounds of what is replayed; internal to the replay. */
#ifndef MLBENCH_ANALYZE_REPLAY_CHECK_H
#define MLBENCH_ANALYZE_REPLAY_CHECK_H

#include "harness/analyze/replay.h"

enum {
	REPLAY_THREADS_MAX = 1 << 16,
	REPLAY_BLOBS_MAX = 1 << 24,
	REPLAY_BATCH_MAX = 1 << 24,
	REPLAY_SLOTS_MAX = 1 << 20,
	REPLAY_BATCHES_MAX = 1 << 30,
};

/* 0 or -EINVAL. */
int replay_check(
	const struct replay_model *model, const struct replay_options *options, struct error *err);

#endif
