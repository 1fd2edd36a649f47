/* Painting the atlas: fields of 1/f noise made by a pyramid (each octave is the one below, doubled,
 * plus fresh white noise), and dead leaves filled from them.  Integers for the noise; the geometry
 * uses only + - * / and sqrt of doubles, which IEEE 754 makes the same everywhere. */
#include "workloads/image/picture_atlas.h"

#include "harness/base/rng.h"
#include "workloads/image/picture.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	COARSEST_EDGE = 8, /* of the noise pyramid */
	OCTAVES = 8,       /* 8, 16, ... 1024 */
	LUMA_ONE = 16,     /* planes hold sixteenths of a grey level */
	PALETTE_COLOURS = 5,
};

/* One texture in the making: luma and two colour differences, sixteenths of a grey level. */
struct canvas {
	int16_t *luma, *blue, *red; /* (TILE_EDGE, TILE_EDGE) */
	int16_t *texture, *rough;   /* noise to fill shapes with: 1/f, and fine octaves only */
	int16_t *scratch;
	struct rng rng;
};

enum { CANVAS_PLANES = 6 };

/* A canvas belongs to the one call that paints on it: ThreadSanitizer, which it would keep busy for
 * most of a minute, looks at what leaves it only. */
#define OF_THE_CANVAS __attribute__((no_sanitize("thread")))

struct base_style {
	int octave[OCTAVES]; /* amplitude of the background noise, grey levels, coarse to fine */
	int colour;          /* amplitude of its colour noise */
	int leaves;          /* number of shapes */
	double least, most;  /* their radii, pixels */
	int angular;         /* of 8 shapes, how many have straight edges */
	int textured;        /* of 8, how many are rough */
	int blurs;           /* passes of a 3 x 3 binomial: 1 is a lens, 12 is out of focus */
};

static const struct base_style base_styles[BASE_TILES] = {
	[TILE_OPEN] = {{60, 50, 40, 30, 22, 16, 10, 4}, 14, 500, 14, 300, 2, 3, 1},
	[TILE_MIXED] = {{50, 46, 40, 34, 26, 20, 14, 6}, 14, 2200, 6, 200, 3, 4, 1},
	[TILE_FOLIAGE] = {{40, 40, 36, 34, 30, 26, 20, 10}, 10, 9000, 3, 60, 1, 4, 1},
	[TILE_SKY] = {{70, 46, 26, 14, 7, 3, 1, 0}, 12, 0, 0, 0, 0, 0, 1},
	[TILE_DEFOCUS] = {{60, 50, 36, 24, 14, 8, 0, 0}, 20, 500, 16, 220, 0, 0, 12},
	[TILE_BUILT] = {{50, 36, 26, 18, 12, 8, 5, 2}, 8, 900, 10, 260, 8, 1, 1},
	[TILE_GROUND] = {{44, 42, 40, 38, 34, 30, 24, 12}, 8, 300, 4, 40, 1, 6, 1},
	[TILE_SMOOTH] = {{60, 44, 28, 16, 8, 4, 2, 1}, 16, 160, 30, 320, 1, 1, 2},
};

/* Four signed bytes' worth of randomness per word would do; two bytes make each value triangular.
 */
OF_THE_CANVAS static void add_noise(int16_t *field, size_t count, int amplitude, struct rng *rng)
{
	for (size_t i = 0; i < count; i += 4) {
		uint64_t word = rng_next(rng);
		for (size_t k = 0; k < 4; k++, word >>= 16) {
			const int value = (int)(word & 255) + (int)((word >> 8) & 255) - 255;
			field[i + k] =
				(int16_t)(field[i + k] + ((value * amplitude * LUMA_ONE) >> 8));
		}
	}
}

