/* PNG: chunks, header, and the decoder without libpng: the IDAT chunks are joined and inflated by ISA-L in one call whose output
 * ends with the region's last row, then unfiltered in place up to the region's last column.  RGB
 * and RGBA are handed over where they lie.  Interlaced pictures and those of under 8 bits are rare
 * and left to libpng.
 *
 * ISA-L was chosen by measurement (tests/bench/bench_decode.c): it inflates photographs 1.25 times
 * as fast as libdeflate, and can stop early, which libdeflate cannot. */
#include "workloads/image/codec.h"
#include "workloads/image/png.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <immintrin.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

enum {
	RGB_BYTES = 3,
	ZLIB_HEADER_BYTES = 2,
	ZLIB_METHOD_DEFLATE = 8,
	ZLIB_WINDOW_MAX = 7,
	ZLIB_HAS_DICTIONARY = 0x20,
	SIGNATURE_BYTES = 8,
	CHUNK_OVERHEAD_BYTES = 12, /* length, type, CRC */
	CHUNK_DATA_AT = 8,
	IHDR_BYTES = 13,
	HEADER_BYTES = 33, /* signature; length, type, data and CRC of IHDR */
	DIMENSION_MAX = 0x7fffffff,
	PALETTE_ENTRIES = 256,
};

/* ---- chunks ------------------------------------------------------------------------------- */

struct png_chunk {
	const uint8_t *type; /* 4 letters */
	const uint8_t *data;
	uint32_t size;
};

static bool png_chunk_is(const struct png_chunk *chunk, const char *type)
{
	return memcmp(chunk->type, type, 4) == 0;
}

static bool png_chunk_is_critical(const struct png_chunk *chunk)
{
	return (chunk->type[0] & 0x20) == 0;
}

static bool chunk_type_is_valid(const uint8_t *type)
{
	for (int i = 0; i < 4; i++) {
		const uint8_t lower = type[i] | 0x20;
		if (lower < 'a' || lower > 'z')
			return false;
	}
	return true;
}

/* The chunk at *at, which moves behind it. */
static int png_next_chunk(
	const uint8_t *bytes, size_t size, size_t *at, struct png_chunk *chunk, struct error *err)
{
	if (size - *at < CHUNK_OVERHEAD_BYTES)
		return error_set(err, -EINVAL, "png is truncated");
	chunk->size = bytes_be32(bytes + *at);
	chunk->type = bytes + *at + 4;
	chunk->data = bytes + *at + CHUNK_DATA_AT;
	if (chunk->size > size - *at - CHUNK_OVERHEAD_BYTES)
		return error_set(err, -EINVAL, "png is truncated");
	if (!chunk_type_is_valid(chunk->type))
		return error_set(err, -EINVAL, "png chunk at offset %zu has no valid type", *at);
	const uint32_t crc = crc32_gzip_refl(0, chunk->type, (uint64_t)chunk->size + 4);
	if (crc != bytes_be32(chunk->data + chunk->size))
		return error_set(err, -EINVAL, "png chunk at offset %zu has a wrong crc", *at);
	*at += (size_t)chunk->size + CHUNK_OVERHEAD_BYTES;
	return 0;
}

static bool png_depth_is_allowed(uint8_t color_type, uint8_t depth)
{
	switch (color_type) {
	case PNG_KIND_GRAY:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
	case PNG_KIND_INDEXED:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8;
	case PNG_KIND_RGB:
	case PNG_KIND_GRAY_ALPHA:
	case PNG_KIND_RGBA:
		return depth == 8 || depth == 16;
	default:
		return false;
	}
}

