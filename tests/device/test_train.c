/* A whole step on the device against the CPU's step (workloads/backend/network.c) of the same model.
 *
 * Tolerances.  The CPU computes in fp32, which is exact beside bf16.  A gradient passes some ten layers forward and back,
 * each of which rounds its inputs, outputs and weights: with errors that do not know of each other, about
 * sqrt(3 * 2 * 10) = 8 times the roundoff of activations, 2^-8 for bf16 and 2^-11 for fp16 and tf32, which the
 * distances below double; fp8's roundoff is 2^-4 (e4m3) and 2^-3 (e5m2). */
#include "tests/device/train_fixture.h"

#include <errno.h>

enum { STEPS = 5, MODELS = 4, MANY_STEPS = 30, PRECISIONS = STEP_PRECISION_FP8 + 1 };

static const struct model *model_at(size_t i)
{
	return i == 0   ? model_find("mlp")
	       : i == 1 ? &attention_model
	       : i == 2 ? &convolution_model
			: &odd_model;
}

struct tolerance {
	const char *name;
	double gradient; /* relative, of all parameters together */
	double loss;     /* relative */
};

static const struct tolerance tolerances[PRECISIONS] = {
	[STEP_PRECISION_FP32] = {"fp32", 2e-5, 1e-5},
	[STEP_PRECISION_TF32] = {"tf32", 16 * 0x1p-11, 2e-3},
	[STEP_PRECISION_BF16] = {"bf16", 16 * 0x1p-8, 2e-2},
	[STEP_PRECISION_FP16] = {"fp16", 16 * 0x1p-11, 4e-3},
	[STEP_PRECISION_FP8] = {"fp8", 0.25, 0.05},
};

static bool device_has(enum step_precision precision)
{
	enum { FP8_CAPABILITY = 89 };
	int device = 0, major = 0, minor = 0;
	DEVICE_OK(cudaGetDevice(&device));
	DEVICE_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
	DEVICE_OK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
	return precision != STEP_PRECISION_FP8 || 10 * major + minor >= FP8_CAPABILITY;
}

static struct fixture open_fixture(size_t model, enum step_precision precision)
{
	const struct cuda_options options =
		fixture_options(model_at(model), precision, STEP_OPTIMIZER_SGD);
	return fixture_open(model_at(model), &options);
}

static void first_weights_are_the_cpu_s(void **state)
{
	(void)state;
	for (size_t m = 0; m < MODELS; m++) {
		struct fixture fixture = open_fixture(m, STEP_PRECISION_BF16);
		struct network network = fixture_network(&fixture);
		float *weights = fixture_parameters(&fixture, fixture.train->plan.weights);
		assert_true(fixture_distance(&fixture, &network, weights, false) == 0);
		free(weights);
		network_close(&network);
		fixture_close(&fixture);
	}
}

static void a_gradient_is_the_cpu_s(void **state)
{
	(void)state;
	for (enum step_precision precision = 0; precision <= STEP_PRECISION_FP8; precision++) {
		const struct tolerance *tolerance = &tolerances[precision];
		for (size_t m = 0; m < MODELS && device_has(precision); m++) {
			struct fixture fixture = open_fixture(m, precision);
			struct network network = fixture_network(&fixture);
			fixture_batch(&fixture, m);
			const struct train_batch batch = fixture_view(&fixture);
			const struct batch_view host = fixture_host_view(&fixture);
			double loss = NAN;
			fixture_gradients(&fixture, &batch, 0);
			DEVICE_OK(network_gradients(&network, &host, 0, &loss, NULL));
			float *gradient =
				fixture_parameters(&fixture, fixture.train->plan.gradients);
			for (size_t i = 0; i < fixture.train->plan.parameters; i++)
				gradient[i] /= fixture.train->loss_scale;
			const double distance =
				fixture_distance(&fixture, &network, gradient, true);
			const double off = fabs(fixture_loss(&fixture) / loss - 1);
			print_message("%s, %s: gradient off by %.2g, loss by %.2g%s%s\n",
				tolerance->name, fixture.model->name, distance, off,
				*train_note(fixture.train) ? "; " : "", train_note(fixture.train));
			assert_true(distance < tolerance->gradient);
			assert_true(off < tolerance->loss);
			/* Not by chance exact: the precision is what was asked for. */
			assert_true(precision == STEP_PRECISION_FP32 || distance > 1e-6);
			free(gradient);
			network_close(&network);
			fixture_close(&fixture);
		}
	}
}

