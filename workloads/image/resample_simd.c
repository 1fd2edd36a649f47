/* The resize loops for AVX2 and AVX-512; resample.h says what they do. */
#include "workloads/image/resample.h"

#include <immintrin.h>
#include <string.h>

/* AVX2.  Sums of two products of 16 bits (vpmaddwd) carry everything: pairs of neighbouring pixels of
 * a row going across, pairs of neighbouring rows going down. */

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline

enum {
	ROUNDING = FILTER_ONE / 2,
	GROUP_TAPS = 4,    /* input pixels taken at a time: 16 bytes of them */
	GROUP_OUT = 4,     /* output pixels packed together */
	STORE_PIXELS = 16, /* stored at a time: 48 bytes of RGB */
};

static bool avx2_is_supported(void)
{
	return __builtin_cpu_supports("avx2");
}

/* ---- AVX2: horizontal -------------------------------------------------------------------- */

/* From 16 bytes of pixels, pairs of one channel as 16-bit lanes: r0 r1 g0 g1 b0 b1 0 0. */
AVX2_INLINE __m256i avx2_pair_pattern(int first, int second)
{
	const char z = -1;
	const char a = (char)first;
	const char b = (char)second;
	const __m128i half = _mm_setr_epi8(a, z, b, z, (char)(a + 1), z, (char)(b + 1), z,
		(char)(a + 2), z, (char)(b + 2), z, z, z, z, z);
	return _mm256_broadcastsi128_si256(half);
}

AVX2_INLINE __m256i avx2_weight_pair(const int16_t *weights)
{
	int32_t pair;
	memcpy(&pair, weights, sizeof pair);
	return _mm256_set1_epi32(pair);
}

/* One output pixel of two rows, one row in each half: four sums (r g b 0), shifted to bytes. */
AVX2_INLINE __m256i avx2_pixel(const uint8_t *upper, const uint8_t *lower, const int16_t *weights,
	uint32_t taps, size_t pixel_bytes)
{
	const int step = (int)pixel_bytes;
	const __m256i front = avx2_pair_pattern(0, step);
	const __m256i back = avx2_pair_pattern(2 * step, 3 * step);
	__m256i sum = _mm256_set1_epi32(ROUNDING);
	for (uint32_t k = 0; k < taps; k += GROUP_TAPS) {
		const __m128i high = _mm_loadu_si128((const __m128i *)(upper + k * pixel_bytes));
		const __m128i low = _mm_loadu_si128((const __m128i *)(lower + k * pixel_bytes));
		const __m256i pixels =
			_mm256_inserti128_si256(_mm256_castsi128_si256(high), low, 1);
		sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, front),
						    avx2_weight_pair(weights + k)));
		sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, back),
						    avx2_weight_pair(weights + k + 2)));
	}
	return _mm256_srai_epi32(sum, FILTER_BITS);
}

/* Four output pixels of two rows as 12 bytes of RGB in each half. */
AVX2_INLINE __m256i avx2_pack(const __m256i sums[GROUP_OUT])
{
	const char z = -1;
	const __m256i compact = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, z, z, z, z));
	const __m256i words_0 = _mm256_packs_epi32(sums[0], sums[1]);
	const __m256i words_1 = _mm256_packs_epi32(sums[2], sums[3]);
	return _mm256_shuffle_epi8(_mm256_packus_epi16(words_0, words_1), compact);
}

AVX2_INLINE void avx2_rows(const struct filter *filter, const uint8_t *upper, const uint8_t *lower,
	uint8_t *upper_out, uint8_t *lower_out, size_t pixel_bytes, uint32_t taps)
{
	for (uint32_t x = 0; x < filter->size; x += GROUP_OUT) {
		__m256i sums[GROUP_OUT];
		for (uint32_t i = 0; i < GROUP_OUT; i++) {
			/* the last group repeats the last output */
			const uint32_t out = x + i < filter->size ? x + i : filter->size - 1;
			const size_t at = filter->first[out] * pixel_bytes;
			sums[i] = avx2_pixel(upper + at, lower + at,
				filter->weights + (size_t)out * taps, taps, pixel_bytes);
		}
		const __m256i rgb = avx2_pack(sums);
		const size_t to = (size_t)x * RGB_CHANNELS;
		_mm_storeu_si128((__m128i *)(upper_out + to), _mm256_castsi256_si128(rgb));
		_mm_storeu_si128((__m128i *)(lower_out + to), _mm256_extracti128_si256(rgb, 1));
	}
}

