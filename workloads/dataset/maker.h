/* Makes the files of a recipe in memory: what generating and calibrating share.  Photographs are
 * drawn and encoded; what else there is makes its files itself (struct recipe_ops). */
#ifndef MLBENCH_WORKLOADS_DATASET_MAKER_H
#define MLBENCH_WORKLOADS_DATASET_MAKER_H

#include "harness/base/error.h"
#include "workloads/dataset/recipe.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* One per thread: an encoder, and pixels that grow to the largest picture. */
struct maker {
	struct encoder *encoder;
	const struct picture_atlas *atlas; /* of the call that goes on; NULL: nothing is drawn */
	uint8_t *planes, *rgb;
	size_t planes_room, rgb_room;
	uint8_t *bytes; /* of recipes with ops: the file, of `size` bytes */
	size_t bytes_room, size;
	uint64_t encode_cpu_ns, cpu_ns; /* CPU time inside the encoder, and altogether */
};

int maker_open(struct maker *maker, const struct recipe *recipe, struct error *err);
void maker_close(struct maker *maker); /* safe on {0} */

/* Room for so many bytes at maker->bytes, which may move and keeps nothing. */
int maker_grow(struct maker *maker, size_t room, struct error *err);

/* For recipes with ops that draw: picture `id` of a size, drawn and encoded with these options.  The bytes are the encoder's. */
int maker_draw(struct maker *maker, const struct encode_options *options, uint64_t id,
	struct picture_size pixels, uint32_t detail, const uint8_t **bytes, size_t *size,
	struct error *err);

/* Makes file `id`: renders and encodes a picture, or as ops say.  The bytes are the maker's, valid
 * until its next call. */
int maker_make(struct maker *maker, const struct recipe *recipe, const struct picture_atlas *atlas,
	uint64_t id, uint32_t detail, const uint8_t **bytes, size_t *size, struct error *err);

/* The detail at which the mean file size of all the recipe's pictures is what it asks for, or
 * natural. expected_bytes: that mean, as estimated.  A function of the recipe alone.  makers:
 * `threads` of them. -EINVAL: no detail gives such files; err says which sizes can be had.  -EINTR:
 * stopped. */
struct calibration {
	const struct recipe *recipe;
	const struct picture_atlas *atlas;
	struct maker *makers;
	unsigned threads;
	const atomic_bool *stop;
};
int calibrate(const struct calibration *calibration, uint32_t *detail, double *expected_bytes,
	struct error *err);

#endif
