/* The plan of a device's step is the CPU's plan over a whole batch: the same strides, the same FLOPs, and no two things in
 * one place that are wanted at the same time. */
#include "tests/device/device_models.h"
#include "workloads/backend/cuda/device_plan.h"
#include "workloads/backend/cuda/train.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BATCH = 16, CLASSES = 10, ELEMENTS = 48, PLACES_MAX = 4096 };

static const struct model *const models[] = {
	&attention_model, &convolution_model, &odd_model, NULL, /* here follow the listed ones */
};

static struct device_plan_options options_of(
	const struct model *model, enum step_precision precision)
{
	return (struct device_plan_options){
		.model = model,
		.shape = {model->published_elements ? model->published_elements : ELEMENTS,
			model->published_classes ? model->published_classes : CLASSES, 0},
		.batch = BATCH,
		.precision = precision,
		.rule = STEP_OPTIMIZER_SGD,
	};
}

static struct device_plan open_plan(const struct device_plan_options *options)
{
	struct device_plan plan;
	struct error err = {""};
	if (device_plan_open(&plan, options, &err) < 0)
		fail_msg("%s", err.text);
	return plan;
}

/* Every model that there is, one after the other; NULL ends. */
static const struct model *model_at(size_t i)
{
	const size_t own = sizeof models / sizeof *models - 1;
	return i < own ? models[i] : model_list[i - own];
}

static void flops_are_those_of_the_model(void **state)
{
	(void)state;
	for (size_t i = 0; model_at(i); i++)
		for (enum step_precision precision = STEP_PRECISION_FP32;
			precision <= STEP_PRECISION_FP8; precision++) {
			const struct device_plan_options options =
				options_of(model_at(i), precision);
			struct device_plan plan = open_plan(&options);
			const double wanted =
				BATCH * model_training_flops_at(options.model, options.shape);
			/* Integers below 2^53: exact. */
			assert_true(device_plan_flops(&plan) == wanted);
			device_plan_close(&plan);
		}
}

static size_t index_of(const struct device_view *view, size_t sample, size_t row, size_t column)
{
	return sample * view->sample_stride + row * view->ld + column;
}

/* The same element of the link in both plans, the link's samples one behind the other. */
static void views_are_the_strides_of_the_cpu(void **state)
{
	(void)state;
	for (size_t m = 0; model_at(m); m++) {
		const struct device_plan_options options =
			options_of(model_at(m), STEP_PRECISION_BF16);
		struct device_plan plan = open_plan(&options);
		for (size_t i = 0; i + 1 < plan.layer_count; i++) {
			const struct device_layer *layer = &plan.layers[i];
			const struct layer *from = &plan.network.layers[i], *to = from + 1;
			const size_t floats = plan.network.links[i].floats;
			const struct device_view *in = &layer[1].input;
			assert_int_equal(layer->output.sample_stride, floats);
			assert_int_equal(index_of(&layer->output, 2, layer->m - 1, layer->n - 1),
				2 * floats + (from->m - 1) * from->ld_out + from->n - 1);
			if (layer->averaged.rows > 0) {
				assert_int_equal(to->m, 1);
				assert_int_equal(in->offset, layer->averaged.offset);
				assert_int_equal(in->sample_stride, from->n);
				continue;
			}
			assert_int_equal(in->offset, layer->output.offset);
			assert_int_equal(index_of(in, 2, to->m - 1, to->k - 1),
				2 * floats + (to->m - 1) * to->ld_in + to->k - 1);
		}
		device_plan_close(&plan);
	}
}

/* Row r of a product's operand, counted over all samples, is row r % m of sample r / m. */
static void check_rows(const struct device_view *view, size_t ld, size_t batch)
{
	for (size_t row = 0; row<batch * view->rows; row += view->rows> 7 ? 7 : 1)
		assert_int_equal(row * ld, index_of(view, row / view->rows, row % view->rows, 0));
}

