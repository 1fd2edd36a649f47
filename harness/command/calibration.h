/* A measured point of a saved result as a calibrated model. */
#ifndef MLBENCH_COMMAND_CALIBRATION_H
#define MLBENCH_COMMAND_CALIBRATION_H

#include "harness/analyze/point_model.h"
#include "harness/record/record.h"
#include "harness/report/material.h"

#include <stdbool.h>

struct calibration {
	struct config config; /* of the point */
	struct model model;
	double bytes_per_sample; /* read by the source; NAN: not known */
	double page_cache_share; /* of these, from the page cache; NAN */
};

/* What a model of a point is calibrated from; borrows all of it.  contention as below. */
struct model_source calibration_source(const struct config *config, const struct record *record,
	const struct material *material, double contention);

/* From all good repetitions of a point (the unsteady ones where there is no other).  -ENOENT: it was not
 * measured; -ENODATA: no service times were recorded, or too few; err says how many are needed.
 * contention: between cores (calibration_contention); NAN: taken from the record's ceilings, if it has any. */
int calibration_open(struct calibration *calibration, const struct record *record, size_t point,
	double contention, struct error *err);
/* How many samples were recorded too few; {0}: enough, or something else is missing. */
struct model_lack calibration_lack(const struct record *record, size_t point);
void calibration_close(struct calibration *calibration); /* safe on {0} */

/* How cores slow each other down, from the good repetitions of these points; NAN: they do not tell. */
double calibration_contention(const struct record *record, const size_t *points, size_t count);

/* The model with the keys of `to`: close it.  -ENOTSUP: a key that replay does not model. */
int calibration_alter(const struct calibration *calibration, const struct config *to,
	struct model *out, struct error *err);

/* -ENOTSUP, with the list of the keys that it does know. */
int calibration_refuse(enum key_id key, struct error *err);

/* Throughput of a point's good repetitions, ascending: a fresh array, *count of them; NULL without memory. */
double *calibration_repeats(const struct record *record, size_t point, size_t *count);
/* Their median; NAN: none. */
double calibration_measured(const struct record *record, size_t point);

#endif
