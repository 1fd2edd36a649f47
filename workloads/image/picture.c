/* Composing a picture from the atlas: plan a few layers from (seed, id), then fill each row layer
 * by layer with one multiply-add per byte, and soften the edges of shapes by a ramp of a few
 * pixels. */
#include "workloads/image/picture.h"

#include "harness/base/rng.h"
#include "workloads/image/formats.h"
#include "workloads/image/picture_atlas.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

enum {
	ONE = 256,       /* 8.8 fixed point */
	LAYERS_MAX = 6,  /* background, far half, shapes */
	RAMP_MAX = 10,   /* pixels over which an edge may fade */
	BLOCK_EDGE = 16, /* planes are whole blocks of 4:2:0 */
	EDGE_MAX = 65500 /* the largest that a JPEG can have */
};

/* One layer: which textures, where in them, in what tone, and which part of the picture it covers.
 */
struct layer {
	const struct base_tile *base;
	const int8_t *fine;
	uint32_t base_x, base_y, fine_x, fine_y; /* offsets into the tiles; the base's are even */
	uint32_t step_y;                         /* 1, or -1 (mod 2^32): upside down */
	struct picture_tone luma, blue, red;
	int light;       /* brightness added at the bottom, taken at the top */
	bool everywhere; /* no shape: covers all */
	struct shape shape;
	uint32_t top, bottom; /* rows that it may cover: [top, bottom) */
	double ramp;          /* width of its edge, pixels */
};

struct plan {
	struct layer layers[LAYERS_MAX];
	int count;
};

/* Where a layer lies in one row of the luma plane, pixels, and over how many of them its edges
 * fade. */
struct reach {
	double left, right, half;
	bool everywhere, present;
};

/* The same in whole columns of one plane. */
struct span {
	uint32_t a, b, c, d;                /* [a, b) fades in, [b, c) is whole, [c, d) fades out */
	int32_t in, in_step, out, out_step; /* 16.16 weights at a and c, and their steps */
};

/* One row of one plane: both textures and the tone. */
struct strip {
	const uint8_t *base, *base_ahead; /* ahead: rows that are wanted soon */
	const int8_t *fine, *fine_ahead;  /* NULL for colour differences */
	uint32_t base_x, fine_x, mask;
	struct picture_tone tone;
};

/* The textures lie in the third-level cache at best: this is what keeps the loop from waiting. */
static void prefetch(const void *from, uint32_t bytes)
{
	enum { LINE = 64 };
	const char *at = from;
	for (uint32_t i = 0; i < bytes; i += LINE)
		__builtin_prefetch(at + i);
}

/* Columns [from, to): runs up to where either texture wraps.  Each time the base does, the fine one
 * jumps: wide pictures do not repeat, which deflate would notice. */
static void fill_run(const struct strip *strip, uint32_t from, uint32_t to, uint8_t *row)
{
	enum { JUMP = 389 };
	while (from < to) {
		const uint32_t bx = (strip->base_x + from) & strip->mask;
		const uint32_t wraps = (strip->base_x + from) / (strip->mask + 1);
		const uint32_t fx = (strip->fine_x + from + JUMP * wraps) & strip->mask;
		const uint32_t room = strip->mask + 1 - (bx > fx ? bx : fx);
		const uint32_t run = to - from < room ? to - from : room;
		const int8_t *fine = strip->fine ? strip->fine + fx : NULL;
		prefetch(strip->base_ahead + bx, run);
		if (fine)
			prefetch(strip->fine_ahead + fx, run);
		picture_compose(row + from, strip->base + bx, fine, run, strip->tone);
		from += run;
	}
}

/* Lets what was there show through by each pixel's weight. */
static void fade(uint8_t *row, const uint8_t *old, uint32_t count, int32_t weight, int32_t step)
{
	enum { WHOLE = ONE << 8 };
	for (uint32_t i = 0; i < count; i++, weight += step) {
		const int share = (weight < 0 ? 0 : weight > WHOLE ? WHOLE : weight) >> 8;
		row[i] = (uint8_t)((row[i] * share + old[i] * (ONE - share)) >> 8);
	}
}

static void copy_few(uint8_t *to, const uint8_t *from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		to[i] = from[i];
}

