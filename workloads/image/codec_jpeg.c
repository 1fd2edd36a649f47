/* JPEG through libjpeg-turbo.  The entropy-coded data of everything in front of the region must be
 * decoded, but its pixels need not be: rows above it are skipped, columns beside it left out, and
 * decoding is abandoned after its last row.  The region is widened so that the chroma interpolation
 * sees the same neighbours as in a full decode: the pixels are the same to the bit.
 *
 * libjpeg reports an error by longjmp.  It is caught in jpeg_guard alone, which calls one step with
 * no automatic variables of its own that live across the jump. */
#include "workloads/image/codec.h"
#include "workloads/image/encode.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
	RGBX_BYTES = 4,
	STRIP_ROWS = 16, /* an iMCU row of 4:2:0 */
	/* Fancy upsampling of a column reads chroma one sample away, two pixels at 2:1; and libjpeg
	 * takes another upsampler for a plane of under three samples. */
	MARGIN_COLUMNS = 2,
	NARROWEST_COLUMNS = 64,
	MEMORY_MAX = 512 * 1024 * 1024,
	SCANS_MAX = 500,
	SEGMENT_HEADER_BYTES = 4, /* marker and length */
	END_MARKER_BYTES = 2,
	SOF_BYTES = 8,           /* length, precision, height, width, components */
	SOF_COMPONENT_BYTES = 3, /* each: id, sampling factors, quantisation table */
	SOF_COMPONENTS_MAX = 4,
	BLOCK_EDGE = DCTSIZE,
};

/* Second bytes of JPEG markers (ITU-T T.81, table B.1), beside those that jpeglib.h names. */
enum jpeg_marker {
	JPEG_TEM = 0x01,
	JPEG_SOF0 = 0xc0,
	JPEG_DHT = 0xc4,
	JPEG_JPG = 0xc8,
	JPEG_DAC = 0xcc,
	JPEG_SOF15 = 0xcf,
	JPEG_SOI = 0xd8,
	JPEG_SOS = 0xda,
	JPEG_DQT = 0xdb,
	JPEG_FILL = 0xff,
};

/* Each scan costs a pass over the whole picture, however few bytes it has: a small file can keep a
 * core busy for minutes.  Encoders make a dozen; the largest picture that is allowed may have 25. */
static const uint64_t SCAN_PIXELS_MAX = 25ULL * IMAGE_PIXELS_MAX;

/* ---- header, without libjpeg: a scan has no more than the beginning of a file -------------- */

static bool jpeg_sniff(const uint8_t *bytes, size_t size)
{
	return size >= 3 && bytes[0] == JPEG_FILL && bytes[1] == JPEG_SOI && bytes[2] == JPEG_FILL;
}

static bool jpeg_is_frame_header(uint8_t marker)
{
	return marker >= JPEG_SOF0 && marker <= JPEG_SOF15 && marker != JPEG_DHT &&
	       marker != JPEG_JPG && marker != JPEG_DAC;
}

/* Baseline, extended and progressive, Huffman or arithmetic: what libjpeg-turbo decodes. */
static bool jpeg_frame_is_supported(uint8_t marker)
{
	const int kind = marker - JPEG_SOF0;
	return kind == 0 || kind == 1 || kind == 2 || kind == 9 || kind == 10;
}

static bool jpeg_has_no_length(uint8_t marker)
{
	return marker == JPEG_TEM || (marker >= JPEG_RST0 && marker <= JPEG_SOI);
}

static uint32_t jpeg_divide_up(uint32_t value, uint32_t by)
{
	return (value + by - 1) / by;
}

/* With Huffman codes a block takes a bit at least for its first coefficient, and one to end it
 * where the others are not in scans of their own.  Arithmetic codes have no such least. */