static int png_read_ihdr(
	struct png_chunks *chunks, const struct png_chunk *chunk, struct error *err)
{
	if (!png_chunk_is(chunk, "IHDR") || chunk->size != IHDR_BYTES)
		return error_set(err, -EINVAL, "png: the first chunk is not IHDR");
	chunks->width = bytes_be32(chunk->data);
	chunks->height = bytes_be32(chunk->data + 4);
	chunks->bit_depth = chunk->data[8];
	chunks->color_type = chunk->data[9];
	chunks->interlace = chunk->data[12];
	if (!png_depth_is_allowed(chunks->color_type, chunks->bit_depth))
		return error_set(err, -EINVAL, "png: colour type %u with %u bits is not valid",
			chunks->color_type, chunks->bit_depth);
	if (chunk->data[10] != 0 || chunk->data[11] != 0 || chunks->interlace > 1)
		return error_set(
			err, -EINVAL, "png: unknown compression, filter or interlace method");
	return image_check_size(chunks->width, chunks->height, err);
}

static int png_read_palette(
	struct png_chunks *chunks, const struct png_chunk *chunk, struct error *err)
{
	const uint32_t entries = chunk->size / RGB_BYTES;
	if (chunks->palette || chunks->idat_at)
		return error_set(err, -EINVAL, "png: misplaced palette");
	if (entries == 0 || entries > PALETTE_ENTRIES || chunk->size % RGB_BYTES)
		return error_set(
			err, -EINVAL, "png: invalid palette size of %u bytes", chunk->size);
	if (chunks->color_type == PNG_KIND_GRAY || chunks->color_type == PNG_KIND_GRAY_ALPHA)
		return error_set(err, -EINVAL, "png: greyscale picture with a palette");
	if (chunks->color_type == PNG_KIND_INDEXED && entries > 1U << chunks->bit_depth)
		return error_set(err, -EINVAL, "png: palette of %u colours for pixels of %u bits",
			entries, chunks->bit_depth);
	chunks->palette = chunk->data;
	chunks->palette_entries = entries;
	return 0;
}

/* is_next: the chunk before this one was an IDAT too. */
static int png_read_idat(
	struct png_chunks *chunks, const struct png_chunk *chunk, bool is_next, struct error *err)
{
	if (chunks->color_type == PNG_KIND_INDEXED && !chunks->palette)
		return error_set(err, -EINVAL, "png: the palette is missing");
	if (chunks->idat_at && !is_next)
		return error_set(err, -EINVAL, "png: the image data is not contiguous");
	if (!chunks->idat_at)
		chunks->idat_at = (size_t)(chunk->data - chunks->bytes) - CHUNK_DATA_AT;
	chunks->idat_bytes += chunk->size;
	return 0;
}

static int png_read_chunk(struct png_chunks *chunks, const struct png_chunk *chunk,
	bool follows_data, struct error *err)
{
	if (png_chunk_is(chunk, "IDAT"))
		return png_read_idat(chunks, chunk, follows_data, err);
	if (png_chunk_is(chunk, "PLTE"))
		return png_read_palette(chunks, chunk, err);
	if (png_chunk_is_critical(chunk))
		return error_set(err, -EINVAL, "png: unknown or repeated critical chunk");
	return 0;
}

/* A small file that claims a large picture is refused before anything is allocated for it. */
static int png_check_room(const struct png_chunks *chunks, struct error *err)
{
	const uint64_t pixel_bytes = (uint64_t)png_chunks_row_bytes(chunks) * chunks->height;
	if (pixel_bytes / INFLATE_RATIO_MAX > chunks->idat_bytes)
		return error_set(err, -EINVAL, "png: %zu bytes of data cannot hold %u x %u pixels",
			chunks->idat_bytes, chunks->width, chunks->height);
	if (chunks->idat_bytes > UINT32_MAX)
		return error_set(err, -EINVAL, "png: larger than 4 GiB");
	return 0;
}

