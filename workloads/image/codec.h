/* What a codec is: how a format is recognised, and how its files are decoded and, if it can, written.
 * `codecs[]` has one table for each format, and the format's number is its index.
 *
 * Add a codec, say BMP: one new file and one line.
 *   1. harness/config/codecs.def: a last line CODEC(BMP, bmp, READS).
 *   2. workloads/image/codec_bmp.c includes "workloads/image/codec.h" and ends with
 *        const struct codec_ops codec_bmp = {
 *        	.name = "bmp", .summary = …,      what `mlbench list codecs` prints
 *        	.endings = {"bmp", "dib"},        of file names, without the dot
 *        	.sniff = bmp_sniff,               do these first bytes begin such a file?  Of two formats
 *        	                                  that say yes, the first of codecs.def has it
 *        	.read_info = bmp_read_info,       width and height from the header
 *        	.pixel_bytes = 3,
 *        	.decode = bmp_decode,             the whole picture into task->pixels
 *        };
 *      `make` finds the file.  bytes_le32 and its like, below, read numbers.  Never read beyond
 *      `size`: the bytes are a stranger's.  Say what is wrong by error_set(err, -EINVAL, …).
 *   3. Try it on a folder of such files, and on the same pixels as .ppm: both print the same checksum.
 *        mlbench list codecs
 *        mlbench run decode_only --data FOLDER --set decode.workers=2 --set codec.crop=on \
 *                --set run.verify=on --set measure.epochs=3 --out tried
 *        grep -o '"epoch_checksum":"[^"]*"' tried/points.jsonl
 *      Then `make unit-image_codec unit-scan`, and fuzz it with a small file of it in
 *      tests/fuzz/corpus/image (`make build/fuzz/fuzz_image`).  clang-format -i before you commit.
 * tests/recipes/codec.patch is a whole example, for farbfeld.
 * The program refuses to start, and test_image_codec fails, when a table lacks a hook (codecs_check).
 * Names, endings, the counts in manifests, dataset.format, `list`, error lines and the memory bound
 * follow from the table.  codec_raw.c is the shortest example that decodes row by row and writes
 * files too; codec_webp.c the one of .decode, and of a library that may be missing (.unavailable; the
 * Makefile finds the library). More, when it pays:
 *   - open … next instead of .decode: decode only the rectangle that a crop needs, strip by strip;
 *   - .shrinks: decode at 1/2, 1/4 or 1/8 of the size;
 *   - WRITES in codecs.def and .encoder (encode.h): `mlbench gen` with dataset.format = bmp. */
#ifndef MLBENCH_WORKLOADS_IMAGE_CODEC_H
#define MLBENCH_WORKLOADS_IMAGE_CODEC_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/measure/timeline.h"
#include "workloads/image/formats.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A rectangle of a picture, pixels from its upper left corner. */
struct region {
	uint32_t x, y, width, height;
};

/* Consecutive rows of decoded pixels, 8 bits a channel; owned by the decoder and valid until its
 * next call.  SCRATCH_SLACK_BYTES behind the last row may be read, so that vectors need no tail. */
struct strip {
	/* row y, column x: R G B, and a byte to ignore when pixel_bytes is 4 */
	const uint8_t *pixels;
	size_t stride; /* bytes from a row to the next */
	uint32_t x, width;
	uint32_t y, rows;
	uint32_t pixel_bytes; /* 3 or 4 */
};

/* What a decoder is opened with. */
struct decoder_options {
	struct image_extent extent; /* the pictures to come; a larger one makes scratch grow */
	const atomic_bool *stop;    /* true: give up the picture soon, with -EINTR; may be NULL */
};

static inline bool decoder_stops(const struct decoder_options *options)
{
	return options->stop && atomic_load_explicit(options->stop, memory_order_relaxed);
}

/* A file to be decoded as a whole. */
struct decode_task {
	const uint8_t *bytes; /* the file */
	size_t size;
	/* As read_info gave it for exactly these bytes, at most IMAGE_PIXELS_MAX.  size was not held to
	 * least_bytes, and what else the header says is to be read again. */
	struct image_info info;
	uint8_t *pixels; /* (info.height, info.width, pixel_bytes): the top row first */
	const struct decoder_options *options; /* for decoder_stops */
};

enum { CODEC_ENDINGS_MAX = 4 };

struct encoder_ops;

/* Hooks return 0, or -EINVAL with the reason when the picture is bad, or -ENOMEM, or -EINTR (which
 * needs no reason).  Each
 * decoder belongs to one thread and is used for file after file. */
struct codec_ops {
	const char *name, *summary; /* for `mlbench list` */
	const char *unavailable;    /* NULL, or why this build cannot decode it */
	const char *called;         /* in error lines: "ppm (P6)"; NULL: the format's name */
	const char *endings[CODEC_ENDINGS_MAX]; /* of file names, in small letters */

