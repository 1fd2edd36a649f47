/* The tables of what cuBLASLt supports, as far as this project could want it. */
#include "tests/device/double/lt_rules.h"

#include "tests/device/double/state.h"

namespace twin
{
namespace
{

enum {
	TILE_BYTES = 16,
	MASK_BITS = 128,
	CC_BF16 = 80,
	CC_FP8 = 89,
	CC_FP8_ANY = 100,
	CC_FP8_TN = 120
};

struct type_row {
	uint32_t a, b, c, d, bias;
};

/* COMPUTE_32F with scale type 32F; C and D are of one type but in fp8. */
const type_row type_rows[] = {
	{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
	{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
	{CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_8F_E4M3, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_8F_E4M3, CUDA_R_16F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF},
	{CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
	{CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
	{CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF},
};

const type_row *types_of(const product &asked)
{
	for (const type_row &row : type_rows)
		if (row.a == asked.of[A].type && row.b == asked.of[B].type &&
			row.c == asked.of[C].type && row.d == asked.of[D].type)
			return &row;
	return nullptr;
}

bool transposed(const product &asked, matrix which)
{
	return asked.how.transpose[which] != CUBLAS_OP_N;
}

/* "" where shapes, strides and batches agree. */
const char *contradiction(const product &asked)
{
	const layout *const of = asked.of;
	const uint64_t rows[] = {asked.m, asked.k, asked.m, asked.m},
		       cols[] = {asked.k, asked.n, asked.n, asked.n};
	if (asked.m == 0 || asked.n == 0 || asked.k == 0)
		return "a dimension is 0";
	for (int i = A; i < MATRICES; i++) {
		const bool turned = i <= B && transposed(asked, (matrix)i);
		if (of[i].rows != (turned ? cols[i] : rows[i]) ||
			of[i].cols != (turned ? rows[i] : cols[i]))
			return "the shapes of the matrices do not fit one another";
		const uint64_t least = of[i].order == CUBLASLT_ORDER_COL ? of[i].rows : of[i].cols;
		if (of[i].ld < 0 || (uint64_t)of[i].ld < least)
			return "a leading dimension is less than its rows";
		if (of[i].batch != of[D].batch || of[i].batch < 1)
			return "the matrices' batch counts differ";
	}
	if (of[D].batch > 1 &&
		(uint64_t)of[D].stride < (uint64_t)of[D].ld * (asked.n - 1) + asked.m)
		return "the results of a batch overlap";
	if (uses_mask(asked.how.epilogue) &&
		(asked.how.aux_ld % MASK_BITS || (uint64_t)asked.how.aux_ld < asked.m))
		return "the mask's leading dimension is no multiple of 128 bits, or too small";
	return "";
}

bool computes_in_float(const product &asked)
{
	const int compute = asked.how.compute;
	const bool all_float = asked.of[A].type == CUDA_R_32F;
	return compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
	       (all_float && compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

const char *unsupported_fp8(const product &asked)
{
	const uint32_t epilogue = asked.how.epilogue;
	const bool turned = transposed(asked, A) && !transposed(asked, B);
	if (set.capability < CC_FP8)
		return "fp8 needs compute capability 8.9";
	if (!turned && (set.capability < CC_FP8_ANY || set.capability >= CC_FP8_TN))
		return "fp8: A must be transposed and B not";
	if (asked.m % TILE_BYTES || asked.n % TILE_BYTES || asked.k % TILE_BYTES)
		return "fp8: dimensions must be multiples of 16";
	for (const layout &of : asked.of)
		if ((size_t)of.ld * type_bytes(of.type) % TILE_BYTES)
			return "fp8: leading dimensions must be multiples of 16 bytes";
	if (uses_mask(epilogue) || sums_bias(epilogue))
		return "fp8: no such epilogue";
	if (asked.how.compute != CUBLAS_COMPUTE_32F)
		return "fp8: the compute type must be 32F";
	return "";
}

const char *unsupported_epilogue(const product &asked)
{
	const uint32_t epilogue = asked.how.epilogue;
	if (epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_RELU)
		return "";
	if (!adds_bias(epilogue) && !sums_bias(epilogue) && !uses_mask(epilogue))
		return "the double has no such epilogue";
	if (set.no_epilogue)
		return "MLBENCH_DOUBLE_NO_EPILOGUE";
	if (asked.of[D].order != CUBLASLT_ORDER_COL)
		return "epilogues write columns";
	if (asked.of[D].batch > 1)
		return "epilogues with bias or mask: one product at a time";
	if ((adds_bias(epilogue) || sums_bias(epilogue)) && asked.how.bias_type != -1 &&
		(uint32_t)asked.how.bias_type != types_of(asked)->bias)
		return "the bias is not of the type that belongs to these matrices";
	if (epilogue == CUBLASLT_EPILOGUE_BGRADA && transposed(asked, A))
		return "BGRADA: A must not be transposed";
	if (epilogue == CUBLASLT_EPILOGUE_BGRADB && !transposed(asked, B))
		return "BGRADB: B must be transposed";
	if (uses_mask(epilogue) || sums_bias(epilogue))
		for (const layout &of : asked.of)
			if ((size_t)of.ld * type_bytes(of.type) % TILE_BYTES)
				return "masks and bias gradients: rows of multiples of 16 bytes";
	return "";
}

/* Those of float begin at multiples of 4 bytes, for which there are kernels always. */
bool rows_are_aligned(const product &asked)
{
	for (const layout &of : asked.of) {
		const size_t bytes = type_bytes(of.type);
		const bool apart = of.batch > 1 && (size_t)of.stride * bytes % TILE_BYTES;
		if (bytes < sizeof(float) && (apart || (size_t)of.ld * bytes % TILE_BYTES))
			return false;
	}
	return true;
}

const char *unsupported(const product &asked)
{
	const matmul &how = asked.how;
	if (!types_of(asked))
		return "no such combination of types";
	if (!computes_in_float(asked) || how.scale != CUDA_R_32F)
		return "no such compute or scale type";
	if (asked.of[A].type != CUDA_R_32F && set.capability < CC_BF16)
		return "the device is too old for these types";
	if (how.pointer_mode != CUBLASLT_POINTER_MODE_HOST || how.transpose[C] != CUBLAS_OP_N ||
		how.fill != CUBLAS_FILL_MODE_FULL)
		return "the double takes alpha and beta from the host, and whole matrices";
	for (const layout &of : asked.of)
		if (of.mode != CUBLASLT_BATCH_MODE_STRIDED || of.plane != 0 ||
			(of.order != CUBLASLT_ORDER_COL && of.order != CUBLASLT_ORDER_ROW))
			return "no such order or batch mode";
	for (int i = A; i < MATRICES; i++)
		if (how.scale_mode[i] != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F)
			return "the double has one scale for each matrix";
	if (set.aligned && !rows_are_aligned(asked))
		return "MLBENCH_DOUBLE_ALIGNED";
	if (is_fp8(asked.of[A].type) && *unsupported_fp8(asked))
		return unsupported_fp8(asked);
	return unsupported_epilogue(asked);
}

} // namespace

size_t type_bytes(uint32_t type)
{
	switch (type) {
	case CUDA_R_32F:
		return 4;
	case CUDA_R_16F:
	case CUDA_R_16BF:
		return 2;
	case CUDA_R_8F_E4M3:
	case CUDA_R_8F_E5M2:
		return 1;
	default:
		return 0;
	}
}

bool is_fp8(uint32_t type)
{
	return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

bool writes_mask(uint32_t epilogue)
{
	return epilogue == CUBLASLT_EPILOGUE_RELU_AUX ||
	       epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
}

bool uses_mask(uint32_t epilogue)
{
	return writes_mask(epilogue) || epilogue == CUBLASLT_EPILOGUE_DRELU ||
	       epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD;
}

bool adds_bias(uint32_t epilogue)
{
	return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
	       epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
}

bool sums_bias(uint32_t epilogue)
{
	return epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD || epilogue == CUBLASLT_EPILOGUE_BGRADA ||
	       epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

uint32_t bias_type(const product &asked)
{
	const type_row *const row = types_of(asked);
	return row ? row->bias : asked.of[D].type;
}

uint64_t bias_length(const product &asked)
{
	return asked.how.epilogue == CUBLASLT_EPILOGUE_BGRADB ? asked.n : asked.m;
}

cublasStatus_t check_product(const product &asked, const char **why)
{
	*why = contradiction(asked);
	if (**why)
		return CUBLAS_STATUS_INVALID_VALUE;
	*why = unsupported(asked);
	if (**why)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	for (int i = A; i < MATRICES; i++)
		if (asked.how.scales[i] && !is_fp8(asked.of[i].type)) {
			*why = "a scale for a matrix that is not fp8";
			return CUBLAS_STATUS_INVALID_VALUE;
		}
	return CUBLAS_STATUS_SUCCESS;
}

} // namespace twin
