/* What finding a JPEG of 97 KB in a tar or TFRecord shard costs against decoding it: CPU time, the best of some passes.
 * Exits 1 when it is more than 3 %. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/config/config.h"
#include "workloads/dataset/dataset.h"
#include "workloads/sample/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PASSES = 5, SAMPLES = 400 };
static const double BAR = 0.03;

static void give_up(const char *what, const struct error *err)
{
	(void)fprintf(stderr, "bench_container: %s: %s\n", what, err->text);
	exit(2);
}

static double cpu_us(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void must_set(struct config *config, const char *assignment)
{
	struct error err;
	if (config_set(config, assignment, &err))
		give_up(assignment, &err);
}

/* us of each sample: splitting alone, without a manifest to be kept. */
static double split_us(const struct config *generated)
{
	struct config config;
	struct error err;
	double best = 1e30;
	if (config_copy(&config, generated, &err))
		give_up("configuration", &err);
	must_set(&config, "dataset.recipe=none");
	must_set(&config, "dataset.samples=0");
	for (int pass = 0; pass < PASSES; pass++) {
		struct dataset dataset;
		const double begun = cpu_us();
		if (dataset_open(&config, NULL, &dataset, &err))
			give_up("scan", &err);
		const double each = (cpu_us() - begun) / (double)dataset.count;
		best = each < best ? each : best;
		dataset_close(&dataset);
	}
	config_release(&config);
	return best;
}

/* us of each sample: decoded, cropped, resized. */
static double decode_us(const struct config *config)
{
	struct sample_maker maker;
	struct sample_sizes sizes;
	struct dataset dataset;
	struct error err;
	double best = 1e30;
	if (dataset_open(config, NULL, &dataset, &err))
		give_up("data set", &err);
	sample_sizes_of(config, &dataset, &sizes);
	const struct sample_options options = {.config = config, .dataset = &dataset};
	if (sample_maker_open(&maker, &options, &sizes, &err))
		give_up("decoder", &err);
	uint8_t *const out = calloc(1, sizes.bytes);
	for (int pass = 0; pass < PASSES && out; pass++) {
		double spent = 0;
		for (size_t i = 0; i < dataset.count; i++) {
			char *bytes = NULL;
			size_t size = 0;
			uint32_t label;
			char *const path = files_join(dataset.root, dataset.samples[i].path);
			if (!path || files_read(path, 1 << 24, &bytes, &size, &err))
				give_up("file", &err);
			const struct sample_task task = {.bytes = bytes,
				.size = size,
				.seed = i,
				.sample = &dataset.samples[i],
				.labels = (uint8_t *)&label,
				.sizes = &sizes,
				.out = out};
			const double begun = cpu_us();
			if (maker.make(maker.worker, &task, &err))
				give_up("decode", &err);
			spent += cpu_us() - begun;
			free(bytes);
			free(path);
		}
		best = spent / (double)dataset.count < best ? spent / (double)dataset.count : best;
	}
	free(out);
	sample_maker_close(&maker);
	dataset_close(&dataset);
	return best;
}

int main(void)
{
	static const char *const forms[] = {"files", "tar", "tfrecord"};
	struct config configs[3];
	struct error err;
	char root[] = "/var/tmp/mlbench-container-XXXXXX";
	char text[256];
	int missed = 0;
	if (!mkdtemp(root) || setenv("XDG_CACHE_HOME", "/proc/none", 1))
		return 2;
	for (int i = 0; i < 3; i++) {
		struct dataset_generated made;
		config_init(&configs[i]);
		(void)snprintf(text, sizeof text, "dataset.path=%s/%s", root, forms[i]);
		must_set(&configs[i], text);
		(void)snprintf(text, sizeof text, "dataset.container=%s", forms[i]);
		must_set(&configs[i], text);
		(void)snprintf(text, sizeof text, "dataset.samples=%d", SAMPLES);
		must_set(&configs[i], text);
		must_set(&configs[i], "dataset.recipe=photo");
		must_set(&configs[i], "dataset.bytes=97kB");
		must_set(&configs[i], "dataset.shard_samples=100");
		if (dataset_generate(&configs[i], NULL, &made, &err))
			give_up("gen", &err);
	}
	const double decode = decode_us(&configs[0]);
	(void)printf("decoding a JPEG of 97 KB     %8.1f us of CPU\n", decode);
	for (int i = 1; i < 3; i++) {
		const double split = split_us(&configs[i]);
		(void)printf(
			"finding it in a %-12s %8.1f us of CPU, %.2f %% of that (bar: %.0f %%)\n",
			forms[i], split, 100 * split / decode, 100 * BAR);
		missed |= split > BAR * decode;
	}
	for (int i = 0; i < 3; i++)
		config_release(&configs[i]);
	(void)files_remove_tree(root, &err);
	return missed;
}
