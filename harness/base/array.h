/* Arrays: how many elements, and sorting numbers. */
#ifndef MLBENCH_BASE_ARRAY_H
#define MLBENCH_BASE_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

/* Elements of an array, not of a pointer. */
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Of two doubles, for qsort and bsearch.  NAN has no place in an order: the caller leaves it out. */
static inline int order_doubles(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;
	return (left > right) - (left < right);
}

/* In place, ascending. */
static inline void sort_doubles(double *values, size_t count)
{
	qsort(values, count, sizeof *values, order_doubles);
}

#endif
