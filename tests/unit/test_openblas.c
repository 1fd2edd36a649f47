/* The openblas backend as the pipeline uses it: exact FLOPs (counted in a cblas_sgemm between),
 * a loss that falls and depends on the data, thread counts, memory, refusals. */
#include "harness/base/memory.h"
#include "harness/base/rng.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/openblas.h"
#include "workloads/model/model.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IMAGE_ELEMENTS = 3 * 224 * 224 };

/* gcc's thread sanitizer does not see OpenMP's barriers: each element of an update would be reported as
 * a race, and looked up in the suppressions. */
#ifdef __SANITIZE_THREAD__
#define MODEL_THREADS "1"
enum { THREADS_MAX = 1 };
#else
#define MODEL_THREADS "2"
enum { THREADS_MAX = 3 };
#endif

/* --- every product goes through here, and on to the library ------------------------------------
 */

typedef void sgemm_function(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, enum CBLAS_TRANSPOSE, blasint,
	blasint, blasint, float, const float *, blasint, const float *, blasint, float, float *,
	blasint);

static double flops;
static int most_threads;
static int products, stop_at_product; /* 0: never */
static atomic_bool stop;

static struct blas counting;
static sgemm_function *library;

static void count_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a,
	enum CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k, float alpha, const float *a,
	blasint lda, const float *b, blasint ldb, float beta, float *c, blasint ldc)
{
	flops += 2.0 * m * n * k;
	if (++products == stop_at_product)
		atomic_store(&stop, true);
	if (omp_get_max_threads() > most_threads)
		most_threads = omp_get_max_threads();
	library(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* --- helpers ------------------------------------------------------------------------------------
 */

static void set(struct config *config, enum key_id key, const char *value)
{
	struct error err = {""};
	if (config_set_key(config, key, value, &err) < 0)
		fail_msg("%s", err.text);
}

static struct config openblas_config(const char *model, const char *batch_size)
{
	struct config config;
	config_init(&config);
	set(&config, KEY_STEP_BACKEND, "openblas");
	set(&config, KEY_STEP_MODEL, model);
	set(&config, KEY_BATCH_SIZE, batch_size);
	return config;
}

static struct backend *open_backend(
	const struct config *config, uint32_t elements, uint32_t classes)
{
	struct backend *backend = NULL;
	struct error err = {""};
	if (backend_open(&backend,
		    &(const struct backend_options){
			    .config = config, .sample_elements = elements, .class_count = classes},
		    &err) < 0)
		fail_msg("%s", err.text);
	return backend;
}

static double step(struct backend *backend, const struct batch_view *batch)
{
	struct step_result result;
	struct error err = {""};
	if (backend_step(backend, batch, &result, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(result.device_ns > 0);
	assert_int_equal(result.oversleep_ns, 0);
	return result.loss;
}

static float *normals(size_t count, uint64_t seed)
{
	float *data = malloc(count * sizeof *data);
	assert_non_null(data);
	struct rng rng;
	rng_init(&rng, seed, 0);
	for (size_t i = 0; i < count; i++)
		data[i] = (float)rng_normal(&rng);
	return data;
}

static struct batch_view view_of(
	const float *data, const uint32_t *labels, uint32_t size, uint32_t elements)
{
	return (struct batch_view){.data = data,
		.labels = labels,
		.size = size,
		.sample_bytes = elements * sizeof(float),
		.type = AUGMENT_TYPE_FLOAT32};
}

/* --- what is computed ---------------------------------------------------------------------------
 */

/* One step on random pictures: the FLOPs executed are the model's, to the last one; a second step
 * on the same batch has a smaller loss, other pictures have another one. */
static void check_model(const char *name, uint32_t size)
{
	char batch_size[16];
	(void)snprintf(batch_size, sizeof batch_size, "%u", size);
	struct config config = openblas_config(name, batch_size);
	set(&config, KEY_STEP_THREADS, MODEL_THREADS);
	set(&config, KEY_STEP_LEARNING_RATE, "0.0001");
	const uint64_t before = memory_mapped_bytes();
	struct backend *backend = open_backend(&config, IMAGE_ELEMENTS, 1000);
	const uint64_t mapped = memory_mapped_bytes() - before;
	const uint64_t bound = backend_bytes(&config, IMAGE_ELEMENTS, 1000);
	print_message("%s: %.0f MiB\n", backend->description, (double)bound / (1 << 20));
	assert_true(mapped >= bound && mapped < bound + (4 << 20)); /* whole huge pages */

	float *data = normals((size_t)size * IMAGE_ELEMENTS, 1);
	float *other = normals((size_t)size * IMAGE_ELEMENTS, 2);
	uint32_t labels[4] = {3, 999, 0, 7};
	const struct batch_view batch = view_of(data, labels, size, IMAGE_ELEMENTS);
	const struct batch_view changed = view_of(other, labels, size, IMAGE_ELEMENTS);
	flops = 0;
	const double first = step(backend, &batch);
	assert_true(flops == backend->flops_per_sample * size);
	const double second = step(backend, &batch);
	const double third = step(backend, &changed);
	print_message("loss %.6f, again %.6f, on other pictures %.6f\n", first, second, third);
	assert_true(second < first);
	assert_true(fabs(third / second - 1) > 1e-4);
	free(data);
	free(other);
	backend_close(backend);
	assert_int_equal(memory_mapped_bytes(), before);
	config_release(&config);
}

static void resnet50_executes_its_flops(void **state)
{
	(void)state;
	check_model("resnet50", 2);
}

static void vit_b16_executes_its_flops(void **state)
{
	(void)state;
	check_model("vit_b16", 1);
}

/* Stopped in the middle of its forward or its backward part, a step ends within the layer. */
static void check_stop(struct backend *backend, const struct batch_view *batch, int at_product)
{
	struct step_result result;
	struct error err = {""};
	products = 0;
	stop_at_product = at_product;
	atomic_store(&stop, false);
	assert_int_equal(backend_step(backend, batch, &result, &err), -ECANCELED);
	assert_in_range(products, at_product, at_product + 1); /* a layer's dW and dX */
	stop_at_product = 0;
	atomic_store(&stop, false);
}

static void a_step_can_be_stopped(void **state)
{
	(void)state;
	struct config config = openblas_config("resnet50", "2");
	struct backend *backend = NULL;
	struct error err = {""};
	assert_int_equal(backend_open(&backend,
				 &(const struct backend_options){.config = &config,
					 .sample_elements = IMAGE_ELEMENTS,
					 .class_count = 1000,
					 .stop = &stop},
				 &err),
		0);
	float *data = normals(2 * (size_t)IMAGE_ELEMENTS, 1);
	const uint32_t labels[2] = {1, 2};
	const struct batch_view batch = view_of(data, labels, 2, IMAGE_ELEMENTS);
	products = 0;
	(void)step(backend, &batch);
	const int all = products;
	check_stop(backend, &batch, 5);           /* forward */
	check_stop(backend, &batch, all / 4);     /* backward, of the first sample */
	check_stop(backend, &batch, all / 2 + 3); /* the second sample */
	assert_true(isfinite(step(backend, &batch)));
	free(data);
	backend_close(backend);
	config_release(&config);
}

static void gpt2_small_has_bounded_memory(void **state)
{
	(void)state;
	struct config small = openblas_config("gpt2_small", "1");
	struct config large = openblas_config("gpt2_small", "64");
	const uint64_t bytes = backend_bytes(&small, IMAGE_ELEMENTS, 10);
	assert_true(
		bytes > 1000 * (uint64_t)(1 << 20)); /* weights and velocities alone are 988 MB */
	assert_int_equal(backend_bytes(&large, IMAGE_ELEMENTS, 10), bytes);
	config_release(&small);
	config_release(&large);
}

/* --- learning -----------------------------------------------------------------------------------
 */

enum { TASK_ELEMENTS = 48, TASK_CLASSES = 5, TASK_BATCH = 64, TASK_STEPS = 60 };

/* Labels are a function of the input: the largest of fixed random projections. */
static uint32_t task_label(const float *sample, const float *projections)
{
	uint32_t best = 0;
	float largest = -INFINITY;
	for (uint32_t c = 0; c < TASK_CLASSES; c++) {
		float sum = 0;
		for (size_t i = 0; i < TASK_ELEMENTS; i++)
			sum += sample[i] * projections[c * TASK_ELEMENTS + i];
		if (sum > largest) {
			largest = sum;
			best = c;
		}
	}
	return best;
}

/* Mean loss of the first and the last five steps, each on fresh samples. */
static void train(const struct config *config, bool bytes, double *first, double *last)
{
	struct backend *backend = open_backend(config, TASK_ELEMENTS, TASK_CLASSES);
	float *projections = normals((size_t)TASK_CLASSES * TASK_ELEMENTS, 3);
	uint32_t labels[TASK_BATCH];
	uint8_t pixels[TASK_BATCH * TASK_ELEMENTS];
	*first = *last = 0;
	for (uint64_t t = 0; t < TASK_STEPS; t++) {
		float *data = normals((size_t)TASK_BATCH * TASK_ELEMENTS, 100 + t);
		for (size_t s = 0; s < TASK_BATCH; s++)
			labels[s] = task_label(data + s * TASK_ELEMENTS, projections);
		for (size_t i = 0; i < TASK_BATCH * TASK_ELEMENTS; i++)
			pixels[i] = (uint8_t)fminf(fmaxf(data[i] * 64 + 128, 0), 255);
		struct batch_view batch = view_of(data, labels, TASK_BATCH, TASK_ELEMENTS);
		if (bytes) {
			batch.data = pixels;
			batch.sample_bytes = TASK_ELEMENTS;
			batch.type = AUGMENT_TYPE_UINT8;
		}
		const double loss = step(backend, &batch);
		*first += t < 5 ? loss / 5 : 0;
		*last += t >= TASK_STEPS - 5 ? loss / 5 : 0;
		free(data);
	}
	free(projections);
	backend_close(backend);
}

static void check_learning(const char *optimizer, const char *rate, const char *type)
{
	struct config config = openblas_config("mlp", "64");
	set(&config, KEY_STEP_OPTIMIZER, optimizer);
	set(&config, KEY_STEP_LEARNING_RATE, rate);
	set(&config, KEY_AUGMENT_TYPE, type);
	double first, last;
	train(&config, strcmp(type, "uint8") == 0, &first, &last);
	print_message("%s, %s: loss %.3f -> %.3f\n", optimizer, type, first, last);
	assert_true(last < first / 2);
	config_release(&config);
}

static void loss_falls_with_sgd(void **state)
{
	(void)state;
	check_learning("sgd", "0.02", "float32");
	check_learning("sgd", "0.02", "uint8");
}

static void loss_falls_with_adam(void **state)
{
	(void)state;
	check_learning("adam", "0.001", "float32");
}

static void labels_matter(void **state)
{
	(void)state;
	struct config config = openblas_config("mlp", "2");
	float *data = normals((size_t)2 * TASK_ELEMENTS, 1);
	const uint32_t labels[] = {0, 1}, others[] = {1, 2};
	const struct batch_view a = view_of(data, labels, 2, TASK_ELEMENTS);
	const struct batch_view b = view_of(data, others, 2, TASK_ELEMENTS);
	struct backend *one = open_backend(&config, TASK_ELEMENTS, TASK_CLASSES);
	struct backend *two = open_backend(&config, TASK_ELEMENTS, TASK_CLASSES);
	struct backend *three = open_backend(&config, TASK_ELEMENTS, TASK_CLASSES);
	const double loss = step(one, &a);
	assert_true(step(two, &a) == loss); /* same seed, same weights */
	assert_true(fabs(step(three, &b) - loss) > 1e-3);
	backend_close(one);
	backend_close(two);
	backend_close(three);
	free(data);
	config_release(&config);
}

/* --- the edges ----------------------------------------------------------------------------------
 */

static void a_smaller_last_batch_is_taken(void **state)
{
	(void)state;
	struct config config = openblas_config("mlp", "8");
	struct backend *backend = open_backend(&config, TASK_ELEMENTS, TASK_CLASSES);
	float *data = normals((size_t)8 * TASK_ELEMENTS, 1);
	const uint32_t labels[8] = {0};
	const struct batch_view batch = view_of(data, labels, 3, TASK_ELEMENTS);
	flops = 0;
	assert_true(isfinite(step(backend, &batch)));
	assert_true(flops == 3 * backend->flops_per_sample);
	free(data);
	backend_close(backend);
	config_release(&config);
}

static void wrong_batches_are_refused(void **state)
{
	(void)state;
	struct config config = openblas_config("mlp", "2");
	struct backend *backend = open_backend(&config, TASK_ELEMENTS, TASK_CLASSES);
	float *data = normals((size_t)3 * TASK_ELEMENTS, 1);
	const uint32_t labels[3] = {0};
	struct step_result result;
	struct error err = {""};
	struct batch_view batch = view_of(data, labels, 3, TASK_ELEMENTS);
	assert_int_equal(backend_step(backend, &batch, &result, &err), -EINVAL);
	batch.size = 2;
	batch.type = AUGMENT_TYPE_UINT8;
	assert_int_equal(backend_step(backend, &batch, &result, &err), -EINVAL);
	batch.type = AUGMENT_TYPE_FLOAT32;
	batch.sample_bytes--;
	assert_int_equal(backend_step(backend, &batch, &result, &err), -EINVAL);
	assert_true(isnan(result.loss));
	free(data);
	backend_close(backend);
	config_release(&config);
}

static void threads_are_the_asked_number(void **state)
{
	(void)state;
	const int before = omp_get_max_threads();
	struct config config = openblas_config("mlp", "64");
	float *data = normals((size_t)64 * TASK_ELEMENTS, 1);
	const uint32_t labels[64] = {0};
	const struct batch_view batch = view_of(data, labels, 64, TASK_ELEMENTS);
	for (int threads = 1; threads <= THREADS_MAX; threads++) {
		char value[16];
		(void)snprintf(value, sizeof value, "%d", threads);
		set(&config, KEY_STEP_THREADS, value);
		struct backend *backend = open_backend(&config, TASK_ELEMENTS, TASK_CLASSES);
		most_threads = 0;
		(void)step(backend, &batch);
		assert_int_equal(most_threads, threads);
		assert_int_equal(blas->get_num_threads(), threads);
		backend_close(backend);
		assert_int_equal(omp_get_max_threads(), before);
	}
	set(&config, KEY_STEP_THREADS, "1024");
	struct backend *backend = NULL;
	struct error err = {""};
	assert_int_equal(backend_open(&backend,
				 &(const struct backend_options){.config = &config,
					 .sample_elements = TASK_ELEMENTS,
					 .class_count = TASK_CLASSES},
				 &err),
		-EINVAL);
	assert_non_null(strstr(err.text, "step.threads"));
	assert_null(backend);
	assert_int_equal(omp_get_max_threads(), before);
	free(data);
	config_release(&config);
}

static void the_library_is_described(void **state)
{
	(void)state;
	char text[256];
	assert_ptr_equal(openblas_describe(text, sizeof text), text);
	print_message("%s\n", text);
	assert_non_null(strstr(text, "OpenBLAS"));
	assert_non_null(strstr(text, blas->get_corename()));
}

static int count_products(void **state)
{
	(void)state;
	char why[256];
	if (!blas_find(why, sizeof why))
		fail_msg("%s", why);
	counting = *blas;
	library = blas->sgemm;
	counting.sgemm = count_sgemm;
	blas_replace(&counting);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resnet50_executes_its_flops),
		cmocka_unit_test(vit_b16_executes_its_flops),
		cmocka_unit_test(a_step_can_be_stopped),
		cmocka_unit_test(gpt2_small_has_bounded_memory),
		cmocka_unit_test(loss_falls_with_sgd),
		cmocka_unit_test(loss_falls_with_adam),
		cmocka_unit_test(labels_matter),
		cmocka_unit_test(a_smaller_last_batch_is_taken),
		cmocka_unit_test(wrong_batches_are_refused),
		cmocka_unit_test(threads_are_the_asked_number),
		cmocka_unit_test(the_library_is_described),
	};
	return cmocka_run_group_tests(tests, count_products, NULL);
}