static void picture_fill_span(const struct strip *strip, const struct span *span, uint8_t *row)
{
	uint8_t before[RAMP_MAX + 4], after[RAMP_MAX + 4];
	const uint32_t in = span->b - span->a, out = span->d - span->c;
	copy_few(before, row + span->a, in);
	copy_few(after, row + span->c, out);
	fill_run(strip, span->a, span->d, row);
	fade(row + span->a, before, in, span->in, span->in_step);
	fade(row + span->c, after, out, span->out, span->out_step);
}

static uint32_t clamp_column(double x, uint32_t width)
{
	return x <= 0 ? 0 : x >= width ? width : (uint32_t)x;
}

/* The part of luma row y that a layer covers. */
static struct reach find_reach(const struct layer *layer, uint32_t y)
{
	struct reach reach = {.everywhere = layer->everywhere, .present = layer->everywhere};
	if (layer->everywhere || y < layer->top || y >= layer->bottom)
		return reach;
	shape_span(&layer->shape, y + 0.5, &reach.left, &reach.right);
	const double width = reach.right - reach.left;
	reach.half = (layer->ramp < width ? layer->ramp : width) / 2.0;
	reach.present = width >= 2.0;
	return reach;
}

/* In columns of a plane; scale: 1 for luma, 0.5 for half-resolution planes.  False where it is
 * outside. */
static bool picture_place_layer(
	const struct reach *reach, double scale, uint32_t width, struct span *span)
{
	if (reach->everywhere) {
		*span = (struct span){.c = width, .d = width};
		return true;
	}
	if (!reach->present)
		return false;
	const double left = reach->left * scale, right = reach->right * scale;
	const double scaled = reach->half * scale, half = scaled < 0.5 ? 0.5 : scaled;
	span->a = clamp_column(left - half, width);
	span->d = clamp_column(right + half + 1.0, width);
	if (span->a >= span->d)
		return false;
	span->b = clamp_column(left + half + 1.0, span->d);
	span->c = clamp_column(right - half, span->d);
	if (span->b > span->c)
		span->c = span->b;
	const double slope = ONE * 128.0 / half;
	span->in_step = (int32_t)slope;
	span->in = (int32_t)((span->a + 0.5 - left) * slope + ONE * 128.0);
	span->out_step = -(int32_t)slope;
	span->out = (int32_t)((right - span->c - 0.5) * slope + ONE * 128.0);
	return true;
}

static struct picture_tone lit(const struct layer *layer, uint32_t y, uint32_t rows)
{
	struct picture_tone tone = layer->luma;
	const int light = layer->light * ((int)(2 * y) - (int)rows) / (int)rows;
	tone.offset = (int16_t)(tone.offset + light);
	return tone;
}

enum { AHEAD = 6 }; /* rows */

/* Every layer from the last one that hides all below it. */
static void render_luma(const struct plan *plan, const struct reach reaches[LAYERS_MAX], uint32_t y,
	const struct picture_planes *planes)
{
	struct span spans[LAYERS_MAX];
	bool present[LAYERS_MAX];
	int first = 0;
	for (int i = 0; i < plan->count; i++) {
		present[i] = picture_place_layer(&reaches[i], 1.0, planes->stride, &spans[i]);
		if (present[i] && spans[i].b == 0 && spans[i].c == planes->stride)
			first = i;
	}
	for (int i = first; i < plan->count; i++) {
		if (!present[i])
			continue;
		const struct layer *layer = &plan->layers[i];
		const uint32_t base_y = layer->base_y + y * layer->step_y,
			       fine_y = layer->fine_y + y;
		const size_t base_next = (base_y + AHEAD * layer->step_y) & TILE_MASK;
		const struct strip strip = {
			.base = layer->base->luma + (size_t)(base_y & TILE_MASK) * TILE_EDGE,
			.base_ahead = layer->base->luma + base_next * TILE_EDGE,
			.fine = layer->fine + (size_t)(fine_y & TILE_MASK) * TILE_EDGE,
			.fine_ahead =
				layer->fine + (size_t)((fine_y + AHEAD) & TILE_MASK) * TILE_EDGE,
			.base_x = layer->base_x,
			.fine_x = layer->fine_x,
			.mask = TILE_MASK,
			.tone = lit(layer, y, planes->rows),
		};
		picture_fill_span(&strip, &spans[i], planes->luma + (size_t)y * planes->stride);
	}
}

