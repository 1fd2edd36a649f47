/* Sorting numbers. */
#ifndef MLBENCH_BASE_ORDER_H
#define MLBENCH_BASE_ORDER_H

#include <stddef.h>

/* Of two doubles, for qsort and bsearch.  NAN has no place in an order: the caller leaves it out. */
int order_doubles(const void *a, const void *b);

void sort_doubles(double *values, size_t count); /* in place, ascending */

#endif