static int jpeg_least_bytes(
	const uint8_t *segment, uint8_t marker, struct image_info *info, struct error *err)
{
	const uint32_t count = segment[SOF_BYTES - 1];
	const uint8_t *const components = segment + SOF_BYTES;
	uint32_t across[SOF_COMPONENTS_MAX], down[SOF_COMPONENTS_MAX];
	uint32_t most_across = 1, most_down = 1;
	if (count < 1 || count > SOF_COMPONENTS_MAX)
		return error_set(err, -EINVAL, "jpeg: %u components are not supported", count);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t factors = components[i * SOF_COMPONENT_BYTES + 1];
		across[i] = factors >> 4;
		down[i] = factors & 0x0f;
		most_across = across[i] > most_across ? across[i] : most_across;
		most_down = down[i] > most_down ? down[i] : most_down;
	}
	uint64_t blocks = 0;
	for (uint32_t i = 0; i < count; i++)
		blocks += (uint64_t)jpeg_divide_up(
				  info->width * across[i], most_across * BLOCK_EDGE) *
			  jpeg_divide_up(info->height * down[i], most_down * BLOCK_EDGE);
	const int process = marker - JPEG_SOF0;
	info->least_bytes = process > 2 ? 0 : blocks * (process == 2 ? 1 : 2) / 8;
	return 0;
}

/* 0x22: two by two samples.  By the first component's factors, the others having one of each. */
static const char *jpeg_layout(const uint8_t *segment)
{
	static const struct {
		uint8_t factors;
		const char *name;
	} layouts[] = {{0x22, "420"}, {0x21, "422"}, {0x11, "444"}, {0x12, "440"}, {0x41, "411"},
		{0x42, "410"}};
	const uint8_t *const components = segment + SOF_BYTES;
	if (segment[SOF_BYTES - 1] != 3)
		return segment[SOF_BYTES - 1] == 1 ? "gray" : "cmyk";
	const bool plain = components[SOF_COMPONENT_BYTES + 1] == 0x11 &&
			   components[2 * SOF_COMPONENT_BYTES + 1] == 0x11;
	for (size_t i = 0; plain && i < sizeof layouts / sizeof *layouts; i++)
		if (components[1] == layouts[i].factors)
			return layouts[i].name;
	return "other";
}

/* The sum of quantisation table 0 in a segment of them; 0: it is not there. */
static uint32_t jpeg_sum_table(const uint8_t *segment, size_t size)
{
	for (size_t at = 2; at < size;) {
		const bool wide = segment[at] >> 4 != 0;
		const bool first = (segment[at] & 0x0f) == 0;
		const size_t end = at + 1 + (wide ? 2 : 1) * (size_t)DCTSIZE2;
		uint32_t sum = 0;
		if (end > size)
			break;
		for (at++; at < end; at += wide ? 2 : 1)
			sum += wide ? bytes_be16(segment + at) : segment[at];
		if (first)
			return sum;
	}
	return 0;
}

unsigned image_quality(uint32_t quantisation)
{
	/* ITU-T T.81, table K.1, which libjpeg scales. */
	static const uint8_t table[DCTSIZE2] = {16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26,
		58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22,
		37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103,
		121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};
	unsigned best = 0;
	uint32_t least = UINT32_MAX;
	for (unsigned quality = 1; quality <= 100 && quantisation > 0; quality++) {
		const uint32_t scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
		uint32_t sum = 0;
		for (size_t i = 0; i < DCTSIZE2; i++) {
			const uint32_t scaled = (table[i] * scale + 50) / 100;
			sum += scaled < 1 ? 1 : scaled > 255 ? 255 : scaled;
		}
		const uint32_t miss = sum > quantisation ? sum - quantisation : quantisation - sum;
		best = miss < least ? quality : best;
		least = miss < least ? miss : least;
	}
	return best;
}

static int jpeg_read_frame(
	const uint8_t *segment, uint8_t marker, struct image_info *info, struct error *err)
{
	if (!jpeg_frame_is_supported(marker))
		return error_set(err, -EINVAL, "jpeg: coding process %d is not supported",
			marker - JPEG_SOF0);
	if (segment[2] != 8)
		return error_set(
			err, -EINVAL, "jpeg: %d bits per sample are not supported", segment[2]);
	info->height = bytes_be16(segment + 3);
	info->width = bytes_be16(segment + 5);
	info->layout = jpeg_layout(segment);
	info->progressive =
		(marker - JPEG_SOF0) % 8 == 2; /* of Huffman codes, of arithmetic ones */
	return jpeg_least_bytes(segment, marker, info, err);
}

