/* The test double of cuBLASLt: misuse that the real library might let pass, or answer with wrong numbers, is found. */
#include "tests/device/double/double.h"
#include "tests/device/fixture.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64, BYTES = SIZE * SIZE * 4, WORKSPACE = 1 << 20, PROPOSALS = 8 };

struct setting {
	cublasLtHandle_t handle;
	cublasLtMatmulDesc_t how;
	cublasLtMatrixLayout_t layout;
	cublasLtMatmulPreference_t preference;
	float *a, *b, *d;
	void *workspace;
	cublasLtMatmulHeuristicResult_t proposals[PROPOSALS];
	int count;
};

static void configure(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	double_configure();
}

static cublasStatus_t propose(struct setting *s)
{
	return cublasLtMatmulAlgoGetHeuristic(s->handle, s->how, s->layout, s->layout, s->layout,
		s->layout, s->preference, PROPOSALS, s->proposals, &s->count);
}

static struct setting open_setting(void)
{
	struct setting s = {.a = on_device(BYTES),
		.b = on_device(BYTES),
		.d = on_device(BYTES + 256),
		.workspace = on_device(WORKSPACE)};
	const uint64_t room = WORKSPACE;
	OK(cudaMemset(s.a, 0, BYTES));
	OK(cudaMemset(s.b, 0, BYTES));
	OK(cublasLtCreate(&s.handle));
	OK(cublasLtMatmulDescCreate(&s.how, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	OK(cublasLtMatrixLayoutCreate(&s.layout, CUDA_R_32F, SIZE, SIZE, SIZE));
	OK(cublasLtMatmulPreferenceCreate(&s.preference));
	OK(cublasLtMatmulPreferenceSetAttribute(
		s.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
	OK(propose(&s));
	assert_true(s.count >= 2 && s.proposals[1].workspaceSize > 0);
	return s;
}

static void close_setting(struct setting *s)
{
	OK(cublasLtMatmulPreferenceDestroy(s->preference));
	OK(cublasLtMatrixLayoutDestroy(s->layout));
	OK(cublasLtMatmulDescDestroy(s->how));
	OK(cublasLtDestroy(s->handle));
	OK(cudaFree(s->a));
	OK(cudaFree(s->b));
	OK(cudaFree(s->d));
	OK(cudaFree(s->workspace));
	assert_int_equal(double_live(), 0);
	assert_int_equal(double_allocated(), 0);
}

static cublasStatus_t multiply(
	struct setting *s, int proposal, void *d, void *workspace, size_t room, cudaStream_t stream)
{
	const float one = 1, zero = 0;
	return cublasLtMatmul(s->handle, s->how, &one, s->a, s->layout, s->b, s->layout, &zero, d,
		s->layout, d, s->layout, &s->proposals[proposal].algo, workspace, room, stream);
}

static void refused(cublasStatus_t status, const char *words)
{
	assert_int_equal(status, CUBLAS_STATUS_INVALID_VALUE);
	if (!strstr(double_complaint(), words))
		fail_msg("'%s' does not say '%s'", double_complaint(), words);
}

static void operands_are_looked_at(void **state)
{
	(void)state;
	struct setting s = open_setting();
	float host[4];
	OK(multiply(&s, 1, s.d, s.workspace, WORKSPACE, NULL));
	refused(multiply(&s, 0, host, NULL, 0, NULL), "not in a device's memory");
	refused(multiply(&s, 0, s.d + SIZE + 64, NULL, 0, NULL), "are used");
	refused(multiply(&s, 0, s.d + 1, NULL, 0, NULL), "not aligned");
	refused(multiply(&s, 0, s.a, NULL, 0, NULL), "overlaps A");
	refused(multiply(&s, 1, s.d, NULL, WORKSPACE, NULL), "not in a device's memory");
	refused(multiply(&s, 1, s.d, s.workspace, 256, NULL), "of workspace");
	refused(multiply(&s, 1, s.d, (char *)s.workspace + 16, WORKSPACE - 16, NULL),
		"aligned to 256");
	close_setting(&s);
}

static void algorithms_belong_to_their_product(void **state)
{
	(void)state;
	struct setting s = open_setting();
	const int32_t turned = CUBLAS_OP_T;
	OK(cublasLtMatmulDescSetAttribute(
		s.how, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned));
	refused(multiply(&s, 0, s.d, NULL, 0, NULL), "proposed for another product");
	OK(propose(&s));
	OK(multiply(&s, 0, s.d, NULL, 0, NULL));
	OK(cudaDeviceSynchronize());
	close_setting(&s);
}

static void attributes_have_sizes(void **state)
{
	(void)state;
	struct setting s = open_setting();
	const int64_t wide = CUBLAS_OP_T;
	int32_t turned = -1;
	size_t written = 0;
	refused(cublasLtMatmulDescSetAttribute(
			s.how, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide),
		"takes 4 bytes, 8 were given");
	OK(cublasLtMatmulDescGetAttribute(
		s.how, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned, &written));
	assert_int_equal(turned, CUBLAS_OP_N);
	assert_int_equal(written, sizeof turned);
	close_setting(&s);
}

/* Two products at the same time must not share a workspace; one after the other, they may. */
static void workspaces_are_for_one_product(void **state)
{
	(void)state;
#if defined(__SANITIZE_THREAD__)
	skip(); /* it is a data race, and ThreadSanitizer says so */
#endif
	struct setting s = open_setting();
	cudaStream_t streams[2];
	float *other = on_device(BYTES);
	for (int i = 0; i < 2; i++)
		OK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	configure("MLBENCH_DOUBLE_KERNEL_NS", "30000000");
	OK(multiply(&s, 1, s.d, s.workspace, WORKSPACE, streams[0]));
	OK(multiply(&s, 1, other, s.workspace, WORKSPACE, streams[0]));
	OK(cudaStreamSynchronize(streams[0]));
	assert_int_equal(double_complaints(), 0);
	OK(multiply(&s, 1, s.d, s.workspace, WORKSPACE, streams[0]));
	OK(multiply(&s, 1, other, s.workspace, WORKSPACE, streams[1]));
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
	assert_non_null(strstr(double_complaint(), "the same workspace"));
	configure("MLBENCH_DOUBLE_KERNEL_NS", NULL);
	for (int i = 0; i < 2; i++)
		OK(cudaStreamDestroy(streams[i]));
	OK(cudaFree(other));
	close_setting(&s);
}

static void epilogues_and_devices_can_be_taken_away(void **state)
{
	(void)state;
	struct setting s = open_setting();
	const uint32_t bias = CUBLASLT_EPILOGUE_BIAS, mask = CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
	const int64_t uneven = 72;
	const int32_t turned = CUBLAS_OP_T;
	cublasLtMatrixLayout_t e4m3;
	OK(cublasLtMatmulDescSetAttribute(
		s.how, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias));
	OK(propose(&s));
	configure("MLBENCH_DOUBLE_NO_EPILOGUE", "1");
	assert_int_equal(propose(&s), CUBLAS_STATUS_NOT_SUPPORTED);
	configure("MLBENCH_DOUBLE_NO_EPILOGUE", NULL);
	OK(cublasLtMatmulDescSetAttribute(
		s.how, CUBLASLT_MATMUL_DESC_EPILOGUE, &mask, sizeof mask));
	OK(cublasLtMatmulDescSetAttribute(
		s.how, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &uneven, sizeof uneven));
	refused(propose(&s), "multiple of 128");
	OK(cublasLtMatmulDescSetAttribute(s.how, CUBLASLT_MATMUL_DESC_EPILOGUE,
		&(uint32_t){CUBLASLT_EPILOGUE_DEFAULT}, sizeof(uint32_t)));

	OK(cublasLtMatrixLayoutCreate(&e4m3, CUDA_R_8F_E4M3, SIZE, SIZE, SIZE));
	OK(cublasLtMatmulDescSetAttribute(
		s.how, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned));
	for (int old = 0; old < 2; old++) {
		configure("MLBENCH_DOUBLE_CAPABILITY", old ? "80" : NULL);
		assert_int_equal(
			cublasLtMatmulAlgoGetHeuristic(s.handle, s.how, e4m3, e4m3, s.layout,
				s.layout, s.preference, PROPOSALS, s.proposals, &s.count),
			old ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS);
	}
	configure("MLBENCH_DOUBLE_CAPABILITY", NULL);
	OK(cublasLtMatrixLayoutDestroy(e4m3));
	close_setting(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operands_are_looked_at),
		cmocka_unit_test(algorithms_belong_to_their_product),
		cmocka_unit_test(attributes_have_sizes),
		cmocka_unit_test(workspaces_are_for_one_product),
		cmocka_unit_test(epilogues_and_devices_can_be_taken_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
