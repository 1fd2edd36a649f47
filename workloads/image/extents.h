/* How large the pictures of a data set are, format by format: what decoders size their scratch
 * for.  Each number is the largest of any one picture, so that a wide one and a tall one are not
 * taken for one that is both. */
#ifndef MLBENCH_WORKLOADS_IMAGE_EXTENTS_H
#define MLBENCH_WORKLOADS_IMAGE_EXTENTS_H

#include "workloads/image/codec.h"

#include <stdint.h>

struct image_extent {
	uint32_t width, height;
	uint64_t pixels; /* width x height of one picture */
};

struct image_extents {
	struct image_extent of[IMAGE_FORMATS]; /* {0}: no picture of this format */
};

/* One more picture. */
static inline void image_extents_add(
	struct image_extents *extents, enum image_format format, uint32_t width, uint32_t height)
{
	struct image_extent *const most = &extents->of[format];
	const uint64_t pixels = (uint64_t)width * height;
	most->width = width > most->width ? width : most->width;
	most->height = height > most->height ? height : most->height;
	most->pixels = pixels > most->pixels ? pixels : most->pixels;
}

/* Of all formats together. */
static inline struct image_extent image_extents_all(const struct image_extents *extents)
{
	struct image_extent all = {0};
	for (int format = 0; format < IMAGE_FORMATS; format++) {
		const struct image_extent *const one = &extents->of[format];
		all.width = one->width > all.width ? one->width : all.width;
		all.height = one->height > all.height ? one->height : all.height;
		all.pixels = one->pixels > all.pixels ? one->pixels : all.pixels;
	}
	return all;
}

#endif