static void products_take_all_rows_as_one_matrix(void **state)
{
	(void)state;
	for (size_t m = 0; model_at(m); m++) {
		const struct device_plan_options options =
			options_of(model_at(m), STEP_PRECISION_FP32);
		struct device_plan plan = open_plan(&options);
		for (size_t i = 0; i < plan.layer_count; i++) {
			const struct device_layer *layer = &plan.layers[i];
			struct gemm_problem product;
			if (!device_plan_product(&plan, i, DEVICE_FORWARD, &product))
				continue;
			assert_int_equal(product.m, (size_t)BATCH * layer->m);
			assert_int_equal(product.n, layer->n);
			assert_int_equal(product.k, layer->k);
			check_rows(&layer->input, product.lda, BATCH);
			if (!layer->packed)
				check_rows(&layer->output, product.ldd, BATCH);
			assert_true(
				device_plan_product(&plan, i, DEVICE_WEIGHT_GRADIENT, &product));
			assert_int_equal(product.k, (size_t)BATCH * layer->m);
			assert_true(product.a_transposed && !product.b_transposed);
			check_rows(&layer->input, product.lda, BATCH);
			assert_int_equal(
				device_plan_product(&plan, i, DEVICE_INPUT_GRADIENT, &product),
				i > 0);
			if (i > 0)
				check_rows(&layer->input_gradient, product.ldd, BATCH);
		}
		device_plan_close(&plan);
	}
}

static void expect_aligned(uint64_t ld, int64_t stride, enum element type, const char *name)
{
	const size_t bytes = element_bytes(type);
	if (ld * bytes % GEMM_ALIGN_BYTES != 0 || (size_t)stride * bytes % GEMM_ALIGN_BYTES != 0)
		fail_msg("%s: rows of %llu elements", name, (unsigned long long)ld);
}

/* A library may have no kernel for rows that do not begin at multiples of 16 bytes; conv1 of resnet50 has 147 elements. */
static void rows_of_every_product_are_aligned(void **state)
{
	(void)state;
	for (size_t m = 0; model_list[m]; m++)
		for (enum step_precision precision = STEP_PRECISION_FP32;
			precision <= STEP_PRECISION_FP8; precision++) {
			struct device_plan_options options = options_of(model_list[m], precision);
			/* As the model was published, and samples that no alignment divides. */
			for (unsigned odd = 0; odd < 2; odd++) {
				options.shape.sample_elements += odd;
				struct device_plan plan = open_plan(&options);
				const bool in_place = plan.layers[0].input.type == ELEMENT_F32 &&
						      model_list[m]->input_elements == 0;
				struct gemm_problem product;
				for (size_t i = in_place; i < plan.layer_count; i++)
					for (enum device_product p = 0; p < DEVICE_PRODUCTS; p++) {
						if (!device_plan_product(&plan, i, p, &product))
							continue;
						expect_aligned(product.lda, product.stride_a,
							product.a_type, options.model->name);
						expect_aligned(product.ldb, product.stride_b,
							product.b_type, options.model->name);
						expect_aligned(product.ldd, product.stride_d,
							product.d_type, options.model->name);
					}
				device_plan_close(&plan);
			}
		}
}

static void only_a_class_token_needs_a_stand_in(void **state)
{
	(void)state;
	for (size_t m = 0; model_at(m); m++) {
		const struct device_plan_options options =
			options_of(model_at(m), STEP_PRECISION_BF16);
		struct device_plan plan = open_plan(&options);
		const bool token =
			options.model == &attention_model || options.model == model_find("vit_b16");
		for (size_t i = 0; i < plan.layer_count; i++) {
			assert_int_equal(plan.layers[i].packed, token && i == 0);
			assert_int_equal(
				plan.layers[i].stand_in != DEVICE_NOWHERE, plan.layers[i].packed);
		}
		device_plan_close(&plan);
	}
}

/* --- places --------------------------------------------------------------------------------------------- */

struct place {
	size_t begin, end;
	size_t line; /* of the test, to find it */
};

struct places {
	struct place all[PLACES_MAX];
	size_t count;
};

