/* PNG without libpng: the IDAT chunks are joined and inflated by ISA-L in one call whose output
 * ends with the region's last row, then unfiltered in place up to the region's last column.  RGB
 * and RGBA are handed over where they lie.  Interlaced pictures and those of under 8 bits are rare
 * and left to libpng.
 *
 * ISA-L was chosen by measurement (tests/bench/bench_decode.c): it inflates photographs 1.25 times
 * as fast as libdeflate, and can stop early, which libdeflate cannot. */
#include "workloads/image/decoder.h"
#include "workloads/image/png_chunks.h"
#include "workloads/image/png_unfilter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/igzip_lib.h>

enum {
	RGB_BYTES = 3,
	ZLIB_HEADER_BYTES = 2,
	ZLIB_METHOD_DEFLATE = 8,
	ZLIB_WINDOW_MAX = 7,
	ZLIB_HAS_DICTIONARY = 0x20,
	PALETTE_ENTRIES = 256,
};

struct png_fast {
	struct inflate_state *inflate;
	struct png_chunks chunks;
	size_t size; /* of the file */
	struct region region;
	bool is_done;
	struct scratch compressed; /* the joined IDAT data */
	struct scratch filtered;   /* rows with their filter bytes */
	struct scratch expanded;   /* RGB rows of pictures that are stored otherwise */
	void *libpng;              /* state of decoder_png_libpng */
	bool is_delegated;         /* to libpng: this picture */
};

static void fast_close(void *state)
{
	struct png_fast *const png = state;
	free(png->inflate);
	png->inflate = NULL;
	scratch_release(&png->compressed);
	scratch_release(&png->filtered);
	scratch_release(&png->expanded);
	if (png->libpng)
		decoder_png_libpng.close(png->libpng);
	free(png->libpng);
	png->libpng = NULL;
}

/* Rows of RGB with their filter bytes. */
static uint64_t filtered_bytes(const struct image_extent *extent)
{
	return extent->pixels * RGB_BYTES + extent->height;
}

/* A picture that does not compress is a little larger than its rows. */
static uint64_t compressed_bytes(const struct image_extent *extent)
{
	const uint64_t rows = filtered_bytes(extent);
	return rows + rows / 1024 + 1024;
}

static uint64_t fast_scratch_bytes(const struct image_extent *extent)
{
	return compressed_bytes(extent) + filtered_bytes(extent) + sizeof(struct inflate_state) +
	       decoder_png_libpng.state_bytes + decoder_png_libpng.scratch_bytes(extent);
}

static int fast_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct png_fast *const png = state;
	png->inflate = calloc(1, sizeof *png->inflate);
	png->libpng = calloc(1, decoder_png_libpng.state_bytes);
	if (!png->inflate || !png->libpng)
		return error_set(err, -ENOMEM, "no memory for the png decoder");
	int result = decoder_png_libpng.open(png->libpng, options, err);
	if (!result)
		result = scratch_reserve(&png->compressed, compressed_bytes(&options->extent), err);
	if (!result)
		result = scratch_reserve(&png->filtered, filtered_bytes(&options->extent), err);
	return result;
}

static bool is_fast(const struct png_chunks *chunks)
{
	return chunks->bit_depth >= 8 && chunks->interlace == 0;
}

static int fast_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct png_fast *const png = state;
	const int result = png_chunks_read(&png->chunks, bytes, size, err);
	if (result)
		return result;
	png->size = size;
	png->is_delegated = !is_fast(&png->chunks);
	if (png->is_delegated)
		return decoder_png_libpng.begin(png->libpng, bytes, size, info, err);
	*info = (struct image_info){.format = IMAGE_FORMAT_PNG,
		.width = png->chunks.width,
		.height = png->chunks.height};
	return 0;
}

/* ---- inflate ------------------------------------------------------------------------------ */

static int check_zlib_header(const uint8_t *data, size_t size, struct error *err)
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
static int inflate_rows(struct png_fast *png, size_t wanted, struct error *err)
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
	result = check_zlib_header(png->compressed.data, size, err);
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

