/* The two PNG decoders: right, alike to the bit, and safe on damaged files. */
#include "tests/unit/png_fixture.h"
#include "workloads/image/codec.h"
#include "workloads/image/png.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <sys/mman.h>
#include <zlib.h>

/* ---- unfiltering -------------------------------------------------------------------------- */

static void unfilter_once(struct rng *rng)
{
	const size_t pixel = 1 + rng_below(rng, 8);
	const size_t width = 1 + rng_below(rng, 40);
	struct png_rows rows = {
		.rows = 1 + rng_below(rng, 20),
		.row_bytes = width * pixel,
		.used_bytes = (1 + rng_below(rng, width)) * pixel,
		.pixel_bytes = pixel,
	};
	const size_t size = rows.rows * (rows.row_bytes + 1);
	uint8_t *const plain = calloc(1, size + SCRATCH_SLACK_BYTES);
	uint8_t *const fast = calloc(1, size + SCRATCH_SLACK_BYTES);
	for (size_t i = 0; i < size; i++)
		plain[i] = (uint8_t)rng_next(rng);
	const bool is_mostly_paeth = rng_below(rng, 2);
	for (size_t y = 0; y < rows.rows; y++)
		plain[y * (rows.row_bytes + 1)] =
			(uint8_t)(is_mostly_paeth && rng_below(rng, 8) ? ROW_FILTER_PAETH
								       : rng_below(rng, 5));
	if (rng_below(rng, 8) == 0)
		plain[rng_below(rng, rows.rows) * (rows.row_bytes + 1)] = 5;
	memcpy(fast, plain, size);
	rows.data = plain;
	const size_t done = png_unfilter_plain(&rows);
	rows.data = fast;
	assert_int_equal(png_unfilter_fast(&rows), done);
	for (size_t y = 0; y < done; y++) {
		const size_t at = y * (rows.row_bytes + 1);
		assert_memory_equal(plain + at, fast + at, rows.used_bytes + 1);
	}
	free(plain);
	free(fast);
}

static void unfilter_alike(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 0);
	for (int i = 0; i < 3000; i++)
		unfilter_once(&rng);
}

/* ---- decoding ----------------------------------------------------------------------------- */

struct kind {
	int color_type, bit_depth;
};

static const struct kind kinds[] = {
	{PNG_COLOR_TYPE_GRAY, 1},
	{PNG_COLOR_TYPE_GRAY, 2},
	{PNG_COLOR_TYPE_GRAY, 4},
	{PNG_COLOR_TYPE_GRAY, 8},
	{PNG_COLOR_TYPE_GRAY, 16},
	{PNG_COLOR_TYPE_RGB, 8},
	{PNG_COLOR_TYPE_RGB, 16},
	{PNG_COLOR_TYPE_PALETTE, 1},
	{PNG_COLOR_TYPE_PALETTE, 2},
	{PNG_COLOR_TYPE_PALETTE, 4},
	{PNG_COLOR_TYPE_PALETTE, 8},
	{PNG_COLOR_TYPE_GRAY_ALPHA, 8},
	{PNG_COLOR_TYPE_GRAY_ALPHA, 16},
	{PNG_COLOR_TYPE_RGB_ALPHA, 8},
	{PNG_COLOR_TYPE_RGB_ALPHA, 16},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct png_recipe draw_recipe(struct rng *rng)
{
	static const int filters[] = {0, PNG_FILTER_NONE, PNG_FILTER_SUB, PNG_FILTER_UP,
		PNG_FILTER_AVG, PNG_FILTER_PAETH};
	const struct kind *const kind = &kinds[rng_below(rng, KINDS)];
	return (struct png_recipe){
		.width = 1 + (uint32_t)rng_below(rng, rng_below(rng, 4) ? 70 : 4),
		.height = 1 + (uint32_t)rng_below(rng, rng_below(rng, 4) ? 50 : 3),
		.color_type = kind->color_type,
		.bit_depth = kind->bit_depth,
		.filters = filters[rng_below(rng, 6)],
		.is_interlaced = rng_below(rng, 4) == 0,
		.level = (int)rng_below(rng, 10),
		.idat_bytes = rng_below(rng, 2) ? 6 + rng_below(rng, 200) : 0,
		.has_extras = rng_below(rng, 2),
	};
}

static void compare_decoders(const struct test_decoder *fast, const struct test_decoder *libpng,
	const struct test_file *file, struct rng *rng)
{
	struct error err;
	struct region whole = {0};
	struct region region;
	uint8_t *const expected = fixture_decode(libpng, file, &whole, 1, &err);
	if (!expected)
		fail_msg("libpng: %s", err.text);
	region = whole;
	uint8_t *const got = fixture_decode(fast, file, &region, 1, &err);
	if (!got)
		fail_msg("fast: %s", err.text);
	fixture_assert_part(expected, whole.width, got, &whole, "fast against libpng");
	free(got);
	for (int i = 0; i < 4; i++) {
		region = fixture_region(rng, whole.width, whole.height);
		uint8_t *const by_fast = fixture_decode(fast, file, &region, 1, &err);
		uint8_t *const by_libpng = fixture_decode(libpng, file, &region, 1, &err);
		assert_non_null(by_fast);
		assert_non_null(by_libpng);
		fixture_assert_part(expected, whole.width, by_fast, &region, "fast, cropped");
		fixture_assert_part(expected, whole.width, by_libpng, &region, "libpng, cropped");
		free(by_fast);
		free(by_libpng);
	}
	free(expected);
}

static void decoders_alike(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 1);
	struct test_decoder fast = fixture_open(&codec_png);
	struct test_decoder libpng = fixture_open(&codec_png_libpng);
	for (int i = 0; i < 400; i++) {
		const struct png_recipe recipe = draw_recipe(&rng);
		struct test_file file = png_fixture(&rng, &recipe);
		struct test_file copy = fixture_copy(&file, file.size);
		compare_decoders(&fast, &libpng, &copy, &rng);
		free(copy.bytes);
		free(file.bytes);
	}
	fixture_close(&fast);
	fixture_close(&libpng);
}