/* Walks the marker segments to the frame header. */
static int jpeg_read_info(
	const uint8_t *bytes, size_t size, struct image_info *info, struct error *err)
{
	size_t at = 2;
	while (at + 4 <= size) {
		const uint8_t marker = bytes[at + 1];
		if (bytes[at] != JPEG_FILL || marker == JPEG_FILL) {
			at++; /* fill bytes, or garbage that decoders skip too */
			continue;
		}
		if (jpeg_has_no_length(marker) || marker == 0) {
			at += 2;
			continue;
		}
		if (marker == JPEG_SOS || marker == JPEG_EOI)
			return error_set(err, -EINVAL, "jpeg without a frame header");
		if (jpeg_is_frame_header(marker)) {
			if (at + 2 + SOF_BYTES + SOF_COMPONENT_BYTES > size ||
				at + 2 + bytes_be16(bytes + at + 2) > size)
				break;
			if (bytes_be16(bytes + at + 2) <
				SOF_BYTES + SOF_COMPONENT_BYTES * bytes[at + 9])
				return error_set(err, -EINVAL, "jpeg frame header is too short");
			info->front_bytes = (uint32_t)at;
			return jpeg_read_frame(bytes + at + 2, marker, info, err);
		}
		if (marker == JPEG_DQT && info->quantisation == 0 &&
			at + 2 + bytes_be16(bytes + at + 2) <= size)
			info->quantisation =
				jpeg_sum_table(bytes + at + 2, bytes_be16(bytes + at + 2));
		at += 2 + (size_t)bytes_be16(bytes + at + 2);
	}
	return error_set(err, -EAGAIN, "jpeg header is not complete");
}

/* ---- decoding: errors ---------------------------------------------------------------------- */

struct jpeg {
	struct jpeg_decompress_struct libjpeg;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf escape;
	struct decoder_options options;
	bool has_stopped;

	const uint8_t *bytes; /* the file */
	size_t size;
	struct region region; /* as asked */
	uint32_t shrink;
	JDIMENSION first_column, columns; /* as libjpeg gives them */
	uint32_t next_row, end_row;       /* rows still to come, of the shrunk picture */
	uint32_t strip_rows;              /* in rows now */
	struct scratch rows;              /* STRIP_ROWS of RGBX, or of CMYK, then RGBX in place */
};

static struct jpeg *jpeg_of(j_common_ptr libjpeg)
{
	return libjpeg->client_data;
}

static void jpeg_fail(j_common_ptr libjpeg)
{
	longjmp(jpeg_of(libjpeg)->escape, 1);
}

/* Warnings that mean that pixels were made up.  The others (stray bytes between markers, an odd
 * Adobe marker) leave the picture whole, and every decoder in use accepts them. */
static bool jpeg_warning_is_damage(int code)
{
	return code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF || code == JWRN_HUFF_BAD_CODE ||
	       code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC;
}

static void jpeg_message(j_common_ptr libjpeg, int level)
{
	if (level < 0 && jpeg_warning_is_damage(libjpeg->err->msg_code))
		jpeg_fail(libjpeg);
}

static void jpeg_no_output(j_common_ptr libjpeg)
{
	(void)libjpeg;
}

/* Called by libjpeg at every row of blocks of a scan, and for every strip of rows. */
static void jpeg_look_up(j_common_ptr libjpeg)
{
	struct jpeg *const jpeg = jpeg_of(libjpeg);
	if (!decoder_stops(&jpeg->options))
		return;
	jpeg->has_stopped = true;
	jpeg_fail(libjpeg);
}

static int jpeg_describe(struct jpeg *jpeg, struct error *err)
{
	char text[JMSG_LENGTH_MAX];
	jpeg->errors.format_message((j_common_ptr)&jpeg->libjpeg, text);
	if (jpeg->has_stopped)
		return error_set(err, -EINTR, "jpeg: stopped");
	if (jpeg->errors.msg_code == JERR_OUT_OF_MEMORY)
		return error_set(err, -ENOMEM, "jpeg: %s", text);
	if (jpeg->errors.msg_code == JERR_NO_BACKING_STORE)
		return error_set(err, -EINVAL, "jpeg: needs more than %d MiB", MEMORY_MAX >> 20);
	return error_set(err, -EINVAL, "jpeg: %s", text);
}

