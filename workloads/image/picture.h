/* Synthetic pictures with the statistics of photographs, cheap enough to feed an encoder.
 *
 * An atlas of tileable textures is painted once per seed: 1/f noise with correlated colours, and
 * dead leaves (occluding shapes with power-law sizes: Lee, Mumford, Huang, "Occlusion models for
 * natural images", IJCV 2001).  A picture is a handful of layers, each a pseudo-random crop of a
 * texture under a tone of its own plus a crop of fine detail, composed at a few bytes a nanosecond.
 * Everything is a function of (seed, id, width, height, detail): no thread count, CPU feature or
 * math library has a part in the pixels. */
#ifndef MLBENCH_WORKLOADS_IMAGE_PICTURE_H
#define MLBENCH_WORKLOADS_IMAGE_PICTURE_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes whenever the same (seed, id) would give other pixels: a part of a data set's recipe. */
enum { PICTURE_VERSION = 1 };

/* How much fine detail a picture has: 0 is flat, NATURAL is what photographs have at their size
 * (docs/PICTURES.md), MAX is nearly noise.  Encoded sizes grow with it. */
enum { PICTURE_DETAIL_NATURAL = 1024, PICTURE_DETAIL_MAX = 65536 };

struct picture_atlas;

/* Maps an atlas of `seed`, unpainted.  0 or -ENOMEM. */
int picture_atlas_open(struct picture_atlas **out, uint64_t seed, struct error *err);
void picture_atlas_close(struct picture_atlas *atlas); /* NULL is fine */

/* Paints texture `tile` of [0, picture_atlas_tiles()): each once, before any rendering.  Different
 * tiles may be painted by different threads at a time.  Takes tens of ms.  0 or -ENOMEM. */
unsigned picture_atlas_tiles(void);
int picture_atlas_paint(struct picture_atlas *atlas, unsigned tile, struct error *err);

struct picture_size {
	uint32_t width, height; /* pixels */
};

/* The size of picture `id`: each edge is log-normal with median width or height and deviation sigma
 * of its logarithm, cut at three deviations; the two edges correlate (0.8), and where sigma > 0
 * every fifth picture or so has them swapped.  At most IMAGE_PIXELS_MAX pixels. */
struct picture_size picture_draw_size(
	uint64_t seed, uint64_t id, uint32_t width, uint32_t height, double sigma);

/* A picture as JPEG stores it: full-range luma (JFIF), and colour differences at half the
 * resolution both ways (4:2:0).  The planes are whole 16 x 16 blocks: stride and rows are rounded
 * up, and the picture goes on beyond its edge. */
struct picture_planes {
	uint8_t *luma;       /* (rows, stride) */
	uint8_t *blue, *red; /* (rows / 2, stride / 2) */
	uint32_t stride, rows;
};

/* Bytes that the planes of a picture take, and their places in such memory (the caller's). */
size_t picture_planes_bytes(struct picture_size size);
struct picture_planes picture_planes_place(struct picture_size size, uint8_t *memory);

/* Renders picture `id` into planes placed for its size.  Any thread. */
void picture_render(const struct picture_atlas *atlas, uint64_t id, struct picture_size size,
	uint32_t detail, const struct picture_planes *planes);

/* The same picture as width x height packed RGB; colour differences are interpolated. */
void picture_to_rgb(const struct picture_planes *planes, struct picture_size size, uint8_t *rgb);

/* The inner loop, for tests: out[i] = clamp((base[i] * gain >> 8) + offset +
 * (fine[i] * fine_gain >> 8)); without the last term where fine is NULL.  picture_compose takes the
 * widest vectors the CPU has; the values are the same. */
struct picture_tone {
	uint16_t gain;     /* 8.8 fixed point, at most 4.0 */
	int16_t fine_gain; /* 8.8 fixed point, not negative */
	int16_t offset;    /* at most 2048 in magnitude */
};
void picture_compose(uint8_t *out, const uint8_t *base, const int8_t *fine, size_t count,
	struct picture_tone tone);
void picture_compose_plain(uint8_t *out, const uint8_t *base, const int8_t *fine, size_t count,
	struct picture_tone tone);

#endif