/* With the common numbers of taps as constants. */
AVX2_INLINE void avx2_sized(const struct filter *filter, const struct pixel_rows *in, uint8_t *out,
	size_t out_stride, size_t pixel_bytes)
{
	for (uint32_t y = 0; y < in->rows; y += 2) {
		const uint32_t next = y + 1 < in->rows ? y + 1 : y;
		const uint8_t *const upper = in->data + y * in->stride;
		const uint8_t *const lower = in->data + next * in->stride;
		uint8_t *const upper_out = out + y * out_stride;
		uint8_t *const lower_out = out + next * out_stride;
		if (filter->taps == GROUP_TAPS)
			avx2_rows(filter, upper, lower, upper_out, lower_out, pixel_bytes,
				GROUP_TAPS);
		else
			avx2_rows(filter, upper, lower, upper_out, lower_out, pixel_bytes,
				filter->taps);
	}
}

AVX2 static void avx2_horizontal(
	const struct filter *filter, const struct pixel_rows *in, uint8_t *out, size_t out_stride)
{
	if (in->pixel_bytes == 4)
		avx2_sized(filter, in, out, out_stride, 4);
	else
		avx2_sized(filter, in, out, out_stride, 3);
}

/* ---- AVX2: vertical ---------------------------------------------------------------------- */

enum { AVX2_VERTICAL_BYTES = 16 };

AVX2_INLINE __m256i avx2_load_words(const uint8_t *at)
{
	return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)at));
}

AVX2_INLINE void avx2_vertical_taps(const int16_t *weights, uint32_t taps, const uint8_t *rows,
	size_t stride, uint8_t *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += AVX2_VERTICAL_BYTES) {
		__m256i low = _mm256_set1_epi32(ROUNDING);
		__m256i high = low;
		for (uint32_t k = 0; k < taps; k += 2) {
			const __m256i a = avx2_load_words(rows + k * stride + i);
			const __m256i b = avx2_load_words(rows + (k + 1) * stride + i);
			const __m256i pair = avx2_weight_pair(weights + k);
			low = _mm256_add_epi32(
				low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), pair));
			high = _mm256_add_epi32(
				high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), pair));
		}
		const __m256i words = _mm256_packs_epi32(
			_mm256_srai_epi32(low, FILTER_BITS), _mm256_srai_epi32(high, FILTER_BITS));
		const __m128i packed = _mm_packus_epi16(
			_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
		_mm_storeu_si128((__m128i *)(out + i), packed);
	}
}

AVX2 static void avx2_vertical(const int16_t *weights, uint32_t taps, const uint8_t *rows,
	size_t stride, uint8_t *out, size_t bytes)
{
	if (taps == 2)
		avx2_vertical_taps(weights, 2, rows, stride, out, bytes);
	else if (taps == 4)
		avx2_vertical_taps(weights, 4, rows, stride, out, bytes);
	else
		avx2_vertical_taps(weights, taps, rows, stride, out, bytes);
}

/* ---- AVX2: store ------------------------------------------------------------------------- */

/* 16 pixels of RGB to 16 bytes of each channel. */
AVX2_INLINE void avx2_split_channels(const uint8_t *rgb, __m128i planes[RGB_CHANNELS])
{
	const char z = -1;
	const __m128i in0 = _mm_loadu_si128((const __m128i *)rgb);
	const __m128i in1 = _mm_loadu_si128((const __m128i *)(rgb + 16));
	const __m128i in2 = _mm_loadu_si128((const __m128i *)(rgb + 32));
	const __m128i r0 = _mm_setr_epi8(0, 3, 6, 9, 12, 15, z, z, z, z, z, z, z, z, z, z);
	const __m128i r1 = _mm_setr_epi8(z, z, z, z, z, z, 2, 5, 8, 11, 14, z, z, z, z, z);
	const __m128i r2 = _mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, z, 1, 4, 7, 10, 13);
	const __m128i g0 = _mm_setr_epi8(1, 4, 7, 10, 13, z, z, z, z, z, z, z, z, z, z, z);
	const __m128i g1 = _mm_setr_epi8(z, z, z, z, z, 0, 3, 6, 9, 12, 15, z, z, z, z, z);
	const __m128i g2 = _mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, z, 2, 5, 8, 11, 14);
	const __m128i b0 = _mm_setr_epi8(2, 5, 8, 11, 14, z, z, z, z, z, z, z, z, z, z, z);
	const __m128i b1 = _mm_setr_epi8(z, z, z, z, z, 1, 4, 7, 10, 13, z, z, z, z, z, z);
	const __m128i b2 = _mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, 0, 3, 6, 9, 12, 15);
	planes[0] = _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(in0, r0), _mm_shuffle_epi8(in1, r1)),
		_mm_shuffle_epi8(in2, r2));
	planes[1] = _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(in0, g0), _mm_shuffle_epi8(in1, g1)),
		_mm_shuffle_epi8(in2, g2));
	planes[2] = _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(in0, b0), _mm_shuffle_epi8(in1, b1)),
		_mm_shuffle_epi8(in2, b2));
}