int png_chunks_read(struct png_chunks *chunks, const void *bytes, size_t size, struct error *err)
{
	*chunks = (struct png_chunks){.bytes = bytes};
	size_t at = SIGNATURE_BYTES;
	struct png_chunk chunk = {0};
	if (size < SIGNATURE_BYTES)
		return error_set(err, -EINVAL, "png is truncated");
	int result = png_next_chunk(bytes, size, &at, &chunk, err);
	if (!result)
		result = png_read_ihdr(chunks, &chunk, err);
	bool follows_data = false;
	while (!result) {
		result = png_next_chunk(bytes, size, &at, &chunk, err);
		if (result || png_chunk_is(&chunk, "IEND"))
			break;
		result = png_read_chunk(chunks, &chunk, follows_data, err);
		follows_data = png_chunk_is(&chunk, "IDAT");
	}
	if (!result && !chunks->idat_at)
		return error_set(err, -EINVAL, "png: no image data");
	return result ? result : png_check_room(chunks, err);
}

uint32_t png_chunks_channels(const struct png_chunks *chunks)
{
	switch (chunks->color_type) {
	case PNG_KIND_RGB:
		return 3;
	case PNG_KIND_GRAY_ALPHA:
		return 2;
	case PNG_KIND_RGBA:
		return 4;
	default:
		return 1;
	}
}

size_t png_chunks_row_bytes(const struct png_chunks *chunks)
{
	const uint64_t bits =
		(uint64_t)chunks->width * png_chunks_channels(chunks) * chunks->bit_depth;
	return (bits + 7) / 8;
}

void png_chunks_join(const struct png_chunks *chunks, uint8_t *out)
{
	const uint8_t *chunk = chunks->bytes + chunks->idat_at;
	for (size_t done = 0; done < chunks->idat_bytes;) {
		const uint32_t size = bytes_be32(chunk);
		memcpy(out + done, chunk + CHUNK_DATA_AT, size);
		done += size;
		chunk += (size_t)size + CHUNK_OVERHEAD_BYTES;
	}
}

/* ---- header: a scan has no more than the beginning of a file ------------------------------- */

static bool png_sniff(const uint8_t *bytes, size_t size)
{
	return size >= SIGNATURE_BYTES && memcmp(bytes, "\x89PNG\r\n\x1a\n", SIGNATURE_BYTES) == 0;
}

/* By bit depth and colour type. */
static const char *png_layout(uint8_t depth, uint8_t color_type)
{
	static const char *const layouts[] = {
		"gray", NULL, "rgb", "palette", "graya", NULL, "rgba"};
	if (color_type == 0 && depth == 16)
		return "gray16";
	return color_type < sizeof layouts / sizeof *layouts ? layouts[color_type] : NULL;
}

static int png_read_info(
	const uint8_t *bytes, size_t size, struct image_info *info, struct error *err)
{
	if (size < HEADER_BYTES)
		return error_set(err, -EAGAIN, "png header is not complete");
	if (memcmp(bytes + 12, "IHDR", 4) != 0)
		return error_set(err, -EINVAL, "png: the first chunk is not IHDR");
	if (bytes_be32(bytes + 8) != IHDR_BYTES || crc32_gzip_refl(0, bytes + 12, 4 + IHDR_BYTES) !=
							   bytes_be32(bytes + 16 + IHDR_BYTES))
		return error_set(err, -EINVAL, "png: damaged IHDR chunk");
	info->width = bytes_be32(bytes + 16);
	info->height = bytes_be32(bytes + 20);
	if (info->width > DIMENSION_MAX || info->height > DIMENSION_MAX)
		return error_set(err, -EINVAL, "png dimension above 2^31-1");
	info->layout = png_layout(bytes[24], bytes[25]);
	const struct png_chunks chunks = {
		.width = info->width, .bit_depth = bytes[24], .color_type = bytes[25]};
	info->least_bytes = (png_chunks_row_bytes(&chunks) + 1) * info->height / INFLATE_RATIO_MAX;
	return 0;
}

/* ---- row filters ---------------------------------------------------------------------------
 *
 * The plain code follows the standard; the SIMD code holds one pixel in a register as 16-bit lanes
 * and is built for a short chain from a pixel to the next, which is all that limits it. */

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

