/* What the parts of a sample cost, in CPU time of one thread: decoding whole and cropped, the two
 * PNG decoders, inflating and unfiltering, resizing, and a whole sample.  All cases run in turn,
 * seven times over; the table shows the median and the range, per picture.
 *
 *   bench_decode [FILE...]     JPEG and PNG files; without any, 24 synthetic pictures of 500 x 375
 */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "workloads/image/encode.h"
#include "workloads/image/picture.h"
#include "workloads/image/png.h"
#include "workloads/image/resample.h"
#include "workloads/image/transform.h"

#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/igzip_lib.h>

enum {
	FILES_MAX = 512,
	FILE_BYTES_MAX = 1 << 28,
	REPEATS = 7,
	PICTURES = 24,
	WIDTH = 500,
	HEIGHT = 375,
	QUALITY = 90,
	DETAIL = PICTURE_DETAIL_NATURAL * 2, /* about 100 KB a JPEG, as ImageNet has them */
	TINY_EDGE = 18,
	TINY_COUNT = 20000,
};

struct file {
	uint8_t *bytes;
	size_t size;
	struct image_info info;
};

struct set {
	struct file files[FILES_MAX];
	int count;
};

static struct set jpegs, pngs, raws;

static void die(const char *what)
{
	(void)fprintf(stderr, "bench_decode: %s\n", what);
	exit(EXIT_FAILURE);
}

static void check(int result, const struct error *err)
{
	if (result)
		die(err->text);
}

/* ---- pictures ----------------------------------------------------------------------------- */

static void add_file(struct set *set, const void *bytes, size_t size)
{
	struct error err;
	if (set->count == FILES_MAX)
		return;
	struct file *const file = &set->files[set->count++];
	*file = (struct file){.bytes = malloc(size), .size = size};
	if (!file->bytes)
		die("no memory");
	memcpy(file->bytes, bytes, size);
	check(image_read_info(bytes, size, &file->info, &err), &err);
}

static void load_file(const char *path)
{
	char *data;
	size_t size;
	struct error err;
	check(files_read(path, FILE_BYTES_MAX, &data, &size, &err), &err);
	const enum image_format format = image_sniff(data, size);
	if (format == IMAGE_FORMAT_JPEG)
		add_file(&jpegs, data, size);
	else if (format == IMAGE_FORMAT_PNG)
		add_file(&pngs, data, size);
	free(data);
}

static void encode_into(struct set *set, enum dataset_format format, const uint8_t *rgb)
{
	struct error err;
	struct encoder *encoder;
	const uint8_t *bytes;
	size_t size;
	const struct encode_options options = {
		.format = format, .quality = QUALITY, .png_level = 6};
	check(encoder_open(&encoder, &options, &err), &err);
	check(encoder_encode(encoder, rgb, WIDTH, HEIGHT, &bytes, &size, &err), &err);
	add_file(set, bytes, size);
	encoder_close(encoder);
}

static void make_pictures(void)
{
	struct error err;
	struct picture_atlas *atlas;
	const struct picture_size size = {WIDTH, HEIGHT};
	check(picture_atlas_open(&atlas, 1, &err), &err);
	for (unsigned tile = 0; tile < picture_atlas_tiles(); tile++)
		check(picture_atlas_paint(atlas, tile, &err), &err);
	uint8_t *const memory = malloc(picture_planes_bytes(size));
	uint8_t *const rgb = malloc((size_t)WIDTH * HEIGHT * RGB_CHANNELS);
	if (!memory || !rgb)
		die("no memory");
	const struct picture_planes planes = picture_planes_place(size, memory);
	for (unsigned id = 0; id < PICTURES; id++) {
		picture_render(atlas, id, size, DETAIL, &planes);
		picture_to_rgb(&planes, size, rgb);
		encode_into(&jpegs, DATASET_FORMAT_JPEG, rgb);
		encode_into(&pngs, DATASET_FORMAT_PNG, rgb);
	}
	free(memory);
	free(rgb);
	picture_atlas_close(atlas);
}

/* ---- cases -------------------------------------------------------------------------------- */