/* Losses of several steps, and the weights after them, in fp32.  Adam divides a gradient by its size: where it is
 * rounding noise its sign is, too, so few weights may be off by some steps' rates. */
struct apart {
	double rate;
	size_t far, count;
};

static void count_far(double device, double cpu, void *context)
{
	struct apart *apart = context;
	apart->count++;
	apart->far += fabs(device - cpu) > 0.05 * apart->rate;
}

static void steps_follow_the_cpu_s(void **state)
{
	(void)state;
	for (size_t m = 0; m < MODELS; m++)
		for (enum step_optimizer rule = STEP_OPTIMIZER_SGD; rule <= STEP_OPTIMIZER_ADAM;
			rule++) {
			const struct cuda_options options =
				fixture_options(model_at(m), STEP_PRECISION_FP32, rule);
			struct fixture fixture = fixture_open(model_at(m), &options);
			struct network network = fixture_network(&fixture);
			for (uint64_t step = 0; step < STEPS; step++) {
				fixture_batch(&fixture, step);
				const struct batch_view host = fixture_host_view(&fixture);
				double loss = NAN;
				DEVICE_OK(network_step(&network, &host, &loss, NULL));
				assert_true(fabs(fixture_step(&fixture) - loss) < 1e-4 * loss);
			}
			float *weights = fixture_parameters(&fixture, fixture.train->plan.weights);
			struct apart apart = {.rate = (double)options.learning_rate};
			fixture_compare(&fixture, &network, weights, false, count_far, &apart);
			assert_true(apart.far < apart.count / 200 + 1);
			assert_true(fixture_distance(&fixture, &network, weights, false) < 1e-4);
			free(weights);
			network_close(&network);
			fixture_close(&fixture);
		}
}

static void losses_fall(void **state)
{
	(void)state;
	for (enum step_precision precision = 0; precision <= STEP_PRECISION_FP8; precision++)
		for (size_t m = 0; m < MODELS && device_has(precision); m++) {
			struct fixture fixture = open_fixture(m, precision);
			fixture_batch(&fixture, 0);
			const double first = fixture_step(&fixture);
			double last = first;
			for (unsigned step = 1; step < MANY_STEPS; step++)
				last = fixture_step(&fixture);
			print_message("%s, %s: %.4f to %.4f\n", tolerances[precision].name,
				fixture.model->name, first, last);
			assert_true(last < 0.97 * first);
			fixture_close(&fixture);
		}
}

/* --- the same bits ----------------------------------------------------------------------------------------- */

/* Weights after some steps; free them. */
static float *weights_after(const struct model *model, const struct cuda_options *options,
	unsigned steps, size_t *count)
{
	struct fixture fixture = fixture_open(model, options);
	assert_true(train_deterministic(fixture.train));
	for (unsigned step = 0; step < steps; step++) {
		fixture_batch(&fixture, step);
		(void)fixture_step(&fixture);
	}
	*count = fixture.train->plan.parameters;
	float *weights = fixture_parameters(&fixture, fixture.train->plan.weights);
	fixture_close(&fixture);
	return weights;
}

static void check_same(const struct model *model, const struct cuda_options *first,
	const struct cuda_options *second)
{
	size_t count = 0, again = 0;
	float *one = weights_after(model, first, STEPS, &count);
	float *other = weights_after(model, second, STEPS, &again);
	assert_int_equal(count, again);
	assert_memory_equal(one, other, count * sizeof *one);
	free(one);
	free(other);
}

static void the_same_seed_gives_the_same_bits(void **state)
{
	(void)state;
	for (enum step_precision precision = 0; precision <= STEP_PRECISION_FP8; precision++)
		for (size_t m = 0; m < MODELS && device_has(precision); m++) {
			const struct cuda_options options = fixture_options(model_at(m), precision,
				m % 2 ? STEP_OPTIMIZER_ADAM : STEP_OPTIMIZER_SGD);
			check_same(model_at(m), &options, &options);
		}
}

