/* From the bytes of a file to its place in a batch: decode, crop, resize, flip, normalise.
 *
 * A struct transform is what one decode worker owns: decoder state and scratch rows, sized when it is
 * opened, so that nothing allocates per sample.  The random parameters are a function of the sample
 * seed alone, so a batch is the same whatever the number of workers. */
#ifndef MLBENCH_WORKLOADS_IMAGE_TRANSFORM_H
#define MLBENCH_WORKLOADS_IMAGE_TRANSFORM_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/backend/batch.h"
#include "workloads/image/codec.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct transform;

/* Bytes of one sample in a batch: 3 x size x size elements of the configured type (with codec.name =
 * null too).  A function of the configuration. */
size_t transform_sample_bytes(const struct config *config);

/* extents: of the data set, to size scratch; larger pictures met later grow it (a log line, not an
 * error), and formats that were not said to be there are opened when they are met.  NULL: nothing
 * is known.  Once *stop (NULL: never) is true, decoding ends soon with -EINTR. */
int transform_open(struct transform **out, const struct config *config,
	const struct image_extents *extents, const atomic_bool *stop, struct error *err);
void transform_close(struct transform *transform); /* NULL is fine */

/* Upper estimate of the bytes that transform_open will allocate, for the printed memory bound. */
uint64_t transform_bytes(const struct config *config, const struct image_extents *extents);

/* Writes the sample at out (transform_sample_bytes of it).  -EINVAL with a reason: the picture is bad
 * and out is zeroed.  decoded_ns: if not NULL, the time (clock_now_ns) when pixels were decoded and
 * resizing began.  With the fused row pipeline, where decode and resize alternate, it is the end minus the
 * measured resize time. */
int transform_sample(struct transform *transform, const void *bytes, size_t size, uint64_t seed,
	void *out, uint64_t *decoded_ns, struct error *err);

/* --- the random parameters of a sample: a function of its seed alone ---------------------------------- */

struct augment_options {
	enum augment_crop crop;
	uint32_t size;               /* edge of the output, pixels */
	double scale_min, scale_max; /* share of the picture's area */
	double ratio_min, ratio_max; /* width over height */
	double flip;                 /* probability */
};

struct augment_choice {
	struct region crop; /* never empty, inside the picture */
	bool flip;
};

void augment_read_options(struct augment_options *options, const struct config *config);

/* Random crops are drawn as torchvision's RandomResizedCrop.get_params draws them: ten tries of a
 * uniform area and a log-uniform ratio, then the largest centred crop of an allowed ratio. */
void augment_choose(const struct augment_options *options, uint32_t width, uint32_t height,
	uint64_t seed, struct augment_choice *choice);

/* --- augment.device = gpu: the worker only decodes, and the device makes the sample ------------------ */

/* Bytes that a picture of this size may take, at most: its region in RGB.  Pictures whose region is larger than
 * some 16 samples are made into one by the worker, as bytes, and the device leaves them as they are: a
 * few huge pictures shall not dictate the memory of all batches.  Which they are depends on picture and configuration alone. */
size_t transform_picture_bytes(const struct config *config, uint32_t width, uint32_t height);

/* The same crop and flip as transform_sample's: out says how large the region is that will be decoded, and
 * the box in it.  offset and bad are the caller's.  -EINVAL: the picture is bad. */
int transform_choose(struct transform *transform, const void *bytes, size_t size, uint64_t seed,
	struct batch_picture *out, struct error *err);

/* Then decodes it: RGB bytes (height, width, 3) at `pixels`.  -EINVAL: the picture is bad; what is there
 * means nothing. */
int transform_decode(struct transform *transform, void *pixels, struct error *err);

#endif