static void add_place(struct places *places, size_t begin, size_t bytes, size_t line)
{
	if (begin == DEVICE_NOWHERE || bytes == 0)
		return;
	assert_true(places->count < PLACES_MAX);
	places->all[places->count++] = (struct place){begin, begin + bytes, line};
}
#define ADD(places, begin, bytes) add_place((places), (begin), (bytes), __LINE__)

static int by_begin(const void *a, const void *b)
{
	const size_t first = ((const struct place *)a)->begin,
		     second = ((const struct place *)b)->begin;
	return (first > second) - (first < second);
}

static void check_apart(struct places *places, size_t bytes)
{
	qsort(places->all, places->count, sizeof *places->all, by_begin);
	for (size_t i = 0; i < places->count; i++) {
		if (i > 0 && places->all[i].begin < places->all[i - 1].end)
			fail_msg("the place of line %zu runs into that of line %zu",
				places->all[i - 1].line, places->all[i].line);
		assert_true(places->all[i].end <= bytes);
	}
}

static size_t view_bytes(const struct device_view *view)
{
	return (size_t)BATCH * view->sample_stride * element_bytes(view->type);
}

static void add_layer(struct places *places, const struct device_plan *plan, size_t i)
{
	const struct device_layer *layer = &plan->layers[i];
	const size_t element = element_bytes(plan->type), rows = (size_t)BATCH * layer->m;
	assert_int_equal(layer->output.offset % DEVICE_ALIGN_BYTES, 0);
	ADD(places, layer->output.offset, view_bytes(&layer->output));
	if (layer->averaged.rows > 0)
		ADD(places, layer->averaged.offset, view_bytes(&layer->averaged));
	ADD(places, layer->stand_in, rows * layer->ld_products * element);
	ADD(places, layer->norm_scales, rows * sizeof(float));
	ADD(places, layer->mask, rows * layer->mask_ld / 8);
	if (layer->kind == LAYER_ATTENTION) {
		ADD(places, layer->heads_input, 3 * rows * layer->n * element);
		ADD(places, layer->scores, rows * layer->heads * layer->ld_scores * element);
	}
	if (!layer->fp8)
		return;
	ADD(places, layer->input_transposed, rows * layer->k);
	ADD(places, layer->weights_quantised, (size_t)layer->k * layer->n);
	ADD(places, layer->weights_transposed, (size_t)layer->k * layer->n);
	ADD(places, layer->input_scale.amax, sizeof(float));
	ADD(places, layer->input_scale.inverse, sizeof(float));
	ADD(places, layer->weights_scale.amax, sizeof(float));
	ADD(places, layer->weights_scale.inverse, sizeof(float));
	ADD(places, layer->gradient_scale.amax, sizeof(float));
	ADD(places, layer->gradient_scale.inverse, sizeof(float));
}

static void add_parameters(struct places *places, const struct device_plan *plan)
{
	const size_t bytes = plan->parameters * sizeof(float);
	ADD(places, plan->weights, bytes);
	ADD(places, plan->gradients, bytes);
	ADD(places, plan->velocity, bytes);
	ADD(places, plan->first, bytes);
	ADD(places, plan->second, bytes);
	ADD(places, plan->computed, plan->parameters * element_bytes(plan->type));
	ADD(places, plan->optimizer_step, sizeof(uint32_t));
	ADD(places, plan->skip, sizeof(uint32_t));
	ADD(places, plan->loss, sizeof(float));
	ADD(places, plan->statistics, 5 * sizeof(double));
}

