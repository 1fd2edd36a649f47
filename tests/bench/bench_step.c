/* The openblas step against the same GEMMs in a bare loop: a step's calls of cblas_sgemm are
 * recorded, with their matrices, and replayed.  So the difference is all that a step does beside
 * its products: input, biases, ReLU, norms, loss, update.  The update weighs most where the batch
 * is small: it is bound by memory (12 bytes a parameter).  Step and replay alternate; the bar is a
 * ratio of 0.98.
 *
 * bench_step [model batch threads]...      default: a set that takes about a minute */
#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/openblas.h"
#include "workloads/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5, IMAGE_ELEMENTS = 3 * 64 * 64, CALLS_MAX = 1 << 20 };

typedef void sgemm_function(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, enum CBLAS_TRANSPOSE, blasint,
	blasint, blasint, float, const float *, blasint, const float *, blasint, float, float *,
	blasint);

struct call {
	enum CBLAS_TRANSPOSE trans_a, trans_b;
	blasint m, n, k, lda, ldb, ldc;
	float alpha, beta;
	const float *a, *b;
	float *c;
};

static sgemm_function *library;
static struct call *calls;
static size_t call_count;
static bool recording;

static void record_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a,
	enum CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k, float alpha, const float *a,
	blasint lda, const float *b, blasint ldb, float beta, float *c, blasint ldc)
{
	if (recording && call_count < CALLS_MAX)
		calls[call_count++] = (struct call){
			trans_a, trans_b, m, n, k, lda, ldb, ldc, alpha, beta, a, b, c};
	library(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void replay(void)
{
	for (size_t i = 0; i < call_count; i++) {
		const struct call *x = &calls[i];
		library(CblasRowMajor, x->trans_a, x->trans_b, x->m, x->n, x->k, x->alpha, x->a,
			x->lda, x->b, x->ldb, x->beta, x->c, x->ldc);
	}
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double seconds_since(uint64_t begin)
{
	return (double)(clock_now_ns() - begin) / (double)NS_PER_S;
}

static void measure(struct backend *backend, const struct batch_view *batch, const char *label)
{
	double steps[REPEATS], bare[REPEATS], ratios[REPEATS];
	struct step_result result;
	call_count = 0;
	recording = true;
	(void)backend_step(backend, batch, &result, NULL);
	recording = false;
	double flops = 0;
	for (size_t i = 0; i < call_count; i++)
		flops += 2.0 * calls[i].m * calls[i].n * calls[i].k;
	for (int i = 0; i < REPEATS; i++) {
		uint64_t begin = clock_now_ns();
		(void)backend_step(backend, batch, &result, NULL);
		steps[i] = seconds_since(begin);
		begin = clock_now_ns();
		replay();
		bare[i] = seconds_since(begin);
		ratios[i] = bare[i] / steps[i];
	}
	qsort(steps, REPEATS, sizeof steps[0], ascending);
	qsort(bare, REPEATS, sizeof bare[0], ascending);
	qsort(ratios, REPEATS, sizeof ratios[0], ascending);
	const double median = steps[REPEATS / 2];
	printf("%-28s %9.2f %9.2f %8.4f [%.4f-%.4f] %9.1f %s\n", label, median * 1e3,
		bare[REPEATS / 2] * 1e3, ratios[REPEATS / 2], ratios[0], ratios[REPEATS - 1],
		flops / median / 1e9,
		flops == backend->flops_per_sample * batch->size ? "exact" : "DIFFER");
	fflush(stdout);
}

static int bench(const char *model, const char *size, const char *threads, const char *optimizer)
{
	struct config config;
	struct error err = {""};
	struct backend *backend = NULL;
	char label[64];
	(void)snprintf(label, sizeof label, "%s b%s t%s %s", model, size, threads, optimizer);
	config_init(&config);
	if (config_set_key(&config, KEY_STEP_BACKEND, "openblas", &err) < 0 ||
		config_set_key(&config, KEY_STEP_MODEL, model, &err) < 0 ||
		config_set_key(&config, KEY_BATCH_SIZE, size, &err) < 0 ||
		config_set_key(&config, KEY_STEP_THREADS, threads, &err) < 0 ||
		config_set_key(&config, KEY_STEP_OPTIMIZER, optimizer, &err) < 0 ||
		config_set_key(&config, KEY_STEP_LEARNING_RATE, "1e-6", &err) < 0 ||
		backend_open(&backend,
			&(const struct backend_options){.config = &config,
				.sample_elements = IMAGE_ELEMENTS,
				.class_count = 10},
			&err) < 0) {
		fprintf(stderr, "bench_step: %s\n", err.text);
		return 1;
	}
	const size_t floats = (size_t)backend->batch_size * IMAGE_ELEMENTS;
	float *data = malloc(floats * sizeof *data);
	uint32_t *labels = calloc(backend->batch_size, sizeof *labels);
	struct rng rng;
	rng_init(&rng, 1, 1);
	for (size_t i = 0; data && i < floats; i++)
		data[i] = (float)rng_uniform(&rng);
	const struct batch_view batch = {.data = data,
		.labels = labels,
		.size = backend->batch_size,
		.sample_bytes = IMAGE_ELEMENTS * sizeof(float),
		.type = AUGMENT_TYPE_FLOAT32};
	if (data && labels)
		measure(backend, &batch, label);
	free(data);
	free(labels);
	backend_close(backend);
	config_release(&config);
	return 0;
}

int main(int argc, char **argv)
{
	char text[256];
	if (!blas_find(text, sizeof text)) {
		(void)fprintf(stderr, "bench_step: %s\n", text);
		return 1;
	}
	struct blas recorder = *blas;
	library = blas->sgemm;
	recorder.sgemm = record_sgemm;
	blas_replace(&recorder);
	calls = malloc(CALLS_MAX * sizeof *calls);
	if (!calls)
		return 1;
	printf("%s\n", openblas_describe(text, sizeof text));
	printf("%-28s %9s %9s %8s %17s %9s %s\n", "step", "step ms", "bare ms", "ratio",
		"[min-max]", "GFLOP/s", "FLOPs");
	int status = 0;
	for (int i = 1; i + 2 < argc; i += 3)
		status |= bench(argv[i], argv[i + 1], argv[i + 2], "sgd");
	if (argc < 4) {
		static const char *const defaults[][4] = {
			{"mlp", "64", "1", "sgd"},
			{"mlp", "512", "1", "sgd"},
			{"mlp", "512", "1", "adam"},
			{"resnet50", "4", "1", "sgd"},
			{"resnet50", "4", "2", "sgd"},
			{"vit_b16", "4", "1", "sgd"},
		};
		for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
			status |= bench(
				defaults[i][0], defaults[i][1], defaults[i][2], defaults[i][3]);
	}
	free(calls);
	return status;
}