static void streams_change_no_bit(void **state)
{
	(void)state;
	for (size_t m = 0; m < MODELS; m++)
		for (unsigned streams = 2; streams <= 4; streams += 2) {
			struct cuda_options options = fixture_options(model_at(m),
				m % 2 && device_has(STEP_PRECISION_FP8) ? STEP_PRECISION_FP8
									: STEP_PRECISION_BF16,
				STEP_OPTIMIZER_SGD);
			const struct cuda_options single = options;
			options.streams = streams;
			check_same(model_at(m), &single, &options);
		}
}

/* A step recorded as a graph and launched again and again is the step, forks to other streams included. */
static void a_step_can_be_recorded(void **state)
{
	(void)state;
	for (unsigned streams = 1; streams <= 3; streams += 2)
		for (size_t m = 0; m < MODELS; m++) {
			struct cuda_options options = fixture_options(
				model_at(m), STEP_PRECISION_FP16, STEP_OPTIMIZER_ADAM);
			options.streams = streams;
			size_t count = 0;
			float *wanted = weights_after(model_at(m), &options, STEPS, &count);
			struct fixture fixture = fixture_open(model_at(m), &options);
			const struct train_batch batch = fixture_view(&fixture);
			cudaGraph_t graph;
			cudaGraphExec_t recorded;
			DEVICE_OK(cudaStreamBeginCapture(
				fixture.streams[0], cudaStreamCaptureModeThreadLocal));
			fixture_gradients(&fixture, &batch, 0);
			fixture_update(&fixture, 1);
			DEVICE_OK(cudaStreamEndCapture(fixture.streams[0], &graph));
			DEVICE_OK(cudaGraphInstantiate(&recorded, graph, 0));
			for (unsigned step = 0; step < STEPS; step++) {
				fixture_batch(&fixture, step);
				DEVICE_OK(cudaGraphLaunch(recorded, fixture.streams[0]));
				DEVICE_OK(cudaStreamSynchronize(fixture.streams[0]));
			}
			float *weights = fixture_parameters(&fixture, fixture.train->plan.weights);
			assert_memory_equal(weights, wanted, count * sizeof *wanted);
			DEVICE_OK(cudaGraphExecDestroy(recorded));
			DEVICE_OK(cudaGraphDestroy(graph));
			free(weights);
			free(wanted);
			fixture_close(&fixture);
		}
}

/* --- batches ------------------------------------------------------------------------------------------------ */

/* Two halves, of which the gradients add up, are one batch. */
static void halves_add_up(void **state)
{
	(void)state;
	for (size_t m = 0; m < MODELS; m++) {
		struct cuda_options options =
			fixture_options(model_at(m), STEP_PRECISION_FP32, STEP_OPTIMIZER_SGD);
		struct fixture whole = fixture_open(model_at(m), &options);
		options.batch_size /= 2;
		options.accumulate = 2;
		struct fixture halves = fixture_open(model_at(m), &options);
		fixture_batch(&whole, 3);
		(void)fixture_step(&whole);
		for (unsigned half = 0; half < 2; half++) {
			memcpy(halves.data,
				whole.data + half * options.batch_size * options.sample_elements,
				options.batch_size * options.sample_elements * sizeof(float));
			memcpy(halves.labels, whole.labels + half * options.batch_size,
				options.batch_size * sizeof(uint32_t));
			fixture_upload(&halves);
			const struct train_batch batch = fixture_view(&halves);
			fixture_gradients(&halves, &batch, (float)half);
		}
		fixture_update(&halves, 2);
		float *one = fixture_parameters(&whole, whole.train->plan.velocity);
		float *two = fixture_parameters(&halves, halves.train->plan.velocity);
		double difference = 0, size = 0;
		for (size_t i = 0; i < whole.train->plan.parameters; i++) {
			difference += pow((double)one[i] - (double)two[i], 2);
			size += pow((double)one[i], 2);
		}
		assert_true(size > 0 && difference < 1e-10 * size);
		free(one);
		free(two);
		fixture_close(&whole);
		fixture_close(&halves);
	}
}