AVX2_INLINE void avx2_store_floats(
	float *out, __m128i bytes, __m256 scale, __m256 bias, bool streams)
{
	const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
	const __m256 result = _mm256_add_ps(_mm256_mul_ps(values, scale), bias);
	if (streams)
		_mm256_stream_ps(out, result);
	else
		_mm256_storeu_ps(out, result);
}

AVX2_INLINE void avx2_float_chw_rows(
	const struct sample_row *row, const struct normalisation *normalisation, bool streams)
{
	const size_t plane = (size_t)row->size * row->size;
	float *const out = (float *)row->sample + (size_t)row->y * row->size;
	uint32_t x = 0;
	for (; x + STORE_PIXELS <= row->size; x += STORE_PIXELS) {
		__m128i planes[RGB_CHANNELS];
		avx2_split_channels(row->rgb + (size_t)x * RGB_CHANNELS, planes);
		for (uint32_t c = 0; c < RGB_CHANNELS; c++) {
			const __m256 scale = _mm256_set1_ps(normalisation->scale[c]);
			const __m256 bias = _mm256_set1_ps(normalisation->bias[c]);
			float *const to = out + c * plane + x;
			avx2_store_floats(to, planes[c], scale, bias, streams);
			avx2_store_floats(
				to + 8, _mm_srli_si128(planes[c], 8), scale, bias, streams);
		}
	}
	for (; x < row->size; x++)
		for (uint32_t c = 0; c < RGB_CHANNELS; c++)
			out[c * plane + x] =
				(float)row->rgb[x * RGB_CHANNELS + c] * normalisation->scale[c] +
				normalisation->bias[c];
}

AVX2 static void avx2_float_chw(
	const struct sample_row *row, const struct normalisation *normalisation)
{
	if (row->streams)
		avx2_float_chw_rows(row, normalisation, true);
	else
		avx2_float_chw_rows(row, normalisation, false);
}

/* Eight floats at a time: the channels come round after three vectors. */
AVX2_INLINE void avx2_float_hwc_rows(
	const struct sample_row *row, const struct normalisation *normalisation, bool streams)
{
	enum { LANES = 8, ROUND = LANES * RGB_CHANNELS };
	float scales[ROUND];
	float biases[ROUND];
	for (int i = 0; i < ROUND; i++) {
		scales[i] = normalisation->scale[i % RGB_CHANNELS];
		biases[i] = normalisation->bias[i % RGB_CHANNELS];
	}
	const size_t count = (size_t)row->size * RGB_CHANNELS;
	float *const out = (float *)row->sample + row->y * count;
	size_t i = 0;
	for (; i + ROUND <= count; i += ROUND)
		for (size_t j = 0; j < ROUND; j += LANES)
			avx2_store_floats(out + i + j,
				_mm_loadl_epi64((const __m128i *)(row->rgb + i + j)),
				_mm256_loadu_ps(scales + j), _mm256_loadu_ps(biases + j), streams);
	for (; i < count; i++)
		out[i] = (float)row->rgb[i] * scales[i % RGB_CHANNELS] + biases[i % RGB_CHANNELS];
}

AVX2 static void avx2_float_hwc(
	const struct sample_row *row, const struct normalisation *normalisation)
{
	if (row->streams)
		avx2_float_hwc_rows(row, normalisation, true);
	else
		avx2_float_hwc_rows(row, normalisation, false);
}

AVX2 static void avx2_byte_chw(
	const struct sample_row *row, const struct normalisation *normalisation)
{
	(void)normalisation;
	const size_t plane = (size_t)row->size * row->size;
	uint8_t *const out = (uint8_t *)row->sample + (size_t)row->y * row->size;
	uint32_t x = 0;
	for (; x + STORE_PIXELS <= row->size; x += STORE_PIXELS) {
		__m128i planes[RGB_CHANNELS];
		avx2_split_channels(row->rgb + (size_t)x * RGB_CHANNELS, planes);
		for (uint32_t c = 0; c < RGB_CHANNELS; c++)
			_mm_storeu_si128((__m128i *)(out + c * plane + x), planes[c]);
	}
	for (; x < row->size; x++)
		for (uint32_t c = 0; c < RGB_CHANNELS; c++)
			out[c * plane + x] = row->rgb[x * RGB_CHANNELS + c];
}