/* Doubles a periodic field of edge n: weights 9 3 3 1 of 16 (bilinear between pixel centres). */
OF_THE_CANVAS static void double_field(const int16_t *restrict from, int16_t *restrict to, size_t n)
{
	const size_t mask = n - 1;
	for (size_t y = 0; y < 2 * n; y++) {
		const int16_t *near_row = from + (y / 2) * n;
		const int16_t *far_row = from + ((y / 2 + ((y & 1) ? 1 : mask)) & mask) * n;
		int16_t *out = to + y * 2 * n;
		for (size_t x = 0; x < n; x++) {
			const size_t left = (x + mask) & mask, right = (x + 1) & mask;
			const int here = 3 * near_row[x] + far_row[x];
			const int before = 3 * near_row[left] + far_row[left];
			const int after = 3 * near_row[right] + far_row[right];
			out[2 * x] = (int16_t)((3 * here + before + 8) >> 4);
			out[2 * x + 1] = (int16_t)((3 * here + after + 8) >> 4);
		}
	}
}

/* Noise with the given amplitude in each octave; equal ones give a 1/f amplitude spectrum. */
OF_THE_CANVAS static void noise_field(
	struct canvas *canvas, int16_t *field, const int octave[OCTAVES])
{
	int16_t *now = field, *next = canvas->scratch; /* seven doublings end in scratch */
	size_t edge = COARSEST_EDGE;
	memset(now, 0, edge * edge * sizeof(*now));
	add_noise(now, edge * edge, octave[0], &canvas->rng);
	for (int k = 1; k < OCTAVES; k++) {
		double_field(now, next, edge);
		edge *= 2;
		if (octave[k])
			add_noise(next, edge * edge, octave[k], &canvas->rng);
		int16_t *const swap = now;
		now = next;
		next = swap;
	}
	if (now != field)
		memcpy(field, now, TILE_PIXELS * sizeof(*field));
}

/* One pass of 1 2 1 in both directions, periodic. */
OF_THE_CANVAS static void blur_field(int16_t *field, int16_t *scratch)
{
	for (size_t y = 0; y < TILE_EDGE; y++) {
		const int16_t *row = field + y * TILE_EDGE;
		int16_t *out = scratch + y * TILE_EDGE;
		out[0] = (int16_t)((row[TILE_MASK] + 2 * row[0] + row[1] + 2) >> 2);
		for (size_t x = 1; x < TILE_MASK; x++)
			out[x] = (int16_t)((row[x - 1] + 2 * row[x] + row[x + 1] + 2) >> 2);
		out[TILE_MASK] =
			(int16_t)((row[TILE_MASK - 1] + 2 * row[TILE_MASK] + row[0] + 2) >> 2);
	}
	for (size_t y = 0; y < TILE_EDGE; y++) {
		const int16_t *above = scratch + ((y + TILE_MASK) & TILE_MASK) * TILE_EDGE;
		const int16_t *here = scratch + y * TILE_EDGE;
		const int16_t *below = scratch + ((y + 1) & TILE_MASK) * TILE_EDGE;
		int16_t *out = field + y * TILE_EDGE;
		for (size_t x = 0; x < TILE_EDGE; x++)
			out[x] = (int16_t)((above[x] + 2 * here[x] + below[x] + 2) >> 2);
	}
}

static double atlas_between(struct rng *rng, double least, double most)
{
	return least + (most - least) * rng_uniform(rng);
}

double shape_radius(struct rng *rng, double least, double most)
{
	/* Inverse of the cumulative 1 - (least / r)^2, cut at most. */
	const double ratio = least / most;
	const double u = rng_uniform(rng) * (1.0 - ratio * ratio);
	return least / sqrt(1.0 - u);
}

/* A random direction without sine or cosine: a point in the disc, made unit length. */
static void draw_direction(struct rng *rng, double *x, double *y)
{
	double length;
	do {
		*x = atlas_between(rng, -1, 1);
		*y = atlas_between(rng, -1, 1);
		length = *x * *x + *y * *y;
	} while (length > 1.0 || length < 0.01);
	length = sqrt(length);
	*x /= length;
	*y /= length;
}

