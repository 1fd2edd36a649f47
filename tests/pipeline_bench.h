/* What the pipeline's benches share: medians, CPU time, and a data set of synthetic JPEGs. */
#ifndef MLBENCH_TESTS_PIPELINE_BENCH_H
#define MLBENCH_TESTS_PIPELINE_BENCH_H

#include "tests/pipeline_fixture.h"

#include "harness/base/clock.h"

#include <time.h>

static inline int bench_by_value(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Sorts values; an odd count. */
static inline double bench_median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, bench_by_value);
	return values[count / 2];
}

static inline double bench_cpu_seconds(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* `samples` photographs of about 500 x 375 and 110 KB, in memory for the pipeline: decoded, cropped to
 * 224, flipped and normalised, batches of 64, null step. */
static inline void bench_open_jpegs(struct pipeline_fixture *f, const char *samples)
{
	const char *folder = getenv("TMPDIR");
	struct error err = {""};
	*f = (struct pipeline_fixture){0};
	(void)snprintf(
		f->root, sizeof f->root, "%.60s/mlbench-jpegs-XXXXXX", folder ? folder : "/tmp");
	if (!mkdtemp(f->root))
		fixture_die("no temporary folder");
	config_init(&f->config);
	fixture_set(f, KEY_DATASET_PATH, f->root);
	fixture_set(f, KEY_DATASET_RECIPE, "photo");
	fixture_set(f, KEY_DATASET_SAMPLES, samples);
	fixture_set(f, KEY_DATASET_BYTES, "110KB");
	fixture_set(f, KEY_STEP_BACKEND, "null");
	fixture_set(f, KEY_READ_ENGINE, "memory");
	const struct dataset_control control = {0};
	struct dataset_generated made;
	if (dataset_generate(&f->config, &control, &made, &err) ||
		dataset_open(&f->config, &control, &f->dataset, &err))
		fixture_die(err.text);
}

static inline void bench_close_jpegs(struct pipeline_fixture *f)
{
	struct error err = {""};
	dataset_close(&f->dataset);
	(void)files_remove_tree(f->root, &err);
	config_release(&f->config);
}

#endif
