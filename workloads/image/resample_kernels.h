/* The inner loops of resizing, once in plain C and once per instruction set.  All of them compute
 * the same integers; floats are the same to the bit too, as each is one product and one sum. */
#ifndef MLBENCH_WORKLOADS_IMAGE_RESAMPLE_KERNELS_H
#define MLBENCH_WORKLOADS_IMAGE_RESAMPLE_KERNELS_H

#include "workloads/image/filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