static int decode_rows(struct png_fast *png, struct error *err)
{
	const struct png_chunks *const chunks = &png->chunks;
	const size_t pixel_bytes = png_chunks_channels(chunks) * chunks->bit_depth / 8;
	const size_t row_bytes = png_chunks_row_bytes(chunks);
	const size_t rows = (size_t)png->region.y + png->region.height;
	const int result = inflate_rows(png, rows * (row_bytes + 1), err);
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

/* ---- to RGB ------------------------------------------------------------------------------- */

struct palette {
	uint8_t colors[PALETTE_ENTRIES][RGB_BYTES];
};

static void expand_palette(
	const uint8_t *from, uint8_t *to, size_t count, const struct palette *palette)
{
	for (size_t i = 0; i < count; i++, to += RGB_BYTES)
		memcpy(to, palette->colors[from[i]], RGB_BYTES);
}

/* step: from a pixel to the next; channel: from a colour to the next, 0 for grey.  Of 16 bits the
 * upper 8 come first, and count. */
static void expand_channels(
	const uint8_t *from, uint8_t *to, size_t count, size_t step, size_t channel)
{
	for (size_t i = 0; i < count; i++, from += step, to += RGB_BYTES)
		for (size_t c = 0; c < RGB_BYTES; c++)
			to[c] = from[c * channel];
}

/* Colours beyond the end of a palette are black. */
static void copy_palette(const struct png_chunks *chunks, struct palette *palette)
{
	*palette = (struct palette){0};
	if (chunks->palette)
		memcpy(palette->colors, chunks->palette,
			(size_t)chunks->palette_entries * RGB_BYTES);
}

static int expand_rows(struct png_fast *png, struct strip *strip, struct error *err)
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
	copy_palette(chunks, &palette);
	for (size_t y = 0; y < strip->rows; y++) {
		const uint8_t *const from = strip->pixels + y * strip->stride;
		uint8_t *const to = png->expanded.data + y * stride;
		if (chunks->color_type == PNG_KIND_INDEXED)
			expand_palette(from, to, strip->width, &palette);
		else
			expand_channels(
				from, to, strip->width, strip->pixel_bytes, is_gray ? 0 : sample);
	}
	strip->pixels = png->expanded.data;
	strip->stride = stride;
	strip->pixel_bytes = RGB_BYTES;
	return 0;
}

static bool is_rgb_in_place(const struct png_chunks *chunks)
{
	return chunks->bit_depth == 8 &&
	       (chunks->color_type == PNG_KIND_RGB || chunks->color_type == PNG_KIND_RGBA);
}

/* ---- rows --------------------------------------------------------------------------------- */

static int fast_select(void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	struct png_fast *const png = state;
	png->region = *region;
	png->is_done = false;
	return png->is_delegated ? decoder_png_libpng.select(png->libpng, region, shrink, err) : 0;
}

/* Damaged data goes to libpng for the verdict: its inflate takes some streams that ISA-L refuses, such
 * as a bad code behind the last row that is wanted.  So both decoders refuse the same files. */
static int delegate_damaged(struct png_fast *png, struct strip *strip, struct error *err)
{
	struct image_info info;
	png->is_delegated = true;
	int result =
		decoder_png_libpng.begin(png->libpng, png->chunks.bytes, png->size, &info, err);
	if (!result)
		result = decoder_png_libpng.select(png->libpng, &png->region, 1, err);
	return result ? result : decoder_png_libpng.next(png->libpng, strip, err);
}

static int fast_next(void *state, struct strip *strip, struct error *err)
{
	struct png_fast *const png = state;
	if (png->is_delegated)
		return decoder_png_libpng.next(png->libpng, strip, err);
	if (png->is_done)
		return 0;
	png->is_done = true;
	int result = decode_rows(png, err);
	if (result == -EINVAL)
		return delegate_damaged(png, strip, err);
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
	if (!is_rgb_in_place(chunks)) {
		const uint64_t shown_ns = timeline_mark();
		result = expand_rows(png, strip, err);
		(void)timeline_end(TIMELINE_EXPAND, shown_ns, 0);
	}
	return result ? result : 1;
}

const struct decoder_ops decoder_png_fast = {
	.name = "png-fast",
	.state_bytes = sizeof(struct png_fast),
	.open = fast_open,
	.close = fast_close,
	.scratch_bytes = fast_scratch_bytes,
	.begin = fast_begin,
	.select = fast_select,
	.next = fast_next,
};