/* Runs one step of libjpeg; a failure resets the decompressor for the next file. */
static int jpeg_guard(struct jpeg *jpeg, void (*step)(struct jpeg *), struct error *err)
{
	if (setjmp(jpeg->escape) == 0) {
		step(jpeg);
		return 0;
	}
	const int result = jpeg_describe(jpeg, err);
	jpeg_abort_decompress(&jpeg->libjpeg);
	return result;
}

/* ---- decoding: life --------------------------------------------------------------------------------- */

/* A fresh decompressor for each file, at a microsecond: one that is used again keeps the tables of the
 * file before, and a damaged file without its own would be decoded with those. */
static void jpeg_step_create(struct jpeg *jpeg)
{
	struct jpeg_decompress_struct *const libjpeg = &jpeg->libjpeg;
	jpeg_destroy_decompress(libjpeg); /* fine on a zeroed one */
	jpeg_create_decompress(libjpeg);
	libjpeg->progress = &jpeg->progress;
	libjpeg->mem->max_memory_to_use = MEMORY_MAX;
}

static size_t jpeg_rows_bytes(uint32_t width)
{
	return (size_t)width * RGBX_BYTES * STRIP_ROWS;
}

static uint64_t jpeg_scratch_bytes(const struct image_extent *extent)
{
	/* Beside the strip, libjpeg keeps some lines of each component; a progressive picture, its
	 * coefficients: two bytes for each sample. */
	return jpeg_rows_bytes(extent->width) * 2 + extent->pixels * 6;
}

static int jpeg_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct jpeg *const jpeg = state;
	struct jpeg_decompress_struct *const libjpeg = &jpeg->libjpeg;
	libjpeg->err = jpeg_std_error(&jpeg->errors);
	jpeg->errors.error_exit = jpeg_fail;
	jpeg->errors.emit_message = jpeg_message;
	jpeg->errors.output_message = jpeg_no_output;
	libjpeg->client_data = jpeg;
	jpeg->options = *options;
	jpeg->progress.progress_monitor = jpeg_look_up;
	return scratch_reserve(&jpeg->rows, jpeg_rows_bytes(options->extent.width), err);
}

static void jpeg_close(void *state)
{
	struct jpeg *const jpeg = state;
	jpeg_destroy_decompress(&jpeg->libjpeg);
	scratch_release(&jpeg->rows);
}

/* ---- decoding: a file ------------------------------------------------------------------------------- */

static void jpeg_step_header(struct jpeg *jpeg)
{
	jpeg_step_create(jpeg);
	jpeg_mem_src(&jpeg->libjpeg, jpeg->bytes, jpeg->size);
	(void)jpeg_read_header(&jpeg->libjpeg, TRUE);
}

/* A file cut off below the region would decode without complaint, and be bad or good by the crop
 * that was drawn.  The end marker must follow somewhere after the header, which libjpeg has read;
 * it is nearly always the last two bytes. */
static bool jpeg_has_end_marker(const struct jpeg *jpeg)
{
	const uint8_t *const first = jpeg->libjpeg.src->next_input_byte;
	const uint8_t *at = jpeg->bytes + jpeg->size;
	while (at - first >= END_MARKER_BYTES) {
		if (at[-2] == 0xff && at[-1] == JPEG_EOI)
			return true;
		at--;
	}
	return false;
}

/* Scans of the file up to its end marker; in coded data a 0xff is followed by 0 or a restart marker,
 * and what lies in other segments is passed over.  The first one's header has been read. */
static uint64_t jpeg_count_scans(const struct jpeg *jpeg)
{
	const uint8_t *const end = jpeg->bytes + jpeg->size;
	const uint8_t *at = jpeg->libjpeg.src->next_input_byte;
	uint64_t scans = 1;
	while ((at = memchr(at, 0xff, (size_t)(end - at))) && end - at > SEGMENT_HEADER_BYTES) {
		const uint8_t marker = at[1];
		const bool is_data = marker == 0 || marker == 0xff ||
				     (marker >= JPEG_RST0 && marker < JPEG_RST0 + 8);
		const ptrdiff_t length =
			is_data ? 1 : SEGMENT_HEADER_BYTES - 2 + bytes_be16(at + 2);
		if (marker == JPEG_EOI || length >= end - at)
			break;
		scans += marker == JPEG_SOS;
		at += length;
	}
	return scans;
}

