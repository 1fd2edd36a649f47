/* What cuBLASLt's opaque objects hold.  Each lies in the caller's or our own storage of the public size. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_LT_OBJECTS_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_LT_OBJECTS_H

#include <cublasLt.h>

namespace twin
{

enum : uint32_t {
	LAYOUT_MAGIC = 0x4c41594f,
	MATMUL_MAGIC = 0x4d41544d,
	PREFERENCE_MAGIC = 0x50524546
};

struct layout {
	uint32_t magic, type;
	uint64_t rows, cols;
	int64_t ld, stride, plane;
	int32_t order, batch;
	uint32_t mode;
};
static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "public size");

enum matrix { A, B, C, D, MATRICES };

struct matmul {
	uint32_t magic;
	int32_t compute, scale, pointer_mode, transpose[3], fill;
	uint32_t epilogue;
	int32_t aux_type, bias_type, sm_target, scale_mode[MATRICES], aux_scale_mode,
		out_scale_mode;
	int8_t fast_accumulation;
	void *bias, *aux;
	int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
	const void *scales[MATRICES], *aux_scale;
	void *amax, *aux_amax, *out_scale;
};
static_assert(sizeof(matmul) <= sizeof(cublasLtMatmulDescOpaque_t), "public size");

struct preference {
	uint32_t magic, search, reductions, alignment[MATRICES];
	float waves;
	uint64_t workspace, implementations;
};
static_assert(sizeof(preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "public size");

/* NULL: the handle is none, or was destroyed. */
const layout *layout_of(cublasLtMatrixLayout_t handle);
const matmul *matmul_of(cublasLtMatmulDesc_t handle);
const preference *preference_of(cublasLtMatmulPreference_t handle);

} // namespace twin

#endif
