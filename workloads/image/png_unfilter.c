/* PNG row filters.  The plain code follows the standard; the SIMD code holds one pixel in a register
 * as 16-bit lanes and is built for a short chain from a pixel to the next, which is all that
 * limits it. */
#include "workloads/image/png_unfilter.h"

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

static void plain_row(enum row_filter filter, uint8_t *row, const uint8_t *above, size_t size,
	size_t pixel)
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

typedef void (*row_fn)(enum row_filter filter, uint8_t *row, const uint8_t *above, size_t size,
	size_t pixel);

static size_t unfilter(const struct png_rows *rows, row_fn row_of)
{
	const size_t stride = rows->row_bytes + 1;
	for (size_t y = 0; y < rows->rows; y++) {
		uint8_t *const row = rows->data + y * stride;
		if (row[0] >= ROW_FILTER_COUNT)
			return y;
		if (y == 0)
			first_row(row[0], row + 1, rows->used_bytes, rows->pixel_bytes);
		else
			row_of(row[0], row + 1, row + 1 - stride, rows->used_bytes,
				rows->pixel_bytes);
	}
	return rows->rows;
}

size_t png_unfilter_plain(const struct png_rows *rows)
{
	return unfilter(rows, plain_row);
}

/* ---- SSE4.1 ------------------------------------------------------------------------------- */

#define SSE41 __attribute__((target("sse4.1")))
#define SSE41_INLINE __attribute__((target("sse4.1"), always_inline)) static inline

/* A pixel of up to 4 bytes, one in each 16-bit lane. */
SSE41_INLINE __m128i load_pixel(const uint8_t *at)
{
	int32_t bytes;
	memcpy(&bytes, at, sizeof bytes);
	return _mm_cvtepu8_epi16(_mm_cvtsi32_si128(bytes));
}

/* Writes `size` bytes, 3 or 4. */
SSE41_INLINE void store_pixel(uint8_t *at, __m128i lanes, size_t size)
{
	const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(lanes, lanes));
	memcpy(at, &bytes, size);
}

SSE41_INLINE void sse_sub(uint8_t *row, size_t size, size_t pixel)
{
	__m128i left = _mm_setzero_si128();
	for (size_t i = 0; i < size; i += pixel) {
		left = _mm_add_epi8(left, load_pixel(row + i));
		store_pixel(row + i, left, pixel);
	}
}

SSE41_INLINE void sse_average(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	__m128i left = _mm_setzero_si128();
	for (size_t i = 0; i < size; i += pixel) {
		const __m128i mean = _mm_srli_epi16(_mm_add_epi16(left, load_pixel(above + i)), 1);
		left = _mm_add_epi8(mean, load_pixel(row + i));
		store_pixel(row + i, left, pixel);
	}
}

/* The nearest of left, above and corner to left + above - corner, by comparing 3 corner - above -
 * left with the smaller and the larger of the two: five operations deep instead of nine. */
SSE41_INLINE __m128i sse_predict(__m128i left, __m128i above, __m128i corner)
{
	const __m128i corner3 = _mm_add_epi16(corner, _mm_add_epi16(corner, corner));
	const __m128i threshold = _mm_sub_epi16(_mm_sub_epi16(corner3, above), left);
	const __m128i low = _mm_min_epi16(left, above);
	const __m128i high = _mm_max_epi16(left, above);
	const __m128i middle = _mm_blendv_epi8(low, corner, _mm_cmpgt_epi16(high, threshold));
	return _mm_blendv_epi8(high, middle, _mm_cmpgt_epi16(threshold, low));
}

SSE41_INLINE void sse_paeth(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	__m128i left = _mm_setzero_si128();
	__m128i corner = _mm_setzero_si128();
	for (size_t i = 0; i < size; i += pixel) {
		const __m128i up = load_pixel(above + i);
		left = _mm_add_epi8(sse_predict(left, up, corner), load_pixel(row + i));
		corner = up;
		store_pixel(row + i, left, pixel);
	}
}

SSE41_INLINE void sse_row(enum row_filter filter, uint8_t *row, const uint8_t *above, size_t size,
	size_t pixel)
{
	switch (filter) {
	case ROW_FILTER_SUB:
		sse_sub(row, size, pixel);
		break;
	case ROW_FILTER_UP:
		plain_up(row, above, size);
		break;
	case ROW_FILTER_AVERAGE:
		sse_average(row, above, size, pixel);
		break;
	case ROW_FILTER_PAETH:
		sse_paeth(row, above, size, pixel);
		break;
	default:
		break;
	}
}

/* The pixel size as a constant, so that the loops are made for it. */
SSE41 static void sse_row_3(enum row_filter filter, uint8_t *row, const uint8_t *above, size_t size,
	size_t pixel)
{
	(void)pixel;
	sse_row(filter, row, above, size, 3);
}

SSE41 static void sse_row_4(enum row_filter filter, uint8_t *row, const uint8_t *above, size_t size,
	size_t pixel)
{
	(void)pixel;
	sse_row(filter, row, above, size, 4);
}

size_t png_unfilter_fast(const struct png_rows *rows)
{
	if (!__builtin_cpu_supports("sse4.1") || (rows->pixel_bytes != 3 && rows->pixel_bytes != 4))
		return png_unfilter_plain(rows);
	return unfilter(rows, rows->pixel_bytes == 3 ? sse_row_3 : sse_row_4);
}