/* One row of both colour planes. */
static void render_colour(const struct plan *plan, const struct reach reaches[LAYERS_MAX],
	uint32_t y, const struct picture_planes *planes)
{
	const uint32_t width = planes->stride / 2;
	for (int i = 0; i < plan->count; i++) {
		struct span span;
		if (!picture_place_layer(&reaches[i], 0.5, width, &span))
			continue;
		const struct layer *layer = &plan->layers[i];
		const uint32_t base_y = layer->base_y / 2 + y * layer->step_y;
		const size_t at = (size_t)(base_y & HALF_MASK) * HALF_EDGE;
		const size_t ahead =
			(size_t)((base_y + AHEAD * layer->step_y) & HALF_MASK) * HALF_EDGE;
		struct strip strip = {
			.base = layer->base->blue + at,
			.base_ahead = layer->base->blue + ahead,
			.base_x = layer->base_x / 2,
			.mask = HALF_MASK,
			.tone = layer->blue,
		};
		picture_fill_span(&strip, &span, planes->blue + (size_t)y * width);
		strip.base = layer->base->red + at;
		strip.base_ahead = layer->base->red + ahead;
		strip.tone = layer->red;
		picture_fill_span(&strip, &span, planes->red + (size_t)y * width);
	}
}

static int draw_int(struct rng *rng, int least, int most)
{
	return least + (int)rng_below(rng, (uint64_t)(most - least) + 1);
}

static double draw_real(struct rng *rng, double least, double most)
{
	return least + (most - least) * rng_uniform(rng);
}

/* Larger photographs have less detail per pixel: the lens, not the pixels, is their limit.  In
 * 1/256, fitted to photographs of 250 to 1000 pixels (docs/PICTURES.md). */
static uint32_t size_factor(struct picture_size size)
{
	const double edge = sqrt((double)size.width * size.height) / sqrt(500.0 * 375.0);
	return (uint32_t)(ONE * fmin(2.5, fmax(0.1, 1.0 / edge)));
}

/* Detail of one picture relative to the mean, in 1/256: photographs differ widely.  Steps through
 * its range by the golden ratio from id to id, so that any run of ids has nearly the mean of all.
 */
static uint32_t picture_strength(uint64_t seed, uint64_t id, struct picture_size size)
{
	const uint64_t turn = rng_mix(seed, 0x7374) + id * 0x9e3779b97f4a7c15ULL;
	const uint64_t u = turn >> 48; /* 16 bits */
	return (uint32_t)(80 + ((u * u) >> 16) * 528 / 65536) * size_factor(size) / ONE;
}

/* Contrast turns about the middle grey. */
static struct picture_tone tone_about_middle(int gain, int shift)
{
	return (struct picture_tone){
		.gain = (uint16_t)gain, .offset = (int16_t)(128 - gain / 2 + shift)};
}

/* How strongly the fine texture shows.  Up to the natural detail some parts have much of it and
 * others almost none; the detail that is asked for beyond that is spread nearly evenly, as in pictures
 * of gravel or leaves, rather than as noise in a few places.  local: 128 is the mean. */
static int16_t fine_gain(uint32_t detail, uint32_t strength, uint32_t local, bool smooth)
{
	enum { UNIT = 66 }; /* at the natural detail, in 1/256 */
	const uint64_t natural = detail < PICTURE_DETAIL_NATURAL ? detail : PICTURE_DETAIL_NATURAL;
	const uint64_t more = detail - natural;
	uint64_t uneven = natural * strength * local * UNIT / (ONE * 128ULL);
	uint64_t even = more * (3 * ONE + strength) * (640 + local) / (4ULL * ONE * 768) * UNIT;
	if (smooth) {
		uneven /= 6;
		even /= 2;
	}
	const uint64_t gain = (uneven + even) / PICTURE_DETAIL_NATURAL;
	return (int16_t)(gain > INT16_MAX ? INT16_MAX : gain);
}

/* Tones of a layer.  Below half of the natural detail the contrast falls too, down to flat. */
static void draw_tones(
	struct layer *layer, struct rng *rng, uint32_t detail, uint32_t strength, bool smooth)
{
	const int half = PICTURE_DETAIL_NATURAL / 2;
	const int share = detail < PICTURE_DETAIL_NATURAL / 2 ? (int)detail : half;
	const int contrast = draw_int(rng, 170, 300) * share / half;
	const int saturation = draw_int(rng, 120, 290) * share / half;
	layer->luma = tone_about_middle(contrast, draw_int(rng, -34, 34));
	layer->blue = tone_about_middle(saturation, draw_int(rng, -10, 8));
	layer->red = tone_about_middle(saturation, draw_int(rng, -8, 8));
	layer->luma.fine_gain =
		fine_gain(detail, strength, (uint32_t)draw_int(rng, 20, 236), smooth);
	layer->light = draw_int(rng, -30, 30) * share / half;
}

