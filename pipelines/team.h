/* The decode team: OpenMP threads that turn ready files into samples, straight into their place in a
 * batch.  States: starved (nothing is ready), working, blocked (the next batch has no slot). */
#ifndef MLBENCH_PIPELINES_TEAM_H
#define MLBENCH_PIPELINES_TEAM_H

#include "harness/measure/thread_meter.h"
#include "pipelines/bad_samples.h"
#include "pipelines/crew.h"
#include "pipelines/exchange.h"
#include "pipelines/injection.h"
#include "pipelines/placement.h"
#include "workloads/dataset/dataset.h"

struct team_options {
	const struct config *config;
	const struct dataset *dataset;
	struct crew *crew;
	struct exchange *exchange;
	struct injection *injection;
	struct bad_samples *bad;
	const struct placement *placement;
	const struct backend_ops *backend; /* whose marks are set */
	unsigned first_place;
	struct thread_meter *meters; /* (workers), or NULL: not timed */
	uint64_t segment_ns;
	unsigned workers;
	struct sample_sizes sizes;
};

struct team;

int team_start(struct team **out, const struct team_options *options, struct error *err);
bool team_join(struct team *team, uint64_t deadline_ns); /* false: it does not end */
void team_free(struct team *team);                       /* after team_join; NULL is fine */

#endif