/* The loss that the next step begins with, and nothing is learned. */
static void evaluating_leaves_everything(void **state)
{
	(void)state;
	for (size_t m = 0; m < MODELS; m++) {
		const struct cuda_options options =
			fixture_options(model_at(m), STEP_PRECISION_FP32, STEP_OPTIMIZER_ADAM);
		struct fixture fixture = fixture_open(model_at(m), &options);
		struct error err = {""};
		fixture_batch(&fixture, 3);
		(void)fixture_step(&fixture);
		const struct device_plan *const plan = &fixture.train->plan;
		const size_t arrays[] = {plan->weights, plan->gradients, plan->first, plan->second};
		float *before[4];
		for (size_t i = 0; i < 4; i++)
			before[i] = fixture_parameters(&fixture, arrays[i]);
		const struct train_batch batch = fixture_view(&fixture);
		assert_int_equal(train_evaluate(fixture.train, &batch, &err), 0);
		const double evaluated = fixture_loss(&fixture);
		for (size_t i = 0; i < 4; i++) {
			float *const after = fixture_parameters(&fixture, arrays[i]);
			assert_memory_equal(before[i], after, plan->parameters * sizeof(float));
			free(after);
			free(before[i]);
		}
		assert_true(fixture_step(&fixture) == evaluated);
		struct train_batch large = batch;
		large.size++;
		assert_int_equal(train_evaluate(fixture.train, &large, &err), -EINVAL);
		fixture_close(&fixture);
	}
}

static void gradients_add_up_where_that_was_said(void **state)
{
	(void)state;
	struct fixture fixture = open_fixture(0, STEP_PRECISION_FP32);
	fixture_batch(&fixture, 0);
	const struct train_batch batch = fixture_view(&fixture);
	struct error err = {""};
	assert_int_equal(train_gradients(fixture.train, &batch, 1, &err), -EINVAL);
	struct train_batch large = batch;
	large.size++;
	assert_int_equal(train_gradients(fixture.train, &large, 0, &err), -EINVAL);
	large.size = 0;
	assert_int_equal(train_gradients(fixture.train, &large, 0, &err), -EINVAL);
	fixture_close(&fixture);
}

/* The last batch of an epoch, behind one whose other samples are not even numbers. */
static void a_part_of_a_batch_is_the_cpu_s(void **state)
{
	(void)state;
	for (size_t m = 0; m < MODELS; m++) {
		struct fixture fixture = open_fixture(m, STEP_PRECISION_FP32);
		struct network network = fixture_network(&fixture);
		fixture_batch(&fixture, 1);
		const size_t used = FIXTURE_BATCH / 3;
		const size_t elements = fixture.options.sample_elements;
		for (size_t i = used * elements; i < FIXTURE_BATCH * elements; i++)
			fixture.data[i] = INFINITY;
		fixture_upload(&fixture);
		struct train_batch batch = fixture_view(&fixture);
		fixture_gradients(&fixture, &batch, 0); /* leaves no finite number behind it */
		batch.size = (uint32_t)used;
		fixture_gradients(&fixture, &batch, 0);
		struct batch_view host = fixture_host_view(&fixture);
		host.size = (uint32_t)used;
		double loss = NAN;
		DEVICE_OK(network_gradients(&network, &host, 0, &loss, NULL));
		float *gradient = fixture_parameters(&fixture, fixture.train->plan.gradients);
		assert_true(fixture_distance(&fixture, &network, gradient, true) < 2e-5);
		assert_true(fabs(fixture_loss(&fixture) / loss - 1) < 1e-5);
		free(gradient);
		network_close(&network);
		fixture_close(&fixture);
	}
}

/* Bytes are normalised on the device: as if the host had. */
static void bytes_are_normalised(void **state)
{
	(void)state;
	static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
	const struct model *model = model_find("mlp");
	struct cuda_options options =
		fixture_options(model, STEP_PRECISION_FP32, STEP_OPTIMIZER_SGD);
	struct fixture floats = fixture_open(model, &options);
	options.type = AUGMENT_TYPE_UINT8;
	struct fixture bytes = fixture_open(model, &options);
	const size_t count = (size_t)FIXTURE_BATCH * FIXTURE_ELEMENTS;
	unsigned char *pixels = malloc(count);
	assert_non_null(pixels);
	fixture_batch(&floats, 0);
	for (size_t i = 0; i < count; i++) {
		const size_t channel = i % FIXTURE_ELEMENTS / (FIXTURE_ELEMENTS / 3);
		pixels[i] = (unsigned char)(i * 37 % 256);
		floats.data[i] = (float)((pixels[i] / 255.0 - mean[channel]) / deviation[channel]);
	}
	fixture_upload(&floats);
	DEVICE_OK(cudaMemcpy(bytes.device_data, pixels, count, cudaMemcpyHostToDevice));
	DEVICE_OK(cudaMemcpy(bytes.device_labels, floats.labels, FIXTURE_BATCH * sizeof(uint32_t),
		cudaMemcpyHostToDevice));
	DEVICE_OK(cudaDeviceSynchronize());
	assert_true(fabs(fixture_step(&bytes) - fixture_step(&floats)) < 1e-5);
	free(pixels);
	fixture_close(&floats);
	fixture_close(&bytes);
}