static void draw_layer(struct layer *layer, const struct picture_atlas *atlas, struct rng *rng,
	unsigned tile, uint32_t detail, uint32_t strength)
{
	const uint64_t where = rng_next(rng);
	layer->base = &atlas->base[tile];
	layer->base_x = (uint32_t)where & TILE_MASK & ~1U;
	layer->base_y = (uint32_t)(where >> 10) & TILE_MASK & ~1U;
	layer->fine = atlas->fine[(where >> 20) % FINE_TILES];
	layer->fine_x = (uint32_t)(where >> 30) & TILE_MASK;
	layer->fine_y = (uint32_t)(where >> 40) & TILE_MASK;
	layer->step_y = (where >> 50) & 1 ? 1 : UINT32_MAX;
	const bool smooth = tile == TILE_SKY || tile == TILE_DEFOCUS || tile == TILE_SMOOTH;
	draw_tones(layer, rng, detail, strength, smooth);
}

/* A horizon: everything above a huge ellipse's lower rim, or below its upper one. */
static void draw_horizon(struct layer *layer, struct rng *rng, struct picture_size size)
{
	const double curve = draw_real(rng, 1.5, 12.0) * size.width;
	const double level = draw_real(rng, 0.25, 0.75) * size.height;
	shape_draw(&layer->shape, rng, curve, 0);
	layer->shape.xx = layer->shape.yy = 1.0 / (curve * curve);
	layer->shape.inverse_xx = curve * curve;
	layer->shape.xy = 0;
	layer->shape.reach = curve;
	layer->shape.x = draw_real(rng, 0.2, 0.8) * size.width;
	layer->shape.y = level - curve;
	layer->ramp = RAMP_MAX;
}

static void draw_object(struct layer *layer, struct rng *rng, struct picture_size size)
{
	const double edge = size.width < size.height ? size.width : size.height;
	const double radius = shape_radius(rng, 0.1 * edge, 0.5 * edge);
	shape_draw(&layer->shape, rng, radius, draw_int(rng, 0, 2) == 0);
	layer->shape.x = draw_real(rng, 0, size.width);
	layer->shape.y = draw_real(rng, 0.1, 1.05) * size.height;
	layer->ramp = draw_int(rng, 0, 3) ? 1.5 : draw_real(rng, 2.0, RAMP_MAX);
}

static void find_rows(struct layer *layer)
{
	layer->top = clamp_column(layer->shape.y - layer->shape.reach, UINT32_MAX);
	layer->bottom = clamp_column(layer->shape.y + layer->shape.reach + 1.0, UINT32_MAX);
}

static void draw_plan(struct plan *plan, const struct picture_atlas *atlas, uint64_t id,
	struct picture_size size, uint32_t detail)
{
	struct rng rng;
	rng_init(&rng, atlas->seed, id);
	const uint32_t strength = picture_strength(atlas->seed, id, size);
	plan->count = 0;
	struct layer *layer = &plan->layers[plan->count++];
	/* The background's texture goes round from id to id, as the strength does. */
	const unsigned tile = (unsigned)((id + (id >> 3)) % BASE_TILES);
	draw_layer(layer, atlas, &rng, tile, detail, strength);
	layer->everywhere = true;
	if (draw_int(&rng, 0, 1)) {
		layer = &plan->layers[plan->count++];
		const unsigned far = draw_int(&rng, 0, 2) ? TILE_SKY : TILE_DEFOCUS;
		draw_layer(layer, atlas, &rng, far, detail, strength);
		layer->everywhere = false;
		draw_horizon(layer, &rng, size);
		find_rows(layer);
	}
	for (int objects = draw_int(&rng, 1, LAYERS_MAX - 2); objects > 0; objects--) {
		layer = &plan->layers[plan->count++];
		draw_layer(layer, atlas, &rng, (unsigned)draw_int(&rng, 0, BASE_TILES - 1), detail,
			strength);
		layer->everywhere = false;
		draw_object(layer, &rng, size);
		find_rows(layer);
	}
}

static uint32_t whole_blocks(uint32_t edge)
{
	return (edge + BLOCK_EDGE - 1) / BLOCK_EDGE * BLOCK_EDGE;
}

size_t picture_planes_bytes(struct picture_size size)
{
	return (size_t)whole_blocks(size.width) * whole_blocks(size.height) * 3 / 2;
}

