/* Blobs of a replay: what their samples cost, beside what the law of harness/flow/flow.h has of them. */
#ifndef MLBENCH_ANALYZE_REPLAY_FILES_H
#define MLBENCH_ANALYZE_REPLAY_FILES_H

#include "harness/analyze/replay_costs.h"
#include "harness/flow/flow.h"

enum { SAMPLE_COSTS = COST_DECODE_WAIT + 1 };

struct replay_blob {
	double cost[SAMPLE_COSTS]; /* ns of this sample, by enum replay_cost */
	uint64_t ticket, batch;
	uint32_t slot; /* of its batch, from when a worker took it */
	uint32_t reader;
};

struct replay_files {
	struct replay_cursor cursors[SAMPLE_COSTS];
	struct replay_blob *blobs;
};

/* The next ticket with a free blob; there are both. */
static inline uint32_t replay_files_take(struct replay_files *f, struct flow *flow, uint32_t reader)
{
	const uint32_t index = flow_pool_take(&flow->blobs);
	const struct flow_ticket ticket = flow_take_ticket(flow);
	struct replay_blob *blob = &f->blobs[index];
	for (int cost = 0; cost < SAMPLE_COSTS; cost++)
		blob->cost[cost] = replay_cursor_next(&f->cursors[cost]);
	blob->ticket = ticket.number;
	blob->batch = ticket.batch;
	blob->reader = reader;
	return index;
}

#endif
