/* The buckets in which devices that train together sum their gradients: which values each holds, and when the backward pass has
 * made them.  A pure function of where each layer's parameters begin. */
#ifndef MLBENCH_WORKLOADS_BACKEND_BUCKETS_H
#define MLBENCH_WORKLOADS_BACKEND_BUCKETS_H

#include <stddef.h>

struct bucket {
	size_t begin, count; /* values of the array of all gradients */
	size_t layer;        /* complete once the backward pass has been through this layer */
};

/* Cuts from the last value on, since the backward pass begins with the last layer: in the order of the result, each bucket has `most`
 * values (0: all in one) and the last one what is left.  begins: (layers) first values, ascending from 0; a layer without
 * parameters begins where the next one does, or at `values`.  Returns how many there are, in *out, which is the caller's to free;
 * 0 without memory. */
size_t buckets_cut(
	struct bucket **out, const size_t *begins, size_t layers, size_t values, size_t most);

#endif
