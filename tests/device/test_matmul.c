/* What the plug-in expects of cuBLASLt: every transposition, type, stride and epilogue that it could use, against a naive
 * loop in double precision.  The test double must compute so, and so must the real library: this program is built for
 * both.  Values are eighths up to 1: all types hold them, and sums are exact in float in any order. */
#include "tests/device/fixture.h"

#include <cublasLt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKSPACE_BYTES = 8 << 20, MASK_BITS = 128, PROPOSALS = 8 };

struct format {
	cudaDataType_t type;
	unsigned bytes, exponent_bits, mantissa_bits;
};
static const struct format f32 = {CUDA_R_32F, 4, 8, 23}, bf16 = {CUDA_R_16BF, 2, 8, 7},
			   f16 = {CUDA_R_16F, 2, 5, 10}, e4m3 = {CUDA_R_8F_E4M3, 1, 4, 3},
			   e5m2 = {CUDA_R_8F_E5M2, 1, 5, 2};

/* Normal numbers and 0, which is all there is here. */
static void encode(const struct format *format, unsigned char *to, double value)
{
	uint32_t bits = 0;
	if (value != 0) {
		int exponent;
		const double fraction = frexp(fabs(value), &exponent); /* 0.5 to 1 */
		const int bias = (1 << (format->exponent_bits - 1)) - 1;
		bits = (uint32_t)lrint((2 * fraction - 1) * (1U << format->mantissa_bits)) +
		       ((uint32_t)(exponent - 1 + bias) << format->mantissa_bits);
		if (value < 0)
			bits |= 1U << (format->exponent_bits + format->mantissa_bits);
	}
	memcpy(to, &bits, format->bytes);
}

static double decode(const struct format *format, const unsigned char *from)
{
	uint32_t bits = 0;
	memcpy(&bits, from, format->bytes);
	const uint32_t mantissa = bits & ((1U << format->mantissa_bits) - 1);
	const uint32_t exponent =
		bits >> format->mantissa_bits & ((1U << format->exponent_bits) - 1);
	const double sign = bits >> (format->exponent_bits + format->mantissa_bits) & 1 ? -1 : 1;
	if (exponent == (1U << format->exponent_bits) - 1 && format != &e4m3)
		return mantissa ? NAN : sign * INFINITY;
	const int bias = (1 << (format->exponent_bits - 1)) - 1;
	const double value = ldexp((double)mantissa, -(int)format->mantissa_bits);
	return sign * (exponent ? ldexp(1 + value, (int)exponent - bias) : ldexp(value, 1 - bias));
}

/* Column-major; `all` is every element that lies there, gaps and batches included. */
struct matrix {
	const struct format *format;
	uint64_t rows, columns, ld, stride;
	size_t all;
	double *values;
	unsigned char *bytes;
	void *device;
};

static struct matrix matrix_open(const struct format *format, uint64_t rows, uint64_t columns,
	uint64_t gap, unsigned batch, unsigned seed)
{
	struct matrix m = {
		format, rows, columns, rows + gap, (rows + gap) * columns, 0, NULL, NULL, NULL};
	m.all = (size_t)m.stride * batch;
	m.values = malloc(m.all * sizeof *m.values);
	m.bytes = malloc(m.all * format->bytes);
	for (size_t i = 0; i < m.all; i++) {
		seed = seed * 1664525 + 1013904223;
		m.values[i] = ((int)(seed >> 16) % 17 - 8) / 8.0;
		encode(format, m.bytes + i * format->bytes, m.values[i]);
	}
	m.device = on_device(m.all * format->bytes);
	OK(cudaMemcpy(m.device, m.bytes, m.all * format->bytes, cudaMemcpyHostToDevice));
	return m;
}

static void matrix_close(struct matrix *m)
{
	OK(cudaFree(m->device));
	free(m->values);
	free(m->bytes);
}

static double at(
	const struct matrix *m, bool transposed, uint64_t row, uint64_t column, unsigned batch)
{
	const uint64_t index = transposed ? row * m->ld + column : column * m->ld + row;
	return m->values[index + batch * m->stride];
}

struct task {
	uint64_t m, n, k, gap;
	bool a_transposed, b_transposed;
	const struct format *a, *b, *d, *bias;
	cublasComputeType_t compute;
	cublasLtEpilogue_t epilogue;
	float alpha, beta, a_scale, b_scale; /* scales: 0: none */
	unsigned batch;
	bool splits; /* take a proposal that sums in parts, if there is one */
};