/* Pixels against what was written, not only one decoder against the other. */
static void pixels_are_those_written(void **state)
{
	(void)state;
	enum { WIDTH = 37, HEIGHT = 21 };
	for (size_t k = 0; k < KINDS; k++) {
		const int channels[] = {1, 0, 3, 1, 2, 0, 4};
		const struct png_recipe recipe = {.width = WIDTH,
			.height = HEIGHT,
			.color_type = kinds[k].color_type,
			.bit_depth = kinds[k].bit_depth,
			.level = 6};
		if (recipe.bit_depth < 8)
			continue;
		struct rng rng;
		struct rng again;
		rng_init(&rng, k, 2);
		again = rng;
		struct test_file file = png_fixture(&rng, &recipe);
		const size_t sample = (size_t)recipe.bit_depth / 8;
		const size_t step = (size_t)channels[recipe.color_type] * sample;
		uint8_t *const written = fixture_pixels(&again, WIDTH * (uint32_t)step, HEIGHT, 1);
		struct test_decoder fast = fixture_open(&codec_png);
		struct region whole = {0};
		struct error err;
		uint8_t *const rgb = fixture_decode(&fast, &file, &whole, 1, &err);
		assert_non_null(rgb);
		for (size_t i = 0; i < (size_t)WIDTH * HEIGHT; i++)
			for (size_t c = 0; c < 3; c++) {
				const uint8_t value =
					written[i * step + (step >= 3 * sample ? c * sample : 0)];
				const uint8_t index = written[i];
				const uint8_t palette[3] = {(uint8_t)(index * 7),
					(uint8_t)(255 - index), (uint8_t)(index * 31)};
				const bool is_palette = recipe.color_type == PNG_COLOR_TYPE_PALETTE;
				const uint8_t color = index < 200 ? palette[c] : 0;
				assert_int_equal(rgb[i * 3 + c], is_palette ? color : value);
			}
		free(rgb);
		free(written);
		free(file.bytes);
		fixture_close(&fast);
	}
}

/* ---- damage ------------------------------------------------------------------------------- */

static const struct codec_ops *const both[] = {&codec_png, &codec_png_libpng};

static void every_truncation_is_bad(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 5, 0);
	const struct png_recipe recipe = {.width = 19,
		.height = 11,
		.color_type = PNG_COLOR_TYPE_RGB,
		.bit_depth = 8,
		.level = 6,
		.idat_bytes = 90};
	struct test_file file = png_fixture(&rng, &recipe);
	for (size_t d = 0; d < 2; d++) {
		struct test_decoder decoder = fixture_open(both[d]);
		for (size_t size = 0; size < file.size; size++) {
			struct test_file cut = fixture_copy(&file, size);
			struct region whole = {0};
			struct error err;
			assert_null(fixture_decode(&decoder, &cut, &whole, 1, &err));
			assert_true(err.text[0]);
			free(cut.bytes);
		}
		struct region whole = {0};
		struct error err;
		uint8_t *const rgb = fixture_decode(&decoder, &file, &whole, 1, &err);
		assert_non_null(rgb); /* and the decoder still works */
		free(rgb);
		fixture_close(&decoder);
	}
	free(file.bytes);
}

