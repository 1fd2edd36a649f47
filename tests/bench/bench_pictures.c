/* Are synthetic pictures like photographs to a decoder?  Reads photographs (a folder of PPM files
 * of one size, made by photo_crops.py), renders as many synthetic pictures of that size, encodes
 * both with the same encoder and decodes both, interleaved.  Prints bytes and decode time per pixel
 * and the ratios: at the natural detail, and with both sides brought to the same larger file size.
 *
 *   bench_pictures FOLDER [DUMP [DUMP_LARGE]]     the folders receive 24 synthetic pictures to look
 * at, natural and at the larger size */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "workloads/image/encode.h"
#include "workloads/image/picture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum {
	PICTURES_MAX = 256,
	REPEATS = 7,
	PPM_MAX = 64 << 20,
	QUALITY = 90,
	DUMPED = 24,
	PER_PHOTO = 4
};

struct set {
	uint8_t *rgb[PICTURES_MAX];    /* of a photograph */
	uint8_t *planes[PICTURES_MAX]; /* of a synthetic picture */
	uint8_t *jpeg[PICTURES_MAX];
	size_t bytes[PICTURES_MAX];
	int count;
	double ns[REPEATS]; /* decode, per pixel */
};

static uint32_t width, height;

static void die(const char *what)
{
	(void)fprintf(stderr, "bench_pictures: %s\n", what);
	exit(EXIT_FAILURE);
}

