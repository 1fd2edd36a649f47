/* Student's t with freedom > 0 degrees, not necessarily whole.  Pure functions. */
#ifndef MLBENCH_ANALYZE_STUDENT_H
#define MLBENCH_ANALYZE_STUDENT_H

double student_below(double t, double freedom);    /* P(T <= t) */
double student_quantile(double p, double freedom); /* its inverse, for 0 < p < 1 */

#endif