/* A changed byte anywhere is noticed, if only by a CRC; behind IEND it does not matter. */
static void every_changed_byte_is_bad(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 6, 0);
	const struct png_recipe recipe = {.width = 19,
		.height = 11,
		.color_type = PNG_COLOR_TYPE_RGB,
		.bit_depth = 8,
		.level = 6};
	struct test_file file = png_fixture(&rng, &recipe);
	struct test_decoder fast = fixture_open(&codec_png);
	for (size_t at = 8; at < file.size; at++) {
		struct test_file copy = fixture_copy(&file, file.size);
		copy.bytes[at] ^= (uint8_t)(1 + rng_below(&rng, 255));
		struct region whole = {0};
		struct error err;
		assert_null(fixture_decode(&fast, &copy, &whole, 1, &err));
		free(copy.bytes);
	}
	fixture_close(&fast);
	free(file.bytes);
}

/* Writes the chunks' CRCs again, so that damage reaches the decoders. */
static void mend_crcs(struct test_file *file)
{
	size_t at = 8;
	while (file->size - at >= 12) {
		const uint32_t size = bytes_be32(file->bytes + at);
		if (size > file->size - at - 12)
			return;
		const uint32_t crc = (uint32_t)crc32(0, file->bytes + at + 4, size + 4);
		for (int i = 0; i < 4; i++)
			file->bytes[at + 8 + size + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
		at += (size_t)size + 12;
	}
}

/* Damage that the CRCs have been mended to hide: what libpng takes, the fast decoder takes, with the same
 * pixels.  It may take a little more, since ISA-L checks some code tables less strictly than zlib: then
 * it was the deflate stream (IDAT) that libpng refused. */
static void damage_is_taken_alike(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 3);
	struct test_decoder fast = fixture_open(&codec_png);
	struct test_decoder libpng = fixture_open(&codec_png_libpng);
	int good = 0;
	int bad = 0;
	for (int i = 0; i < 1500; i++) {
		const struct png_recipe recipe = draw_recipe(&rng);
		struct test_file file = png_fixture(&rng, &recipe);
		const size_t changes = 1 + rng_below(&rng, 3);
		for (size_t k = 0; k < changes; k++)
			file.bytes[33 + rng_below(&rng, file.size - 33)] = (uint8_t)rng_next(&rng);
		mend_crcs(&file);
		struct test_file copy = fixture_copy(&file, file.size);
		struct region whole_0 = {0};
		struct region whole_1 = {0};
		struct error err_0;
		struct error err_1;
		uint8_t *const a = fixture_decode(&fast, &copy, &whole_0, 1, &err_0);
		uint8_t *const b = fixture_decode(&libpng, &copy, &whole_1, 1, &err_1);
		if (!a != !b && (!a || !strstr(err_1.text, "IDAT")))
			fail_msg("picture %d: fast '%s', libpng '%s'", i, err_0.text, err_1.text);
		if (a && b)
			fixture_assert_part(b, whole_1.width, a, &whole_0, "damaged");
		*(a ? &good : &bad) += 1;
		free(a);
		free(b);
		free(copy.bytes);
		free(file.bytes);
	}
	assert_true(good > 0 && bad > 0);
	fixture_close(&fast);
	fixture_close(&libpng);
}

/* A buffer whose end is the end of what may be touched. */
struct fenced {
	uint8_t *map, *data;
};
enum { FENCED_BYTES = 16 * 4096, FENCE_BYTES = 4096 };

static struct fenced fence(size_t size)
{
	struct fenced fenced;
	fenced.map = mmap(NULL, FENCED_BYTES + FENCE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fenced.map, MAP_FAILED);
	assert_int_equal(mprotect(fenced.map + FENCED_BYTES, FENCE_BYTES, PROT_NONE), 0);
	fenced.data = fenced.map + FENCED_BYTES - size;
	return fenced;
}

/* ISA-L's loops are assembly, where no sanitizer looks: of damaged data, and of room for only a part,
 * it reads and writes nothing behind its buffers. */
