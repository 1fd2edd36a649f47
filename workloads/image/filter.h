/* The weights of a one-dimensional resize: the triangle filter of PIL's and torchvision's BILINEAR.
 * When shrinking, its support is stretched by the factor (antialias), so that each pixel counts. */
#ifndef MLBENCH_WORKLOADS_IMAGE_FILTER_H
#define MLBENCH_WORKLOADS_IMAGE_FILTER_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FILTER_BITS = 14, /* weights are fixed-point: 1.0 is 1 << FILTER_BITS, and fits 16 bits */
	FILTER_ONE = 1 << FILTER_BITS,
};

/* What is resized to what: `length` pixels, a fraction allowed, from `start` on, to `size` of them.
 * Pixels outside [0, limit) do not exist and are left out of the average. */
struct filter_axis {
	double start, length;
	uint32_t limit;
	uint32_t size;
	uint32_t taps_align; /* a power of two: the number of taps is rounded up with zeros */
	bool antialias;
	bool is_reversed; /* the first output is what would be the last: a flip */
};

struct filter {
	uint32_t size;
	uint32_t taps;                  /* weights per output, a multiple of taps_align */
	uint32_t *first;                /* (size): the input of the first weight */
	int16_t *weights;               /* (size, taps): each row sums to FILTER_ONE */
	size_t size_room, weights_room; /* allocated, elements */
};

/* Grows the arrays where they are too small: -ENOMEM. */
int filter_build(struct filter *filter, const struct filter_axis *axis, struct error *err);
void filter_release(struct filter *filter); /* fine on {0} */

/* Upper estimate of the bytes of a filter from `length` to `size` pixels. */
uint64_t filter_bytes(uint32_t length, uint32_t size);

#endif
