/* The models' tables: FLOPs and parameters against what was published, and the order of execution.
 */
#include "workloads/model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FLOPS_TOLERANCE 0.02

static void flops_are_the_published_ones(void **state)
{
	(void)state;
	for (const struct model *const *at = model_list; *at; at++) {
		const double flops = model_forward_flops(*at);
		const double error = fabs(flops / (*at)->published_flops - 1);
		print_message("%s: %.6g FLOPs, published %.6g\n", (*at)->name, flops,
			(*at)->published_flops);
		assert_true(error <= FLOPS_TOLERANCE);
		assert_true(strlen((*at)->source) > 0);
	}
}

/* The sums as they can be done on paper, independent of the tables' sources. */
static void flops_are_exact(void **state)
{
	(void)state;
	assert_true(model_forward_flops(model_find("resnet50")) == 2 * 4089184256.0);
	assert_true(model_forward_flops(model_find("vit_b16")) == 2 * 17563828224.0);
	assert_true(model_forward_flops(model_find("gpt2_small")) == 291648307200.0);
	assert_true(model_forward_flops(model_find("mlp")) == 2 * 668672.0);
}

static void parameters_are_the_published_ones(void **state)
{
	(void)state;
	for (const struct model *const *at = model_list; *at; at++)
		assert_int_equal(model_parameters(*at), (*at)->published_parameters);
}

static void training_is_three_products_less_one(void **state)
{
	(void)state;
	for (const struct model *const *at = model_list; *at; at++) {
		const struct model_shape shape = {
			(*at)->published_elements, (*at)->published_classes, 0};
		const struct model_gemm first = model_gemm_at(*at, 0, shape);
		const double first_flops = 2.0 * first.m * first.n * first.k * first.batched;
		assert_true(
			model_training_flops(*at) == 3 * model_forward_flops(*at) - first_flops);
	}
}

static void mlp_takes_its_input_as_given(void **state)
{
	(void)state;
	const struct model *mlp = model_find("mlp");
	const struct model_shape shape = {3 * 32 * 32, 7, 0};
	assert_int_equal(model_gemm_at(mlp, 0, shape).k, 3072);
	assert_int_equal(model_gemm_at(mlp, 2, shape).n, 7);
	const uint64_t weights = 3072 * 512 + 512 * 512 + 512 * 7;
	assert_true(model_forward_flops_at(mlp, shape) == 2.0 * (double)weights);
	assert_int_equal(model_parameters_at(mlp, shape), weights + 512 + 512 + 7);
	assert_int_equal(mlp->input_elements, 0);
}

static void fixed_models_ignore_the_shape(void **state)
{
	(void)state;
	const struct model *vit = model_find("vit_b16");
	const struct model_shape shape = {12, 3, 0};
	assert_true(model_forward_flops_at(vit, shape) == model_forward_flops(vit));
}

/* As PaLM has it, 2 N + 4 L H Q T per token, but for the norms and biases in N. */
static void sequences_have_their_length(void **state)
{
	(void)state;
	static const uint32_t lengths[] = {128, 512, 1024, 2048};
	const struct model *gpt2 = model_find("gpt2_small");
	const struct model *vit = model_find("vit_b16");
	const struct model_shape table = {0, 0, 0};
	const double weights = 123532032; /* of the blocks' products and of the head */
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		const double tokens = lengths[i];
		const struct model_shape shape = {0, 0, lengths[i]};
		assert_true(model_forward_flops_at(gpt2, shape) ==
			    tokens * (2 * weights + 4.0 * 12 * 12 * 64 * tokens));
		assert_true(
			model_forward_flops_at(vit, shape) == model_forward_flops_at(vit, table));
		assert_int_equal(
			model_parameters_at(gpt2, shape), model_parameters_at(gpt2, table));
	}
}

static void names_are_found(void **state)
{
	(void)state;
	for (const struct model *const *at = model_list; *at; at++)
		assert_ptr_equal(model_find((*at)->name), *at);
	assert_null(model_find("resnet"));
	assert_null(model_find(""));
}

static void walk_runs_blocks_in_order(void **state)
{
	(void)state;
	const struct model *gpt2 = model_find("gpt2_small");
	size_t count = 0;
	for (struct model_walk walk = {0}; model_walk_next(gpt2, &walk); count++) {
		const size_t expected = count < 12 * 6 ? count % 6 : 6;
		assert_int_equal(walk.index, expected);
	}
	assert_int_equal(count, 12 * 6 + 1);
}

static void walk_visits_each_gemm_as_often_as_it_repeats(void **state)
{
	(void)state;
	enum { GEMMS_MAX = 64 };
	for (const struct model *const *at = model_list; *at; at++) {
		uint32_t visits[GEMMS_MAX] = {0};
		assert_true((*at)->gemm_count <= GEMMS_MAX);
		for (struct model_walk walk = {0}; model_walk_next(*at, &walk);)
			visits[walk.index]++;
		for (size_t i = 0; i < (*at)->gemm_count; i++)
			assert_int_equal(visits[i], (*at)->gemms[i].repeat);
	}
}

/* Layers of one shape are one product; together they are all of the model, the largest first. */
static void products_are_the_whole_model(void **state)
{
	(void)state;
	enum { ROOM = 256, BATCH = 8 };
	const struct model_shape shape = {3 * 224 * 224, 1000, 0};
	struct model_product list[ROOM];
	for (size_t i = 0; model_list[i]; i++) {
		const struct model *model = model_list[i];
		const size_t count = model_products(model, shape, BATCH, list, ROOM);
		double share = 0;
		assert_in_range(count, 1, model->gemm_count);
		for (size_t j = 0; j < count; j++) {
			share += list[j].share;
			assert_true(j == 0 || list[j - 1].share >= list[j].share);
			for (size_t k = 0; k < j; k++)
				assert_false(list[k].m == list[j].m && list[k].n == list[j].n &&
					     list[k].k == list[j].k);
		}
		assert_true(fabs(share - 1) < 1e-9);
		assert_int_equal(model_products(model, shape, BATCH, list, 1), 1);
	}
	const struct model *mlp = model_find("mlp");
	assert_int_equal(model_products(mlp, shape, BATCH, list, ROOM), 3);
	assert_true(list[0].m == BATCH && list[0].n == 512 && list[0].k == 3 * 224 * 224);
}

static void products_can_be_cut(void **state)
{
	(void)state;
	const struct model_product product = {.m = 1000, .n = 10, .k = 40};
	assert_int_equal(model_product_rows(&product, 1e9, 1e9), 1000);
	assert_int_equal(model_product_rows(&product, 800 * 500.0, 1e9), 500);
	assert_int_equal(model_product_rows(&product, 1e9, 40 * 77.0), 77);
	assert_int_equal(model_product_rows(&product, 1, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flops_are_the_published_ones),
		cmocka_unit_test(flops_are_exact),
		cmocka_unit_test(parameters_are_the_published_ones),
		cmocka_unit_test(training_is_three_products_less_one),
		cmocka_unit_test(mlp_takes_its_input_as_given),
		cmocka_unit_test(fixed_models_ignore_the_shape),
		cmocka_unit_test(products_are_the_whole_model),
		cmocka_unit_test(products_can_be_cut),
		cmocka_unit_test(sequences_have_their_length),
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(walk_runs_blocks_in_order),
		cmocka_unit_test(walk_visits_each_gemm_as_often_as_it_repeats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
