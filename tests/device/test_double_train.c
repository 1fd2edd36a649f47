/* What a device's step does where the library lacks a fused form, and where a call fails: on the double, which can be told
 * to.  Nothing is left behind, and nothing was misused. */
#include "tests/device/double/double.h"
#include "tests/device/train_fixture.h"

#include <errno.h>
#include <stdio.h>

enum { OTHER_BATCH = 12, CALLS_MAX = 4000 };

static void configure(const char *name, const char *value)
{
	(void)setenv(name, value, 1);
	double_configure();
	(void)unsetenv(name);
}

static double gradient_distance(const struct model *model, enum step_precision precision)
{
	struct cuda_options options = fixture_options(model, precision, STEP_OPTIMIZER_SGD);
	options.batch_size = OTHER_BATCH; /* no choice is kept for its products yet */
	struct fixture fixture = fixture_open(model, &options);
	struct network network = fixture_network(&fixture);
	double loss = NAN;
	fixture_batch(&fixture, 0);
	const struct train_batch batch = fixture_view(&fixture);
	const struct batch_view host = fixture_host_view(&fixture);
	for (size_t i = 0; i < fixture.train->plan.layer_count; i++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++)
			assert_int_equal(
				fixture.train->layers[i].products[product].epilogue, GEMM_PLAIN);
	fixture_gradients(&fixture, &batch, 0);
	DEVICE_OK(network_gradients(&network, &host, 0, &loss, NULL));
	float *gradient = fixture_parameters(&fixture, fixture.train->plan.gradients);
	const double distance = fixture_distance(&fixture, &network, gradient, true);
	assert_true(fabs(fixture_loss(&fixture) / loss - 1) < 0.02);
	free(gradient);
	network_close(&network);
	fixture_close(&fixture);
	return distance;
}

static void without_epilogues_kernels_do_it(void **state)
{
	(void)state;
	configure("MLBENCH_DOUBLE_NO_EPILOGUE", "1");
	assert_true(gradient_distance(model_find("mlp"), STEP_PRECISION_FP32) < 2e-5);
	assert_true(gradient_distance(model_find("mlp"), STEP_PRECISION_BF16) < 16 * 0x1p-8);
	double_configure();
}

/* Opens a step while call number `at` of `name` fails; whether it did not come to that. */
static bool opens_in_spite_of(const char *name, unsigned at)
{
	struct cuda_options options =
		fixture_options(&convolution_model, STEP_PRECISION_BF16, STEP_OPTIMIZER_ADAM);
	options.streams = 2;
	/* Each time other problems: for none of them is a choice kept. */
	static uint32_t opened_so_far;
	options.batch_size = OTHER_BATCH + 1 + opened_so_far++;
	char failing[64];
	cudaStream_t streams[2];
	struct error err = {""};
	struct train *train = NULL;
	for (unsigned i = 0; i < 2; i++)
		DEVICE_OK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	const size_t allocated = double_allocated(), live = double_live();
	(void)snprintf(failing, sizeof failing, "%s:%u", name, at);
	configure("MLBENCH_DOUBLE_FAIL", failing);
	const int result = train_open_model(&train, &options, &convolution_model, streams, &err);
	const bool opened = result == 0;
	if (opened)
		train_close(train);
	else if (err.text[0] == '\0')
		fail_msg("%s fails without a word", failing);
	double_configure();
	for (unsigned i = 0; i < 2; i++)
		DEVICE_OK(cudaStreamSynchronize(streams[i]));
	if (double_allocated() != allocated || double_live() != live)
		fail_msg("%s fails, and %zu bytes and %zu objects are left", failing,
			double_allocated() - allocated, double_live() - live);
	for (unsigned i = 0; i < 2; i++)
		DEVICE_OK(cudaStreamDestroy(streams[i]));
	return opened;
}

static void a_failure_leaves_nothing_behind(void **state)
{
	(void)state;
	static const char *const names[] = {"cudaMalloc", "cudaGetDevice",
		"cudaStreamCreateWithFlags", "cudaEventCreate", "cudaEventCreateWithFlags",
		"cudaMemcpyAsync", "cudaMemsetAsync", "cudaStreamSynchronize", "cublasLtCreate",
		"cublasLtMatmulPreferenceCreate", "cublasLtMatmulDescCreate",
		"cublasLtMatrixLayoutCreate", "cublasLtMatmulAlgoGetHeuristic"};
	/* From the first call on, further and further apart. */
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		unsigned failures = 0;
		for (unsigned at = 1; at < CALLS_MAX; at += 1 + at / 2) {
			if (opens_in_spite_of(names[i], at))
				break;
			failures++;
		}
		print_message("%s: %u failures\n", names[i], failures);
		assert_true(failures > 0);
	}
}