	bool (*sniff)(const uint8_t *bytes, size_t size);

	/* Fills width and height, and least_bytes if known; -EAGAIN: more of the file is needed.
	 * What is too large, or has no pixels, is refused by the caller, and so is a file that has no
	 * more ("cut short within its header"). */
	int (*read_info)(
		const uint8_t *bytes, size_t size, struct image_info *info, struct error *err);

	/* Upper estimate of what decoding allocates for pictures up to the extent; with `decode`
	 * beside the pixels themselves, and NULL: nothing. */
	uint64_t (*scratch_bytes)(const struct image_extent *extent);

	/* What next or decode do, in a timeline; 0: "decode pixels". */
	enum timeline_kind rows_kind;

	/* Either: the whole picture at once. */
	uint32_t pixel_bytes; /* 3 or 4: R G B, and a byte to ignore */
	int (*decode)(const struct decode_task *task, struct error *err);

	/* Or: strip by strip, what a region needs.  begin() reads a file's header, select() says
	 * which rectangle is wanted, and next() gives decoded rows until it is complete.  Rows are
	 * handed over while they are hot in the cache, and in place where the codec allows it. */
	size_t state_bytes; /* of a decoder, zeroed before open */
	bool shrinks;       /* select takes a shrink of 2, 4 and 8 beside 1 */
	bool shows_parts;   /* next writes its parts into the timeline itself */

	/* Pictures within options->extent need no allocation later on. */
	int (*open)(void *state, const struct decoder_options *options, struct error *err);
	void (*close)(void *state); /* fine on a zeroed state, or after open failed */
	int (*begin)(void *state, const void *bytes, size_t size, struct image_info *info,
		struct error *err);

	/* The picture is decoded at 1/shrink of its size, rounded up; region is in pixels of that.
	 * The strips that follow cover the region; they may begin above it and to its left. */
	int (*select)(void *state, const struct region *region, uint32_t shrink, struct error *err);

	/* 1: *strip holds the next rows, without gaps; 0: the region is complete. */
	int (*next)(void *state, struct strip *strip, struct error *err);

	/* Another decoder of the same format (its decoding hooks alone count), and whether the
	 * configuration asks for this one rather than for that. */
	const struct codec_ops *other;
	bool (*is_chosen)(const struct config *config);

	const struct encoder_ops *encoder; /* NULL: gen cannot write it */
};

/* By enum image_format; NULL for IMAGE_FORMAT_UNKNOWN. */
extern const struct codec_ops *const codecs[IMAGE_FORMATS];

#define CODEC(id, name, use) extern const struct codec_ops codec_##name;
#include "harness/config/codecs.def"
#undef CODEC
extern const struct codec_ops codec_png_libpng; /* codec_png's other */
extern const struct codec_ops codec_null;       /* codec.name = null, for `mlbench list` */

/* The format's decoder that the configuration asks for; NULL: none, or not in this build. */
const struct codec_ops *codec_choose(enum image_format format, const struct config *config);

/* -EINVAL with the name of a codec and what its table lacks: a fault of the program. */
int codec_check(const struct codec_ops *codec, bool writes, struct error *err);
int codecs_check(struct error *err);

/* --- a decoder of any codec ---------------------------------------------------------------------- */

/* The codec's hooks, behind one interface: what the region leaves out of a whole picture is simply
 * not looked at. */
struct decoder;

uint64_t decoder_bytes(const struct codec_ops *codec, const struct image_extent *extent);
int decoder_open(struct decoder **out, const struct codec_ops *codec,
	const struct decoder_options *options, struct error *err);
void decoder_close(struct decoder *decoder); /* NULL is fine */
/* info: but for its format, which the caller knows. */
int decoder_begin(struct decoder *decoder, const void *bytes, size_t size, struct image_info *info,
	struct error *err);
int decoder_select(
	struct decoder *decoder, const struct region *region, uint32_t shrink, struct error *err);
int decoder_next(struct decoder *decoder, struct strip *strip, struct error *err);

/* --- what codecs share ---------------------------------------------------------------------------- */

enum { SCRATCH_SLACK_BYTES = 128 };

/* A buffer that only grows: sized when a decoder is opened, and later only for a picture larger
 * than the data set was said to hold.  Behind its size there are SCRATCH_SLACK_BYTES more. */
struct scratch {
	uint8_t *data; /* 64-byte aligned */
	size_t size;
};
int scratch_reserve(struct scratch *scratch, size_t size, struct error *err);
void scratch_release(struct scratch *scratch); /* fine on {0} */

/* Numbers in files, at any alignment. */
static inline uint16_t bytes_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t bytes_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint16_t bytes_le16(const uint8_t *at)
{
	return (uint16_t)(at[1] << 8 | at[0]);
}

static inline uint32_t bytes_le32(const uint8_t *at)
{
	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

#endif