/* fp16: an update from numbers that are none does not happen. */
static void non_finite_gradients_are_skipped(void **state)
{
	(void)state;
	for (enum step_optimizer rule = STEP_OPTIMIZER_SGD; rule <= STEP_OPTIMIZER_ADAM; rule++) {
		const struct cuda_options options =
			fixture_options(&attention_model, STEP_PRECISION_FP16, rule);
		struct fixture fixture = fixture_open(&attention_model, &options);
		struct fixture other = fixture_open(&attention_model, &options);
		fixture_batch(&fixture, 0);
		(void)fixture_step(&fixture);
		fixture_batch(&other, 0);
		(void)fixture_step(&other);
		fixture_batch(&fixture, 1);
		fixture.data[5] = INFINITY;
		fixture_upload(&fixture);
		assert_true(!isfinite(fixture_step(&fixture)));
		fixture_batch(&fixture, 2);
		fixture_batch(&other, 2);
		const double loss = fixture_step(&fixture);
		assert_true(isfinite(loss));
		assert_true(loss == fixture_step(&other));
		float *one = fixture_parameters(&fixture, fixture.train->plan.weights);
		float *two = fixture_parameters(&other, other.train->plan.weights);
		assert_memory_equal(one, two, fixture.train->plan.parameters * sizeof *one);
		free(one);
		free(two);
		fixture_close(&fixture);
		fixture_close(&other);
	}
}

/* --- beside a step ------------------------------------------------------------------------------------------- */

static void statistics_are_of_the_gradient(void **state)
{
	(void)state;
	struct fixture fixture = open_fixture(1, STEP_PRECISION_FP16);
	struct device_array out = device_array(ELEMENT_F32, 8);
	double values[4];
	struct error err = {""};
	fixture_batch(&fixture, 0);
	const struct train_batch batch = fixture_view(&fixture);
	fixture_gradients(&fixture, &batch, 0);
	DEVICE_OK(train_statistics(fixture.train, 1, (double *)(void *)out.data, &err));
	float *gradient = fixture_parameters(&fixture, fixture.train->plan.gradients);
	double squares = 0;
	for (size_t i = 0; i < fixture.train->plan.parameters; i++)
		squares += pow((double)gradient[i] / (double)fixture.train->loss_scale, 2);
	device_array_down(&out);
	memcpy(values, out.host, sizeof values);
	assert_true(squares > 0 && fabs(values[0] / sqrt(squares) - 1) < 1e-5);
	assert_true(values[1] == 0);
	/* The last block's output: in front of its mean, which alone is normalised. */
	const struct device_view *view = device_plan_watched(&fixture.train->plan);
	struct device_array rows =
		device_array(view->type, (size_t)FIXTURE_BATCH * view->sample_stride);
	DEVICE_OK(cudaMemcpy(rows.data, fixture.train->memory + view->offset, rows.bytes,
		cudaMemcpyDeviceToDevice));
	device_array_down(&rows);
	double sum = 0, sum_squares = 0;
	const double count = (double)FIXTURE_BATCH * view->rows * view->columns;
	for (size_t s = 0; s < FIXTURE_BATCH; s++)
		for (size_t r = 0; r < view->rows; r++)
			for (size_t j = 0; j < view->columns; j++) {
				const double x = device_array_get(
					&rows, s * view->sample_stride + r * view->ld + j);
				sum += x;
				sum_squares += x * x;
			}
	const double deviation = sqrt(sum_squares / count - pow(sum / count, 2));
	assert_true(fabs(values[2] - sum / count) < 1e-5 * deviation);
	assert_true(deviation > 0 && fabs(values[3] / deviation - 1) < 1e-5);
	free(gradient);
	device_array_free(&rows);
	device_array_free(&out);
	fixture_close(&fixture);
}

