/* The inner loops of resizing, once in plain C and once per instruction set.  All of them compute
 * the same integers; floats are the same to the bit too, as each is one product and one sum. */
#ifndef MLBENCH_WORKLOADS_IMAGE_RESAMPLE_KERNELS_H
#define MLBENCH_WORKLOADS_IMAGE_RESAMPLE_KERNELS_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the weights of a one-dimensional resize: the triangle filter of PIL's and torchvision's BILINEAR.
 * When shrinking, its support is stretched by the factor (antialias), so that each pixel counts. */

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

/* --- loops ------------------------------------------------------------------------------------------- */

enum {
	RGB_CHANNELS = 3,
	KERNEL_SLACK_BYTES =
		64, /* behind every row that is written; SCRATCH_SLACK_BYTES where read */
};

/* Rows of pixels in memory. */
struct pixel_rows {
	const uint8_t *data;
	size_t stride;
	uint32_t rows;
	uint32_t pixel_bytes; /* 3 or 4; the fourth is ignored */
};

/* One resized row on its way into a sample. */
struct sample_row {
	const uint8_t *rgb; /* (size, 3) */
	uint32_t size;      /* pixels in it, and rows in the sample */
	uint32_t y;
	bool streams; /* past the caches: float rows of whole vectors, aligned to them */
	void *sample;
};

/* float = byte * scale[channel] + bias[channel] */
struct normalisation {
	float scale[RGB_CHANNELS], bias[RGB_CHANNELS];
};

typedef void (*store_fn)(const struct sample_row *row, const struct normalisation *normalisation);

struct resample_kernels {
	const char *name;
	bool (*is_supported)(void);

	/* Resizes each row to filter->size pixels of RGB at out + row * out_stride, rounded to
	 * bytes. Rows are written in order; up to KERNEL_SLACK_BYTES behind one are written too.
	 * The filter's taps are a multiple of 4. */
	void (*horizontal)(const struct filter *filter, const struct pixel_rows *in, uint8_t *out,
		size_t out_stride);

	/* out[i] = the sum over taps of weights[k] * rows[k * stride + i], rounded; taps are even.
	 * Up to KERNEL_SLACK_BYTES behind out[bytes - 1] are written. */
	void (*vertical)(const int16_t *weights, uint32_t taps, const uint8_t *rows, size_t stride,
		uint8_t *out, size_t bytes);

	/* Write one row to its place; after rows that stream, finish() makes them visible. */
	store_fn store_float_chw, store_float_hwc, store_byte_chw, store_byte_hwc;
	void (*finish)(void);
};

extern const struct resample_kernels resample_plain, resample_avx2, resample_avx512;

/* All of them, the best first; NULL-terminated. */
extern const struct resample_kernels *const resample_kernels_all[];

/* The best that this machine supports. */
const struct resample_kernels *resample_kernels_best(void);

#endif