/* Before any of them is decoded. */
static int jpeg_check_scans(const struct jpeg *jpeg, struct error *err)
{
	const struct jpeg_decompress_struct *const libjpeg = &jpeg->libjpeg;
	if (!jpeg_has_multiple_scans((j_decompress_ptr)(uintptr_t)libjpeg))
		return 0;
	const uint64_t scans = jpeg_count_scans(jpeg);
	const uint64_t pixels = (uint64_t)libjpeg->image_width * libjpeg->image_height;
	if (scans <= SCANS_MAX && scans * pixels <= SCAN_PIXELS_MAX)
		return 0;
	return error_set(err, -EINVAL,
		"jpeg: %llu scans of %u x %u pixels are more than the limit allows",
		(unsigned long long)scans, libjpeg->image_width, libjpeg->image_height);
}

static int jpeg_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct jpeg *const jpeg = state;
	jpeg->bytes = bytes;
	jpeg->size = size;
	jpeg->has_stopped = false;
	int result = jpeg_guard(jpeg, jpeg_step_header, err);
	if (result)
		return result;
	*info = (struct image_info){
		.width = jpeg->libjpeg.image_width, .height = jpeg->libjpeg.image_height};
	if (!jpeg_has_end_marker(jpeg))
		return error_set(err, -EINVAL, "jpeg is truncated: no end marker");
	result = image_check_size(info->width, info->height, err);
	return result ? result : jpeg_check_scans(jpeg, err);
}

/* ---- decoding: region ------------------------------------------------------------------------------- */

static void jpeg_set_output(struct jpeg *jpeg)
{
	struct jpeg_decompress_struct *const libjpeg = &jpeg->libjpeg;
	const bool is_cmyk =
		libjpeg->jpeg_color_space == JCS_CMYK || libjpeg->jpeg_color_space == JCS_YCCK;
	libjpeg->out_color_space = is_cmyk ? JCS_CMYK : JCS_EXT_RGBX;
	libjpeg->dct_method = JDCT_ISLOW; /* as PIL */
	libjpeg->do_fancy_upsampling = TRUE;
	libjpeg->do_block_smoothing =
		FALSE; /* it would make pixels depend on where decoding starts */
	libjpeg->scale_num = 1;
	libjpeg->scale_denom = jpeg->shrink;
}

/* Asks libjpeg for the region's columns and what its interpolation needs beside them. */
static void jpeg_select_columns(struct jpeg *jpeg)
{
	const struct region *const region = &jpeg->region;
	const uint32_t width = jpeg->libjpeg.output_width;
	uint32_t first = region->x > MARGIN_COLUMNS ? region->x - MARGIN_COLUMNS : 0;
	uint32_t end = region->x + region->width + MARGIN_COLUMNS;
	if (end - first < NARROWEST_COLUMNS)
		end = first + NARROWEST_COLUMNS;
	if (end > width) {
		end = width;
		if (end < first + NARROWEST_COLUMNS)
			first = end > NARROWEST_COLUMNS ? end - NARROWEST_COLUMNS : 0;
	}
	/* libjpeg-turbo 2.1 places the chroma of 4:1:0 wrongly when it both crops and shrinks. */
	const bool is_whole = jpeg->shrink > 1 && jpeg->libjpeg.max_h_samp_factor > 2;
	jpeg->first_column = is_whole ? 0 : first;
	jpeg->columns = is_whole ? width : end - first;
	if (jpeg->columns < width)
		jpeg_crop_scanline(&jpeg->libjpeg, &jpeg->first_column, &jpeg->columns);
}

static void jpeg_step_select(struct jpeg *jpeg)
{
	jpeg_set_output(jpeg);
	(void)jpeg_start_decompress(&jpeg->libjpeg);
	jpeg_select_columns(jpeg);
	if (jpeg->region.y > 0)
		(void)jpeg_skip_scanlines(&jpeg->libjpeg, jpeg->region.y);
	jpeg->next_row = jpeg->libjpeg.output_scanline;
}