static void inflate_stays_within(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 4);
	static struct inflate_state inflate;
	for (int i = 0; i < 800; i++) {
		const struct png_recipe recipe = draw_recipe(&rng);
		struct test_file file = png_fixture(&rng, &recipe);
		struct png_chunks chunks;
		struct error err;
		assert_int_equal(png_chunks_read(&chunks, file.bytes, file.size, &err), 0);
		const size_t in_size = chunks.idat_bytes - 2;
		const size_t out_size = 1 + rng_below(&rng, 20000);
		uint8_t *const joined = malloc(chunks.idat_bytes);
		png_chunks_join(&chunks, joined);
		assert_true(in_size < FENCED_BYTES);
		struct fenced in = fence(in_size);
		struct fenced out = fence(out_size);
		memcpy(in.data, joined + 2, in_size);
		for (size_t k = rng_below(&rng, 4); k > 0; k--)
			in.data[rng_below(&rng, in_size)] = (uint8_t)rng_next(&rng);
		isal_inflate_init(&inflate);
		inflate.next_in = in.data;
		inflate.avail_in = (uint32_t)in_size;
		inflate.next_out = out.data;
		inflate.avail_out = (uint32_t)out_size;
		const int status = isal_inflate_stateless(&inflate); /* or a segmentation fault */
		assert_true(status <= ISAL_OUT_OVERFLOW);
		(void)munmap(in.map, FENCED_BYTES + FENCE_BYTES);
		(void)munmap(out.map, FENCED_BYTES + FENCE_BYTES);
		free(joined);
		free(file.bytes);
	}
}

/* 60000 x 60000 pixels, and 7000 x 7000 in a file of 100 bytes. */
static void claims_are_refused(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 7, 0);
	const struct png_recipe recipe = {.width = 5,
		.height = 5,
		.color_type = PNG_COLOR_TYPE_RGB,
		.bit_depth = 8,
		.level = 6};
	const uint32_t edges[] = {60000, 7000, 0x80000000U, 0};
	struct test_file file = png_fixture(&rng, &recipe);
	for (size_t e = 0; e < sizeof edges / sizeof *edges; e++) {
		for (int i = 0; i < 4; i++)
			file.bytes[16 + i] = file.bytes[20 + i] =
				(uint8_t)(edges[e] >> (24 - 8 * i));
		mend_crcs(&file);
		for (size_t d = 0; d < 2; d++) {
			struct test_decoder decoder = fixture_open(both[d]);
			struct image_info info;
			struct error err;
			assert_int_equal(decoder.ops->begin(
						 decoder.state, file.bytes, file.size, &info, &err),
				-EINVAL);
			assert_true(err.text[0]);
			fixture_close(&decoder);
		}
	}
	free(file.bytes);
}

/* A giant, interlaced or not, is given up between two rows. */
static void it_can_be_stopped(void **state)
{
	(void)state;
	atomic_bool stop = false;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 0);
	const struct region whole = {.width = 60, .height = 90};
	for (int interlaced = 0; interlaced < 2; interlaced++) {
		const struct png_recipe recipe = {.width = 60,
			.height = 90,
			.color_type = PNG_COLOR_TYPE_RGB,
			.bit_depth = 8,
			.is_interlaced = interlaced};
		struct test_file file = png_fixture(&rng, &recipe);
		struct test_decoder decoder = fixture_open_stoppable(&codec_png_libpng, &stop);
		struct image_info info;
		struct strip strip;
		struct error err = {""};
		const struct codec_ops *const ops = decoder.ops;
		for (int stops = 1; stops >= 0; stops--) {
			assert_int_equal(
				ops->begin(decoder.state, file.bytes, file.size, &info, &err), 0);
			assert_int_equal(ops->select(decoder.state, &whole, 1, &err), 0);
			atomic_store(&stop, stops);
			assert_int_equal(
				ops->next(decoder.state, &strip, &err), stops ? -EINTR : 1);
		}
		fixture_close(&decoder);
		free(file.bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unfilter_alike),
		cmocka_unit_test(decoders_alike),
		cmocka_unit_test(pixels_are_those_written),
		cmocka_unit_test(every_truncation_is_bad),
		cmocka_unit_test(every_changed_byte_is_bad),
		cmocka_unit_test(damage_is_taken_alike),
		cmocka_unit_test(inflate_stays_within),
		cmocka_unit_test(claims_are_refused),
		cmocka_unit_test(it_can_be_stopped),
	};
	return cmocka_run_group_tests_name("image_png", tests, NULL, NULL);
}
