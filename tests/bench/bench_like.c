/* Does a twin data set cost what the original does?  Looks at a folder of pictures, generates its twin (dataset.recipe = like), and
 * decodes all files of both, in turn, seven times over.
 *
 *   bench_like FOLDER TWIN [SAMPLES]     TWIN must not exist; of FOLDER at most 2,000 files are decoded
 *
 * CPU time of decoding whole pictures on one thread; medians of the repetitions, with their range. */
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/fit/from_folder.h"
#include "workloads/dataset/dataset.h"
#include "workloads/image/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 7, FILES_MAX = 2000, FILE_BYTES_MAX = 64 << 20 };

struct bench_file {
	char *bytes;
	size_t size;
	struct image_info info;
};

struct bench_set {
	struct bench_file *files;
	size_t count;
	double bytes;
	double ns[REPEATS][IMAGE_FORMATS]; /* of all files of a format; [0]: of all */
	size_t formats[IMAGE_FORMATS];
};

static void die(const struct error *err)
{
	(void)fprintf(stderr, "%s\n", err->text);
	_Exit(1);
}

/* Evenly strided through a scan. */
static void bench_read(const char *path, struct bench_set *set)
{
	struct config config;
	struct dataset dataset;
	struct error err;
	config_init(&config);
	if (config_set_key(&config, KEY_DATASET_PATH, path, &err) ||
		dataset_open(&config, NULL, &dataset, &err))
		die(&err);
	set->count = dataset.count < FILES_MAX ? dataset.count : FILES_MAX;
	set->files = calloc(set->count, sizeof *set->files);
	for (size_t i = 0; set->files && i < set->count; i++) {
		struct bench_file *const file = &set->files[i];
		char *const name =
			files_join(path, dataset.samples[i * dataset.count / set->count].path);
		if (files_read(name, FILE_BYTES_MAX, &file->bytes, &file->size, &err) ||
			image_read_info(file->bytes, file->size, &file->info, &err))
			die(&err);
		set->bytes += (double)file->size;
		set->formats[file->info.format]++;
		set->formats[0]++;
		free(name);
	}
	dataset_close(&dataset);
	config_release(&config);
}

static void bench_decode_file(struct decoder *decoder, const struct bench_file *file)
{
	struct error err;
	struct image_info info;
	struct strip strip;
	int more = decoder_begin(decoder, file->bytes, file->size, &info, &err);
	const struct region whole = {.width = file->info.width, .height = file->info.height};
	if (!more)
		more = decoder_select(decoder, &whole, 1, &err);
	while (more >= 0 && (more = decoder_next(decoder, &strip, &err)) > 0)
		;
	if (more < 0)
		die(&err);
}

static void bench_decode(struct bench_set *set, double ns[IMAGE_FORMATS])
{
	struct decoder *decoders[IMAGE_FORMATS] = {0};
	struct error err;
	for (size_t i = 0; i < set->count; i++) {
		const struct bench_file *const file = &set->files[i];
		struct decoder **const decoder = &decoders[file->info.format];
		const struct decoder_options options = {
			.extent = {.width = 4096, .height = 4096, .pixels = 1 << 24}};
		if (!*decoder && decoder_open(decoder, codecs[file->info.format], &options, &err))
			die(&err);
		const uint64_t start = clock_thread_cpu_ns();
		bench_decode_file(*decoder, file);
		const double took = (double)(clock_thread_cpu_ns() - start);
		ns[file->info.format] += took;
		ns[0] += took;
	}
	for (int i = 0; i < IMAGE_FORMATS; i++)
		decoder_close(decoders[i]);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void bench_tell(const struct bench_set *original, const struct bench_set *twin, int format)
{
	double ratios[REPEATS], there[REPEATS], here[REPEATS];
	if (!original->formats[format] || !twin->formats[format])
		return;
	for (int i = 0; i < REPEATS; i++) {
		there[i] = original->ns[i][format] / (double)original->formats[format];
		here[i] = twin->ns[i][format] / (double)twin->formats[format];
		ratios[i] = here[i] / there[i];
	}
	qsort(ratios, REPEATS, sizeof *ratios, by_value);
	qsort(there, REPEATS, sizeof *there, by_value);
	qsort(here, REPEATS, sizeof *here, by_value);
	(void)printf(
		"%-8s %6zu and %6zu files, decode %8.3f and %8.3f ms a file: ratio %.3f (%.3f to %.3f)\n",
		format ? image_format_name((enum image_format)format) : "all",
		original->formats[format], twin->formats[format], there[REPEATS / 2] / 1e6,
		here[REPEATS / 2] / 1e6, ratios[REPEATS / 2], ratios[0], ratios[REPEATS - 1]);
}

static void bench_make_twin(const char *path, const char *like, const char *samples)
{
	struct config config;
	struct dataset_generated made;
	struct error err;
	config_init(&config);
	if (config_set_key(&config, KEY_DATASET_PATH, path, &err) ||
		config_set_key(&config, KEY_DATASET_RECIPE, "like", &err) ||
		config_set_key(&config, KEY_DATASET_LIKE, like, &err) ||
		config_set_key(&config, KEY_DATASET_SAMPLES, samples, &err) ||
		dataset_generate(&config, NULL, &made, &err))
		die(&err);
	(void)printf("%s files generated in %.1f s\n", samples, made.seconds);
	config_release(&config);
}

int main(int argc, char **argv)
{
	static struct bench_set original, twin;
	struct findings findings;
	struct buffer like = {0};
	struct error err;
	if (argc < 3)
		return 2;
	findings_open(&findings);
	if (findings_from_folder(&findings, argv[1], &err))
		die(&err);
	(void)like_write(findings.like, findings.like_count, &like);
	(void)printf("%s\n", like.failed ? "" : like.data);
	bench_make_twin(argv[2], like.data, argc > 3 ? argv[3] : "600");
	bench_read(argv[1], &original);
	bench_read(argv[2], &twin);
	for (int i = 0; i < REPEATS; i++) {
		bench_decode(i % 2 ? &twin : &original, i % 2 ? twin.ns[i] : original.ns[i]);
		bench_decode(i % 2 ? &original : &twin, i % 2 ? original.ns[i] : twin.ns[i]);
	}
	(void)printf("mean bytes %.0f and %.0f: ratio %.4f\n",
		original.bytes / (double)original.count, twin.bytes / (double)twin.count,
		twin.bytes / (double)twin.count / original.bytes * (double)original.count);
	for (int format = 0; format < IMAGE_FORMATS; format++)
		bench_tell(&original, &twin, format);
	buffer_release(&like);
	return 0;
}