AVX2 static void avx2_byte_hwc(
	const struct sample_row *row, const struct normalisation *normalisation)
{
	(void)normalisation;
	const size_t bytes = (size_t)row->size * RGB_CHANNELS;
	memcpy((uint8_t *)row->sample + row->y * bytes, row->rgb, bytes);
}

static void avx2_finish(void)
{
	_mm_sfence();
}

const struct resample_kernels resample_avx2 = {
	.name = "avx2",
	.is_supported = avx2_is_supported,
	.horizontal = avx2_horizontal,
	.vertical = avx2_vertical,
	.store_float_chw = avx2_float_chw,
	.store_float_hwc = avx2_float_hwc,
	.store_byte_chw = avx2_byte_chw,
	.store_byte_hwc = avx2_byte_hwc,
	.finish = avx2_finish,
};

/* AVX-512 with byte permutation (VBMI: Ice Lake, Zen 4 and later).  Going across, four output pixels
 * at a time, one in each quarter of a vector, are gathered from 64 bytes of a row by one instruction,
 * and what is made ready for that serves a block of rows.  Storing is bound by memory and left to
 * AVX2. */

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))
#define AVX512_INLINE \
	__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"), always_inline)) static inline

enum {
	WINDOW_BYTES = 64,
	BLOCK_ROWS = 16, /* that stay in the first cache */
	TAPS_MOST = 8,
	AVX512_VERTICAL_BYTES = 32,
};

static bool avx512_is_supported(void)
{
	return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl");
}

/* ---- AVX-512: horizontal ----------------------------------------------------------------- */

/* Where the inputs of four outputs lie, and what they weigh. */
struct group {
	size_t base;   /* byte of a row where the window begins */
	__m512i front; /* of window bytes: pairs of pixels 0 and 1, r r g g b b - -, per output */
	__m512i back;  /* of pixels 2 and 3 */
	__m512i weights[TAPS_MOST / 2]; /* pairs, for each channel of each output */
};

/* First input of the outputs of a group: smallest and largest. */
static void avx512_group_range(
	const struct filter *filter, uint32_t x, uint32_t *low, uint32_t *high)
{
	const uint32_t a = filter->first[x];
	const uint32_t b = filter->first[x + GROUP_OUT - 1];
	*low = a < b ? a : b; /* a flip runs backwards */
	*high = a < b ? b : a;
}

/* Groups of four, and all of a group's inputs within a window. */
static bool avx512_is_regular(const struct filter *filter, size_t pixel_bytes)
{
	if (filter->taps > TAPS_MOST || filter->size % GROUP_OUT != 0)
		return false;
	for (uint32_t x = 0; x < filter->size; x += GROUP_OUT) {
		uint32_t low;
		uint32_t high;
		avx512_group_range(filter, x, &low, &high);
		if ((high - low + GROUP_TAPS) * pixel_bytes > WINDOW_BYTES)
			return false;
	}
	return true;
}

/* Dword `first` + quarter * `step` of `from` in all of each quarter. */
AVX512_INLINE __m512i avx512_spread(__m512i from, int first, int step)
{
	const __m512i quarter = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
	const __m512i index = _mm512_add_epi32(
		_mm512_mullo_epi32(quarter, _mm512_set1_epi32(step)), _mm512_set1_epi32(first));
	return _mm512_permutexvar_epi32(index, from);
}

/* Bytes of the pair of pixels `first` and `first` + 1 as 16-bit lanes; the high ones are masked. */
AVX512_INLINE __m512i avx512_pair_pattern(int first, int pixel_bytes)
{
	const int a = first * pixel_bytes;
	const int b = a + pixel_bytes;
	return _mm512_broadcast_i32x4(_mm_setr_epi16((short)a, (short)b, (short)(a + 1),
		(short)(b + 1), (short)(a + 2), (short)(b + 2), 0, 0));
}