static int jpeg_select(void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	struct jpeg *const jpeg = state;
	jpeg->region = *region;
	jpeg->shrink = shrink;
	jpeg->end_row = region->y + region->height;
	const int result = jpeg_guard(jpeg, jpeg_step_select, err);
	if (result)
		return result;
	return scratch_reserve(&jpeg->rows, jpeg_rows_bytes(jpeg->columns), err);
}

/* ---- decoding: rows --------------------------------------------------------------------------------- */

static void jpeg_step_rows(struct jpeg *jpeg)
{
	const size_t stride = (size_t)jpeg->columns * RGBX_BYTES;
	const uint32_t left = jpeg->end_row - jpeg->next_row;
	const uint32_t wanted = left < STRIP_ROWS ? left : STRIP_ROWS;
	JSAMPROW rows[STRIP_ROWS];
	for (uint32_t i = 0; i < wanted; i++)
		rows[i] = jpeg->rows.data + i * stride;
	jpeg->strip_rows = 0;
	while (jpeg->strip_rows < wanted)
		jpeg->strip_rows += jpeg_read_scanlines(
			&jpeg->libjpeg, rows + jpeg->strip_rows, wanted - jpeg->strip_rows);
}

/* x y / 255, rounded, for bytes. */
static uint8_t jpeg_multiply_255(unsigned x, unsigned y)
{
	const unsigned product = x * y + 128;
	return (uint8_t)(((product >> 8) + product) >> 8);
}

/* In place.  Adobe's programs, which mark their files, store ink inverted. */
static void jpeg_convert_cmyk(uint8_t *pixels, size_t count, bool is_inverted)
{
	const uint8_t flip = is_inverted ? 0 : 0xff;
	for (size_t i = 0; i < count; i++) {
		uint8_t *const pixel = pixels + i * RGBX_BYTES;
		const uint8_t paper = pixel[3] ^ flip;
		for (size_t c = 0; c < 3; c++)
			pixel[c] =
				(uint8_t)(paper - jpeg_multiply_255(pixel[c] ^ flip ^ 0xff, paper));
	}
}

static int jpeg_next(void *state, struct strip *strip, struct error *err)
{
	struct jpeg *const jpeg = state;
	if (jpeg->next_row >= jpeg->end_row) {
		jpeg_abort_decompress(&jpeg->libjpeg);
		return 0;
	}
	const int result = jpeg_guard(jpeg, jpeg_step_rows, err);
	if (result)
		return result;
	if (jpeg->libjpeg.out_color_space == JCS_CMYK)
		jpeg_convert_cmyk(jpeg->rows.data, (size_t)jpeg->columns * jpeg->strip_rows,
			jpeg->libjpeg.saw_Adobe_marker);
	*strip = (struct strip){
		.pixels = jpeg->rows.data,
		.stride = (size_t)jpeg->columns * RGBX_BYTES,
		.x = jpeg->first_column,
		.width = jpeg->columns,
		.y = jpeg->next_row,
		.rows = jpeg->strip_rows,
		.pixel_bytes = RGBX_BYTES,
	};
	jpeg->next_row += jpeg->strip_rows;
	return 1;
}

/* ---- encoding ----------------------------------------------------------------------------- */

/* Beside the encoder of encode.h; libjpeg writes into its growing buffer. */
struct jpeg_encoder {
	struct jpeg_compress_struct libjpeg;
	struct jpeg_error_mgr errors;
	struct jpeg_destination_mgr out;
	struct encoder *encoder;
	jmp_buf escape;
	char reason[JMSG_LENGTH_MAX];
};

static struct jpeg_encoder *jpeg_encoder_of(j_common_ptr libjpeg)
{
	return libjpeg->client_data;
}

static _Noreturn void jpeg_encode_failed(j_common_ptr libjpeg)
{
	struct jpeg_encoder *const jpeg = jpeg_encoder_of(libjpeg);
	libjpeg->err->format_message(libjpeg, jpeg->reason);
	longjmp(jpeg->escape, 1);
}

