/* Generation of a JPEG data set against the encoder alone, on the same number of threads,
 * interleaved.
 *
 *   bench_generate FOLDER [THREADS [SAMPLES]]     FOLDER must not exist; it is removed again
 *
 * "encoder alone" encodes pictures that are ready in memory: from planes, which is what generation
 * does, and from RGB, which is what other tools do.  "generation" renders, encodes, hashes, writes
 * and renames files.  "whole command" is dataset_generate with everything: atlas, calibration,
 * sync, manifest. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "workloads/dataset/dataset.h"
#include "workloads/dataset/maker.h"
#include "workloads/dataset/site.h"
#include "workloads/dataset/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 7, READY = 48, SAMPLES = 1200 };

enum way { FROM_PLANES, FROM_RGB, GENERATION, WHOLE, WAYS };

static const char *const way_names[WAYS] = {
	"encoder alone, planes", "encoder alone, RGB", "generation", "whole command"};

struct bench {
	struct recipe recipe;
	struct config config;
	struct picture_atlas *atlas;
	struct maker *makers;
	struct site site;
	struct picture_planes planes[READY];
	struct picture_size sizes[READY];
	uint8_t *rgb[READY];
	unsigned threads;
	uint64_t samples;
	uint32_t detail;
};

static void die(const struct error *err)
{
	(void)fprintf(stderr, "bench_generate: %s\n", err->text);
	exit(EXIT_FAILURE);
}

static int encode_planes(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct bench *bench = context;
	const size_t at = index % READY;
	const uint8_t *bytes;
	size_t size;
	return encoder_encode_planes(bench->makers[worker].encoder, &bench->planes[at],
		bench->sizes[at].width, bench->sizes[at].height, &bytes, &size, err);
}

static int encode_rgb(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct bench *bench = context;
	const size_t at = index % READY;
	const uint8_t *bytes;
	size_t size;
	return encoder_encode(bench->makers[worker].encoder, bench->rgb[at], bench->sizes[at].width,
		bench->sizes[at].height, &bytes, &size, err);
}

/* The same READY pictures as the encoder gets alone, under new names. */
static int generate(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct bench *bench = context;
	const uint8_t *bytes;
	size_t size;
	const int code = maker_make(&bench->makers[worker], &bench->recipe, bench->atlas,
		index % READY, bench->detail, &bytes, &size, err);
	return code ? code : site_store(&bench->site, index, bytes, size, err);
}

static void prepare(struct bench *bench)
{
	struct error err;
	if (picture_atlas_open(&bench->atlas, bench->recipe.seed, &err))
		die(&err);
	for (unsigned i = 0; i < picture_atlas_tiles(); i++)
		if (picture_atlas_paint(bench->atlas, i, &err))
			die(&err);
	bench->makers = calloc(bench->threads, sizeof(*bench->makers));
	for (unsigned i = 0; i < bench->threads; i++)
		if (maker_open(&bench->makers[i], &bench->recipe, &err))
			die(&err);
	const struct calibration calibration = {.recipe = &bench->recipe,
		.atlas = bench->atlas,
		.makers = bench->makers,
		.threads = bench->threads};
	double expected;
	if (calibrate(&calibration, &bench->detail, &expected, &err))
		die(&err);
	for (uint64_t id = 0; id < READY; id++) {
		const struct picture_size size = recipe_size(&bench->recipe, id);
		bench->sizes[id] = size;
		bench->planes[id] = picture_planes_place(size, malloc(picture_planes_bytes(size)));
		bench->rgb[id] = malloc((size_t)size.width * size.height * 3);
		picture_render(bench->atlas, id, size, bench->detail, &bench->planes[id]);
		picture_to_rgb(&bench->planes[id], size, bench->rgb[id]);
	}
}