struct setting {
	struct matrix a, b, d;
	double *before;     /* D */
	struct matrix bias; /* one column */
	void *mask;         /* on the device */
	unsigned char *mask_bits;
	uint64_t mask_ld;
	void *workspace;
	float *scales; /* on the device: of A, of B */
	cublasLtHandle_t handle;
	cublasLtMatmulDesc_t how;
	cublasLtMatrixLayout_t layouts[3];
	cublasLtMatmulPreference_t preference;
};

static cublasLtMatrixLayout_t layout_open(const struct matrix *m, unsigned batch)
{
	cublasLtMatrixLayout_t layout;
	const int32_t count = (int32_t)batch;
	const int64_t stride = (int64_t)m->stride;
	assert_int_equal(cublasLtMatrixLayoutCreate(
				 &layout, m->format->type, m->rows, m->columns, (int64_t)m->ld),
		0);
	assert_int_equal(cublasLtMatrixLayoutSetAttribute(
				 layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
		0);
	assert_int_equal(
		cublasLtMatrixLayoutSetAttribute(layout,
			CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
		0);
	return layout;
}

static void set(
	struct setting *s, cublasLtMatmulDescAttributes_t name, const void *value, size_t bytes)
{
	assert_int_equal(cublasLtMatmulDescSetAttribute(s->how, name, value, bytes), 0);
}

static bool uses_mask(const struct task *t)
{
	return (t->epilogue & 128) != 0;
}

static bool reads_mask(const struct task *t)
{
	return t->epilogue == CUBLASLT_EPILOGUE_DRELU ||
	       t->epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD;
}

static void setting_extras(struct setting *s, const struct task *t)
{
	const int64_t mask_ld = (int64_t)s->mask_ld;
	if (t->bias)
		set(s, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &s->bias.device, sizeof s->bias.device);
	if (uses_mask(t)) {
		const size_t bytes = s->mask_ld * t->n / 8;
		s->mask = on_device(bytes);
		s->mask_bits = malloc(bytes);
		for (size_t i = 0; i < bytes; i++)
			s->mask_bits[i] = (unsigned char)(i * 37);
		OK(cudaMemcpy(s->mask, s->mask_bits, bytes, cudaMemcpyHostToDevice));
		set(s, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &s->mask, sizeof s->mask);
		set(s, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &mask_ld, sizeof mask_ld);
	}
	if (t->a_scale != 0) {
		const float scales[] = {
			t->a_scale, 0, 0, 0, t->b_scale}; /* each aligned to 16 bytes */
		const float *const b_scale = (s->scales = on_device(sizeof scales)) + 4;
		OK(cudaMemcpy(s->scales, scales, sizeof scales, cudaMemcpyHostToDevice));
		set(s, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &s->scales, sizeof s->scales);
		set(s, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &b_scale, sizeof b_scale);
	}
}

static struct setting setting_open(const struct task *t)
{
	struct setting s = {.workspace = on_device(WORKSPACE_BYTES)};
	const int32_t turn[] = {t->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
		t->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N};
	const uint32_t epilogue = t->epilogue;
	const uint64_t room = WORKSPACE_BYTES;
	s.a = matrix_open(t->a, t->a_transposed ? t->k : t->m, t->a_transposed ? t->m : t->k,
		t->gap, t->batch, 1);
	s.b = matrix_open(t->b, t->b_transposed ? t->n : t->k, t->b_transposed ? t->k : t->n,
		t->gap, t->batch, 2);
	s.d = matrix_open(t->d, t->m, t->n, t->gap, t->batch, 3);
	s.before = s.d.values;
	if (t->bias)
		s.bias = matrix_open(
			t->bias, t->epilogue == CUBLASLT_EPILOGUE_BGRADB ? t->n : t->m, 1, 0, 1, 4);
	s.mask_ld = (t->m + MASK_BITS - 1) / MASK_BITS * MASK_BITS;
	assert_int_equal(cublasLtCreate(&s.handle), 0);
	assert_int_equal(cublasLtMatmulDescCreate(&s.how, t->compute, CUDA_R_32F), 0);
	set(&s, CUBLASLT_MATMUL_DESC_TRANSA, &turn[0], sizeof turn[0]);
	set(&s, CUBLASLT_MATMUL_DESC_TRANSB, &turn[1], sizeof turn[1]);
	set(&s, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
	setting_extras(&s, t);
	s.layouts[0] = layout_open(&s.a, t->batch);
	s.layouts[1] = layout_open(&s.b, t->batch);
	s.layouts[2] = layout_open(&s.d, t->batch);
	assert_int_equal(cublasLtMatmulPreferenceCreate(&s.preference), 0);
	assert_int_equal(cublasLtMatmulPreferenceSetAttribute(s.preference,
				 CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room),
		0);
	return s;
}

static void setting_close(struct setting *s)
{
	assert_int_equal(cublasLtMatmulPreferenceDestroy(s->preference), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cublasLtMatrixLayoutDestroy(s->layouts[i]), 0);
	assert_int_equal(cublasLtMatmulDescDestroy(s->how), 0);
	assert_int_equal(cublasLtDestroy(s->handle), 0);
	matrix_close(&s->a);
	matrix_close(&s->b);
	matrix_close(&s->d);
	if (s->bias.device)
		matrix_close(&s->bias);
	OK(cudaFree(s->mask));
	OK(cudaFree(s->scales));
	OK(cudaFree(s->workspace));
	free(s->mask_bits);
}

/* The status of asking for kernels; the count of those that can be used. */
static cublasStatus_t propose(
	struct setting *s, cublasLtMatmulHeuristicResult_t *results, int most, int *count)
{
	return cublasLtMatmulAlgoGetHeuristic(s->handle, s->how, s->layouts[0], s->layouts[1],
		s->layouts[2], s->layouts[2], s->preference, most, results, count);
}

static void run(struct setting *s, const struct task *t, const cublasLtMatmulAlgo_t *algo)
{
	assert_int_equal(
		cublasLtMatmul(s->handle, s->how, &t->alpha, s->a.device, s->layouts[0],
			s->b.device, s->layouts[1], &t->beta, s->d.device, s->layouts[2],
			s->d.device, s->layouts[2], algo, s->workspace, WORKSPACE_BYTES, NULL),
		CUBLAS_STATUS_SUCCESS);
	OK(cudaDeviceSynchronize());
	OK(cudaMemcpy(
		s->d.bytes, s->d.device, s->d.all * s->d.format->bytes, cudaMemcpyDeviceToHost));
	if (s->bias.device)
		OK(cudaMemcpy(s->bias.bytes, s->bias.device, s->bias.all * s->bias.format->bytes,
			cudaMemcpyDeviceToHost));
}

static bool bit_of(const unsigned char *bits, uint64_t index)
{
	return bits[index / 8] >> (index % 8) & 1;
}

static double naive(const struct setting *s, const struct task *t, uint64_t row, uint64_t column,
	unsigned batch)
{
	double sum = 0;
	for (uint64_t p = 0; p < t->k; p++)
		sum += at(&s->a, t->a_transposed, row, p, batch) *
		       at(&s->b, t->b_transposed, p, column, batch);
	if (t->a_scale != 0)
		sum *= (double)t->a_scale * t->b_scale;
	sum = (double)t->alpha * sum +
	      (double)t->beta * s->before[column * s->d.ld + row + batch * s->d.stride];
	if (t->epilogue & CUBLASLT_EPILOGUE_BIAS)
		sum += s->bias.values[row];
	if (t->epilogue & CUBLASLT_EPILOGUE_RELU)
		sum = sum > 0 ? sum : 0;
	if (reads_mask(t) && !bit_of(s->mask_bits, column * s->mask_ld + row))
		sum = 0;
	return sum;
}

static void check_close(const struct format *format, const unsigned char *bytes, double expected)
{
	const double got = decode(format, bytes);
	const double allowed =
		format->bytes == 4 ? 0 : ldexp(fabs(expected), -(int)format->mantissa_bits);
	if (!(fabs(got - expected) <= allowed))
		fail_msg("%.9g, expected %.9g", got, expected);
}

/* Of each row or column of what the gradient is taken from. */
static double bias_gradient(const struct setting *s, const struct task *t, uint64_t index)
{
	double sum = 0;
	if (t->epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD)
		for (uint64_t column = 0; column < t->n; column++)
			sum += naive(s, t, index, column, 0);
	else
		for (uint64_t p = 0; p < t->k; p++)
			sum += t->epilogue == CUBLASLT_EPILOGUE_BGRADA
				       ? at(&s->a, t->a_transposed, index, p, 0)
				       : at(&s->b, t->b_transposed, p, index, 0);
	return sum;
}

static void check(const struct setting *s, const struct task *t)
{
	const size_t bytes = s->d.format->bytes;
	for (unsigned batch = 0; batch < t->batch; batch++)
		for (uint64_t column = 0; column < t->n; column++)
			for (uint64_t row = 0; row < s->d.ld; row++) {
				const size_t index =
					(size_t)(column * s->d.ld + row + batch * s->d.stride);
				const double expected = row < t->m ? naive(s, t, row, column, batch)
								   : s->before[index]; /* a gap */
				check_close(s->d.format, s->d.bytes + index * bytes, expected);
			}
	if (t->bias && !(t->epilogue & CUBLASLT_EPILOGUE_BIAS))
		for (uint64_t i = 0; i < s->bias.rows; i++)
			check_close(s->bias.format, s->bias.bytes + i * s->bias.format->bytes,
				bias_gradient(s, t, i));
}

static void multiply_and_check(const struct task *t)
{
	cublasLtMatmulHeuristicResult_t results[PROPOSALS];
	int count = 0;
	struct setting s = setting_open(t);
	const cublasStatus_t status = propose(&s, results, PROPOSALS, &count);
	if (status != CUBLAS_STATUS_SUCCESS)
		fail_msg("no kernel: %s", cublasLtGetStatusString(status));
	assert_true(count > 0);
	int chosen = 0;
	for (int i = 0; t->splits && i < count; i++)
		if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize > 0)
			chosen = i;
	assert_int_equal(results[chosen].state, CUBLAS_STATUS_SUCCESS);
	assert_true(results[chosen].workspaceSize <= WORKSPACE_BYTES);
	run(&s, t, &results[chosen].algo);
	check(&s, t);
	if (uses_mask(t) && !reads_mask(t)) /* what forward wrote, backward understands */
		OK(cudaMemcpy(s.mask_bits, s.mask, s.mask_ld * t->n / 8, cudaMemcpyDeviceToHost));
	setting_close(&s);
}

static struct task plain(void)
{
	return (struct task){24, 40, 56, 0, false, false, &f32, &f32, &f32, NULL,
		CUBLAS_COMPUTE_32F, CUBLASLT_EPILOGUE_DEFAULT, 1, 0, 0, 0, 1, false};
}

static void every_transposition(void **state)
{
	(void)state;
	need_device();
	for (unsigned turn = 0; turn < 4; turn++)
		for (unsigned gap = 0; gap < 16; gap += 8) {
			struct task t = plain();
			t.a_transposed = turn & 1;
			t.b_transposed = turn & 2;
			t.gap = gap;
			t.alpha = 0.5f;
			t.beta = gap ? 1 : 0;
			multiply_and_check(&t);
		}
}

static void every_type(void **state)
{
	(void)state;
	need_device();
	const struct format *const pairs[][2] = {
		{&f32, &f32}, {&bf16, &bf16}, {&bf16, &f32}, {&f16, &f16}, {&f16, &f32}};
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
		for (unsigned splits = 0; splits < 2; splits++) {
			struct task t = plain();
			t.a = t.b = pairs[i][0];
			t.d = pairs[i][1];
			t.a_transposed = true;
			t.beta = 1;
			t.splits = splits;
			multiply_and_check(&t);
		}
	struct task t = plain();
	t.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
	multiply_and_check(&t);
}

static void odd_shapes(void **state)
{
	(void)state;
	need_device();
	const uint64_t shapes[][3] = {{1, 1, 1}, {1, 7, 3}, {5, 1, 9}, {13, 17, 1}, {33, 65, 127}};
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (unsigned half = 0; half < 2; half++) {
			struct task t = plain();
			t.m = shapes[i][0];
			t.n = shapes[i][1];
			t.k = shapes[i][2];
			t.a = t.b = half ? &bf16 : &f32;
			t.b_transposed = half;
			multiply_and_check(&t);
		}
}

static void batches(void **state)
{
	(void)state;
	need_device();
	struct task t = plain();
	t.batch = 3;
	t.a = t.b = t.d = &bf16;
	t.b_transposed = true;
	t.gap = 8;
	multiply_and_check(&t);
}

static bool has_fp8(void)
{
	struct cudaDeviceProp properties;
	OK(cudaGetDeviceProperties(&properties, 0));
	return properties.major * 10 + properties.minor >= 89;
}

static void fp8(void **state)
{
	(void)state;
	need_device();
	if (!has_fp8())
		skip();
	struct task t = plain();
	t.m = 48;
	t.n = 32;
	t.k = 64;
	t.a_transposed = true;
	t.a = t.b = &e4m3;
	t.d = &bf16;
	t.a_scale = 0.5f;
	t.b_scale = 4;
	multiply_and_check(&t);
	t.b = &e5m2;
	t.d = &f32;
	multiply_and_check(&t);
	t.a = &e5m2;
	t.b = &e4m3;
	multiply_and_check(&t);
}

static void every_epilogue(void **state)
{
	(void)state;
	need_device();
	const cublasLtEpilogue_t epilogues[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
		CUBLASLT_EPILOGUE_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_DRELU,
		CUBLASLT_EPILOGUE_DRELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB};
	const struct format *const formats[] = {&f32, &bf16, &f16};
	for (size_t i = 0; i < sizeof epilogues / sizeof epilogues[0]; i++)
		for (size_t j = 0; j < sizeof formats / sizeof formats[0]; j++) {
			struct task t = plain();
			t.m = 136; /* more than one word of the mask */
			t.a = t.b = t.d = formats[j];
			t.epilogue = epilogues[i];
			t.bias = t.epilogue == CUBLASLT_EPILOGUE_DRELU ? NULL : formats[j];
			t.b_transposed = t.epilogue == CUBLASLT_EPILOGUE_BGRADB;
			if (t.d != &f32 && t.epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD)
				t.k = 8; /* sums of rounded values stay close to exact ones */
			multiply_and_check(&t);
		}
}

/* What forward wrote into the mask lets through backward what was positive, and nothing that was negative. */
static void masks_go_round(void **state)
{
	(void)state;
	need_device();
	struct task forward = plain(), backward = plain();
	cublasLtMatmulHeuristicResult_t result;
	int count = 0;
	forward.m = backward.m = 136;
	forward.epilogue = CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
	forward.bias = &f32;
	backward.epilogue = CUBLASLT_EPILOGUE_DRELU;
	struct setting f = setting_open(&forward), b = setting_open(&backward);
	assert_int_equal(propose(&f, &result, 1, &count), 0);
	run(&f, &forward, &result.algo);
	set(&b, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &f.mask, sizeof f.mask);
	assert_int_equal(propose(&b, &result, 1, &count), 0);
	run(&b, &backward, &result.algo);
	const struct task linear = plain();
	struct task before = forward;
	before.epilogue = CUBLASLT_EPILOGUE_BIAS;
	unsigned through = 0;
	for (uint64_t column = 0; column < forward.n; column++)
		for (uint64_t row = 0; row < forward.m; row++) {
			const size_t index = (size_t)(column * f.d.ld + row) * 4;
			const double input = naive(&f, &before, row, column, 0);
			through += input > 0;
			if (input != 0) /* at 0 a device may let it through, too */
				check_close(&f32, b.d.bytes + index,
					input > 0 ? naive(&b, &linear, row, column, 0) : 0);
		}
	assert_in_range(through, 1, forward.m * forward.n - 1);
	setting_close(&f);
	setting_close(&b);
}

static void refused(const struct task *t)
{
	cublasLtMatmulHeuristicResult_t results[PROPOSALS];
	int count = 0;
	struct setting s = setting_open(t);
	const cublasStatus_t status = propose(&s, results, PROPOSALS, &count);
	assert_true(status == CUBLAS_STATUS_NOT_SUPPORTED ||
		    status == CUBLAS_STATUS_INVALID_VALUE || count == 0);
	setting_close(&s);
}

/* What documentation says is not there; callers rely on being told so. */
static void refusals(void **state)
{
	(void)state;
	need_device();
	struct task t = plain();
	t.m = t.n = t.k = 64;
	t.a = t.b = &e5m2; /* no product of two e5m2 */
	t.a_transposed = true;
	t.d = &bf16;
	refused(&t);
	t.b = &bf16; /* mixed types */
	refused(&t);
	t.a = t.b = &e4m3;
	t.k = 24; /* no multiple of 16 */
	refused(&t);
}

static void proposals_differ(void **state)
{
	(void)state;
	need_device();
	cublasLtMatmulHeuristicResult_t results[PROPOSALS];
	struct task t = plain();
	int count = 0;
	t.m = t.n = t.k = 256;
	struct setting s = setting_open(&t);
	assert_int_equal(propose(&s, results, PROPOSALS, &count), 0);
	assert_true(count >= 2);
	for (int i = 0; i < count; i++)
		for (int j = 0; j < i; j++)
			assert_true(
				memcmp(&results[i].algo, &results[j].algo, sizeof results[i].algo));
	for (int i = 0; i < count; i++)
		if (results[i].state == CUBLAS_STATUS_SUCCESS) {
			run(&s, &t, &results[i].algo);
			check(&s, &t);
		}
	assert_int_equal(propose(&s, results, 0, &count), CUBLAS_STATUS_INVALID_VALUE);
	setting_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transposition),
		cmocka_unit_test(every_type),
		cmocka_unit_test(odd_shapes),
		cmocka_unit_test(batches),
		cmocka_unit_test(fp8),
		cmocka_unit_test(every_epilogue),
		cmocka_unit_test(masks_go_round),
		cmocka_unit_test(refusals),
		cmocka_unit_test(proposals_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
