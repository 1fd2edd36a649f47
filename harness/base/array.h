/* Arrays: how many elements, and sorting numbers. */
#ifndef MLBENCH_BASE_ARRAY_H
#define MLBENCH_BASE_ARRAY_H

#include <stddef.h>

/* Elements of an array, not of a pointer. */
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Of two doubles, for qsort and bsearch.  NAN has no place in an order: the caller leaves it out. */
int order_doubles(const void *a, const void *b);

void sort_doubles(double *values, size_t count); /* in place, ascending */

#endif