/* The products alone: they run, in any precision, and the weights are not theirs to change. */
static void products_run_alone(void **state)
{
	(void)state;
	for (enum step_precision precision = 0; precision <= STEP_PRECISION_FP8; precision++)
		for (size_t m = 0; m < MODELS && device_has(precision); m++) {
			struct fixture fixture = open_fixture(m, precision);
			struct error err = {""};
			fixture_batch(&fixture, 0);
			(void)fixture_step(&fixture);
			float *before = fixture_parameters(&fixture, fixture.train->plan.weights);
			DEVICE_OK(train_products(fixture.train, &err));
			float *after = fixture_parameters(&fixture, fixture.train->plan.weights);
			assert_memory_equal(
				before, after, fixture.train->plan.parameters * sizeof *before);
			free(before);
			free(after);
			fixture_close(&fixture);
		}
}

static void flops_and_bytes_are_the_plan_s(void **state)
{
	(void)state;
	const struct model *model = model_find("mlp");
	const struct cuda_options options =
		fixture_options(model, STEP_PRECISION_BF16, STEP_OPTIMIZER_ADAM);
	struct fixture fixture = fixture_open(model, &options);
	const struct model_shape shape = {options.sample_elements, options.class_count, 0};
	assert_true(train_flops_per_sample(fixture.train) == model_training_flops_at(model, shape));
	assert_int_equal(train_bytes(&options), fixture.train->plan.bytes + TRAIN_WORKSPACE_BYTES);
	size_t count = 0;
	assert_ptr_equal(train_gradient_array(fixture.train, &count),
		fixture.train->memory + fixture.train->plan.gradients);
	assert_int_equal(count, fixture.train->plan.parameters);
	assert_string_equal(train_note(fixture.train), "");
	fixture_close(&fixture);
}

/* Everything of the perceptron is in epilogues, where the library has them: the double has. */
static void the_perceptron_is_fused(void **state)
{
	(void)state;
	struct fixture fixture = open_fixture(0, STEP_PRECISION_BF16);
	const struct train_layer *layers = fixture.train->layers;
	static const enum gemm_epilogue wanted[][2] = {
		{GEMM_BIAS_RELU_MASK, GEMM_PLAIN}, /* the first layer has no dX */
		{GEMM_BIAS_RELU_MASK, GEMM_RELU_BACKWARD},
		{GEMM_BIAS, GEMM_RELU_BACKWARD},
	};
	for (size_t i = 0; i < 3; i++) {
		const struct train_product *products = layers[i].products;
		print_message("layer %zu: epilogues %d, %d, %d\n", i,
			(int)products[DEVICE_FORWARD].epilogue,
			(int)products[DEVICE_INPUT_GRADIENT].epilogue,
			(int)products[DEVICE_WEIGHT_GRADIENT].epilogue);
#ifdef MLBENCH_CUDA_DOUBLE
		assert_int_equal(products[DEVICE_FORWARD].epilogue, wanted[i][0]);
		assert_int_equal(products[DEVICE_INPUT_GRADIENT].epilogue, wanted[i][1]);
		assert_int_equal(products[DEVICE_WEIGHT_GRADIENT].epilogue, GEMM_BIAS_BACKWARD);
#else
		(void)wanted;
#endif
	}
	fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_weights_are_the_cpu_s),
		cmocka_unit_test(a_gradient_is_the_cpu_s),
		cmocka_unit_test(steps_follow_the_cpu_s),
		cmocka_unit_test(losses_fall),
		cmocka_unit_test(the_same_seed_gives_the_same_bits),
		cmocka_unit_test(streams_change_no_bit),
		cmocka_unit_test(a_step_can_be_recorded),
		cmocka_unit_test(halves_add_up),
		cmocka_unit_test(evaluating_leaves_everything),
		cmocka_unit_test(gradients_add_up_where_that_was_said),
		cmocka_unit_test(a_part_of_a_batch_is_the_cpu_s),
		cmocka_unit_test(bytes_are_normalised),
		cmocka_unit_test(non_finite_gradients_are_skipped),
		cmocka_unit_test(statistics_are_of_the_gradient),
		cmocka_unit_test(products_run_alone),
		cmocka_unit_test(flops_and_bytes_are_the_plan_s),
		cmocka_unit_test(the_perceptron_is_fused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