void shape_draw(struct shape *shape, struct rng *rng, double radius, int angular)
{
	double c, s;
	draw_direction(rng, &c, &s);
	const double stretch = atlas_between(rng, 1.0, 1.9);
	const double a = 1.0 / (radius * stretch), b = stretch / radius;
	shape->xx = c * c * a * a + s * s * b * b;
	shape->xy = c * s * (a * a - b * b);
	shape->yy = s * s * a * a + c * c * b * b;
	shape->inverse_xx = 1.0 / shape->xx;
	shape->reach = radius * stretch;
	shape->cuts = angular ? SHAPE_CUTS : 0;
	for (int i = 0; i < shape->cuts; i += 2) {
		/* Edges in nearly parallel pairs: boards, walls, boxes. */
		draw_direction(rng, &shape->nx[i], &shape->ny[i]);
		shape->nx[i + 1] = -shape->nx[i] + atlas_between(rng, -0.15, 0.15);
		shape->ny[i + 1] = -shape->ny[i] + atlas_between(rng, -0.15, 0.15);
		shape->limit[i] = radius * atlas_between(rng, 0.3, 0.9);
		shape->limit[i + 1] = radius * atlas_between(rng, 0.3, 0.9);
	}
}

void shape_span(const struct shape *shape, double y, double *left, double *right)
{
	const double dy = y - shape->y;
	const double half = shape->xy * dy;
	const double root = half * half - shape->xx * (shape->yy * dy * dy - 1.0);
	*left = 0;
	*right = 0;
	if (root <= 0)
		return;
	const double width = sqrt(root);
	double low = (-half - width) * shape->inverse_xx;
	double high = (-half + width) * shape->inverse_xx;
	for (int i = 0; i < shape->cuts; i++) {
		const double rest = shape->limit[i] - shape->ny[i] * dy;
		const double n = shape->nx[i];
		if (n > 0.001)
			high = fmin(high, rest / n);
		else if (n < -0.001)
			low = fmax(low, rest / n);
		else if (rest < 0)
			return;
	}
	*left = shape->x + low;
	*right = shape->x + high;
}

struct colour {
	int luma, blue, red; /* sixteenths of a grey level */
};

/* Colours as they come in the open: earth, plants, sky, stone, and a rare strong one. */
static struct colour draw_colour(struct rng *rng)
{
	static const int8_t anchors[][2] = {
		{-22, 14}, {-30, -8}, {18, -12}, {-4, 3}, {-12, 30}, {2, -2}, {-18, -14}, {6, -4}};
	const int8_t *anchor = anchors[rng_below(rng, sizeof(anchors) / sizeof(anchors[0]))];
	const int strength = 8 + (int)rng_below(rng, 14); /* sixteenths */
	return (struct colour){
		.luma = (25 + (int)rng_below(rng, 205)) * LUMA_ONE,
		.blue = anchor[0] * strength,
		.red = anchor[1] * strength,
	};
}

/* What a shape is filled with. */
struct fill {
	struct colour colour;
	int slope_x, slope_y;   /* 1/4096 of a unit per pixel: shading */
	const int16_t *texture; /* noise plane */
	int amplitude;          /* of it, 1/256 */
	size_t shift_x, shift_y;
};

OF_THE_CANVAS static void atlas_fill_span(
	struct canvas *canvas, const struct fill *fill, int row, int from, int to, int dy)
{
	const size_t at = ((size_t)row & TILE_MASK) * TILE_EDGE;
	const int16_t *texture =
		fill->texture + (((size_t)row + fill->shift_y) & TILE_MASK) * TILE_EDGE;
	const int centre = (from + to) / 2;
	for (int x = from; x < to; x++) {
		const size_t i = at + ((size_t)x & TILE_MASK);
		const int noise = texture[((size_t)x + fill->shift_x) & TILE_MASK];
		const int shade = (fill->slope_x * (x - centre) + fill->slope_y * dy) >> 8;
		canvas->luma[i] =
			(int16_t)(fill->colour.luma + shade + ((noise * fill->amplitude) >> 8));
		canvas->blue[i] = (int16_t)(fill->colour.blue + (noise >> 5));
		canvas->red[i] = (int16_t)(fill->colour.red - (noise >> 6));
	}
}