struct bench {
	const char *name;
	const struct set *set;
	void (*run)(const struct bench *bench);
	const struct codec_ops *decoder;
	bool is_cropped;
	const char *const *keys; /* of a transform; NULL-terminated */
	int per_file;            /* pictures that one call counts for, if not one */
	double us[REPEATS];
	void *state; /* of the case, opened before anything is timed */
};

static volatile unsigned sink;

static struct region choose_crop(const struct file *file, uint64_t seed)
{
	const struct augment_options options = {
		.crop = AUGMENT_CROP_RANDOM,
		.size = 224,
		.scale_min = 0.08,
		.scale_max = 1,
		.ratio_min = 3. / 4,
		.ratio_max = 4. / 3,
	};
	struct augment_choice choice;
	augment_choose(&options, file->info.width, file->info.height, seed, &choice);
	return choice.crop;
}

static void run_decode(const struct bench *bench)
{
	struct error err;
	for (int i = 0; i < bench->set->count; i++) {
		const struct file *const file = &bench->set->files[i];
		struct image_info info;
		struct strip strip;
		struct region region = {.width = file->info.width, .height = file->info.height};
		if (bench->is_cropped)
			region = choose_crop(file, (uint64_t)i);
		check(bench->decoder->begin(bench->state, file->bytes, file->size, &info, &err),
			&err);
		check(bench->decoder->select(bench->state, &region, 1, &err), &err);
		int more;
		while ((more = bench->decoder->next(bench->state, &strip, &err)) > 0)
			sink += strip.pixels[0];
		check(more, &err);
	}
}

static float sample[224 * 224 * RGB_CHANNELS] __attribute__((aligned(64)));

static void run_transform(const struct bench *bench)
{
	struct error err;
	for (int i = 0; i < bench->set->count; i++) {
		const struct file *const file = &bench->set->files[i];
		check(transform_sample(bench->state, file->bytes, file->size, (uint64_t)i, sample,
			      NULL, &err),
			&err);
	}
}

static void run_tiny(const struct bench *bench)
{
	struct error err;
	const struct file *const file = &bench->set->files[0];
	for (uint64_t i = 0; i < TINY_COUNT; i++)
		check(transform_sample(
			      bench->state, file->bytes, file->size, i, sample, NULL, &err),
			&err);
}

/* The joined data, and room for the rows. */
struct inflate_room {
	uint8_t *in[FILES_MAX], *out;
	size_t in_size[FILES_MAX], out_size[FILES_MAX];
	struct png_rows rows[FILES_MAX];
	struct libdeflate_decompressor *libdeflate;
	struct inflate_state isal;
};
static struct inflate_room room;

static void prepare_inflate(void)
{
	size_t most = 0;
	for (int i = 0; i < pngs.count; i++) {
		struct error err;
		struct png_chunks chunks;
		check(png_chunks_read(&chunks, pngs.files[i].bytes, pngs.files[i].size, &err),
			&err);
		room.in_size[i] = chunks.idat_bytes;
		room.in[i] = malloc(chunks.idat_bytes);
		png_chunks_join(&chunks, room.in[i]);
		const size_t row_bytes = png_chunks_row_bytes(&chunks);
		room.out_size[i] = (row_bytes + 1) * chunks.height;
		most = room.out_size[i] > most ? room.out_size[i] : most;
		room.rows[i] = (struct png_rows){
			.rows = chunks.height,
			.row_bytes = row_bytes,
			.used_bytes = row_bytes,
			.pixel_bytes = png_chunks_channels(&chunks) * chunks.bit_depth / 8,
		};
	}
	room.out = malloc(most + SCRATCH_SLACK_BYTES);
	room.libdeflate = libdeflate_alloc_decompressor();
}

static void inflate_isal(int i)
{
	isal_inflate_init(&room.isal);
	room.isal.next_in = room.in[i] + 2;
	room.isal.avail_in = (uint32_t)room.in_size[i] - 2;
	room.isal.next_out = room.out;
	room.isal.avail_out = (uint32_t)room.out_size[i];
	sink += (unsigned)isal_inflate_stateless(&room.isal);
}

static void run_isal(const struct bench *bench)
{
	for (int i = 0; i < bench->set->count; i++)
		inflate_isal(i);
}

static void run_libdeflate(const struct bench *bench)
{
	for (int i = 0; i < bench->set->count; i++)
		sink += (unsigned)libdeflate_deflate_decompress(room.libdeflate, room.in[i] + 2,
			room.in_size[i] - 2, room.out, room.out_size[i], NULL);
}