static uint8_t *read_ppm(const char *path)
{
	char *data;
	size_t size;
	struct error err;
	unsigned w, h;
	int header = 0;
	if (files_read(path, PPM_MAX, &data, &size, &err))
		die(err.text);
	if (sscanf(data, "P6 %u %u 255%n", &w, &h, &header) != 2 || !header)
		die("not a PPM");
	if (width && (w != width || h != height))
		die("pictures of different sizes");
	width = w;
	height = h;
	uint8_t *rgb = malloc((size_t)w * h * 3);
	if (!rgb || size < (size_t)header + 1 + (size_t)w * h * 3)
		die("short PPM");
	memcpy(rgb, data + header + 1, (size_t)w * h * 3);
	free(data);
	return rgb;
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void load(struct set *set, const char *folder)
{
	struct dirent **names;
	const int count = scandir(folder, &names, visible, alphasort);
	if (count <= 0)
		die("no photographs in the folder");
	for (int i = 0; i < count && set->count < PICTURES_MAX; i++) {
		char *path = files_join(folder, names[i]->d_name);
		set->rgb[set->count++] = read_ppm(path);
		free(path);
		free(names[i]);
	}
	free(names);
}

static void encode_set(struct set *set, int quality)
{
	struct error err;
	struct encoder *encoder;
	const struct encode_options options = {.format = DATASET_FORMAT_JPEG, .quality = quality};
	const struct picture_size size = {width, height};
	if (encoder_open(&encoder, &options, &err))
		die(err.text);
	for (int i = 0; i < set->count; i++) {
		const uint8_t *bytes;
		const struct picture_planes planes = picture_planes_place(size, set->planes[i]);
		const int code = set->rgb[i] ? encoder_encode(encoder, set->rgb[i], width, height,
						       &bytes, &set->bytes[i], &err)
					     : encoder_encode_planes(encoder, &planes, width,
						       height, &bytes, &set->bytes[i], &err);
		if (code)
			die(err.text);
		free(set->jpeg[i]);
		set->jpeg[i] = malloc(set->bytes[i]);
		memcpy(set->jpeg[i], bytes, set->bytes[i]);
	}
	encoder_close(encoder);
}

static double mean_bytes(const struct set *set)
{
	double sum = 0;
	for (int i = 0; i < set->count; i++)
		sum += (double)set->bytes[i];
	return sum / set->count;
}

static void decode(const uint8_t *bytes, size_t size, uint8_t *rgb)
{
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	jpeg.err = jpeg_std_error(&errors);
	jpeg_create_decompress(&jpeg);
	jpeg_mem_src(&jpeg, bytes, size);
	(void)jpeg_read_header(&jpeg, TRUE);
	(void)jpeg_start_decompress(&jpeg);
	while (jpeg.output_scanline < jpeg.output_height) {
		JSAMPROW row = rgb + (size_t)jpeg.output_scanline * width * 3;
		(void)jpeg_read_scanlines(&jpeg, &row, 1);
	}
	(void)jpeg_finish_decompress(&jpeg);
	jpeg_destroy_decompress(&jpeg);
}

static double decode_set(const struct set *set, uint8_t *rgb)
{
	const uint64_t start = clock_now_ns();
	for (int i = 0; i < set->count; i++)
		decode(set->jpeg[i], set->bytes[i], rgb);
	return (double)(clock_now_ns() - start) / ((double)width * height * set->count);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void compare(const char *title, struct set *real, struct set *made)
{
	uint8_t *rgb = malloc((size_t)width * height * 3);
	double ratio[REPEATS];
	(void)decode_set(real, rgb);
	for (int r = 0; r < REPEATS; r++) {
		real->ns[r] = decode_set(real, rgb);
		made->ns[r] = decode_set(made, rgb);
		ratio[r] = made->ns[r] / real->ns[r];
	}
	free(rgb);
	qsort(real->ns, REPEATS, sizeof(double), by_value);
	qsort(made->ns, REPEATS, sizeof(double), by_value);
	qsort(ratio, REPEATS, sizeof(double), by_value);
	const double pixels = (double)width * height;
	printf("%s\n", title);
	printf("  %-12s %6s %10s %12s %22s\n", "", "files", "mean KB", "bytes/pixel",
		"decode ns/pixel");
	const struct set *sets[] = {real, made};
	for (int s = 0; s < 2; s++)
		printf("  %-12s %6d %10.1f %12.4f %10.3f [%.3f-%.3f]\n",
			s ? "synthetic" : "photographs", sets[s]->count, mean_bytes(sets[s]) / 1e3,
			mean_bytes(sets[s]) / pixels, sets[s]->ns[REPEATS / 2], sets[s]->ns[0],
			sets[s]->ns[REPEATS - 1]);
	printf("  %-12s %6s %10s %12.3f %10.3f [%.3f-%.3f]\n", "ratio", "", "",
		mean_bytes(made) / mean_bytes(real), ratio[REPEATS / 2], ratio[0],
		ratio[REPEATS - 1]);
}

static double render_set(const struct picture_atlas *atlas, struct set *set, uint32_t detail)
{
	const struct picture_size size = {width, height};
	const uint64_t start = clock_now_ns();
	for (int i = 0; i < set->count; i++) {
		const struct picture_planes planes = picture_planes_place(size, set->planes[i]);
		picture_render(atlas, (uint64_t)i, size, detail, &planes);
	}
	return (double)(clock_now_ns() - start) / ((double)width * height * set->count);
}

/* The detail at which the synthetic files have the given mean. */
static uint32_t find_detail(const struct picture_atlas *atlas, struct set *set, double bytes)
{
	uint32_t low = 0, high = PICTURE_DETAIL_MAX;
	while (high - low > 4) {
		const uint32_t middle = (low + high) / 2;
		(void)render_set(atlas, set, middle);
		encode_set(set, QUALITY);
		*(mean_bytes(set) < bytes ? &low : &high) = middle;
	}
	return high;
}

static void dump(const struct set *set, const char *folder)
{
	const struct picture_size size = {width, height};
	uint8_t *rgb = malloc((size_t)width * height * 3);
	for (int i = 0; i < DUMPED && i < set->count; i++) {
		char path[4096];
		(void)snprintf(path, sizeof(path), "%s/%03d.ppm", folder, i);
		FILE *file = fopen(path, "wb");
		if (!file)
			die("cannot write the dump");
		(void)fprintf(file, "P6\n%u %u\n255\n", width, height);
		const struct picture_planes planes = picture_planes_place(size, set->planes[i]);
		picture_to_rgb(&planes, size, rgb);
		(void)fwrite(rgb, 3, (size_t)width * height, file);
		(void)fclose(file);
	}
	free(rgb);
}

static void spread(const struct set *set, const char *name)
{
	double sizes[PICTURES_MAX];
	for (int i = 0; i < set->count; i++)
		sizes[i] = (double)set->bytes[i] / 1e3;
	qsort(sizes, (size_t)set->count, sizeof(double), by_value);
	printf("  %-12s KB: min %.1f, 10%% %.1f, median %.1f, 90%% %.1f, max %.1f\n", name,
		sizes[0], sizes[set->count / 10], sizes[set->count / 2], sizes[set->count * 9 / 10],
		sizes[set->count - 1]);
}

int main(int argc, char **argv)
{
	static struct set real, made;
	struct error err;
	struct picture_atlas *atlas;
	if (argc < 2)
		die("usage: bench_pictures FOLDER_OF_PPM [DUMP_FOLDER]");
	load(&real, argv[1]);
	made.count = real.count * PER_PHOTO > PICTURES_MAX ? PICTURES_MAX : real.count * PER_PHOTO;
	for (int i = 0; i < made.count; i++)
		made.planes[i] = malloc(picture_planes_bytes((struct picture_size){width, height}));
	const uint64_t start = clock_now_ns();
	if (picture_atlas_open(&atlas, 1, &err))
		die(err.text);
	for (unsigned i = 0; i < picture_atlas_tiles(); i++)
		if (picture_atlas_paint(atlas, i, &err))
			die(err.text);
	printf("atlas painted in %.0f ms on one thread\n", (double)(clock_now_ns() - start) / 1e6);
	(void)render_set(atlas, &made, PICTURE_DETAIL_NATURAL);
	printf("render %.3f ns/pixel\n", render_set(atlas, &made, PICTURE_DETAIL_NATURAL));
	if (argc > 2)
		dump(&made, argv[2]);
	encode_set(&real, QUALITY);
	const uint64_t encode_start = clock_now_ns();
	encode_set(&made, QUALITY);
	printf("encode %.3f ns/pixel\n",
		(double)(clock_now_ns() - encode_start) / ((double)width * height * made.count));
	char title[128];
	(void)snprintf(title, sizeof(title), "%u x %u, quality %d 4:2:0, natural detail", width,
		height, QUALITY);
	compare(title, &real, &made);
	spread(&real, "photographs");
	spread(&made, "synthetic");

	int quality = QUALITY;
	const double wanted = 110e3 * width * height / (500.0 * 375.0);
	while (quality < 100 && mean_bytes(&real) < wanted)
		encode_set(&real, ++quality);
	const uint32_t detail = find_detail(atlas, &made, mean_bytes(&real));
	(void)snprintf(title, sizeof(title),
		"equal bytes: photographs at quality %d, synthetic at %d with detail %u", quality,
		QUALITY, detail);
	compare(title, &real, &made);
	if (argc > 3)
		dump(&made, argv[3]);
	picture_atlas_close(atlas);
	return EXIT_SUCCESS;
}