/* What a kernel would use of the scratch that the layers share; the address is any. */
static void add_scratch(
	struct places *places, const struct device_plan *plan, const struct device_layer *layer)
{
	struct quantise_task task = {.from = {.data = places,
					     .type = plan->type,
					     .samples = BATCH,
					     .rows = layer->m,
					     .columns = layer->n,
					     .ld = layer->output_gradient.ld,
					     .sample_stride = layer->output_gradient.sample_stride},
		.type = ELEMENT_E5M2};
	const size_t bias = kernel_bias_scratch(&task.from),
		     gradient = kernel_quantise_scratch(&task);
	assert_true(bias > 0 && gradient > 0);
	if (layer->bias)
		ADD(places, plan->bias_scratch, bias * sizeof(float));
	if (!layer->fp8)
		return;
	task.from.samples = 1;
	task.from.rows = layer->k;
	task.from.type = ELEMENT_F32;
	task.from.ld = layer->ld_weights;
	const size_t weights = kernel_quantise_scratch(&task);
	ADD(places, plan->quantise_scratch,
		(gradient > weights ? gradient : weights) * sizeof(float));
}

static void check_places(const struct device_plan *plan)
{
	struct places *places = calloc(1, sizeof *places);
	assert_non_null(places);
	add_parameters(places, plan);
	ADD(places, plan->layers[0].input.offset, view_bytes(&plan->layers[0].input));
	for (size_t i = 0; i < plan->layer_count; i++)
		add_layer(places, plan, i);
	const size_t lasting = places->count;
	/* In the backward pass of layer i: the gradients of its output and input, and what it is given as scratch. */
	for (size_t i = 1; i < plan->layer_count; i++) {
		const struct device_layer *layer = &plan->layers[i];
		const size_t element = element_bytes(plan->type), rows = (size_t)BATCH * layer->m;
		struct places *now = malloc(sizeof *now);
		assert_non_null(now);
		*now = *places;
		now->count = lasting;
		if (i + 1 < plan->layer_count)
			ADD(now, layer->output_gradient.offset,
				view_bytes(&layer->output_gradient));
		ADD(now, layer[-1].output_gradient.offset, view_bytes(&layer[-1].output_gradient));
		if (layer[-1].averaged.rows > 0)
			ADD(now, layer[-1].averaged_gradient.offset,
				view_bytes(&layer[-1].averaged_gradient));
		ADD(now, layer->gradient_quantised, layer->fp8 ? rows * layer->n : 0);
		ADD(now, layer->gradient_transposed, layer->fp8 ? rows * layer->n : 0);
		if (layer->kind == LAYER_ATTENTION) {
			ADD(now, plan->heads_output, rows * layer->n * element);
			ADD(now, plan->heads_gradient, 3 * rows * layer->n * element);
			ADD(now, plan->scores_gradient,
				rows * layer->heads * layer->ld_scores * element);
		}
		add_scratch(now, plan, layer);
		if (layer->fp8)
			ADD(now, plan->quantised, rows * layer->k);
		check_apart(now, plan->bytes);
		free(now);
	}
	free(places);
}

static void nothing_shares_a_place(void **state)
{
	(void)state;
	for (size_t i = 0; model_at(i); i++)
		for (enum step_precision precision = STEP_PRECISION_FP32;
			precision <= STEP_PRECISION_FP8; precision++) {
			struct device_plan_options options = options_of(model_at(i), precision);
			options.rule = precision % 2 ? STEP_OPTIMIZER_ADAM : STEP_OPTIMIZER_SGD;
			options.streams = precision;
			struct device_plan plan = open_plan(&options);
			check_places(&plan);
			device_plan_close(&plan);
		}
}

/* With more streams, products of more layers are under way: so many gradients do not share a place. */
static void streams_have_gradients_of_their_own(void **state)
{
	(void)state;
	for (unsigned streams = 0; streams <= DEVICE_STREAMS_MAX; streams++) {
		struct device_plan_options options =
			options_of(model_find("gpt2_small"), STEP_PRECISION_BF16);
		options.streams = streams;
		struct device_plan plan = open_plan(&options);
		assert_int_equal(plan.slots, (streams > 1 ? streams : 1) + 1);
		for (size_t i = 0; i < plan.layer_count; i++)
			for (size_t j = i + 1; j < i + plan.slots && j < plan.layer_count; j++)
				assert_true(plan.layers[i].output_gradient.offset !=
					    plan.layers[j].output_gradient.offset);
		device_plan_close(&plan);
	}
	struct device_plan plan;
	struct error err = {""};
	struct device_plan_options options = options_of(&odd_model, STEP_PRECISION_FP32);
	options.streams = DEVICE_STREAMS_MAX + 1;
	assert_int_equal(device_plan_open(&plan, &options, &err), -EINVAL);
}

