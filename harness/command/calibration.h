/* A measured point of a saved result as a calibrated model. */
#ifndef MLBENCH_COMMAND_CALIBRATION_H
#define MLBENCH_COMMAND_CALIBRATION_H

#include "harness/analyze/model.h"
#include "harness/report/record.h"

#include <stdbool.h>

struct calibration {
	struct config config; /* of the point, its step resolved (step_facts.h) */
	struct model model;
	double bytes_per_sample; /* read by the source; NAN: not known */
	double page_cache_share; /* of these, from the page cache; NAN */
};

/* From all good repetitions of a point (the unsteady ones where there is no other).  -ENOENT: it was not
 * measured; -ENODATA: no service times were recorded, or too few; err says how many are needed. */
int calibration_open(struct calibration *calibration, const struct record *record, size_t point,
	const struct ceilings *ceilings, struct error *err);
void calibration_close(struct calibration *calibration); /* safe on {0} */

/* The model with the keys of `to` (resolved here): close it.  -ENOTSUP: a key that replay does not model. */
int calibration_alter(const struct calibration *calibration, const struct config *to,
	struct model *out, struct error *err);

/* Whether predictions can follow a key: those of model_alter, and the step's device and model. */
bool calibration_knows(enum key_id key);
/* -ENOTSUP, with the list of the keys that it does know; `what` begins the sentence. */
int calibration_refuse(enum key_id key, struct error *err);

/* Median of the good repetitions' throughput; NAN: none. */
double calibration_measured(const struct record *record, size_t point);

#endif
