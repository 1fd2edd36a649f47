/* What the doctor's checks share.  Internal to measure. */
#ifndef MLBENCH_MEASURE_DOCTOR_PARTS_H
#define MLBENCH_MEASURE_DOCTOR_PARTS_H

#include "harness/measure/environment.h"

#include <stddef.h>

/* The findings so far, and the facts they are drawn from. */
struct doctor {
	struct doctor_finding *findings;
	size_t count, room;
	struct fact_list facts;
	const char *data_path; /* may be NULL */
};

/* Adds a finding; consequence and remedy may be "". */
void doctor_find(struct doctor *doctor, enum doctor_level level, const char *subject,
	const char *consequence, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/* A fact's text ("" when missing), number (NAN when missing or a text), and why it is missing. */
const char *doctor_text(const struct doctor *doctor, const char *group, const char *name);
double doctor_number(const struct doctor *doctor, const char *group, const char *name);
const char *doctor_why(const struct doctor *doctor, const char *group, const char *name);

/* doctor_data.c: where the data lies. */
void doctor_check_file_system(struct doctor *doctor);
void doctor_check_direct_io(struct doctor *doctor);
void doctor_check_disk(struct doctor *doctor);

/* doctor_device.c: what may make a GPU slower than its name. */
void doctor_check_device(struct doctor *doctor);

#endif