/* A gradient that is partly zero for ever is in a place that no other layer writes to. */
static void dead_outputs_keep_their_zeros(void **state)
{
	(void)state;
	size_t dead = 0;
	for (size_t m = 0; model_at(m); m++) {
		const struct device_plan_options options =
			options_of(model_at(m), STEP_PRECISION_BF16);
		struct device_plan plan = open_plan(&options);
		for (size_t i = 0; i < plan.layer_count; i++)
			for (size_t j = 0; j < plan.layer_count; j++) {
				if (i == j || !plan.network.links[i].dead)
					continue;
				dead++;
				assert_true(plan.layers[i].output_gradient.offset !=
					    plan.layers[j].output_gradient.offset);
			}
		device_plan_close(&plan);
	}
	assert_true(dead > 0);
}

/* --- parameters, precisions ------------------------------------------------------------------------------- */

static void parameters_are_aligned_and_counted(void **state)
{
	(void)state;
	for (size_t m = 0; model_at(m); m++) {
		const struct device_plan_options options =
			options_of(model_at(m), STEP_PRECISION_BF16);
		struct device_plan plan = open_plan(&options);
		size_t end = 0;
		for (size_t i = 0; i < plan.layer_count; i++) {
			const struct device_layer *layer = &plan.layers[i];
			if (layer->kind != LAYER_DENSE)
				continue;
			assert_int_equal(layer->weights % DEVICE_PARAMETER_ALIGN, 0);
			assert_int_equal(layer->ld_weights % DEVICE_ROW_ALIGN, 0);
			assert_true(layer->ld_weights >= layer->n);
			assert_true(layer->weights >= end);
			end = layer->weights + layer->k * layer->ld_weights;
			if (!layer->bias)
				continue;
			assert_int_equal(layer->biases % DEVICE_PARAMETER_ALIGN, 0);
			assert_true(layer->biases >= end);
			end = layer->biases + layer->n;
		}
		assert_true(end <= plan.parameters);
		const uint64_t others = options.model->other_parameters;
		assert_int_equal(
			plan.trained, model_parameters_at(options.model, options.shape) - others);
		device_plan_close(&plan);
	}
}

static void fp8_takes_multiples_of_16_and_the_rest_is_bf16(void **state)
{
	(void)state;
	const struct device_plan_options options =
		options_of(model_find("gpt2_small"), STEP_PRECISION_FP8);
	struct device_plan plan = open_plan(&options);
	size_t not_fp8 = 0;
	const size_t products = device_plan_products(&plan, &not_fp8);
	/* 12 blocks: 4 layers of three products, attention's 6; the head; no dX of the first layer. */
	assert_int_equal(products, 12 * (4 * 3 + 6) + 3 - 1);
	/* Attention, and the vocabulary of 50257. */
	assert_int_equal(not_fp8, 12 * 6 + 3);
	for (size_t i = 0; i < plan.layer_count; i++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++) {
			struct gemm_problem problem;
			if (!device_plan_product(&plan, i, product, &problem))
				continue;
			if (!plan.layers[i].fp8) {
				assert_int_equal(problem.precision, STEP_PRECISION_BF16);
				assert_int_equal(problem.a_type, ELEMENT_BF16);
				assert_int_equal(problem.b_type, ELEMENT_BF16);
				continue;
			}
			assert_int_equal((problem.m | problem.n | problem.k | problem.lda |
						 problem.ldb | problem.ldd) %
						 GEMM_FP8_MULTIPLE,
				0);
			assert_true(!problem.a_transposed && problem.b_transposed);
			assert_int_equal(problem.a_type,
				product == DEVICE_INPUT_GRADIENT ? ELEMENT_E5M2 : ELEMENT_E4M3);
			assert_int_equal(problem.b_type,
				product == DEVICE_WEIGHT_GRADIENT ? ELEMENT_E5M2 : ELEMENT_E4M3);
			assert_int_equal(problem.d_type,
				product == DEVICE_WEIGHT_GRADIENT ? ELEMENT_F32 : ELEMENT_BF16);
		}
	device_plan_close(&plan);
	/* A batch of which the rows are no multiple: nothing of the mlp is. */
	struct device_plan_options odd = options_of(model_find("mlp"), STEP_PRECISION_FP8);
	odd.batch = BATCH + 1;
	plan = open_plan(&odd);
	const size_t all = device_plan_products(&plan, &not_fp8);
	assert_int_equal(all, not_fp8);
	device_plan_close(&plan);
}

