/* A small data set of binary PPM files, made by hand in a temporary folder, and a configuration of the
 * whole pipeline on it: for tests and benchmarks. */
#ifndef MLBENCH_TESTS_PIPELINE_FIXTURE_H
#define MLBENCH_TESTS_PIPELINE_FIXTURE_H

#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/config/config.h"
#include "pipelines/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct pipeline_fixture {
	char root[96];
	struct dataset dataset;
	struct config config;
};

static inline void fixture_die(const char *what)
{
	fprintf(stderr, "fixture: %s\n", what);
	abort();
}

static inline void fixture_set(struct pipeline_fixture *f, enum key_id key, const char *value)
{
	struct error err = {""};
	if (config_set_key(&f->config, key, value, &err))
		fixture_die(err.text);
}

static inline void fixture_write(
	const struct pipeline_fixture *f, size_t sample, const void *data, size_t size)
{
	char path[256];
	struct error err = {""};
	(void)snprintf(path, sizeof path, "%s/%s", f->root, f->dataset.samples[sample].path);
	if (files_write_atomic(path, data, size, &err))
		fixture_die(err.text);
}

/* A picture of noise of its own. */
static inline void fixture_write_picture(
	struct pipeline_fixture *f, size_t sample, uint32_t width, uint32_t height)
{
	const size_t pixels = (size_t)width * height * 3;
	uint8_t *file = malloc(pixels + 32);
	if (!file)
		fixture_die("out of memory");
	const size_t header = (size_t)snprintf((char *)file, 32, "P6\n%u %u\n255\n", width, height);
	struct rng rng;
	rng_init(&rng, 7, sample);
	for (size_t i = 0; i < pixels; i++)
		file[header + i] = (uint8_t)rng_next(&rng);
	struct sample *s = &f->dataset.samples[sample];
	s->bytes = header + pixels;
	s->width = width;
	s->height = height;
	fixture_write(f, sample, file, header + pixels);
	free(file);
}

static inline void fixture_add(
	struct pipeline_fixture *f, size_t sample, uint32_t width, uint32_t height)
{
	char *path = malloc(32);
	if (!path)
		fixture_die("out of memory");
	(void)snprintf(path, 32, "class%zu/%zu.ppm", sample % 3, sample);
	f->dataset.samples[sample] = (struct sample){.path = path, .label = (uint32_t)(sample % 3)};
	fixture_write_picture(f, sample, width, height);
	struct dataset *d = &f->dataset;
	const uint64_t bytes = d->samples[sample].bytes;
	d->total_bytes += bytes;
	d->max_bytes = bytes > d->max_bytes ? bytes : d->max_bytes;
	image_extents_add(&d->extents, IMAGE_FORMAT_RAW, width, height);
}

/* count pictures of about width x height (they differ a little unless `equal`). */
static inline void fixture_open(
	struct pipeline_fixture *f, size_t count, uint32_t width, uint32_t height, int equal)
{
	*f = (struct pipeline_fixture){0};
	const char *folder = getenv("TMPDIR");
	(void)snprintf(
		f->root, sizeof f->root, "%.60s/mlbench-pipeline-XXXXXX", folder ? folder : "/tmp");
	if (!mkdtemp(f->root))
		fixture_die("no temporary folder");
	static const char *class_names[] = {"class0", "class1", "class2"};
	f->dataset = (struct dataset){
		.root = f->root,
		.count = count,
		.class_names = class_names,
		.class_count = 3,
		.samples = calloc(count, sizeof(struct sample)),
	};
	if (!f->dataset.samples)
		fixture_die("out of memory");
	for (int i = 0; i < 3; i++) {
		char path[128];
		(void)snprintf(path, sizeof path, "%s/class%d", f->root, i);
		struct error err = {""};
		if (files_make_folder(path, &err))
			fixture_die(err.text);
	}
	for (size_t i = 0; i < count; i++)
		fixture_add(f, i, width + (equal ? 0 : (uint32_t)(i % 5)),
			height + (equal ? 0 : (uint32_t)(i % 3)));
	config_init(&f->config);
	fixture_set(f, KEY_DATASET_PATH, f->root);
	fixture_set(f, KEY_STEP_BACKEND, "null");
	fixture_set(f, KEY_READ_ENGINE, "memory");
}

static inline void fixture_close(struct pipeline_fixture *f)
{
	struct error err = {""};
	(void)files_remove_tree(f->root, &err);
	for (size_t i = 0; i < f->dataset.count; i++)
		free((void *)(uintptr_t)f->dataset.samples[i].path);
	free(f->dataset.samples);
	config_release(&f->config);
}

#endif
