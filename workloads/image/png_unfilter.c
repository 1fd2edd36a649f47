/* PNG row filters.  The plain code follows the standard; the SIMD code holds one pixel in a
 * register as 16-bit lanes and is built for a short chain from a pixel to the next, which is all
 * that limits it. */
#include "workloads/image/png.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- plain -------------------------------------------------------------------------------- */

static uint8_t paeth(int left, int above, int corner)
{
	const int estimate = left + above - corner;
	const int to_left = abs(estimate - left);
	const int to_above = abs(estimate - above);
	const int to_corner = abs(estimate - corner);
	if (to_left <= to_above && to_left <= to_corner)
		return (uint8_t)left;
	return (uint8_t)(to_above <= to_corner ? above : corner);
}

static void plain_sub(uint8_t *row, size_t size, size_t pixel)
{
	for (size_t i = pixel; i < size; i++)
		row[i] = (uint8_t)(row[i] + row[i - pixel]);
}

static void plain_up(uint8_t *restrict row, const uint8_t *restrict above, size_t size)
{
	for (size_t i = 0; i < size; i++)
		row[i] = (uint8_t)(row[i] + above[i]);
}

static void plain_average(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	for (size_t i = 0; i < size; i++) {
		const int left = i < pixel ? 0 : row[i - pixel];
		row[i] = (uint8_t)(row[i] + (left + above[i]) / 2);
	}
}

static void plain_paeth(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	for (size_t i = 0; i < size; i++) {
		const int left = i < pixel ? 0 : row[i - pixel];
		const int corner = i < pixel ? 0 : above[i - pixel];
		row[i] = (uint8_t)(row[i] + paeth(left, above[i], corner));
	}
}

static void plain_row(
	enum row_filter filter, uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	switch (filter) {
	case ROW_FILTER_SUB:
		plain_sub(row, size, pixel);
		break;
	case ROW_FILTER_UP:
		plain_up(row, above, size);
		break;
	case ROW_FILTER_AVERAGE:
		plain_average(row, above, size, pixel);
		break;
	case ROW_FILTER_PAETH:
		plain_paeth(row, above, size, pixel);
		break;
	default:
		break;
	}
}

/* The row above the first is zero: Up adds nothing, Paeth becomes Sub, Average halves the left. */
static void first_row(enum row_filter filter, uint8_t *row, size_t size, size_t pixel)
{
	if (filter == ROW_FILTER_SUB || filter == ROW_FILTER_PAETH)
		plain_sub(row, size, pixel);
	else if (filter == ROW_FILTER_AVERAGE)
		for (size_t i = pixel; i < size; i++)
			row[i] = (uint8_t)(row[i] + row[i - pixel] / 2);
}

size_t png_unfilter_plain(const struct png_rows *rows)
{
	const size_t stride = rows->row_bytes + 1;
	for (size_t y = 0; y < rows->rows; y++) {
		uint8_t *const row = rows->data + y * stride;
		if (row[0] >= ROW_FILTER_COUNT)
			return y;
		if (y == 0)
			first_row(row[0], row + 1, rows->used_bytes, rows->pixel_bytes);
		else
			plain_row(row[0], row + 1, row + 1 - stride, rows->used_bytes,
				rows->pixel_bytes);
	}
	return rows->rows;
}

/* ---- AVX2 --------------------------------------------------------------------------------- */

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline

/* A pixel of up to 4 bytes, one in each 16-bit lane. */
AVX2_INLINE __m128i load_pixel(const uint8_t *at)
{
	int32_t bytes;
	memcpy(&bytes, at, sizeof bytes);
	return _mm_cvtepu8_epi16(_mm_cvtsi32_si128(bytes));
}

/* Writes 4 bytes: with pixels of 3, the next one must have been loaded before. */
AVX2_INLINE void store_pixel(uint8_t *at, __m128i lanes)
{
	const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(lanes, lanes));
	memcpy(at, &bytes, sizeof bytes);
}