AVX512_INLINE void avx512_prepare(struct group *group, const struct filter *filter, uint32_t x,
	int pixel_bytes, uint32_t taps)
{
	uint32_t low;
	uint32_t high;
	avx512_group_range(filter, x, &low, &high);
	group->base = (size_t)low * (size_t)pixel_bytes;
	const __m128i firsts = _mm_loadu_si128((const __m128i *)(filter->first + x));
	const __m128i offsets = _mm_mullo_epi32(_mm_sub_epi32(firsts, _mm_set1_epi32((int)low)),
		_mm_set1_epi32(pixel_bytes * 0x10001)); /* in both halves of each dword */
	const __m512i shifts = avx512_spread(_mm512_castsi128_si512(offsets), 0, 1);
	group->front = _mm512_add_epi16(avx512_pair_pattern(0, pixel_bytes), shifts);
	group->back = _mm512_add_epi16(avx512_pair_pattern(2, pixel_bytes), shifts);
	const int16_t *const weights = filter->weights + (size_t)x * taps;
	const __m512i all =
		taps == GROUP_TAPS
			? _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)weights))
			: _mm512_loadu_si512(weights);
	for (uint32_t pair = 0; pair < taps / 2; pair++)
		group->weights[pair] = avx512_spread(all, (int)pair, (int)taps / 2);
}

/* Four outputs of one row as 12 bytes of RGB. */
AVX512_INLINE __m128i avx512_resize_group(
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

AVX512_INLINE void avx512_resize_block(const struct filter *filter, const struct pixel_rows *in,
	uint8_t *out, size_t out_stride, int pixel_bytes, uint32_t taps)
{
	for (uint32_t x = 0; x < filter->size; x += GROUP_OUT) {
		struct group group;
		avx512_prepare(&group, filter, x, pixel_bytes, taps);
		uint8_t *const to = out + (size_t)x * RGB_CHANNELS;
		for (uint32_t y = 0; y < in->rows; y++)
			_mm_storeu_si128((__m128i *)(to + y * out_stride),
				avx512_resize_group(
					&group, in->data + y * in->stride, pixel_bytes, taps));
	}
}

AVX512_INLINE void avx512_resize_sized(const struct filter *filter, const struct pixel_rows *in,
	uint8_t *out, size_t out_stride, int pixel_bytes)
{
	if (filter->taps == GROUP_TAPS)
		avx512_resize_block(filter, in, out, out_stride, pixel_bytes, GROUP_TAPS);
	else
		avx512_resize_block(filter, in, out, out_stride, pixel_bytes, TAPS_MOST);
}

AVX512 static void avx512_horizontal(
	const struct filter *filter, const struct pixel_rows *in, uint8_t *out, size_t out_stride)
{
	if (!avx512_is_regular(filter, in->pixel_bytes)) {
		avx2_horizontal(filter, in, out, out_stride);
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
			avx512_resize_sized(filter, &block, to, out_stride, 4);
		else
			avx512_resize_sized(filter, &block, to, out_stride, 3);
	}
}

/* ---- AVX-512: vertical ------------------------------------------------------------------- */

AVX512_INLINE __m512i avx512_load_words(const uint8_t *at)
{
	return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)at));
}

AVX512_INLINE __m512i avx512_weight_pair(const int16_t *weights)
{
	int32_t pair;
	memcpy(&pair, weights, sizeof pair);
	return _mm512_set1_epi32(pair);
}

AVX512_INLINE void avx512_vertical_taps(const int16_t *weights, uint32_t taps, const uint8_t *rows,
	size_t stride, uint8_t *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += AVX512_VERTICAL_BYTES) {
		__m512i low = _mm512_set1_epi32(ROUNDING);
		__m512i high = low;
		for (uint32_t k = 0; k < taps; k += 2) {
			const __m512i a = avx512_load_words(rows + k * stride + i);
			const __m512i b = avx512_load_words(rows + (k + 1) * stride + i);
			const __m512i pair = avx512_weight_pair(weights + k);
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
		avx512_vertical_taps(weights, 2, rows, stride, out, bytes);
	else if (taps == 4)
		avx512_vertical_taps(weights, 4, rows, stride, out, bytes);
	else
		avx512_vertical_taps(weights, taps, rows, stride, out, bytes);
}

const struct resample_kernels resample_avx512 = {
	.name = "avx512",
	.is_supported = avx512_is_supported,
	.horizontal = avx512_horizontal,
	.vertical = avx512_vertical,
	.store_float_chw = avx2_float_chw,
	.store_float_hwc = avx2_float_hwc,
	.store_byte_chw = avx2_byte_chw,
	.store_byte_hwc = avx2_byte_hwc,
	.finish = avx2_finish,
};
