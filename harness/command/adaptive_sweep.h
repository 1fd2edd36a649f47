/* sweep.mode = adaptive: measure what tells most, predict the rest, confirm what is recommended
 * (harness/analyze/adaptive.h decides; this does it). */
#ifndef MLBENCH_COMMAND_ADAPTIVE_SWEEP_H
#define MLBENCH_COMMAND_ADAPTIVE_SWEEP_H

#include "harness/report/report.h"

#include <stdbool.h>
#include <stdint.h>

/* -EINVAL before anything runs: an axis that replay does not model, or too many points. */
int adaptive_sweep_check(
	const struct config *config, const struct config_grid *grid, struct error *err);

struct adaptive_hooks {
	/* Measures one repetition and appends it to the record. */
	void (*measure)(void *context, uint32_t point, uint32_t repeat);
	bool (*stopped)(void *context);
	/* Repetitions that are about to be measured, more than was said before. */
	void (*expect)(void *context, size_t repetitions);
	void *context;
};

/* Goes on from what the record holds.  *complete: it ended by itself, rather than being stopped. */
int adaptive_sweep_run(const struct record *record, const struct adaptive_hooks *hooks,
	bool *complete, struct error *err);

/* All that is computed of a record: report_diagnose, and, of an adaptive sweep, forecasts of the points
 * that were not measured. */
int report_complete(struct report *report, struct error *err);

#endif