static void jpeg_out_start(j_compress_ptr libjpeg)
{
	const struct encoder *const encoder = jpeg_encoder_of((j_common_ptr)libjpeg)->encoder;
	libjpeg->dest->next_output_byte = encoder->bytes;
	libjpeg->dest->free_in_buffer = encoder->room;
}

/* The whole buffer is full when this is called; free_in_buffer does not count. */
static boolean jpeg_out_more(j_compress_ptr libjpeg)
{
	struct encoder *const encoder = jpeg_encoder_of((j_common_ptr)libjpeg)->encoder;
	const size_t used = encoder->room;
	if (!encoder_grow(encoder, used * 2))
		ERREXIT1(libjpeg, JERR_OUT_OF_MEMORY, 0);
	libjpeg->dest->next_output_byte = encoder->bytes + used;
	libjpeg->dest->free_in_buffer = encoder->room - used;
	return TRUE;
}

static void jpeg_out_end(j_compress_ptr libjpeg)
{
	struct encoder *const encoder = jpeg_encoder_of((j_common_ptr)libjpeg)->encoder;
	encoder->size = encoder->room - libjpeg->dest->free_in_buffer;
}

static int jpeg_encode_open(struct encoder *encoder, struct error *err)
{
	struct jpeg_encoder *const jpeg = (void *)encoder->state;
	jpeg->encoder = encoder;
	jpeg->libjpeg.err = jpeg_std_error(&jpeg->errors);
	jpeg->errors.error_exit = jpeg_encode_failed;
	jpeg->errors.output_message = jpeg_no_output;
	jpeg->libjpeg.client_data = jpeg;
	if (setjmp(jpeg->escape))
		return error_set(err, -ENOMEM, "cannot start the JPEG encoder: %s", jpeg->reason);
	jpeg_create_compress(&jpeg->libjpeg);
	jpeg->out.init_destination = jpeg_out_start;
	jpeg->out.empty_output_buffer = jpeg_out_more;
	jpeg->out.term_destination = jpeg_out_end;
	jpeg->libjpeg.dest = &jpeg->out;
	return 0;
}

static void jpeg_encode_close(struct encoder *encoder)
{
	struct jpeg_encoder *const jpeg = (void *)encoder->state;
	jpeg_destroy_compress(&jpeg->libjpeg); /* fine on a zeroed one */
}

/* Luma sampling factors; chroma has 1 x 1. */
static void jpeg_set_subsampling(j_compress_ptr libjpeg, enum dataset_subsampling subsampling)
{
	if (subsampling == DATASET_SUBSAMPLING_GRAY)
		return;
	libjpeg->comp_info[0].h_samp_factor = subsampling == DATASET_SUBSAMPLING_444 ? 1 : 2;
	libjpeg->comp_info[0].v_samp_factor = subsampling == DATASET_SUBSAMPLING_420 ? 2 : 1;
	for (int i = 1; i < 3; i++)
		libjpeg->comp_info[i].h_samp_factor = libjpeg->comp_info[i].v_samp_factor = 1;
}

static void jpeg_encode_start(
	struct encoder *encoder, uint32_t width, uint32_t height, J_COLOR_SPACE from)
{
	struct jpeg_encoder *const jpeg = (void *)encoder->state;
	j_compress_ptr libjpeg = &jpeg->libjpeg;
	libjpeg->image_width = width;
	libjpeg->image_height = height;
	libjpeg->input_components = 3;
	libjpeg->in_color_space = from;
	jpeg_set_defaults(libjpeg);
	if (encoder->options.subsampling == DATASET_SUBSAMPLING_GRAY)
		jpeg_set_colorspace(libjpeg, JCS_GRAYSCALE);
	jpeg_set_quality(libjpeg, encoder->options.quality, TRUE);
	jpeg_set_subsampling(libjpeg, encoder->options.subsampling);
	if (encoder->options.progressive)
		jpeg_simple_progression(libjpeg);
	libjpeg->raw_data_in = from == JCS_YCbCr;
	jpeg_start_compress(libjpeg, TRUE);
}

