/* PNG through libpng, row by row to the region's last one.  png_chunks has checked the file, so
 * libpng's own CRCs are switched off; what it refuses beyond that is damaged compressed data.
 *
 * libpng reports an error by longjmp.  It is caught in png_guard alone, which calls one step with
 * no automatic variables of its own that live across the jump. */
#include "workloads/image/decoder.h"
#include "workloads/image/png_chunks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

enum {
	PIXEL_BYTES_MAX = 4,
	STRIP_ROWS = 16,
	REASON_BYTES = 128,
};

struct png {
	png_structp libpng;
	png_infop info;
	struct png_chunks chunks;
	const uint8_t *at, *end; /* of the file, still to be read by libpng */
	char reason[REASON_BYTES];
	bool has_all_rows; /* when it failed */
	struct decoder_options options;
	bool has_stopped;

	struct region region;
	uint32_t next_row;    /* first row of the next strip */
	uint32_t pixel_bytes; /* 3 or 4, as libpng writes them */
	size_t stride;
	uint32_t strip_rows;
	struct scratch rows; /* a strip, or a whole interlaced picture */
};

/* With the last row delivered libpng goes on to the end of the compressed data, and complains when
 * there is none.  Every pixel is there, so the picture is good, as it is when a crop ends above. */
static bool has_all_rows(const struct png *png, png_structp libpng)
{
	if (png->chunks.interlace)
		return png_get_current_pass_number(libpng) >= PNG_INTERLACE_ADAM7_PASSES;
	return png_get_current_row_number(libpng) >= png->chunks.height;
}

static void png_fail(png_structp libpng, png_const_charp message)
{
	struct png *const png = png_get_error_ptr(libpng);
	(void)snprintf(png->reason, sizeof png->reason, "%s", message);
	png->has_all_rows = has_all_rows(png, libpng);
	png_longjmp(libpng, 1);
}

static void png_ignore(png_structp libpng, png_const_charp message)
{
	(void)libpng, (void)message;
}

static void png_take(png_structp libpng, png_bytep out, size_t size)
{
	struct png *const png = png_get_io_ptr(libpng);
	if ((size_t)(png->end - png->at) < size)
		png_error(libpng, "png is truncated");
	memcpy(out, png->at, size);
	png->at += size;
}

static void png_drop(struct png *png)
{
	png_destroy_read_struct(&png->libpng, &png->info, NULL);
}

static int png_guard(struct png *png, void (*step)(struct png *), struct error *err)
{
	if (setjmp(png_jmpbuf(png->libpng)) == 0) {
		step(png);
		return 0;
	}
	png_drop(png);
	if (png->has_stopped)
		return error_set(err, -EINTR, "png: stopped");
	if (png->has_all_rows)
		return 0;
	return error_set(err, -EINVAL, "png: %s", png->reason);
}

/* ---- life --------------------------------------------------------------------------------- */

static uint64_t strip_bytes(uint32_t width)
{
	return (uint64_t)width * PIXEL_BYTES_MAX * STRIP_ROWS;
}

static uint64_t libpng_scratch_bytes(const struct image_extent *extent)
{
	/* Interlaced pictures are kept whole; libpng has two rows and inflate's 64 KiB of its own.
	 */
	return extent->pixels * PIXEL_BYTES_MAX + strip_bytes(extent->width) + (1U << 17);
}

static int libpng_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct png *const png = state;
	png->options = *options;
	return scratch_reserve(&png->rows, strip_bytes(options->extent.width), err);
}

static void libpng_close(void *state)
{
	struct png *const png = state;
	png_drop(png);
	scratch_release(&png->rows);
}

/* ---- header ------------------------------------------------------------------------------- */

