/* Products of every precision, transposition and epilogue against a float64 loop over the same operands.
 *
 * Tolerances.  An entry is sum a_i b_i, exact in float64 for operands as they are stored.  What a device adds is
 *   - roundoff(D) |D|: the result's rounding, 2^-24 float, 2^-8 bf16, 2^-11 fp16;
 *   - 4 u sum |a_i b_i|: rounding in a chain of k additions, whose partial sums grow as sqrt(i): it goes with sqrt(k) u times
 *     the size of a result, and the factor is four deviations.  u is 2^-24 for fp32; 2^-23 where tensor cores add, as
 *     they cut instead of rounding; 2^-11 for tf32, half of which are operands cut to 10 bits; 2^-12 for fp8, whose sums
 *     keep 13 bits or so behind the largest term (fast_sums).
 * Outputs are poisoned with NaN before, and gaps between rows must stay so. */
#include "tests/device/gemm_fixture.h"

#include <stdio.h>

static void check_product(const struct kind *kind, const struct gemm_problem *problem)
{
	struct product product = product_of(kind, problem);
	struct gemm_plan *plan = open_plan(&product);
	if (plan) {
		run(&product, plan);
		check_result(&product);
		gemm_plan_close(plan);
	}
	product_free(&product);
}

static void every_transposition(
	const struct kind *kind, size_t m, size_t n, size_t k, size_t gap, uint32_t batch)
{
	for (unsigned turned = 0; turned < 4; turned++) {
		const bool a = turned & 1, b = turned & 2;
		if (is_fp8(kind) && (a || !b))
			continue;
		const struct gemm_problem problem = problem_of(kind, m, n, k, a, b, gap, batch);
		check_product(kind, &problem);
	}
}

static void plain_products_are_the_loop_s(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		if (!device_has(&kinds[i])) {
			print_message("not on this device: %s\n", kinds[i].name);
			continue;
		}
		every_transposition(&kinds[i], 48, 80, 64, 0, 1);
		every_transposition(&kinds[i], 32, 16, 144, 16, 1);
		if (!is_fp8(&kinds[i]))
			every_transposition(&kinds[i], 33, 17, 29, 3, 1);
	}
}

static void batches_are_strided(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		if (is_fp8(&kinds[i]))
			continue; /* attention stays in bf16 */
		every_transposition(&kinds[i], 24, 16, 40, 8, 5);
		every_transposition(&kinds[i], 7, 5, 9, 1, 3);
	}
}

/* beta multiplies D itself, or C where there is one; alpha the product. */
static void products_add(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		if (!device_has(&kinds[i]))
			continue;
		struct gemm_problem problem = problem_of(
			&kinds[i], 48, 32, 64, false, true, 0, is_fp8(&kinds[i]) ? 1 : 2);
		problem.adds = true;
		struct product product = product_of(&kinds[i], &problem);
		struct gemm_plan *plan = open_plan(&product);
		if (!plan) {
			product_free(&product);
			continue;
		}
		product.operands.alpha = 0.625f;
		product.operands.beta = 1;
		product.operands.c = product.c.data;
		run(&product, plan);
		check_result(&product);
		/* In place; only where there is something, poison being NaN. */
		product.operands.c = NULL;
		product.operands.beta = -0.5f;
		for (size_t batch = 0; batch < problem.batch; batch++)
			for (size_t row = 0; row < problem.m; row++)
				for (size_t j = 0; j < problem.n; j++) {
					const size_t at = d_index(&product, batch, row, j);
					device_array_set(
						&product.d, at, device_array_get(&product.c, at));
				}
		device_array_up(&product.d);
		run(&product, plan);
		check_result(&product);
		/* beta 0 does not read what is there. */
		product.operands.beta = 0;
		device_array_poison(&product.d);
		run(&product, plan);
		check_result(&product);
		gemm_plan_close(plan);
		product_free(&product);
	}
}

/* --- what is fused ----------------------------------------------------------------------------------------- */

static bool has_activations(const struct kind *kind)
{
	return kind->d != ELEMENT_F32 || kind->a == ELEMENT_F32;
}

static void biases_and_relu_are_fused(void **state)
{
	(void)state;
	static const enum gemm_epilogue epilogues[] = {GEMM_BIAS, GEMM_BIAS_RELU};
	for (size_t i = 0; i < KINDS; i++)
		for (size_t e = 0; e < 2; e++) {
			if (!device_has(&kinds[i]) || !has_activations(&kinds[i]))
				continue;
			struct gemm_problem problem =
				problem_of(&kinds[i], 64, 48, 80, false, is_fp8(&kinds[i]), 16, 1);
			problem.epilogue = epilogues[e];
			check_product(&kinds[i], &problem);
		}
}

