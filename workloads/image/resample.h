/* Rows of a picture in, one sample out: crop, resize, flip and normalise in a single pass over the
 * rows as they come from the decoder.  Each row is resized across at once, while it is hot; as soon
 * as the rows are there that an output row needs, they are resized down and written to the sample.
 */
#ifndef MLBENCH_WORKLOADS_IMAGE_RESAMPLE_H
#define MLBENCH_WORKLOADS_IMAGE_RESAMPLE_H

#include "workloads/image/codec.h"
#include "workloads/image/resample_kernels.h"

#include <stdbool.h>
#include <stdint.h>

struct resampler;

struct resample_options {
	uint32_t size; /* edge of the sample */
	bool antialias;
	bool is_float;                          /* else bytes */
	bool is_planar;                         /* CHW, else HWC */
	const struct resample_kernels *kernels; /* NULL: the best here */
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
uint64_t resampler_bytes(uint32_t size, uint32_t max_width, uint32_t max_height);

int resampler_begin(
	struct resampler *resampler, const struct resample_task *task, struct error *err);

/* The next rows; rows and columns outside the region are passed over. */
void resampler_push(struct resampler *resampler, const struct strip *strip);

/* After a sample that broke off: what was written so far is visible before what is written next. */
void resampler_abandon(struct resampler *resampler);

/* True when all rows of the sample have been written. */
bool resampler_is_done(const struct resampler *resampler);

#endif