static void paint_leaf(struct canvas *canvas, const struct base_style *style,
	const struct colour palette[PALETTE_COLOURS])
{
	struct rng *rng = &canvas->rng;
	const double radius = shape_radius(rng, style->least, style->most);
	struct shape shape;
	shape_draw(&shape, rng, radius, rng_below(rng, 8) < (uint64_t)style->angular);
	shape.x = atlas_between(rng, 0, TILE_EDGE);
	shape.y = atlas_between(rng, 0, TILE_EDGE);
	const bool rough = rng_below(rng, 8) < (uint64_t)style->textured;
	/* One draw a statement: the order of initialisers is the compiler's to choose. */
	struct fill fill = {.texture = rough ? canvas->rough : canvas->texture};
	fill.colour = palette[rng_below(rng, PALETTE_COLOURS)];
	fill.amplitude = rough ? 60 + (int)rng_below(rng, 200) : 10 + (int)rng_below(rng, 60);
	fill.shift_x = (size_t)rng_below(rng, TILE_EDGE);
	fill.shift_y = (size_t)rng_below(rng, TILE_EDGE);
	const int shading = (int)(200000.0 / (radius + 8.0));
	fill.slope_x = (int)rng_below(rng, 2 * (uint64_t)shading + 1) - shading;
	fill.slope_y = (int)rng_below(rng, 2 * (uint64_t)shading + 1) - shading;
	fill.colour.luma += ((int)rng_below(rng, 121) - 60) * LUMA_ONE;
	const int top = (int)floor(shape.y - shape.reach),
		  bottom = (int)ceil(shape.y + shape.reach);
	for (int row = top; row <= bottom; row++) {
		double left, right;
		shape_span(&shape, row + 0.5, &left, &right);
		right = fmin(right, left + TILE_EDGE);
		atlas_fill_span(canvas, &fill, row, (int)floor(left + 0.5), (int)floor(right + 0.5),
			row - (int)shape.y);
	}
}

