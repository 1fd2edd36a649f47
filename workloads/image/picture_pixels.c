/* The pixel loops of picture.c: composing a run of one plane (plain, SSE2, AVX2: equal values), and
 * planes to RGB. */
#include "workloads/image/picture.h"

#include <immintrin.h>

static uint8_t clamp_byte(int value)
{
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void picture_compose_plain(uint8_t *out, const uint8_t *base, const int8_t *fine, size_t count,
	struct picture_tone tone)
{
	for (size_t i = 0; i < count; i++) {
		const int detail = fine ? (fine[i] * tone.fine_gain) >> 8 : 0;
		out[i] = clamp_byte(((base[i] * tone.gain) >> 8) + tone.offset + detail);
	}
}

enum { SSE2_BYTES = 16, AVX2_BYTES = 32 };

/* Unpacking under zeros is a shift by eight, so the high half of the product is the fixed-point
 * result.  The last step of either loop overlaps the one before: it stores the same values again.
 */
static void compose_sse2(uint8_t *out, const uint8_t *base, const int8_t *fine, size_t count,
	struct picture_tone tone)
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

__attribute__((target("avx2"))) static void compose_avx2(uint8_t *out, const uint8_t *base,
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
		compose_avx2(out, base, fine, count, tone);
	else if (count >= SSE2_BYTES)
		compose_sse2(out, base, fine, count, tone);
	else
		picture_compose_plain(out, base, fine, count, tone);
}

/* A colour difference at full resolution: weights 9 3 3 1 of 16 of the four nearest. */
static int interpolate(const uint8_t *plane, uint32_t stride, uint32_t rows, uint32_t x, uint32_t y)
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
			const int blue = interpolate(
				planes->blue, planes->stride / 2, planes->rows / 2, x, y);
			const int red = interpolate(
				planes->red, planes->stride / 2, planes->rows / 2, x, y);
			rgb[0] = clamp_byte(luma + ((RED * red + ROUND) >> 16));
			rgb[1] = clamp_byte(
				luma - ((GREEN_BLUE * blue + GREEN_RED * red + ROUND) >> 16));
			rgb[2] = clamp_byte(luma + ((BLUE * blue + ROUND) >> 16));
		}
	}
}