/* With AVX2. */

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

/* Several rows at once. */

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

/* ---- decoding: life ----------------------------------------------------------------------- */

struct png_fast {
	struct inflate_state *inflate;
	struct png_chunks chunks;
	size_t size; /* of the file */
	struct region region;
	bool is_done;
	struct scratch compressed; /* the joined IDAT data */
	struct scratch filtered;   /* rows with their filter bytes */
	struct scratch expanded;   /* RGB rows of pictures that are stored otherwise */
	void *libpng;              /* state of codec_png_libpng */
	bool is_delegated;         /* to libpng: this picture */
};

static void png_close(void *state)
{
	struct png_fast *const png = state;
	free(png->inflate);
	png->inflate = NULL;
	scratch_release(&png->compressed);
	scratch_release(&png->filtered);
	scratch_release(&png->expanded);
	if (png->libpng)
		codec_png_libpng.close(png->libpng);
	free(png->libpng);
	png->libpng = NULL;
}

/* Rows of RGB with their filter bytes. */
static uint64_t png_filtered_bytes(const struct image_extent *extent)
{
	return extent->pixels * RGB_BYTES + extent->height;
}

/* A picture that does not compress is a little larger than its rows. */
static uint64_t png_compressed_bytes(const struct image_extent *extent)
{
	const uint64_t rows = png_filtered_bytes(extent);
	return rows + rows / 1024 + 1024;
}

static uint64_t png_scratch_bytes(const struct image_extent *extent)
{
	return png_compressed_bytes(extent) + png_filtered_bytes(extent) +
	       sizeof(struct inflate_state) + codec_png_libpng.state_bytes +
	       codec_png_libpng.scratch_bytes(extent);
}

static int png_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct png_fast *const png = state;
	png->inflate = calloc(1, sizeof *png->inflate);
	png->libpng = calloc(1, codec_png_libpng.state_bytes);
	if (!png->inflate || !png->libpng)
		return error_set(err, -ENOMEM, "out of memory for the png decoder");
	int result = codec_png_libpng.open(png->libpng, options, err);
	if (!result)
		result = scratch_reserve(
			&png->compressed, png_compressed_bytes(&options->extent), err);
	if (!result)
		result = scratch_reserve(&png->filtered, png_filtered_bytes(&options->extent), err);
	return result;
}

static bool png_is_fast(const struct png_chunks *chunks)
{
	return chunks->bit_depth >= 8 && chunks->interlace == 0;
}

static int png_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct png_fast *const png = state;
	const int result = png_chunks_read(&png->chunks, bytes, size, err);
	if (result)
		return result;
	png->size = size;
	png->is_delegated = !png_is_fast(&png->chunks);
	if (png->is_delegated)
		return codec_png_libpng.begin(png->libpng, bytes, size, info, err);
	*info = (struct image_info){.width = png->chunks.width, .height = png->chunks.height};
	return 0;
}

/* ---- decoding: inflate -------------------------------------------------------------------- */

static int png_check_zlib(const uint8_t *data, size_t size, struct error *err)
{
	if (size < ZLIB_HEADER_BYTES)
		return error_set(err, -EINVAL, "png: no compressed data");
	const unsigned method = data[0] & 0x0f;
	const unsigned window = data[0] >> 4;
	if ((data[0] * 256U + data[1]) % 31 != 0 || method != ZLIB_METHOD_DEFLATE ||
		window > ZLIB_WINDOW_MAX || (data[1] & ZLIB_HAS_DICTIONARY))
		return error_set(err, -EINVAL, "png: bad zlib header");
	return 0;
}

/* Fills png->filtered with exactly `wanted` bytes.  The Adler-32 sum is left alone: the chunks'
 * CRCs cover the same bytes. */