static void run_unfilter(const struct bench *bench, size_t (*unfilter)(const struct png_rows *))
{
	for (int i = 0; i < bench->set->count; i++) {
		inflate_isal(i);
		struct png_rows rows = room.rows[i];
		rows.data = room.out;
		sink += (unsigned)unfilter(&rows);
	}
}

static void run_unfilter_fast(const struct bench *bench)
{
	run_unfilter(bench, png_unfilter_fast);
}

static void run_unfilter_plain(const struct bench *bench)
{
	run_unfilter(bench, png_unfilter_plain);
}

/* ---- raw pictures for resizing ------------------------------------------------------------ */

static void add_raw(const struct file *file)
{
	struct error err;
	const struct codec_ops *const decoder = &codec_jpeg;
	const struct decoder_options options = {0};
	const struct region whole = {.width = file->info.width, .height = file->info.height};
	struct image_info info;
	struct strip strip;
	char header[64];
	const int at = snprintf(header, sizeof header, "P6 %u %u 255\n", whole.width, whole.height);
	const size_t row_bytes = (size_t)whole.width * RGB_CHANNELS;
	uint8_t *const ppm = calloc(1, (size_t)at + row_bytes * whole.height);
	void *const state = calloc(1, decoder->state_bytes);
	memcpy(ppm, header, (size_t)at);
	check(decoder->open(state, &options, &err), &err);
	check(decoder->begin(state, file->bytes, file->size, &info, &err), &err);
	check(decoder->select(state, &whole, 1, &err), &err);
	while (decoder->next(state, &strip, &err) > 0)
		for (size_t y = 0; y < strip.rows; y++)
			for (size_t x = 0; x < strip.width; x++)
				memcpy(ppm + at + (strip.y + y) * row_bytes + x * RGB_CHANNELS,
					strip.pixels + y * strip.stride + x * strip.pixel_bytes,
					RGB_CHANNELS);
	decoder->close(state);
	free(state);
	add_file(&raws, ppm, (size_t)at + row_bytes * whole.height);
	free(ppm);
}

static struct set *make_tiny(void)
{
	static struct set tiny;
	enum { PIXELS = TINY_EDGE * TINY_EDGE * RGB_CHANNELS };
	char ppm[64 + PIXELS] = {0};
	const int at = snprintf(ppm, 64, "P6 %d %d 255\n", TINY_EDGE, TINY_EDGE);
	add_file(&tiny, ppm, (size_t)at + PIXELS);
	return &tiny;
}

/* ---- table -------------------------------------------------------------------------------- */

static void open_bench(struct bench *bench)
{
	struct error err;
	if (bench->decoder) {
		bench->state = calloc(1, bench->decoder->state_bytes);
		const struct decoder_options options = {
			.extent = {WIDTH, HEIGHT, (uint64_t)WIDTH * HEIGHT}};
		check(bench->decoder->open(bench->state, &options, &err), &err);
	} else if (bench->keys) {
		struct config config;
		struct transform *transform;
		config_init(&config);
		for (const char *const *key = bench->keys; *key; key++)
			check(config_set(&config, *key, &err), &err);
		check(transform_open(&transform, &config, NULL, NULL, &err), &err);
		bench->state = transform;
		config_release(&config);
	}
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const struct bench *bench)
{
	double sorted[REPEATS];
	memcpy(sorted, bench->us, sizeof sorted);
	qsort(sorted, REPEATS, sizeof *sorted, compare_doubles);
	return sorted[REPEATS / 2];
}

static void print_bench(const struct bench *bench)
{
	double sorted[REPEATS];
	memcpy(sorted, bench->us, sizeof sorted);
	qsort(sorted, REPEATS, sizeof *sorted, compare_doubles);
	printf("%-44s %9.2f  [%.2f - %.2f]\n", bench->name, sorted[REPEATS / 2], sorted[0],
		sorted[REPEATS - 1]);
}