/* The last of a row, behind which the next row's filter byte lies. */
AVX2_INLINE void store_last(uint8_t *at, __m128i lanes, size_t pixel)
{
	const uint32_t bytes = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(lanes, lanes));
	const uint16_t low = (uint16_t)bytes;
	memcpy(at, &low, sizeof low);
	at[2] = (uint8_t)(bytes >> 16);
	if (pixel == 4)
		at[3] = (uint8_t)(bytes >> 24);
}

/* What each filter adds to a pixel. */
AVX2_INLINE __m128i predict_sub(__m128i left, __m128i above, __m128i corner)
{
	(void)above, (void)corner;
	return left;
}

AVX2_INLINE __m128i predict_average(__m128i left, __m128i above, __m128i corner)
{
	(void)corner;
	return _mm_srli_epi16(_mm_add_epi16(left, above), 1);
}

/* The nearest of left, above and corner to left + above - corner, by comparing 3 corner - above -
 * left with the smaller and the larger of the two: five operations deep instead of nine. */
AVX2_INLINE __m128i predict_paeth(__m128i left, __m128i above, __m128i corner)
{
	const __m128i corner3 = _mm_add_epi16(corner, _mm_add_epi16(corner, corner));
	const __m128i threshold = _mm_sub_epi16(_mm_sub_epi16(corner3, above), left);
	const __m128i low = _mm_min_epi16(left, above);
	const __m128i high = _mm_max_epi16(left, above);
	const __m128i middle = _mm_blendv_epi8(low, corner, _mm_cmpgt_epi16(high, threshold));
	return _mm_blendv_epi8(high, middle, _mm_cmpgt_epi16(threshold, low));
}

typedef __m128i (*predict_fn)(__m128i left, __m128i above, __m128i corner);

AVX2_INLINE void avx2_filter(
	uint8_t *row, const uint8_t *above, size_t size, size_t pixel, predict_fn predict)
{
	__m128i left = _mm_setzero_si128();
	__m128i corner = left;
	__m128i next = load_pixel(row);
	const size_t last = size - pixel;
	for (size_t i = 0; i < last; i += pixel) {
		const __m128i up = load_pixel(above + i);
		left = _mm_add_epi8(next, predict(left, up, corner));
		corner = up;
		next = load_pixel(row + i + pixel);
		store_pixel(row + i, left);
	}
	left = _mm_add_epi8(next, predict(left, load_pixel(above + last), corner));
	store_last(row + last, left, pixel);
}

AVX2_INLINE void avx2_row(
	enum row_filter filter, uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	switch (filter) {
	case ROW_FILTER_SUB:
		avx2_filter(row, above, size, pixel, predict_sub);
		break;
	case ROW_FILTER_UP:
		plain_up(row, above, size);
		break;
	case ROW_FILTER_AVERAGE:
		avx2_filter(row, above, size, pixel, predict_average);
		break;
	case ROW_FILTER_PAETH:
		avx2_filter(row, above, size, pixel, predict_paeth);
		break;
	default:
		break;
	}
}

/* ---- several rows at once ----------------------------------------------------------------- */

enum { WAVE_ROWS = 4 };

/* A row on its way.  A Sub row is a Paeth row whose row above is zero, so one loop does both. */
struct lane {
	uint8_t *row;
	__m128i keep_above; /* ones for Paeth, zeros for Sub */
	__m128i left, corner, next;
};

AVX2_INLINE struct lane lane_start(uint8_t *row)
{
	const __m128i zero = _mm_setzero_si128();
	return (struct lane){
		.row = row,
		.keep_above = _mm_set1_epi16(row[-1] == ROW_FILTER_PAETH ? -1 : 0),
		.left = zero,
		.corner = zero,
		.next = load_pixel(row),
	};
}

AVX2_INLINE void lane_step(struct lane *lane, __m128i above, size_t at, size_t pixel)
{
	const __m128i up = _mm_and_si128(above, lane->keep_above);
	lane->left = _mm_add_epi8(lane->next, predict_paeth(lane->left, up, lane->corner));
	lane->corner = up;
	lane->next = load_pixel(lane->row + at + pixel);
	store_pixel(lane->row + at, lane->left);
}