static int png_inflate(struct png_fast *png, size_t wanted, struct error *err)
{
	const size_t size = png->chunks.idat_bytes;
	int result = scratch_reserve(&png->compressed, size, err);
	if (!result)
		result = scratch_reserve(&png->filtered, wanted, err);
	if (result)
		return result;
	uint64_t shown_ns = timeline_mark();
	png_chunks_join(&png->chunks, png->compressed.data);
	shown_ns = timeline_end(TIMELINE_JOIN, shown_ns, 0);
	result = png_check_zlib(png->compressed.data, size, err);
	if (result)
		return result;
	isal_inflate_init(png->inflate);
	png->inflate->next_in = png->compressed.data + ZLIB_HEADER_BYTES;
	png->inflate->avail_in = (uint32_t)(size - ZLIB_HEADER_BYTES);
	png->inflate->next_out = png->filtered.data;
	png->inflate->avail_out = (uint32_t)wanted;
	const int status = isal_inflate_stateless(png->inflate);
	(void)timeline_end(TIMELINE_INFLATE, shown_ns, 0);
	/* after an error avail_out is not to be trusted */
	if (status < 0)
		return error_set(err, -EINVAL, "png: bad compressed data");
	if (png->inflate->avail_out > 0)
		return error_set(err, -EINVAL, "png: not enough compressed data");
	return 0;
}

static int png_decode_rows(struct png_fast *png, struct error *err)
{
	const struct png_chunks *const chunks = &png->chunks;
	const size_t pixel_bytes = png_chunks_channels(chunks) * chunks->bit_depth / 8;
	const size_t row_bytes = png_chunks_row_bytes(chunks);
	const size_t rows = (size_t)png->region.y + png->region.height;
	const int result = png_inflate(png, rows * (row_bytes + 1), err);
	if (result)
		return result;
	const struct png_rows filtered = {
		.data = png->filtered.data,
		.rows = rows,
		.row_bytes = row_bytes,
		.used_bytes = ((size_t)png->region.x + png->region.width) * pixel_bytes,
		.pixel_bytes = pixel_bytes,
	};
	const uint64_t shown_ns = timeline_mark();
	const bool is_whole = png_unfilter_fast(&filtered) == rows;
	(void)timeline_end(TIMELINE_UNFILTER, shown_ns, 0);
	return is_whole ? 0 : error_set(err, -EINVAL, "png: unknown row filter");
}

/* ---- decoding: to RGB --------------------------------------------------------------------- */

struct palette {
	uint8_t colors[PALETTE_ENTRIES][RGB_BYTES];
};

static void png_expand_palette(
	const uint8_t *from, uint8_t *to, size_t count, const struct palette *palette)
{
	for (size_t i = 0; i < count; i++, to += RGB_BYTES)
		memcpy(to, palette->colors[from[i]], RGB_BYTES);
}

/* step: from a pixel to the next; channel: from a colour to the next, 0 for grey.  Of 16 bits the
 * upper 8 come first, and count. */
static void png_expand_channels(
	const uint8_t *from, uint8_t *to, size_t count, size_t step, size_t channel)
{
	for (size_t i = 0; i < count; i++, from += step, to += RGB_BYTES)
		for (size_t c = 0; c < RGB_BYTES; c++)
			to[c] = from[c * channel];
}

/* Colours beyond the end of a palette are black. */
static void png_copy_palette(const struct png_chunks *chunks, struct palette *palette)
{
	*palette = (struct palette){0};
	if (chunks->palette)
		memcpy(palette->colors, chunks->palette,
			(size_t)chunks->palette_entries * RGB_BYTES);
}

