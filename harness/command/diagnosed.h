/* A measured point of a saved result, diagnosed. */
#ifndef MLBENCH_COMMAND_DIAGNOSED_H
#define MLBENCH_COMMAND_DIAGNOSED_H

#include "harness/analyze/diagnose.h"
#include "harness/command/calibration.h"
#include "harness/report/report.h"

#include <stdint.h>

struct diagnosed {
	size_t point;
	struct config config;                /* of the point, as the user wrote it */
	const struct point_summary *summary; /* the report's */
	struct diagnosis diagnosis;
	uint64_t samples;               /* measured, all repeats */
	double wall_s;                  /* of one repetition beyond what was planned: setting up */
	struct calibration calibration; /* the model, to predict experiments with */
	bool calibrated;
	char why_not[EVIDENCE_BYTES]; /* calibrated false: why */
};

/* point: of the report's, measured.  -ENODATA: nothing was measured there. */
int diagnosed_open(
	struct diagnosed *diagnosed, const struct report *report, size_t point, struct error *err);
void diagnosed_close(struct diagnosed *diagnosed); /* safe on {0} */

#endif