AVX2_INLINE void lane_finish(struct lane *lane, __m128i above, size_t at, size_t pixel)
{
	const __m128i up = _mm_and_si128(above, lane->keep_above);
	lane->left = _mm_add_epi8(lane->next, predict_paeth(lane->left, up, lane->corner));
	store_last(lane->row + at, lane->left, pixel);
}

/* A chain from pixel to pixel leaves most of the machine idle.  So several rows go side by side,
 * each a pixel behind the one above it, whose value it takes from a register.  size > WAVE_ROWS
 * pixels. */
AVX2_INLINE void wave(uint8_t *first, size_t rows, size_t stride, size_t size, size_t pixel)
{
	const uint8_t *const above = first - stride;
	const size_t last = size - pixel;
	struct lane lanes[WAVE_ROWS];
	for (size_t r = 0; r < rows; r++)
		lanes[r] = lane_start(first + r * stride);
	for (size_t t = 0; t + 1 < rows; t++) {
		for (size_t r = t; r > 0; r--)
			lane_step(&lanes[r], lanes[r - 1].left, (t - r) * pixel, pixel);
		lane_step(&lanes[0], load_pixel(above + t * pixel), t * pixel, pixel);
	}
	for (size_t at = (rows - 1) * pixel; at < last; at += pixel) {
		for (size_t r = rows - 1; r > 0; r--)
			lane_step(&lanes[r], lanes[r - 1].left, at - r * pixel, pixel);
		lane_step(&lanes[0], load_pixel(above + at), at, pixel);
	}
	/* Row f ends here; those below it take another step, the nearest to it their last but one.
	 */
	for (size_t f = 0; f < rows; f++) {
		for (size_t r = rows - 1; r > f; r--)
			lane_step(&lanes[r], lanes[r - 1].left, last - (r - f) * pixel, pixel);
		lane_finish(
			&lanes[f], f ? lanes[f - 1].left : load_pixel(above + last), last, pixel);
	}
}

/* Rows from here on that can go in one wave, at most `most`. */
static size_t count_wave(const uint8_t *row, size_t stride, size_t most)
{
	size_t count = 0;
	while (count < most && count < WAVE_ROWS &&
		(row[count * stride] == ROW_FILTER_SUB || row[count * stride] == ROW_FILTER_PAETH))
		count++;
	return count;
}

/* With the number of rows as a constant. */
AVX2_INLINE void wave_of(size_t count, uint8_t *first, size_t stride, size_t size, size_t pixel)
{
	switch (count) {
	case 4:
		wave(first, 4, stride, size, pixel);
		break;
	case 3:
		wave(first, 3, stride, size, pixel);
		break;
	default:
		wave(first, 2, stride, size, pixel);
		break;
	}
}

AVX2_INLINE size_t avx2_unfilter(const struct png_rows *rows, size_t pixel)
{
	const size_t stride = rows->row_bytes + 1;
	const size_t size = rows->used_bytes;
	const bool is_wide = size > WAVE_ROWS * pixel;
	for (size_t y = 0; y < rows->rows;) {
		uint8_t *const row = rows->data + y * stride;
		const size_t count = y && is_wide ? count_wave(row, stride, rows->rows - y) : 0;
		if (row[0] >= ROW_FILTER_COUNT)
			return y;
		if (count > 1)
			wave_of(count, row + 1, stride, size, pixel);
		else if (y > 0)
			avx2_row(row[0], row + 1, row + 1 - stride, size, pixel);
		else
			first_row(row[0], row + 1, size, pixel);
		y += count > 1 ? count : 1;
	}
	return rows->rows;
}

/* The pixel size as a constant, so that the loops are made for it. */
AVX2 static size_t avx2_unfilter_3(const struct png_rows *rows)
{
	return avx2_unfilter(rows, 3);
}

AVX2 static size_t avx2_unfilter_4(const struct png_rows *rows)
{
	return avx2_unfilter(rows, 4);
}

size_t png_unfilter_fast(const struct png_rows *rows)
{
	if (!__builtin_cpu_supports("avx2") || (rows->pixel_bytes != 3 && rows->pixel_bytes != 4))
		return png_unfilter_plain(rows);
	return rows->pixel_bytes == 3 ? avx2_unfilter_3(rows) : avx2_unfilter_4(rows);
}
