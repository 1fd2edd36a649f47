/* JPEG files of every kind, written with libjpeg. */
#ifndef MLBENCH_TESTS_UNIT_JPEG_FIXTURE_H
#define MLBENCH_TESTS_UNIT_JPEG_FIXTURE_H

#include "tests/unit/image_fixture.h"

#include <jpeglib.h>

struct jpeg_recipe {
	uint32_t width, height;
	J_COLOR_SPACE in, stored; /* of the pixels given, and in the file */
	int horizontal, vertical; /* sampling of the first component; the others have 1 x 1 */
	int quality;
	bool is_progressive, is_arithmetic, is_separate; /* a scan for each component */
	int restart;                                     /* MCUs between restart markers */
	int scans; /* of a progressive one of a single component; 0: libjpeg's */
};

static inline size_t jpeg_fixture_channels(J_COLOR_SPACE space)
{
	return space == JCS_GRAYSCALE ? 1 : space == JCS_CMYK || space == JCS_YCCK ? 4 : 3;
}

static inline void jpeg_fixture_scans(struct jpeg_compress_struct *jpeg, jpeg_scan_info *scans)
{
	for (int c = 0; c < jpeg->num_components; c++)
		scans[c] = (jpeg_scan_info){.comps_in_scan = 1, .component_index = {c}, .Se = 63};
	jpeg->scan_info = scans;
	jpeg->num_scans = jpeg->num_components;
}

enum { JPEG_FIXTURE_SCANS_MAX = 694, JPEG_FIXTURE_BITS = 10 };

/* First the constant, then each coefficient by itself, its bits one after the other: what a vandal would
 * make.  The last ones may be left out: the picture is coarser then, and good. */
static inline void jpeg_fixture_many_scans(
	struct jpeg_compress_struct *jpeg, jpeg_scan_info *scans, int count)
{
	assert_true(count <= JPEG_FIXTURE_SCANS_MAX);
	scans[0] = (jpeg_scan_info){.comps_in_scan = 1};
	for (int i = 1; i < count; i++) {
		const int low = JPEG_FIXTURE_BITS - (i - 1) / 63;
		scans[i] = (jpeg_scan_info){.comps_in_scan = 1,
			.Ss = 1 + (i - 1) % 63,
			.Se = 1 + (i - 1) % 63,
			.Ah = low == JPEG_FIXTURE_BITS ? 0 : low + 1,
			.Al = low};
	}
	jpeg->scan_info = scans;
	jpeg->num_scans = count;
}

/* Encodes pixels of recipe->in. */
static inline struct test_file jpeg_fixture_encode(
	const struct jpeg_recipe *recipe, const uint8_t *pixels)
{
	struct jpeg_compress_struct jpeg = {0};
	struct jpeg_error_mgr errors;
	static jpeg_scan_info scans[JPEG_FIXTURE_SCANS_MAX];
	unsigned char *bytes = NULL;
	unsigned long size = 0;
	jpeg.err = jpeg_std_error(&errors);
	jpeg_create_compress(&jpeg);
	jpeg_mem_dest(&jpeg, &bytes, &size);
	jpeg.image_width = recipe->width;
	jpeg.image_height = recipe->height;
	jpeg.in_color_space = recipe->in;
	jpeg.input_components = (int)jpeg_fixture_channels(recipe->in);
	jpeg_set_defaults(&jpeg);
	jpeg_set_colorspace(&jpeg, recipe->stored);
	jpeg_set_quality(&jpeg, recipe->quality, TRUE);
	jpeg.comp_info[0].h_samp_factor = recipe->horizontal;
	jpeg.comp_info[0].v_samp_factor = recipe->vertical;
	if (jpeg.num_components == 4) { /* black is as fine as luma */
		jpeg.comp_info[3].h_samp_factor = recipe->horizontal;
		jpeg.comp_info[3].v_samp_factor = recipe->vertical;
	}
	jpeg.restart_interval = (unsigned)recipe->restart;
	jpeg.arith_code = recipe->is_arithmetic;
	if (recipe->is_separate)
		jpeg_fixture_scans(&jpeg, scans);
	if (recipe->is_progressive)
		jpeg_simple_progression(&jpeg);
	if (recipe->scans)
		jpeg_fixture_many_scans(&jpeg, scans, recipe->scans);
	jpeg_start_compress(&jpeg, TRUE);
	const size_t stride = recipe->width * jpeg_fixture_channels(recipe->in);
	while (jpeg.next_scanline < jpeg.image_height) {
		JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + jpeg.next_scanline * stride);
		(void)jpeg_write_scanlines(&jpeg, &row, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	return (struct test_file){.bytes = bytes, .size = size};
}

static inline struct test_file jpeg_fixture(struct rng *rng, const struct jpeg_recipe *recipe)
{
	uint8_t *const pixels = fixture_pixels(
		rng, recipe->width, recipe->height, jpeg_fixture_channels(recipe->in));
	const struct test_file file = jpeg_fixture_encode(recipe, pixels);
	free(pixels);
	return file;
}

#endif