/* However a library says that it lacks a fused form: the plain product and a kernel stand in. */
static void a_fused_form_that_fails_is_done_without(void **state)
{
	(void)state;
	struct cuda_options options =
		fixture_options(model_find("mlp"), STEP_PRECISION_FP32, STEP_OPTIMIZER_SGD);
	struct step_choosing choosing = {0};
	options.batch_size = 24; /* not chosen before */
	options.choosing = &choosing;
	configure("MLBENCH_DOUBLE_FAIL", "cublasLtMatmulAlgoGetHeuristic:1");
	struct fixture fixture = fixture_open(model_find("mlp"), &options);
	double_configure();
	const struct train_layer *layers = fixture.train->layers;
	assert_int_equal(choosing.products, device_plan_products(&fixture.train->plan, NULL));
	assert_int_equal(choosing.chosen, choosing.products);
	assert_int_equal(layers[0].products[DEVICE_WEIGHT_GRADIENT].epilogue, GEMM_PLAIN);
	assert_int_not_equal(layers[1].products[DEVICE_WEIGHT_GRADIENT].epilogue, GEMM_PLAIN);
	fixture_batch(&fixture, 0);
	assert_true(isfinite(fixture_step(&fixture)));
	fixture_close(&fixture);
}

/* A product that the library refuses when it runs ends the step with its reason. */
static void a_failing_product_ends_the_step(void **state)
{
	(void)state;
	const struct cuda_options options =
		fixture_options(&attention_model, STEP_PRECISION_BF16, STEP_OPTIMIZER_SGD);
	struct fixture fixture = fixture_open(&attention_model, &options);
	fixture_batch(&fixture, 0);
	const struct train_batch batch = fixture_view(&fixture);
	struct error err = {""};
	for (unsigned at = 1; at < 12; at++) {
		char failing[64];
		(void)snprintf(failing, sizeof failing, "cublasLtMatmul:%u", at);
		configure("MLBENCH_DOUBLE_FAIL", failing);
		assert_true(train_gradients(fixture.train, &batch, 0, &err) < 0);
		assert_non_null(strstr(err.text, "cublasLtMatmul"));
		double_configure();
		DEVICE_OK(cudaStreamSynchronize(fixture.streams[0]));
	}
	fixture_gradients(&fixture, &batch, 0);
	assert_true(isfinite(fixture_loss(&fixture)));
	fixture_close(&fixture);
}

/* The memory of open is what train_bytes says, but for the few constants of the products' context. */
static void memory_is_what_was_said(void **state)
{
	(void)state;
	enum { CONSTANTS = 4096 };
	for (unsigned streams = 1; streams < 4; streams++) {
		struct cuda_options options = fixture_options(
			model_find("mlp"), STEP_PRECISION_FP16, STEP_OPTIMIZER_ADAM);
		options.streams = streams;
		cudaStream_t own[DEVICE_STREAMS_MAX];
		struct train *train = NULL;
		struct error err = {""};
		for (unsigned i = 0; i < streams; i++)
			DEVICE_OK(cudaStreamCreateWithFlags(&own[i], cudaStreamNonBlocking));
		const size_t before = double_allocated();
		DEVICE_OK(train_open(&train, &options, own, &err));
		const size_t taken = double_allocated() - before;
		assert_true(taken >= train_bytes(&options));
		assert_true(taken <= train_bytes(&options) + CONSTANTS);
		train_close(train);
		assert_int_equal(double_allocated(), before);
		for (unsigned i = 0; i < streams; i++)
			DEVICE_OK(cudaStreamDestroy(own[i]));
	}
	struct cuda_options options =
		fixture_options(model_find("mlp"), STEP_PRECISION_FP16, STEP_OPTIMIZER_ADAM);
	struct train *train = NULL;
	struct error err = {""};
	cudaStream_t stream;
	DEVICE_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	configure("MLBENCH_DOUBLE_MEMORY", "1000000");
	assert_int_equal(train_open(&train, &options, &stream, &err), -ENOMEM);
	assert_non_null(strstr(err.text, "'mlp' with batches of 16"));
	options.model = "none";
	assert_int_equal(train_open(&train, &options, &stream, &err), -EINVAL);
	double_configure();
	DEVICE_OK(cudaStreamDestroy(stream));
}