/* Seconds per picture. */
static double time_team(struct bench *bench, enum way way)
{
	struct error err;
	const char *root = config_text(&bench->config, KEY_DATASET_PATH);
	const struct team_job job = {.count = bench->samples,
		.item = way == FROM_PLANES ? encode_planes
			: way == FROM_RGB  ? encode_rgb
					   : generate,
		.context = bench,
		.threads = bench->threads};
	if (way == GENERATION && (site_open(&bench->site, &bench->recipe, root, &err) ||
					 site_begin(&bench->site, bench->detail, &err)))
		die(&err);
	const uint64_t start = clock_now_ns();
	if (team_run(&job, &err))
		die(&err);
	const double seconds = (double)(clock_now_ns() - start) / 1e9;
	if (way == GENERATION) {
		site_close(&bench->site);
		(void)files_remove_tree(root, &err);
	}
	return seconds / (double)bench->samples;
}

static double time_whole(struct bench *bench, double *encode_share)
{
	struct error err;
	struct dataset_generated out;
	const struct dataset_control control = {.threads = bench->threads};
	if (dataset_generate(&bench->config, &control, &out, &err))
		die(&err);
	*encode_share = out.encode_share;
	(void)files_remove_tree(config_text(&bench->config, KEY_DATASET_PATH), &err);
	return out.seconds / (double)bench->samples;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(double seconds[WAYS][REPEATS], double share)
{
	printf("%-24s %12s %20s %24s\n", "", "us/picture", "[min-max]", "speed against planes");
	for (int way = 0; way < WAYS; way++) {
		double ratio[REPEATS];
		for (int r = 0; r < REPEATS; r++)
			ratio[r] = seconds[FROM_PLANES][r] / seconds[way][r];
		qsort(ratio, REPEATS, sizeof(double), by_value);
		double sorted[REPEATS];
		memcpy(sorted, seconds[way], sizeof(sorted));
		qsort(sorted, REPEATS, sizeof(double), by_value);
		printf("%-24s %12.1f %9.1f-%-10.1f %9.3f [%.3f-%.3f]\n", way_names[way],
			sorted[REPEATS / 2] * 1e6, sorted[0] * 1e6, sorted[REPEATS - 1] * 1e6,
			ratio[REPEATS / 2], ratio[0], ratio[REPEATS - 1]);
	}
	double ratio[REPEATS];
	for (int r = 0; r < REPEATS; r++)
		ratio[r] = seconds[FROM_RGB][r] / seconds[GENERATION][r];
	qsort(ratio, REPEATS, sizeof(double), by_value);
	printf("generation against encoder alone from RGB: %.3f [%.3f-%.3f]\n", ratio[REPEATS / 2],
		ratio[0], ratio[REPEATS - 1]);
	printf("CPU time inside the encoder, whole command: %.1f %%\n", 100 * share);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	static double seconds[WAYS][REPEATS];
	struct error err = {"usage: bench_generate FOLDER [THREADS [SAMPLES]]"};
	if (argc < 2)
		die(&err);
	char samples[64];
	bench.threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 2;
	bench.samples = argc > 3 ? strtoull(argv[3], NULL, 10) : SAMPLES;
	(void)snprintf(samples, sizeof(samples), "dataset.samples=%llu",
		(unsigned long long)bench.samples);
	config_init(&bench.config);
	if (config_set(&bench.config, "dataset.recipe=photo", &err) ||
		config_set(&bench.config, "dataset.bytes=110KB", &err) ||
		config_set(&bench.config, samples, &err) ||
		config_set_key(&bench.config, KEY_DATASET_PATH, argv[1], &err) ||
		recipe_read(&bench.config, &bench.recipe, &err))
		die(&err);
	prepare(&bench);
	double share = 0;
	(void)time_team(&bench, FROM_PLANES);
	for (int r = 0; r < REPEATS; r++)
		for (int way = 0; way < WAYS; way++)
			seconds[way][r] = way == WHOLE ? time_whole(&bench, &share)
						       : time_team(&bench, (enum way)way);
	printf("%llu JPEG of 500 x 375, mean 110 KB, %u threads, detail %u\n",
		(unsigned long long)bench.samples, bench.threads, bench.detail);
	report(seconds, share);
	return EXIT_SUCCESS;
}
