/* The points of an adaptive sweep, measured and predicted, as its record has them: for the loop that goes on from there
 * (adaptive_sweep.h), and for whoever shows the result. */
#ifndef MLBENCH_COMMAND_ADAPTIVE_FORECASTS_H
#define MLBENCH_COMMAND_ADAPTIVE_FORECASTS_H

#include "harness/analyze/adaptive.h"
#include "harness/command/forecaster.h"
#include "harness/report/report.h"

#include <stdbool.h>
#include <stddef.h>

struct adaptive_forecasts {
	const struct record *record;
	struct forecaster forecaster;
	struct forecast_errors errors;
	enum adaptive_state *state; /* (points) */
	struct forecast *forecasts; /* (points): of measured ones from the others */
	double *deviations;         /* (points): of ln of the repetitions; NAN: fewer than two */
	double *noises;             /* (points): adaptive_noises */
	double *widenings;          /* (points): forecast_errors_find */
	size_t *workload;           /* (points): the first of the same workload */
	size_t design[ADAPTIVE_DESIGN_MAX];
	size_t design_count;
	size_t said_why; /* points whose missing calibration was told */
};

/* record outlives it.  Close it even where opening fails. */
int forecasts_open(struct adaptive_forecasts *of, const struct record *record, struct error *err);
void forecasts_close(struct adaptive_forecasts *of);

/* In this order: the cores from the points of the design, then each point that was measured since, then all predictions. */
void forecasts_take_contention(struct adaptive_forecasts *of);
int forecasts_take_measured(struct adaptive_forecasts *of, struct error *err);
void forecasts_make(struct adaptive_forecasts *of);

/* Whether a point was measured, or failed. */
bool forecasts_tried(const struct adaptive_forecasts *of, size_t point);
/* A measured point that is not where the others put it. */
bool forecasts_miss(const struct adaptive_forecasts *of, size_t point);

/* All that is computed of a record: report_diagnose, and, of an adaptive sweep, forecasts of the
 * points that were not measured. */
int report_complete(struct report *report, struct error *err);

#endif
