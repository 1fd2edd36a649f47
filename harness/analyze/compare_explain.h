/* Where a difference of throughput comes from. The costs of one result are put into the replay of
 * the other, stage by stage; each stage gets the mean of what it changes over all orders in which
 * the stages could be exchanged (the Shapley value: L. Shapley, A value for n-person games, 1953).
 * The parts sum to the whole difference of the two replays, however the stages interact; what was
 * measured beyond that is unexplained. Without recorded service times the lowest of the stages'
 * capacities stands in for the replay. Pure functions. */
#ifndef MLBENCH_ANALYZE_COMPARE_EXPLAIN_H
#define MLBENCH_ANALYZE_COMPARE_EXPLAIN_H

#include "harness/analyze/point_model.h"

#include <stdbool.h>
#include <stddef.h>

enum { EXPLAIN_PARTS_MAX = REPLAY_STAGES + 2 };

struct explain_part {
	char name[NAME_BYTES]; /* a stage, "threads and buffers", or "cores" */
	double effect;         /* on ln(throughput); the parts sum to `explained` */
};

struct explanation {
	bool replayed;            /* else by capacities */
	char why_not[NOTE_BYTES]; /* no replay, because ... */
	double measured;          /* ln(B / A) */
	double explained;         /* ln of the replays' (or least capacities') ratio */
	struct explain_part
		parts[EXPLAIN_PARTS_MAX]; /* largest effect first; those of none are left out */
	size_t part_count;
};

/* 0; -E2BIG, -ENOMEM, -EINVAL as replay_run. */
int explain_by_replay(const struct model *a, const struct model *b, double measured,
	struct explanation *out, struct error *err);

/* One capacity per stage, samples/s; NAN: it never showed, so it is no bottleneck. */
struct explain_capacity {
	char stage[NAME_BYTES];
	double a, b;
};
void explain_by_capacities(const struct explain_capacity *stages, size_t count, double measured,
	struct explanation *out);

#endif