static void step_header(struct png *png)
{
	png_structp libpng = png->libpng;
	png_set_read_fn(libpng, png, png_take);
	png_set_user_limits(libpng, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	png_set_crc_action(libpng, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
	/* Colour profiles, text and times are of no use here. */
	png_set_keep_unknown_chunks(libpng, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
	/* Trust distances, not the window size in the zlib header: as other decoders do. */
	(void)png_set_option(libpng, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
	/* The chunks have CRCs already. */
	(void)png_set_option(libpng, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
	png_read_info(libpng, png->info);
}

static void step_formats(struct png *png)
{
	png_structp libpng = png->libpng;
	const uint8_t type = png->chunks.color_type;
	if (png->chunks.bit_depth == 16)
		png_set_strip_16(libpng);
	if (type == PNG_KIND_INDEXED)
		png_set_palette_to_rgb(libpng);
	if (type == PNG_KIND_GRAY && png->chunks.bit_depth < 8)
		png_set_expand_gray_1_2_4_to_8(libpng);
	if (type == PNG_KIND_GRAY || type == PNG_KIND_GRAY_ALPHA)
		png_set_gray_to_rgb(libpng);
	(void)png_set_interlace_handling(libpng);
	png_read_update_info(libpng, png->info);
	png->pixel_bytes = png_get_channels(libpng, png->info);
	png->stride = png_get_rowbytes(libpng, png->info);
}

static void step_begin(struct png *png)
{
	step_header(png);
	step_formats(png);
}

static int libpng_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct png *const png = state;
	png_drop(png);
	png->has_stopped = false;
	int result = png_chunks_read(&png->chunks, bytes, size, err);
	if (result)
		return result;
	png->at = bytes;
	png->end = png->at + size;
	png->libpng = png_create_read_struct(PNG_LIBPNG_VER_STRING, png, png_fail, png_ignore);
	png->info = png->libpng ? png_create_info_struct(png->libpng) : NULL;
	if (!png->info) {
		png_drop(png);
		return error_set(err, -ENOMEM, "no memory for libpng");
	}
	result = png_guard(png, step_begin, err);
	*info = (struct image_info){.format = IMAGE_FORMAT_PNG,
		.width = png->chunks.width,
		.height = png->chunks.height};
	return result;
}

/* ---- rows --------------------------------------------------------------------------------- */

static int libpng_select(
	void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	(void)shrink;
	struct png *const png = state;
	png->region = *region;
	png->next_row = 0;
	const size_t rows = png->chunks.interlace ? png->chunks.height : STRIP_ROWS;
	return scratch_reserve(&png->rows, png->stride * rows, err);
}

static void step_rows(struct png *png)
{
	for (uint32_t i = 0; i < png->strip_rows; i++) {
		png->has_stopped = decoder_stops(&png->options);
		if (png->has_stopped)
			png_error(png->libpng, "stopped");
		png_read_row(png->libpng, png->rows.data + i * png->stride, NULL);
	}
}

/* Seven passes over the whole picture. */
static void step_interlaced(struct png *png)
{
	for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
		step_rows(png);
}

/* Reads rows first to end - 1 to the front of the buffer. */
static int read_rows(struct png *png, uint32_t first, uint32_t end, struct error *err)
{
	png->strip_rows = end - first;
	const int result = png_guard(png, png->chunks.interlace ? step_interlaced : step_rows, err);
	png->next_row = end;
	return result;
}

static int libpng_next(void *state, struct strip *strip, struct error *err)
{
	struct png *const png = state;
	const uint32_t end = png->region.y + png->region.height;
	const uint32_t first = png->next_row;
	if (first >= end) {
		png_drop(png);
		return 0;
	}
	const bool is_whole = png->chunks.interlace != 0;
	const uint32_t stop = is_whole                   ? png->chunks.height
			      : end - first > STRIP_ROWS ? first + STRIP_ROWS
							 : end;
	const int result = read_rows(png, first, stop, err);
	if (result)
		return result;
	*strip = (struct strip){
		.pixels = png->rows.data,
		.stride = png->stride,
		.width = png->chunks.width,
		.y = first,
		.rows = png->strip_rows,
		.pixel_bytes = png->pixel_bytes,
	};
	return 1;
}

const struct decoder_ops decoder_png_libpng = {
	.name = "png-libpng",
	.state_bytes = sizeof(struct png),
	.rows_kind = TIMELINE_LIBPNG_ROWS,
	.open = libpng_open,
	.close = libpng_close,
	.scratch_bytes = libpng_scratch_bytes,
	.begin = libpng_begin,
	.select = libpng_select,
	.next = libpng_next,
};