static uint8_t atlas_clamp(int value)
{
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Colour differences at half resolution: the mean of four. */
static void halve_plane(const int16_t *plane, uint8_t *out)
{
	for (size_t y = 0; y < HALF_EDGE; y++) {
		const int16_t *row = plane + 2 * y * TILE_EDGE;
		for (size_t x = 0; x < HALF_EDGE; x++) {
			const int sum = row[2 * x] + row[2 * x + 1] + row[TILE_EDGE + 2 * x] +
					row[TILE_EDGE + 2 * x + 1];
			out[y * HALF_EDGE + x] =
				atlas_clamp(128 + (sum + 2 * LUMA_ONE) / (4 * LUMA_ONE));
		}
	}
}

static void store_base(const struct canvas *canvas, const struct base_tile *tile)
{
	for (size_t i = 0; i < TILE_PIXELS; i++)
		tile->luma[i] = atlas_clamp((canvas->luma[i] + LUMA_ONE / 2) / LUMA_ONE);
	halve_plane(canvas->blue, tile->blue);
	halve_plane(canvas->red, tile->red);
}

OF_THE_CANVAS static void paint_background(struct canvas *canvas, const struct base_style *style)
{
	int octave[OCTAVES];
	for (int k = 0; k < OCTAVES; k++)
		octave[k] = k < OCTAVES - 3 ? style->colour : 0; /* colours vary slowly */
	noise_field(canvas, canvas->blue, octave);
	noise_field(canvas, canvas->red, octave);
	noise_field(canvas, canvas->luma, style->octave);
	memcpy(canvas->texture, canvas->luma, TILE_PIXELS * sizeof(int16_t));
	for (int k = 0; k < OCTAVES; k++)
		octave[k] = k >= OCTAVES - 4 ? 24 : 2;
	noise_field(canvas, canvas->rough, octave);
	const struct colour tint = draw_colour(&canvas->rng);
	for (size_t i = 0; i < TILE_PIXELS; i++) {
		canvas->luma[i] = (int16_t)(canvas->luma[i] + 125 * LUMA_ONE);
		canvas->blue[i] = (int16_t)(canvas->blue[i] / 2 + tint.blue + canvas->luma[i] / 16);
		canvas->red[i] = (int16_t)(canvas->red[i] / 2 + tint.red - canvas->luma[i] / 24);
	}
}

static void paint_base(
	struct canvas *canvas, const struct base_style *style, const struct base_tile *tile)
{
	struct colour palette[PALETTE_COLOURS];
	for (int i = 0; i < PALETTE_COLOURS; i++)
		palette[i] = draw_colour(&canvas->rng);
	paint_background(canvas, style);
	for (int i = 0; i < style->leaves; i++)
		paint_leaf(canvas, style, palette);
	for (int i = 0; i < style->blurs; i++) {
		blur_field(canvas->luma, canvas->scratch);
		blur_field(canvas->blue, canvas->scratch);
		blur_field(canvas->red, canvas->scratch);
	}
	store_base(canvas, tile);
}

/* Fine tiles: what a lens resolves of grass, hair, bark, gravel.  smear: passes of a directional
 * blur. */
struct fine_style {
	int octave[OCTAVES];
	int leaves; /* small shapes with a brightness of their own */
	int smear_x, smear_y;
};

static const struct fine_style fine_styles[FINE_TILES] = {
	{{0, 0, 0, 4, 10, 20, 30, 30}, 0, 0, 0},
	{{0, 0, 0, 4, 8, 14, 18, 14}, 26000, 0, 0},
	{{0, 0, 0, 6, 10, 30, 60, 70}, 0, 3, 0},
	{{0, 0, 0, 6, 10, 30, 60, 70}, 8000, 0, 3},
};

/* Adds neighbours at the given step: streaks along it, a little aslant so that they are not rulers.
 */
OF_THE_CANVAS static void smear_field(int16_t *field, int16_t *scratch, size_t dx, size_t dy)
{
	memcpy(scratch, field, TILE_PIXELS * sizeof(*field));
	for (size_t y = 0; y < TILE_EDGE; y++) {
		const int16_t *other = scratch + ((y + dy) & TILE_MASK) * TILE_EDGE;
		int16_t *row = field + y * TILE_EDGE;
		for (size_t x = 0; x < TILE_EDGE; x++)
			row[x] = (int16_t)((row[x] * 9 + other[(x + dx) & TILE_MASK] * 9) >> 4);
	}
}

OF_THE_CANVAS static void paint_fleck(struct canvas *canvas)
{
	struct rng *rng = &canvas->rng;
	struct shape shape;
	const double radius = shape_radius(rng, 1.6, 24);
	shape_draw(&shape, rng, radius, rng_below(rng, 4) == 0);
	shape.x = atlas_between(rng, 0, TILE_EDGE);
	shape.y = atlas_between(rng, 0, TILE_EDGE);
	const int light = ((int)rng_below(rng, 81) - 40) * LUMA_ONE;
	const int top = (int)floor(shape.y - shape.reach),
		  bottom = (int)ceil(shape.y + shape.reach);
	for (int row = top; row <= bottom; row++) {
		double left, right;
		shape_span(&shape, row + 0.5, &left, &right);
		int16_t *at = canvas->luma + ((size_t)row & TILE_MASK) * TILE_EDGE;
		for (int x = (int)floor(left + 0.5); x < (int)floor(right + 0.5); x++)
			at[(size_t)x & TILE_MASK] =
				(int16_t)(at[(size_t)x & TILE_MASK] / 2 + light);
	}
}

static int8_t clamp_fine(int value)
{
	return (int8_t)(value < -127 ? -127 : value > 127 ? 127 : value);
}

/* What gives every tile the same root mean square of differences between neighbours, in 1/256:
 * that, not the variance, is what costs an encoder bits. */
OF_THE_CANVAS static int64_t fine_scale(const int16_t *field)
{
	enum { DIFFERENCE_RMS = 30 };
	double squares = 0; /* of integers below 2^53: exact in any order */
	for (size_t i = 0; i < TILE_PIXELS - TILE_EDGE; i++) {
		const int across = field[i + 1] - field[i], down = field[i + TILE_EDGE] - field[i];
		squares += (double)(across * across) + (double)(down * down);
	}
	return (int64_t)(DIFFERENCE_RMS * 256.0 * LUMA_ONE /
			 sqrt(squares / (2.0 * TILE_PIXELS) + 1.0));
}

/* Detail comes in patches: a slow field is its strength. */
static void paint_fine(struct canvas *canvas, const struct fine_style *style, int8_t *fine)
{
	enum { LEAST = 16, MIDDLE = 64, MOST = 128 }; /* strength, 1/64 */
	static const int patches[OCTAVES] = {30, 30, 24, 16, 8, 0, 0, 0};
	noise_field(canvas, canvas->luma, style->octave);
	for (int i = 0; i < style->leaves; i++)
		paint_fleck(canvas);
	for (int i = 0; i < style->smear_x; i++)
		smear_field(canvas->luma, canvas->scratch, (size_t)1 << i, i == 2);
	for (int i = 0; i < style->smear_y; i++)
		smear_field(canvas->luma, canvas->scratch, i == 2, (size_t)1 << i);
	noise_field(canvas, canvas->rough, patches);
	const int64_t scale = fine_scale(canvas->luma);
	uint64_t grain = 0;
	for (size_t i = 0; i < TILE_PIXELS; i++) {
		int strength = MIDDLE + canvas->rough[i] / LUMA_ONE;
		strength = strength < LEAST ? LEAST : strength > MOST ? MOST : strength;
		const int64_t value =
			canvas->luma[i] * scale * strength / (LUMA_ONE * 256 * MIDDLE);
		if (i % 8 == 0)
			grain = rng_next(&canvas->rng);
		/* The sensor's own noise: a level or two. */
		const int noise = (int)(grain & 3) - (int)((grain >> 2) & 3);
		grain >>= 8;
		fine[i] = clamp_fine((int)value + noise);
	}
}

unsigned picture_atlas_tiles(void)
{
	return BASE_TILES + FINE_TILES;
}

/* Bytes that an atlas takes. */
static uint64_t picture_atlas_bytes(void)
{
	return (uint64_t)BASE_TILES * (TILE_PIXELS * 3 / 2) + (uint64_t)FINE_TILES * TILE_PIXELS;
}

int picture_atlas_open(struct picture_atlas **out, uint64_t seed, struct error *err)
{
	struct picture_atlas *atlas = calloc(1, sizeof(*atlas));
	if (!atlas || memory_map(&atlas->block, picture_atlas_bytes(), true)) {
		free(atlas);
		return error_set(err, -ENOMEM, "out of memory for the texture atlas");
	}
	atlas->seed = seed;
	uint8_t *at = atlas->block.data;
	for (size_t i = 0; i < BASE_TILES; i++) {
		atlas->base[i] = (struct base_tile){
			.luma = at, .blue = at + TILE_PIXELS, .red = at + TILE_PIXELS * 5 / 4};
		at += TILE_PIXELS * 3 / 2;
	}
	for (size_t i = 0; i < FINE_TILES; i++, at += TILE_PIXELS)
		atlas->fine[i] = (int8_t *)at;
	*out = atlas;
	return 0;
}

void picture_atlas_close(struct picture_atlas *atlas)
{
	if (!atlas)
		return;
	memory_unmap(&atlas->block);
	free(atlas);
}

int picture_atlas_paint(struct picture_atlas *atlas, unsigned tile, struct error *err)
{
	/* Mapped: a heap that once held it would keep it, and a run would be resident with it. */
	struct memory_block block;
	if (memory_map(&block, sizeof(int16_t) * CANVAS_PLANES * TILE_PIXELS, true))
		return error_set(err, -ENOMEM, "out of memory to paint a texture");
	int16_t *const planes = block.data;
	struct canvas canvas = {
		.luma = planes,
		.blue = planes + TILE_PIXELS,
		.red = planes + 2 * TILE_PIXELS,
		.texture = planes + 3 * TILE_PIXELS,
		.rough = planes + 4 * TILE_PIXELS,
		.scratch = planes + 5 * TILE_PIXELS,
	};
	rng_init(&canvas.rng, rng_mix(atlas->seed, PICTURE_VERSION), tile);
	if (tile < BASE_TILES)
		paint_base(&canvas, &base_styles[tile], &atlas->base[tile]);
	else
		paint_fine(
			&canvas, &fine_styles[tile - BASE_TILES], atlas->fine[tile - BASE_TILES]);
	memory_unmap(&block);
	return 0;
}
