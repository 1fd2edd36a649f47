/* The resize loops for AVX-512 with byte permutation (VBMI: Ice Lake, Zen 4 and later).  Going
 * across, four output pixels at a time are gathered from 64 bytes of a row by one instruction, and
 * what is made ready for that serves a block of rows.  Storing is bound by memory and left to AVX2.
 */
#include "workloads/image/resample_avx2.h"

#include <immintrin.h>
#include <string.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))
#define AVX512_INLINE \
	__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"), always_inline)) static inline

enum {
	ROUNDING = FILTER_ONE / 2,
	GROUP_OUT = 4,  /* output pixels in a vector, one in each quarter */
	GROUP_TAPS = 4, /* input pixels gathered at a time */
	WINDOW_BYTES = 64,
	BLOCK_ROWS = 16, /* that stay in the first cache */
	TAPS_MOST = 8,
	VERTICAL_BYTES = 32,
};

static bool avx512_is_supported(void)
{
	return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl");
}

/* ---- horizontal --------------------------------------------------------------------------- */

/* Where the inputs of four outputs lie, and what they weigh. */
struct group {
	size_t base;   /* byte of a row where the window begins */
	__m512i front; /* of window bytes: pairs of pixels 0 and 1, r r g g b b - -, per output */
	__m512i back;  /* of pixels 2 and 3 */
	__m512i weights[TAPS_MOST / 2]; /* pairs, for each channel of each output */
};

/* First input of the outputs of a group: smallest and largest. */
static void group_range(const struct filter *filter, uint32_t x, uint32_t *low, uint32_t *high)
{
	const uint32_t a = filter->first[x];
	const uint32_t b = filter->first[x + GROUP_OUT - 1];
	*low = a < b ? a : b; /* a flip runs backwards */
	*high = a < b ? b : a;
}

/* Groups of four, and all of a group's inputs within a window. */
static bool is_regular(const struct filter *filter, size_t pixel_bytes)
{
	if (filter->taps > TAPS_MOST || filter->size % GROUP_OUT != 0)
		return false;
	for (uint32_t x = 0; x < filter->size; x += GROUP_OUT) {
		uint32_t low;
		uint32_t high;
		group_range(filter, x, &low, &high);
		if ((high - low + GROUP_TAPS) * pixel_bytes > WINDOW_BYTES)
			return false;
	}
	return true;
}

/* Dword `first` + quarter * `step` of `from` in all of each quarter. */
AVX512_INLINE __m512i spread(__m512i from, int first, int step)
{
	const __m512i quarter = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
	const __m512i index = _mm512_add_epi32(
		_mm512_mullo_epi32(quarter, _mm512_set1_epi32(step)), _mm512_set1_epi32(first));
	return _mm512_permutexvar_epi32(index, from);
}

/* Bytes of the pair of pixels `first` and `first` + 1 as 16-bit lanes; the high ones are masked. */
AVX512_INLINE __m512i pair_pattern(int first, int pixel_bytes)
{
	const int a = first * pixel_bytes;
	const int b = a + pixel_bytes;
	return _mm512_broadcast_i32x4(_mm_setr_epi16((short)a, (short)b, (short)(a + 1),
		(short)(b + 1), (short)(a + 2), (short)(b + 2), 0, 0));
}

AVX512_INLINE void prepare(struct group *group, const struct filter *filter, uint32_t x,
	int pixel_bytes, uint32_t taps)
{
	uint32_t low;
	uint32_t high;
	group_range(filter, x, &low, &high);
	group->base = (size_t)low * (size_t)pixel_bytes;
	const __m128i firsts = _mm_loadu_si128((const __m128i *)(filter->first + x));
	const __m128i offsets = _mm_mullo_epi32(_mm_sub_epi32(firsts, _mm_set1_epi32((int)low)),
		_mm_set1_epi32(pixel_bytes * 0x10001)); /* in both halves of each dword */
	const __m512i shifts = spread(_mm512_castsi128_si512(offsets), 0, 1);
	group->front = _mm512_add_epi16(pair_pattern(0, pixel_bytes), shifts);
	group->back = _mm512_add_epi16(pair_pattern(2, pixel_bytes), shifts);
	const int16_t *const weights = filter->weights + (size_t)x * taps;
	const __m512i all =
		taps == GROUP_TAPS
			? _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)weights))
			: _mm512_loadu_si512(weights);
	for (uint32_t pair = 0; pair < taps / 2; pair++)
		group->weights[pair] = spread(all, (int)pair, (int)taps / 2);
}