static void nothing_was_misused(void **state)
{
	(void)state;
	double_configure();
	for (enum step_precision precision = 0; precision <= STEP_PRECISION_FP8; precision++) {
		struct cuda_options options =
			fixture_options(&attention_model, precision, STEP_OPTIMIZER_ADAM);
		options.streams = 3;
		struct fixture fixture = fixture_open(&attention_model, &options);
		fixture_batch(&fixture, 0);
		(void)fixture_step(&fixture);
		(void)fixture_step(&fixture);
		fixture_close(&fixture);
	}
	if (double_complaints() > 0)
		fail_msg("%s", double_complaint());
}

/* No allocation, no waiting within a step: what a graph could not hold, and what would stall the host. */
static void a_step_neither_waits_nor_allocates(void **state)
{
	(void)state;
	static const char *const names[] = {"cudaMalloc", "cudaFree", "cudaStreamSynchronize",
		"cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy",
		"cudaStreamCreateWithFlags", "cudaEventCreateWithFlags", "cublasLtMatmulDescCreate",
		"cublasLtMatmulAlgoGetHeuristic"};
	enum { NAMES = sizeof names / sizeof *names };
	struct cuda_options options =
		fixture_options(&convolution_model, STEP_PRECISION_FP8, STEP_OPTIMIZER_ADAM);
	options.streams = 2;
	struct fixture fixture = fixture_open(&convolution_model, &options);
	fixture_batch(&fixture, 0);
	unsigned before[NAMES];
	for (size_t i = 0; i < NAMES; i++)
		before[i] = double_calls(names[i]);
	const struct train_batch batch = fixture_view(&fixture);
	for (unsigned step = 0; step < 3; step++) {
		fixture_gradients(&fixture, &batch, 0);
		fixture_update(&fixture, 1);
	}
	for (size_t i = 0; i < NAMES; i++)
		assert_int_equal(double_calls(names[i]), before[i]);
	fixture_close(&fixture);
}

/* Of the perceptron's step the products do all but the loss and the update: kernels are counted. */
static void the_perceptron_takes_few_kernels(void **state)
{
	(void)state;
	const struct model *model = model_find("mlp");
	struct cuda_options options =
		fixture_options(model, STEP_PRECISION_FP32, STEP_OPTIMIZER_SGD);
	options.sample_elements = 48;
	struct fixture fixture = fixture_open(model, &options);
	fixture_batch(&fixture, 0);
	const struct train_batch batch = fixture_view(&fixture);
	const unsigned products = double_calls("cublasLtMatmul"), kernels = double_calls("kernel");
	fixture_gradients(&fixture, &batch, 0);
	fixture_update(&fixture, 1);
	(void)fixture_loss(&fixture);
	const unsigned own = double_calls("kernel") - kernels;
	print_message("%u products, %u kernels\n", double_calls("cublasLtMatmul") - products, own);
	assert_int_equal(double_calls("cublasLtMatmul") - products, 8);
	assert_true(own <= 3); /* loss, its mean, update */
	fixture_close(&fixture);
}

/* Timed once, on whichever comes first: devices that train together compute with the same kernels. */
static void equal_devices_take_one_choice(void **state)
{
	(void)state;
	const struct cuda_options options =
		fixture_options(&convolution_model, STEP_PRECISION_BF16, STEP_OPTIMIZER_SGD);
	assert_int_equal(setenv("MLBENCH_DOUBLE_DEVICES", "2", 1), 0);
	double_configure();
	struct fixture fixture = fixture_open(&convolution_model, &options);
	fixture_close(&fixture);
	const unsigned asked = double_calls("cublasLtMatmulAlgoGetHeuristic");
	DEVICE_OK(cudaSetDevice(1));
	fixture = fixture_open(&convolution_model, &options);
	assert_int_equal(double_calls("cublasLtMatmulAlgoGetHeuristic"), asked);
	fixture_batch(&fixture, 0);
	assert_true(isfinite(fixture_step(&fixture)));
	fixture_close(&fixture);
	DEVICE_OK(cudaSetDevice(0));
	assert_int_equal(unsetenv("MLBENCH_DOUBLE_DEVICES"), 0);
	double_configure();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_epilogues_kernels_do_it),
		cmocka_unit_test(a_failure_leaves_nothing_behind),
		cmocka_unit_test(a_fused_form_that_fails_is_done_without),
		cmocka_unit_test(a_failing_product_ends_the_step),
		cmocka_unit_test(memory_is_what_was_said),
		cmocka_unit_test(nothing_was_misused),
		cmocka_unit_test(a_step_neither_waits_nor_allocates),
		cmocka_unit_test(the_perceptron_takes_few_kernels),
		cmocka_unit_test(equal_devices_take_one_choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
