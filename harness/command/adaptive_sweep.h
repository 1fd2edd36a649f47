/* sweep.mode = adaptive: measure what tells most, predict the rest, confirm what is recommended
 * (harness/analyze/adaptive.h decides; this does it). */
#ifndef MLBENCH_COMMAND_ADAPTIVE_SWEEP_H
#define MLBENCH_COMMAND_ADAPTIVE_SWEEP_H

#include "harness/base/error.h"
#include "harness/config/config.h"

/* -EINVAL before anything runs: an axis that replay does not model, or too many points. */
int adaptive_sweep_check(
	const struct config *config, const struct config_grid *grid, struct error *err);

/* Goes on from what the session's record holds; session->complete: it ended by itself, rather
 * than being stopped. */
struct session;
int adaptive_sweep_run(struct session *session, struct error *err);

#endif