static void only_the_perceptron_fuses_its_relu(void **state)
{
	(void)state;
	const struct device_plan_options options =
		options_of(model_find("mlp"), STEP_PRECISION_BF16);
	struct device_plan plan = open_plan(&options);
	assert_true(plan.layers[0].relu_by_next && plan.layers[1].relu_by_next);
	assert_false(plan.layers[2].relu_by_next);
	assert_int_equal(plan.layers[0].mask_ld, 512);
	device_plan_close(&plan);
}

static void the_loss_scale_follows_the_rows(void **state)
{
	(void)state;
	struct device_plan_options options = options_of(model_find("mlp"), STEP_PRECISION_FP16);
	for (uint32_t batch = 1; batch < 5000; batch = batch * 3 / 2 + 1) {
		options.batch = batch;
		struct device_plan plan = open_plan(&options);
		const double largest = (double)device_plan_loss_scale(&plan) / batch;
		assert_true(largest > 4.0 - 1e-9 && largest <= 8.0);
		device_plan_close(&plan);
	}
	options.precision = STEP_PRECISION_BF16;
	struct device_plan plan = open_plan(&options);
	assert_true(device_plan_loss_scale(&plan) == 1.0f);
	device_plan_close(&plan);
}

/* What open would take is known before; it grows with the batch, and adam takes one array more. */
static void bytes_are_known_before(void **state)
{
	(void)state;
	struct cuda_options options = {.model = "resnet50",
		.batch_size = 64,
		.sample_elements = 3 * 224 * 224,
		.class_count = 1000,
		.precision = STEP_PRECISION_BF16};
	const uint64_t small = train_bytes(&options);
	options.batch_size = 256;
	const uint64_t large = train_bytes(&options);
	assert_true(small > 0 && large > 3 * small && large < 4 * small);
	assert_true(large < (uint64_t)64 << 30); /* fits a device of 80 GB */
	options.rule = STEP_OPTIMIZER_ADAM;
	const uint64_t adam = train_bytes(&options);
	const double weights = 25.5e6 * sizeof(float);
	assert_true(
		(double)(adam - large) > 0.99 * weights && (double)(adam - large) < 1.01 * weights);
	options.streams = 2;
	assert_true(train_bytes(&options) > adam);
	options.model = "none";
	assert_int_equal(train_bytes(&options), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flops_are_those_of_the_model),
		cmocka_unit_test(views_are_the_strides_of_the_cpu),
		cmocka_unit_test(products_take_all_rows_as_one_matrix),
		cmocka_unit_test(rows_of_every_product_are_aligned),
		cmocka_unit_test(only_a_class_token_needs_a_stand_in),
		cmocka_unit_test(nothing_shares_a_place),
		cmocka_unit_test(streams_have_gradients_of_their_own),
		cmocka_unit_test(dead_outputs_keep_their_zeros),
		cmocka_unit_test(parameters_are_aligned_and_counted),
		cmocka_unit_test(fp8_takes_multiples_of_16_and_the_rest_is_bf16),
		cmocka_unit_test(only_the_perceptron_fuses_its_relu),
		cmocka_unit_test(the_loss_scale_follows_the_rows),
		cmocka_unit_test(bytes_are_known_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
