/* The textures that pictures are cut from: inside of picture.c and picture_atlas.c only. */
#ifndef MLBENCH_WORKLOADS_IMAGE_PICTURE_ATLAS_H
#define MLBENCH_WORKLOADS_IMAGE_PICTURE_ATLAS_H

#include "harness/base/memory.h"

#include <stddef.h>
#include <stdint.h>

enum {
	TILE_EDGE = 1024, /* pixels; a power of two, and the textures repeat with it */
	TILE_MASK = TILE_EDGE - 1,
	TILE_PIXELS = TILE_EDGE * TILE_EDGE,
	HALF_EDGE = TILE_EDGE / 2, /* of the colour planes */
	HALF_MASK = HALF_EDGE - 1,
	BASE_TILES = 8,
	FINE_TILES = 4,
};

struct picture_atlas {
	uint64_t seed;
	struct memory_block block;
	struct base_tile {
		uint8_t *luma;       /* (TILE_EDGE, TILE_EDGE) */
		uint8_t *blue, *red; /* (HALF_EDGE, HALF_EDGE) */
	} base[BASE_TILES];
	int8_t *fine[FINE_TILES]; /* (TILE_EDGE, TILE_EDGE): added to the luma */
};

/* What the base tiles show; the picture's layers choose by it. */
enum {
	TILE_OPEN,    /* large shapes, some texture */
	TILE_MIXED,   /* shapes of all sizes */
	TILE_FOLIAGE, /* small shapes */
	TILE_SKY,     /* clouds: no edges */
	TILE_DEFOCUS, /* large shapes out of focus */
	TILE_BUILT,   /* straight edges, smooth fills */
	TILE_GROUND,  /* rough noise */
	TILE_SMOOTH,  /* few large shapes, nearly without texture */
};

/* A convex shape: an ellipse, cut by up to SHAPE_CUTS straight edges. */
enum { SHAPE_CUTS = 4 };

struct shape {
	double x, y;       /* centre, pixels */
	double xx, xy, yy; /* inside: xx dx^2 + 2 xy dx dy + yy dy^2 <= 1 */
	double inverse_xx; /* 1 / xx: spans are the renderer's hot path */
	int cuts;
	double nx[SHAPE_CUTS], ny[SHAPE_CUTS],
		limit[SHAPE_CUTS]; /* inside: nx dx + ny dy <= limit */
	double reach;              /* no point is further than this above or below the centre */
};

struct rng;

/* A random shape with the given mean radius; angular: with straight edges. */
void shape_draw(struct shape *shape, struct rng *rng, double radius, int angular);

/* The part of row y (its middle) inside: [*left, *right), empty when left >= right. */
void shape_span(const struct shape *shape, double y, double *left, double *right);

/* A radius with density ~ r^-3 in [least, most]: what makes dead leaves scale invariant. */
double shape_radius(struct rng *rng, double least, double most);

#endif