/* The bits' order is the library's affair: what counts is that the backward product takes them as they were written. */
static void check_mask(const struct kind *kind)
{
	enum { M = 64, N = 48, K = 80, MASK_LD = GEMM_MASK_BITS };
	struct gemm_problem forward = problem_of(kind, M, N, K, false, is_fp8(kind), 16, 1);
	struct gemm_problem backward = problem_of(kind, M, N, 32, false, true, 16, 1);
	forward.epilogue = GEMM_BIAS_RELU_MASK;
	backward.epilogue = GEMM_RELU_BACKWARD;
	forward.aux_ld = backward.aux_ld = MASK_LD;
	struct product first = product_of(kind, &forward), second = product_of(kind, &backward);
	struct device_array mask = device_array(ELEMENT_E4M3, (size_t)M * MASK_LD / 8);
	struct gemm_plan *first_plan = open_plan(&first), *second_plan = open_plan(&second);
	first.operands.aux = second.operands.aux = mask.data;
	if (first_plan && second_plan) {
		size_t zeros = 0;
		run(&first, first_plan);
		check_result(&first);
		run(&second, second_plan);
		for (size_t j = 0; j < N; j++)
			for (size_t i = 0; i < M; i++) {
				double sizes = 0;
				const double y =
					device_array_get(&first.d, d_index(&first, 0, i, j));
				const double dy = y > 0 ? exact(&second, 0, i, j, &sizes) : 0;
				const double got =
					device_array_get(&second.d, d_index(&second, 0, i, j));
				zeros += y == 0;
				assert_true(fabs(got - dy) <= tolerance(&second, dy, sizes));
			}
		assert_true(zeros > M * N / 4 && zeros < M * N * 3 / 4);
	}
	gemm_plan_close(first_plan);
	gemm_plan_close(second_plan);
	device_array_free(&mask);
	product_free(&first);
	product_free(&second);
}

static void masks_go_from_forward_to_backward(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		/* Of the fp8 kinds only the forward one makes a mask. */
		const bool backward = is_fp8(&kinds[i]) && kinds[i].a != kinds[i].b;
		if (!device_has(&kinds[i]) || !has_activations(&kinds[i]) || backward)
			continue;
		check_mask(&kinds[i]);
	}
}

/* dW = X^T dY, and the column sums of dY beside it, both float. */
static void bias_gradients_are_fused(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		if (is_fp8(&kinds[i]) || kinds[i].d != ELEMENT_F32)
			continue;
		struct gemm_problem problem = problem_of(&kinds[i], 48, 32, 96, true, false, 8, 1);
		problem.epilogue = GEMM_BIAS_BACKWARD;
		struct product product = product_of(&kinds[i], &problem);
		struct gemm_plan *plan = open_plan(&product);
		if (plan) {
			device_array_poison(&product.bias);
			run(&product, plan);
			check_result(&product);
			device_array_down(&product.bias);
		}
		for (size_t j = 0; plan && j < problem.n; j++) {
			double sum = 0, sizes = 0;
			for (size_t l = 0; l < problem.k; l++) {
				sum += b_at(&product, 0, l, j);
				sizes += fabs(b_at(&product, 0, l, j));
			}
			assert_true(fabs(device_array_get(&product.bias, j) - sum) <=
				    DEVIATIONS * kinds[i].unit * sizes + 0x1p-24 * fabs(sum));
		}
		gemm_plan_close(plan);
		product_free(&product);
	}
}

/* --- plans ------------------------------------------------------------------------------------------------- */

static void the_same_input_gives_the_same_bits(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		if (!device_has(&kinds[i]))
			continue;
		const struct gemm_problem problem =
			problem_of(&kinds[i], 64, 48, 512, false, true, 0, 1);
		struct product product = product_of(&kinds[i], &problem);
		char *before = malloc(product.d.bytes);
		assert_non_null(before);
		for (unsigned round = 0; round < 3; round++) {
			struct gemm_plan *plan = open_plan(&product);
			if (!plan)
				break;
			assert_true(gemm_plan_deterministic(plan));
			device_array_poison(&product.d);
			run(&product, plan);
			if (round > 0)
				assert_memory_equal(before, product.d.host, product.d.bytes);
			memcpy(before, product.d.host, product.d.bytes);
			gemm_plan_close(plan);
		}
		free(before);
		product_free(&product);
	}
}

static void identical_problems_share_a_plan(void **state)
{
	(void)state;
	struct gemm_problem problem = problem_of(&kinds[0], 32, 16, 48, false, false, 0, 1);
	struct error err = {""};
	struct gemm_plan *first = NULL, *second = NULL, *other = NULL;
	DEVICE_OK(gemm_plan_open(&first, context, &problem, CANDIDATES, &err));
	DEVICE_OK(gemm_plan_open(&second, context, &problem, CANDIDATES, &err));
	problem.k = 64;
	problem.lda = 64;
	DEVICE_OK(gemm_plan_open(&other, context, &problem, 1, &err));
	assert_ptr_equal(first, second);
	assert_ptr_not_equal(first, other);
	assert_true(gemm_plan_ns(first) > 0);
	assert_true(isnan(gemm_plan_ns(other)));
	gemm_plan_close(first);
	gemm_plan_close(other);
	struct product product = product_of(&kinds[0], &(struct gemm_problem){.m = 32,
							       .n = 16,
							       .k = 48,
							       .lda = 48,
							       .ldb = 16,
							       .ldd = 16,
							       .batch = 1,
							       .stride_a = 33 * 48,
							       .stride_b = 49 * 16,
							       .stride_d = 33 * 16});
	run(&product, second); /* closed once of twice */
	check_result(&product);
	gemm_plan_close(second);
	product_free(&product);
	gemm_plan_close(NULL);
	gemm_context_close(NULL);
}