struct picture_planes picture_planes_place(struct picture_size size, uint8_t *memory)
{
	const uint32_t stride = whole_blocks(size.width), rows = whole_blocks(size.height);
	const size_t pixels = (size_t)stride * rows;
	return (struct picture_planes){
		.luma = memory,
		.blue = memory + pixels,
		.red = memory + pixels + pixels / 4,
		.stride = stride,
		.rows = rows,
	};
}

void picture_render(const struct picture_atlas *atlas, uint64_t id, struct picture_size size,
	uint32_t detail, const struct picture_planes *planes)
{
	struct plan plan;
	draw_plan(&plan, atlas, id, size, detail);
	struct reach reaches[LAYERS_MAX] = {0};
	for (uint32_t y = 0; y < planes->rows; y++) {
		for (int i = 0; i < plan.count; i++)
			reaches[i] = find_reach(&plan.layers[i], y);
		render_luma(&plan, reaches, y, planes);
		if (y % 2 == 0)
			render_colour(&plan, reaches, y / 2, planes);
	}
}

static double cut_normal(struct rng *rng)
{
	return fmax(-3.0, fmin(3.0, rng_normal(rng)));
}

static uint32_t round_edge(double edge)
{
	return edge < 1.0 ? 1 : edge > EDGE_MAX ? EDGE_MAX : (uint32_t)(edge + 0.5);
}

struct picture_size picture_draw_size(
	uint64_t seed, uint64_t id, uint32_t width, uint32_t height, double sigma)
{
	enum { SIZE_STREAM = 0x53495a45 }; /* apart from the pixels' randomness */
	static const double common = 0.894427190999916,
			    own = 0.447213595499958; /* squares 0.8, 0.2 */
	struct rng rng;
	rng_init(&rng, rng_mix(seed, SIZE_STREAM), id);
	const double scale = cut_normal(&rng);
	const double across = cut_normal(&rng), down = cut_normal(&rng);
	struct picture_size size = {
		.width = round_edge(width * exp(sigma * (common * scale + own * across))),
		.height = round_edge(height * exp(sigma * (common * scale + own * down))),
	};
	if (sigma > 0 && rng_below(&rng, 5) == 0)
		size = (struct picture_size){.width = size.height, .height = size.width};
	const double pixels = (double)size.width * size.height;
	if (pixels > IMAGE_PIXELS_MAX) {
		const double shrink = sqrt(IMAGE_PIXELS_MAX / pixels);
		size.width = (uint32_t)(size.width * shrink);
		size.height = (uint32_t)(size.height * shrink);
		size.width += size.width == 0;
		size.height += size.height == 0;
	}
	return size;
}

/* ---- pixel loops: a run of one plane (plain, SSE2, AVX2: equal values), and planes to RGB -------- */

static uint8_t picture_clamp(int value)
{
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void picture_compose_plain(uint8_t *out, const uint8_t *base, const int8_t *fine, size_t count,
	struct picture_tone tone)
{
	for (size_t i = 0; i < count; i++) {
		const int detail = fine ? (fine[i] * tone.fine_gain) >> 8 : 0;
		out[i] = picture_clamp(((base[i] * tone.gain) >> 8) + tone.offset + detail);
	}
}

enum { SSE2_BYTES = 16, AVX2_BYTES = 32 };

/* Unpacking under zeros is a shift by eight, so the high half of the product is the fixed-point
 * result.  The last step of either loop overlaps the one before: it stores the same values again.
 */
static void picture_compose_sse2(uint8_t *out, const uint8_t *base, const int8_t *fine,
	size_t count, struct picture_tone tone)
{
	const __m128i zero = _mm_setzero_si128();
	const __m128i gain = _mm_set1_epi16((int16_t)tone.gain);
	const __m128i fine_gain = _mm_set1_epi16(tone.fine_gain);
	const __m128i offset = _mm_set1_epi16(tone.offset);
	for (size_t i = 0;;) {
		const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(base + i));
		__m128i low = _mm_mulhi_epu16(_mm_unpacklo_epi8(zero, b), gain);
		__m128i high = _mm_mulhi_epu16(_mm_unpackhi_epi8(zero, b), gain);
		low = _mm_add_epi16(low, offset);
		high = _mm_add_epi16(high, offset);
		if (fine) {
			const __m128i f =
				_mm_loadu_si128((const __m128i *)(const void *)(fine + i));
			low = _mm_add_epi16(
				low, _mm_mulhi_epi16(_mm_unpacklo_epi8(zero, f), fine_gain));
			high = _mm_add_epi16(
				high, _mm_mulhi_epi16(_mm_unpackhi_epi8(zero, f), fine_gain));
		}
		_mm_storeu_si128((__m128i *)(void *)(out + i), _mm_packus_epi16(low, high));
		i += SSE2_BYTES;
		if (i == count)
			break;
		if (i + SSE2_BYTES > count)
			i = count - SSE2_BYTES;
	}
}