static void jpeg_write_rgb(j_compress_ptr libjpeg, const uint8_t *rgb)
{
	enum { ROWS = 16 }; /* a row of 4:2:0 blocks a call */
	const JDIMENSION height = libjpeg->image_height;
	while (libjpeg->next_scanline < height) {
		JSAMPROW rows[ROWS];
		JDIMENSION count = 0;
		for (; count < ROWS && libjpeg->next_scanline + count < height; count++)
			rows[count] = (JSAMPROW)(uintptr_t)(rgb + (size_t)(libjpeg->next_scanline +
									   count) *
									  libjpeg->image_width * 3);
		(void)jpeg_write_scanlines(libjpeg, rows, count);
	}
}

/* One row of blocks a call. */
static void jpeg_write_planes(j_compress_ptr libjpeg, const struct picture_planes *planes)
{
	enum { LUMA_ROWS = 2 * DCTSIZE };
	JSAMPROW luma[LUMA_ROWS], blue[DCTSIZE], red[DCTSIZE];
	JSAMPARRAY rows[] = {luma, blue, red};
	const size_t half = planes->stride / 2;
	for (size_t y = 0; y < planes->rows; y += LUMA_ROWS) {
		for (size_t i = 0; i < LUMA_ROWS; i++)
			luma[i] = planes->luma + (y + i) * planes->stride;
		for (size_t i = 0; i < DCTSIZE; i++) {
			blue[i] = planes->blue + (y / 2 + i) * half;
			red[i] = planes->red + (y / 2 + i) * half;
		}
		(void)jpeg_write_raw_data(libjpeg, rows, LUMA_ROWS);
	}
}

/* From RGB, or from planes where there are any. */
static int jpeg_encode_from(struct encoder *encoder, const uint8_t *rgb,
	const struct picture_planes *planes, uint32_t width, uint32_t height, struct error *err)
{
	struct jpeg_encoder *const jpeg = (void *)encoder->state;
	if (setjmp(jpeg->escape)) {
		jpeg_abort_compress(&jpeg->libjpeg);
		return error_set(err, -EINVAL, "cannot encode a JPEG: %s", jpeg->reason);
	}
	jpeg_encode_start(encoder, width, height, planes ? JCS_YCbCr : JCS_RGB);
	if (planes)
		jpeg_write_planes(&jpeg->libjpeg, planes);
	else
		jpeg_write_rgb(&jpeg->libjpeg, rgb);
	jpeg_finish_compress(&jpeg->libjpeg);
	return 0;
}

static int jpeg_encode(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	struct error *err)
{
	return jpeg_encode_from(encoder, rgb, NULL, width, height, err);
}

static int jpeg_encode_planes(struct encoder *encoder, const struct picture_planes *planes,
	uint32_t width, uint32_t height, struct error *err)
{
	return jpeg_encode_from(encoder, NULL, planes, width, height, err);
}

static bool jpeg_takes_planes(const struct encode_options *options)
{
	return options->subsampling == DATASET_SUBSAMPLING_420;
}

static const struct encoder_ops encoder_jpeg = {
	.extension = "jpg",
	.keys = {KEY_DATASET_QUALITY, KEY_DATASET_SUBSAMPLING},
	.key_count = 2,
	.state_bytes = sizeof(struct jpeg_encoder),
	.open = jpeg_encode_open,
	.close = jpeg_encode_close,
	.encode = jpeg_encode,
	.takes_planes = jpeg_takes_planes,
	.encode_planes = jpeg_encode_planes,
};

const struct codec_ops codec_jpeg = {
	.name = "jpeg",
	.summary = "libjpeg-turbo: baseline and progressive, decodes only the crop",
	.endings = {"jpg", "jpeg"},
	.sniff = jpeg_sniff,
	.read_info = jpeg_read_info,
	.state_bytes = sizeof(struct jpeg),
	.rows_kind = TIMELINE_JPEG_ROWS,
	.shrinks = true,
	.open = jpeg_open,
	.close = jpeg_close,
	.scratch_bytes = jpeg_scratch_bytes,
	.begin = jpeg_begin,
	.select = jpeg_select,
	.next = jpeg_next,
	.encoder = &encoder_jpeg,
};