/* Four outputs of one row as 12 bytes of RGB. */
AVX512_INLINE __m128i resize_group(
	const struct group *group, const uint8_t *row, int pixel_bytes, uint32_t taps)
{
	const __mmask64 low_bytes = 0x0555055505550555; /* of six lanes in each quarter */
	__m512i sum = _mm512_set1_epi32(ROUNDING);
	for (uint32_t k = 0; k < taps; k += GROUP_TAPS) {
		const __m512i window =
			_mm512_loadu_si512(row + group->base + k * (uint32_t)pixel_bytes);
		const __m512i front =
			_mm512_maskz_permutexvar_epi8(low_bytes, group->front, window);
		const __m512i back = _mm512_maskz_permutexvar_epi8(low_bytes, group->back, window);
		sum = _mm512_add_epi32(sum, _mm512_madd_epi16(front, group->weights[k / 2]));
		sum = _mm512_add_epi32(sum, _mm512_madd_epi16(back, group->weights[k / 2 + 1]));
	}
	const char z = -1;
	const __m128i compact = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, z, z, z, z);
	const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_srli_epi32(sum, FILTER_BITS));
	return _mm_shuffle_epi8(bytes, compact);
}

AVX512_INLINE void resize_block(const struct filter *filter, const struct pixel_rows *in,
	uint8_t *out, size_t out_stride, int pixel_bytes, uint32_t taps)
{
	for (uint32_t x = 0; x < filter->size; x += GROUP_OUT) {
		struct group group;
		prepare(&group, filter, x, pixel_bytes, taps);
		uint8_t *const to = out + (size_t)x * RGB_CHANNELS;
		for (uint32_t y = 0; y < in->rows; y++)
			_mm_storeu_si128((__m128i *)(to + y * out_stride),
				resize_group(&group, in->data + y * in->stride, pixel_bytes, taps));
	}
}

AVX512_INLINE void resize_sized(const struct filter *filter, const struct pixel_rows *in,
	uint8_t *out, size_t out_stride, int pixel_bytes)
{
	if (filter->taps == GROUP_TAPS)
		resize_block(filter, in, out, out_stride, pixel_bytes, GROUP_TAPS);
	else
		resize_block(filter, in, out, out_stride, pixel_bytes, TAPS_MOST);
}

AVX512 static void avx512_horizontal(
	const struct filter *filter, const struct pixel_rows *in, uint8_t *out, size_t out_stride)
{
	if (!is_regular(filter, in->pixel_bytes)) {
		resample_avx2_horizontal(filter, in, out, out_stride);
		return;
	}
	for (uint32_t y = 0; y < in->rows; y += BLOCK_ROWS) {
		const uint32_t left = in->rows - y;
		const struct pixel_rows block = {
			.data = in->data + y * in->stride,
			.stride = in->stride,
			.rows = left < BLOCK_ROWS ? left : BLOCK_ROWS,
			.pixel_bytes = in->pixel_bytes,
		};
		uint8_t *const to = out + y * out_stride;
		if (in->pixel_bytes == 4)
			resize_sized(filter, &block, to, out_stride, 4);
		else
			resize_sized(filter, &block, to, out_stride, 3);
	}
}

/* ---- vertical ----------------------------------------------------------------------------- */

AVX512_INLINE __m512i load_words(const uint8_t *at)
{
	return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)at));
}

AVX512_INLINE __m512i weight_pair(const int16_t *weights)
{
	int32_t pair;
	memcpy(&pair, weights, sizeof pair);
	return _mm512_set1_epi32(pair);
}

AVX512_INLINE void vertical_taps(const int16_t *weights, uint32_t taps, const uint8_t *rows,
	size_t stride, uint8_t *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += VERTICAL_BYTES) {
		__m512i low = _mm512_set1_epi32(ROUNDING);
		__m512i high = low;
		for (uint32_t k = 0; k < taps; k += 2) {
			const __m512i a = load_words(rows + k * stride + i);
			const __m512i b = load_words(rows + (k + 1) * stride + i);
			const __m512i pair = weight_pair(weights + k);
			low = _mm512_add_epi32(
				low, _mm512_madd_epi16(_mm512_unpacklo_epi16(a, b), pair));
			high = _mm512_add_epi32(
				high, _mm512_madd_epi16(_mm512_unpackhi_epi16(a, b), pair));
		}
		const __m512i words = _mm512_packs_epi32(
			_mm512_srli_epi32(low, FILTER_BITS), _mm512_srli_epi32(high, FILTER_BITS));
		_mm256_storeu_si256((__m256i *)(out + i), _mm512_cvtepi16_epi8(words));
	}
}

AVX512 static void avx512_vertical(const int16_t *weights, uint32_t taps, const uint8_t *rows,
	size_t stride, uint8_t *out, size_t bytes)
{
	if (taps == 2)
		vertical_taps(weights, 2, rows, stride, out, bytes);
	else if (taps == 4)
		vertical_taps(weights, 4, rows, stride, out, bytes);
	else
		vertical_taps(weights, taps, rows, stride, out, bytes);
}

const struct resample_kernels resample_avx512 = {
	.name = "avx512",
	.is_supported = avx512_is_supported,
	.horizontal = avx512_horizontal,
	.vertical = avx512_vertical,
	.store_float_chw = resample_avx2_float_chw,
	.store_float_hwc = resample_avx2_float_hwc,
	.store_byte_chw = resample_avx2_byte_chw,
	.store_byte_hwc = resample_avx2_byte_hwc,
	.finish = resample_avx2_finish,
};