static void run_all(struct bench *benches, size_t count)
{
	for (size_t b = 0; b < count; b++) {
		open_bench(&benches[b]);
		if (benches[b].set->count)
			benches[b].run(&benches[b]); /* warm */
	}
	for (int repeat = 0; repeat < REPEATS; repeat++)
		for (size_t b = 0; b < count; b++) {
			struct bench *const bench = &benches[b];
			const uint64_t start = clock_thread_cpu_ns();
			bench->run(bench);
			const int pictures = bench->per_file ? bench->per_file : bench->set->count;
			bench->us[repeat] = (double)(clock_thread_cpu_ns() - start) / 1e3 /
					    (pictures ? pictures : 1);
		}
}

static const char *const keys_default[] = {"codec.crop=on", NULL};
static const char *const keys_whole[] = {"codec.crop=off", NULL};
static const char *const keys_scaled[] = {"codec.jpeg_scaled=on", NULL};
static const char *const keys_libpng[] = {"codec.png=libpng", NULL};
static const char *const keys_bytes[] = {"augment.type=uint8", "augment.layout=hwc", NULL};
static const char *const keys_tiny[] = {"augment.type=uint8", "augment.layout=hwc",
	"augment.crop=none", "augment.size=18", "augment.flip=0", NULL};

static double mean_bytes(const struct set *set)
{
	double sum = 0;
	for (int i = 0; i < set->count; i++)
		sum += (double)set->files[i].size;
	return set->count ? sum / set->count : 0;
}

static double find(const struct bench *benches, size_t count, const char *name)
{
	for (size_t b = 0; b < count; b++)
		if (strcmp(benches[b].name, name) == 0)
			return median(&benches[b]);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		load_file(argv[i]);
	if (argc < 2)
		make_pictures();
	for (int i = 0; i < jpegs.count; i++)
		add_raw(&jpegs.files[i]);
	prepare_inflate();
	struct bench benches[] = {
		{"jpeg decode, whole", &jpegs, run_decode, .decoder = &codec_jpeg},
		{"jpeg decode, crop", &jpegs, run_decode, .decoder = &codec_jpeg,
			.is_cropped = true},
		{"jpeg sample", &jpegs, run_transform, .keys = keys_default},
		{"jpeg sample, crop off", &jpegs, run_transform, .keys = keys_whole},
		{"jpeg sample, dct-scaled", &jpegs, run_transform, .keys = keys_scaled},
		{"png inflate, isa-l", &pngs, run_isal, .decoder = NULL},
		{"png inflate, libdeflate", &pngs, run_libdeflate, .decoder = NULL},
		{"png inflate isa-l + unfilter, fast", &pngs, run_unfilter_fast, .decoder = NULL},
		{"png inflate isa-l + unfilter, plain", &pngs, run_unfilter_plain, .decoder = NULL},
		{"png decode fast, whole", &pngs, run_decode, .decoder = &codec_png},
		{"png decode fast, crop", &pngs, run_decode, .decoder = &codec_png,
			.is_cropped = true},
		{"png decode libpng, whole", &pngs, run_decode, .decoder = &codec_png_libpng},
		{"png decode libpng, crop", &pngs, run_decode, .decoder = &codec_png_libpng,
			.is_cropped = true},
		{"png sample fast", &pngs, run_transform, .keys = keys_default},
		{"png sample libpng", &pngs, run_transform, .keys = keys_libpng},
		{"raw sample: resize + normalise float chw", &raws, run_transform,
			.keys = keys_default},
		{"raw sample: resize to bytes hwc", &raws, run_transform, .keys = keys_bytes},
		{"raw 18 x 18 as it is", make_tiny(), run_tiny, .keys = keys_tiny,
			.per_file = TINY_COUNT},
	};
	const size_t count = sizeof benches / sizeof *benches;
	run_all(benches, count);
	printf("%d jpeg of %.0f bytes, %d png of %.0f bytes; resize kernels: %s\n", jpegs.count,
		mean_bytes(&jpegs), pngs.count, mean_bytes(&pngs), resample_kernels_best()->name);
	printf("%-44s %9s  [min - max]\n", "CPU us a picture", "median");
	for (size_t b = 0; b < count; b++)
		if (benches[b].set->count)
			print_bench(&benches[b]);
	if (jpegs.count)
		printf("jpeg decode, crop / whole: %.3f\n",
			find(benches, count, "jpeg decode, crop") /
				find(benches, count, "jpeg decode, whole"));
	return 0;
}
