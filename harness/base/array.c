/* Sorting numbers. */
#include "harness/base/array.h"

#include <stdlib.h>

int order_doubles(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;
	return (left > right) - (left < right);
}

void sort_doubles(double *values, size_t count)
{
	qsort(values, count, sizeof *values, order_doubles);
}