static int png_expand_rows(struct png_fast *png, struct strip *strip, struct error *err)
{
	const struct png_chunks *const chunks = &png->chunks;
	const size_t stride = (size_t)strip->width * RGB_BYTES;
	const int result = scratch_reserve(&png->expanded, stride * strip->rows, err);
	if (result)
		return result;
	const size_t sample = chunks->bit_depth / 8;
	const bool is_gray =
		chunks->color_type == PNG_KIND_GRAY || chunks->color_type == PNG_KIND_GRAY_ALPHA;
	struct palette palette;
	png_copy_palette(chunks, &palette);
	for (size_t y = 0; y < strip->rows; y++) {
		const uint8_t *const from = strip->pixels + y * strip->stride;
		uint8_t *const to = png->expanded.data + y * stride;
		if (chunks->color_type == PNG_KIND_INDEXED)
			png_expand_palette(from, to, strip->width, &palette);
		else
			png_expand_channels(
				from, to, strip->width, strip->pixel_bytes, is_gray ? 0 : sample);
	}
	strip->pixels = png->expanded.data;
	strip->stride = stride;
	strip->pixel_bytes = RGB_BYTES;
	return 0;
}

static bool png_is_rgb_in_place(const struct png_chunks *chunks)
{
	return chunks->bit_depth == 8 &&
	       (chunks->color_type == PNG_KIND_RGB || chunks->color_type == PNG_KIND_RGBA);
}

/* ---- decoding: rows ----------------------------------------------------------------------- */

static int png_select(void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	struct png_fast *const png = state;
	png->region = *region;
	png->is_done = false;
	return png->is_delegated ? codec_png_libpng.select(png->libpng, region, shrink, err) : 0;
}

/* Damaged data goes to libpng for the verdict: its inflate takes some streams that ISA-L refuses, such
 * as a bad code behind the last row that is wanted.  So both decoders refuse the same files. */
static int png_delegate_damaged(struct png_fast *png, struct strip *strip, struct error *err)
{
	struct image_info info;
	png->is_delegated = true;
	int result = codec_png_libpng.begin(png->libpng, png->chunks.bytes, png->size, &info, err);
	if (!result)
		result = codec_png_libpng.select(png->libpng, &png->region, 1, err);
	return result ? result : codec_png_libpng.next(png->libpng, strip, err);
}

static int png_next(void *state, struct strip *strip, struct error *err)
{
	struct png_fast *const png = state;
	if (png->is_delegated)
		return codec_png_libpng.next(png->libpng, strip, err);
	if (png->is_done)
		return 0;
	png->is_done = true;
	int result = png_decode_rows(png, err);
	if (result == -EINVAL)
		return png_delegate_damaged(png, strip, err);
	if (result)
		return result;
	const struct png_chunks *const chunks = &png->chunks;
	const size_t stride = png_chunks_row_bytes(chunks) + 1;
	const uint32_t pixel_bytes = png_chunks_channels(chunks) * chunks->bit_depth / 8;
	*strip = (struct strip){
		.pixels = png->filtered.data + png->region.y * stride + 1 +
			  (size_t)png->region.x * pixel_bytes,
		.stride = stride,
		.x = png->region.x,
		.width = png->region.width,
		.y = png->region.y,
		.rows = png->region.height,
		.pixel_bytes = pixel_bytes,
	};
	if (!png_is_rgb_in_place(chunks)) {
		const uint64_t shown_ns = timeline_mark();
		result = png_expand_rows(png, strip, err);
		(void)timeline_end(TIMELINE_EXPAND, shown_ns, 0);
	}
	return result ? result : 1;
}

static bool png_is_chosen(const struct config *config)
{
	return config_integer(config, KEY_CODEC_PNG) == CODEC_PNG_FAST;
}

const struct codec_ops codec_png = {
	.name = "png-fast",
	.summary = "ISA-L inflate and SIMD unfiltering, stops at the crop's last row",
	.endings = {"png"},
	.sniff = png_sniff,
	.read_info = png_read_info,
	.state_bytes = sizeof(struct png_fast),
	.shows_parts = true,
	.open = png_open,
	.close = png_close,
	.scratch_bytes = png_scratch_bytes,
	.begin = png_begin,
	.select = png_select,
	.next = png_next,
	.other = &codec_png_libpng,
	.is_chosen = png_is_chosen,
	.encoder = &encoder_png,
};