__attribute__((target("avx2"))) static void picture_compose_avx2(uint8_t *out, const uint8_t *base,
	const int8_t *fine, size_t count, struct picture_tone tone)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i gain = _mm256_set1_epi16((int16_t)tone.gain);
	const __m256i fine_gain = _mm256_set1_epi16(tone.fine_gain);
	const __m256i offset = _mm256_set1_epi16(tone.offset);
	for (size_t i = 0;;) {
		const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(base + i));
		__m256i low = _mm256_mulhi_epu16(_mm256_unpacklo_epi8(zero, b), gain);
		__m256i high = _mm256_mulhi_epu16(_mm256_unpackhi_epi8(zero, b), gain);
		low = _mm256_add_epi16(low, offset);
		high = _mm256_add_epi16(high, offset);
		if (fine) {
			const __m256i f =
				_mm256_loadu_si256((const __m256i *)(const void *)(fine + i));
			low = _mm256_add_epi16(
				low, _mm256_mulhi_epi16(_mm256_unpacklo_epi8(zero, f), fine_gain));
			high = _mm256_add_epi16(
				high, _mm256_mulhi_epi16(_mm256_unpackhi_epi8(zero, f), fine_gain));
		}
		/* Unpack and pack both work within 128-bit halves: the order comes out right. */
		_mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_packus_epi16(low, high));
		i += AVX2_BYTES;
		if (i == count)
			break;
		if (i + AVX2_BYTES > count)
			i = count - AVX2_BYTES;
	}
}

void picture_compose(uint8_t *out, const uint8_t *base, const int8_t *fine, size_t count,
	struct picture_tone tone)
{
	if (count >= AVX2_BYTES && __builtin_cpu_supports("avx2"))
		picture_compose_avx2(out, base, fine, count, tone);
	else if (count >= SSE2_BYTES)
		picture_compose_sse2(out, base, fine, count, tone);
	else
		picture_compose_plain(out, base, fine, count, tone);
}

/* A colour difference at full resolution: weights 9 3 3 1 of 16 of the four nearest. */
static int picture_interpolate(
	const uint8_t *plane, uint32_t stride, uint32_t rows, uint32_t x, uint32_t y)
{
	const uint32_t here_x = x / 2, here_y = y / 2;
	const uint32_t far_x =
		x & 1 ? (here_x + 1 < stride ? here_x + 1 : here_x) : here_x - (here_x > 0);
	const uint32_t far_y =
		y & 1 ? (here_y + 1 < rows ? here_y + 1 : here_y) : here_y - (here_y > 0);
	const uint8_t *near_row = plane + (size_t)here_y * stride;
	const uint8_t *far_row = plane + (size_t)far_y * stride;
	const int sum =
		9 * near_row[here_x] + 3 * near_row[far_x] + 3 * far_row[here_x] + far_row[far_x];
	return ((sum + 8) >> 4) - 128;
}

void picture_to_rgb(const struct picture_planes *planes, struct picture_size size, uint8_t *rgb)
{
	/* JFIF's coefficients in 1/65536. */
	enum { RED = 91881, GREEN_BLUE = 22554, GREEN_RED = 46802, BLUE = 116130, ROUND = 32768 };
	for (uint32_t y = 0; y < size.height; y++) {
		const uint8_t *row = planes->luma + (size_t)y * planes->stride;
		for (uint32_t x = 0; x < size.width; x++, rgb += 3) {
			const int luma = row[x];
			const int blue = picture_interpolate(
				planes->blue, planes->stride / 2, planes->rows / 2, x, y);
			const int red = picture_interpolate(
				planes->red, planes->stride / 2, planes->rows / 2, x, y);
			rgb[0] = picture_clamp(luma + ((RED * red + ROUND) >> 16));
			rgb[1] = picture_clamp(
				luma - ((GREEN_BLUE * blue + GREEN_RED * red + ROUND) >> 16));
			rgb[2] = picture_clamp(luma + ((BLUE * blue + ROUND) >> 16));
		}
	}
}
