/* A measured point of a saved result: its calibrated model, and its diagnosis. */
#ifndef MLBENCH_COMMAND_CALIBRATION_H
#define MLBENCH_COMMAND_CALIBRATION_H

#include "harness/analyze/diagnose.h"
#include "harness/analyze/point_model.h"
#include "harness/record/record.h"
#include "harness/report/report.h"

#include <stdbool.h>
#include <stdint.h>

struct calibration {
	struct config config; /* of the point */
	struct model model;
	double bytes_per_sample; /* read by the source; NAN: not known */
	double page_cache_share; /* of these, from the page cache; NAN */
};

/* From all good repetitions of a point (the unsteady ones where there is no other).  -ENOENT: it was
 * not measured; -ENODATA: no service times were recorded, or too few; err says how many are needed.
 * contention: between cores (calibration_contention); NAN: taken from the record's ceilings, if any.
 * lack: NULL, or how many samples were recorded too few. */
int calibration_open(struct calibration *calibration, const struct record *record, size_t point,
	double contention, struct model_lack *lack, struct error *err);
void calibration_close(struct calibration *calibration); /* safe on {0} */

/* How cores slow each other down, from the good repetitions of these points (NULL: of all); NAN:
 * they do not tell. */
double calibration_contention(const struct record *record, const size_t *points, size_t count);

/* The model with the keys of `to`: close it.  -ENOTSUP: a key that replay does not model. */
int calibration_alter(const struct calibration *calibration, const struct config *to,
	struct model *out, struct error *err);

/* -ENOTSUP, with the list of the keys that it does know. */
int calibration_refuse(enum key_id key, struct error *err);

/* Throughput of a point's good repetitions, of the state that lasts (diagnose.h, regimes), ascending: a fresh array, *count of them; NULL without memory. */
double *calibration_repeats(const struct record *record, size_t point, size_t *count);
/* Their median; NAN: none. */
double calibration_measured(const struct record *record, size_t point);

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
