/* PNG files of every kind, written with libpng. */
#ifndef MLBENCH_TESTS_UNIT_PNG_FIXTURE_H
#define MLBENCH_TESTS_UNIT_PNG_FIXTURE_H

#include "tests/unit/image_fixture.h"

#include <png.h>

struct png_recipe {
	uint32_t width, height;
	int color_type, bit_depth;
	int filters; /* PNG_FILTER_... flags; 0: libpng's choice of all */
	bool is_interlaced;
	int level;
	size_t idat_bytes; /* size of the IDAT chunks, 0: libpng's */
	bool has_extras;   /* a text chunk, a gamma and a transparent colour */
};

static inline void png_fixture_write(png_structp png, png_bytep bytes, size_t size)
{
	struct test_file *const file = png_get_io_ptr(png);
	file->bytes = realloc(file->bytes, file->size + size);
	assert_non_null(file->bytes);
	memcpy(file->bytes + file->size, bytes, size);
	file->size += size;
}

static inline void png_fixture_flush(png_structp png)
{
	(void)png;
}

static inline void png_fixture_palette(png_structp png, png_infop info, int bit_depth)
{
	png_color palette[256];
	const int count = bit_depth == 8 ? 200 : 1 << bit_depth;
	for (int i = 0; i < count; i++)
		palette[i] =
			(png_color){(png_byte)(i * 7), (png_byte)(255 - i), (png_byte)(i * 31)};
	png_set_PLTE(png, info, palette, count);
}

static inline void png_fixture_extras(png_structp png, png_infop info, int color_type)
{
	char key[] = "Comment";
	char value[] = "nothing to see";
	png_text text = {.compression = PNG_TEXT_COMPRESSION_NONE, .key = key, .text = value};
	png_set_text(png, info, &text, 1);
	png_set_gAMA(png, info, 0.45455);
	png_byte alpha[3] = {0, 128, 255};
	png_color_16 color = {.red = 1, .green = 2, .blue = 3, .gray = 1};
	if (color_type == PNG_COLOR_TYPE_PALETTE)
		png_set_tRNS(png, info, alpha, 2, NULL);
	else if (!(color_type & PNG_COLOR_MASK_ALPHA))
		png_set_tRNS(png, info, NULL, 0, &color);
}

static inline struct test_file png_fixture(struct rng *rng, const struct png_recipe *recipe)
{
	struct test_file file = {0};
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	assert_non_null(info);
	png_set_write_fn(png, &file, png_fixture_write, png_fixture_flush);
	png_set_IHDR(png, info, recipe->width, recipe->height, recipe->bit_depth,
		recipe->color_type,
		recipe->is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
		PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_set_check_for_invalid_index(png, 0);
	png_set_compression_level(png, recipe->level);
	png_set_filter(png, 0, recipe->filters ? recipe->filters : PNG_ALL_FILTERS);
	if (recipe->idat_bytes)
		png_set_compression_buffer_size(png, recipe->idat_bytes);
	if (recipe->color_type == PNG_COLOR_TYPE_PALETTE)
		png_fixture_palette(png, info, recipe->bit_depth);
	if (recipe->has_extras)
		png_fixture_extras(png, info, recipe->color_type);
	png_write_info(png, info);
	const size_t row_bytes = png_get_rowbytes(png, info);
	uint8_t *const pixels = fixture_pixels(rng, (uint32_t)row_bytes, recipe->height, 1);
	png_bytep *const rows = calloc(recipe->height, sizeof *rows);
	for (size_t y = 0; y < recipe->height; y++)
		rows[y] = pixels + y * row_bytes;
	png_write_image(png, rows);
	png_write_end(png, NULL);
	png_destroy_write_struct(&png, &info);
	free(rows);
	free(pixels);
	return file;
}

#endif