static void what_cannot_be_is_refused(void **state)
{
	(void)state;
	struct gemm_plan *plan = NULL;
	struct error err = {""};
	const struct kind *fp8 = &kinds[6];
	struct gemm_problem problem = problem_of(fp8, 32, 32, 40, false, true, 0, 1);
	assert_int_equal(gemm_plan_open(&plan, context, &problem, 1, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "multiples of 16"));
	problem = problem_of(fp8, 32, 32, 32, false, false, 0, 1);
	assert_int_equal(gemm_plan_open(&plan, context, &problem, 1, &err), -ENOTSUP);
	problem = problem_of(&kinds[0], 32, 32, 32, false, false, 0, 1);
	problem.epilogue = GEMM_RELU_BACKWARD;
	problem.aux_ld = 32;
	assert_int_equal(gemm_plan_open(&plan, context, &problem, 1, &err), -ENOTSUP);
	assert_null(plan);
	/* A plan that does not add. */
	problem = problem_of(&kinds[0], 32, 32, 32, false, false, 0, 1);
	struct product product = product_of(&kinds[0], &problem);
	plan = open_plan(&product);
	assert_non_null(plan);
	product.operands.beta = 1;
	assert_int_equal(gemm_run(plan, &product.operands, stream, &err), -EINVAL);
	gemm_plan_close(plan);
	product_free(&product);
}

/* Candidates are timed on memory that is lent, where it is enough, and on no other. */
static void lent_memory_is_what_is_overwritten(void **state)
{
	(void)state;
	struct device_array lent = device_array(ELEMENT_F32, 1 << 16);
	const struct gemm_problem problem = problem_of(&kinds[0], 40, 24, 56, true, false, 0, 1);
	struct product product = product_of(&kinds[0], &problem);
	gemm_context_lend(context, lent.data, lent.bytes);
	struct gemm_plan *plan = open_plan(&product);
	gemm_context_lend(context, NULL, 0);
	assert_non_null(plan);
	device_array_down(&lent); /* its frame is untouched */
	assert_false(device_array_untouched(&lent, 0));
	device_array_down(&product.d);
	assert_true(device_array_untouched(&product.d, 0));
	run(&product, plan);
	check_result(&product);
	gemm_plan_close(plan);
	product_free(&product);
	device_array_free(&lent);
}

/* Two streams at once, each with a workspace. */
static void streams_have_workspaces(void **state)
{
	(void)state;
	enum { ROUNDS = 8 };
	const struct gemm_problem problem = problem_of(&kinds[2], 64, 64, 1024, true, false, 0, 1);
	struct product first = product_of(&kinds[2], &problem),
		       second = product_of(&kinds[2], &problem);
	void *workspace = NULL;
	DEVICE_OK(cudaMalloc(&workspace, WORKSPACE));
	struct gemm_plan *plan = open_plan(&first);
	assert_non_null(plan);
	cudaStream_t other;
	struct error err = {""};
	DEVICE_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	second.operands.workspace = workspace;
	for (unsigned round = 0; round < ROUNDS; round++) {
		DEVICE_OK(gemm_run(plan, &first.operands, stream, &err));
		DEVICE_OK(gemm_run(plan, &second.operands, other, &err));
	}
	DEVICE_OK(cudaDeviceSynchronize());
	device_array_down(&first.d);
	device_array_down(&second.d);
	check_result(&first);
	assert_memory_equal(first.d.host, second.d.host, first.d.bytes);
	DEVICE_OK(cudaStreamDestroy(other));
	gemm_plan_close(plan);
	DEVICE_OK(cudaFree(workspace));
	product_free(&first);
	product_free(&second);
}

static int set_up(void **state)
{
	(void)state;
	struct error err = {""};
	const int result = gemm_context_open(&context, WORKSPACE, &err);
	if (result < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return result;
	}
	return (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}

static int tear_down(void **state)
{
	(void)state;
	gemm_context_close(context);
	return (int)cudaStreamDestroy(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_products_are_the_loop_s),
		cmocka_unit_test(batches_are_strided),
		cmocka_unit_test(products_add),
		cmocka_unit_test(biases_and_relu_are_fused),
		cmocka_unit_test(masks_go_from_forward_to_backward),
		cmocka_unit_test(bias_gradients_are_fused),
		cmocka_unit_test(the_same_input_gives_the_same_bits),
		cmocka_unit_test(identical_problems_share_a_plan),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(lent_memory_is_what_is_overwritten),
		cmocka_unit_test(streams_have_workspaces),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
