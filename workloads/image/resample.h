/* Rows of a picture in, one sample out: crop, resize, flip and normalise in a single pass over the
 * rows as they come from the decoder.  Each row is resized across at once, while it is hot; as soon
 * as the rows are there that an output row needs, they are resized down and written to the sample.
 */
#ifndef MLBENCH_WORKLOADS_IMAGE_RESAMPLE_H
#define MLBENCH_WORKLOADS_IMAGE_RESAMPLE_H

#include "workloads/image/codec.h"

#include <stdbool.h>
#include <stdint.h>

struct resampler;
struct resample_kernels;
struct helpers;

struct resample_options {
	uint32_t size; /* edge of the sample */
	bool antialias;
	bool is_float;                          /* else bytes */
	bool is_planar;                         /* CHW, else HWC */
	const struct resample_kernels *kernels; /* NULL: the best here */
	struct helpers *helpers; /* share the rows of each push; NULL: there are none */
	unsigned threads;        /* of helpers, the caller's included; 0 without them */
};

/* What becomes the sample: a box within the pixels of `region`, with fractions where the picture
 * was shrunk in decoding.  Nothing outside the region is looked at. */
struct resample_task {
	struct region region;       /* in the picture's coordinates, as strips are */
	double x, y, width, height; /* likewise */
	bool flip;
	void *out;
};

int resampler_open(struct resampler **out, const struct resample_options *options,
	uint32_t max_width, uint32_t max_height, struct error *err);
void resampler_close(struct resampler *resampler); /* NULL is fine */
uint64_t resampler_bytes(uint32_t size, uint32_t max_width, uint32_t max_height, unsigned threads);

int resampler_begin(
	struct resampler *resampler, const struct resample_task *task, struct error *err);

/* The next rows; rows and columns outside the region are passed over. */
void resampler_push(struct resampler *resampler, const struct strip *strip);

/* After a sample that broke off: what was written so far is visible before what is written next. */
void resampler_abandon(struct resampler *resampler);

/* True when all rows of the sample have been written. */
bool resampler_is_done(const struct resampler *resampler);

/* --- the inner loops, once in plain C and once per instruction set.  All of them compute the same
 * integers; floats are the same to the bit too, as each is one product and one sum. */

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
