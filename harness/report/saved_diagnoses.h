/* The diagnoses of a result, kept beside it in diagnoses.json: to make those of 1,000 points anew takes half a minute.
 *
 * They are used by the program that made them, and while the files that they were made from are as they were; a checksum
 * of both stands before them.  The file is a cache: without it everything is computed again, and comes out the same. */
#ifndef MLBENCH_REPORT_SAVED_DIAGNOSES_H
#define MLBENCH_REPORT_SAVED_DIAGNOSES_H

#include "harness/report/report.h"

#include <stdbool.h>

/* Takes them over, and their verdicts.  false: there are none that hold, and nothing has changed. */
bool saved_diagnoses_take(struct report *report);

/* Writes them; nothing where the report was not diagnosed, or a file that they are made from cannot be read. */
int saved_diagnoses_write(const struct report *report, struct error *err);

/* Removes them. */
void saved_diagnoses_forget(const struct record *record);

#endif
