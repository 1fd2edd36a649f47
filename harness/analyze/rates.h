/* Throughput over a repetition, from its windows.  Windows count whole batches, so that short ones
 * alternate between nothing and a batch: samples are spread evenly between the windows in which
 * they rose. */
#ifndef MLBENCH_ANALYZE_RATES_H
#define MLBENCH_ANALYZE_RATES_H

#include "harness/record/measurement.h"

#include <stddef.h>

/* Samples through the step at time t (s), interpolated. */
double rate_samples_at(const struct measurement *m, double t);

/* How many equal parts [from, to] may be cut into, at most `most`, so that each has at least
 * `batches` steps and one window. */
size_t rate_parts(const struct measurement *m, double from, double to, double batches, size_t most);

/* Samples per second in each of `parts` equal parts of [from, to]. */
void rate_series(const struct measurement *m, double from, double to, size_t parts, double *rates);

/* Squared relative standard error of the rate of the whole, from its spread over parts; NAN: too few
 * steps. */
double rate_squared_error(const struct measurement *m);

/* The same of the bytes that were read, over windows; NAN: too few windows, or nothing was read. */
double rate_read_squared_error(const struct measurement *m);

#endif
