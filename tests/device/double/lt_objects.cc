/* cuBLASLt's descriptors: creation, attributes, destruction. */
#include "tests/device/double/lt_objects.h"

#include "tests/device/double/state.h"

#include <cstddef>
#include <cstring>
#include <new>

namespace twin
{
namespace
{

struct attribute {
	int name;
	size_t offset, size;
};
#define FIELD(type, name, member)                                  \
	{                                                          \
		name, offsetof(type, member), sizeof(type::member) \
	}

const attribute layout_attributes[] = {
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, type),
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, order),
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, rows),
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_COLS, cols),
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_LD, ld),
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch),
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride),
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, plane),
	FIELD(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, mode),
};

const attribute matmul_attributes[] = {
	FIELD(matmul, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_POINTER_MODE, pointer_mode),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_TRANSA, transpose[0]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_TRANSB, transpose[1]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_TRANSC, transpose[2]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_FILL_MODE, fill),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, bias_stride),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, aux_stride),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, aux_type),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, aux_scale),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, aux_amax),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, aux_scale_mode),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, alpha_stride),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, sm_target),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales[A]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales[B]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, scales[C]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, scales[D]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scale_mode[A]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scale_mode[B]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_C_SCALE_MODE, scale_mode[C]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_D_SCALE_MODE, scale_mode[D]),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, amax),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast_accumulation),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, out_scale),
	FIELD(matmul, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, out_scale_mode),
};

const attribute preference_attributes[] = {
	FIELD(preference, CUBLASLT_MATMUL_PREF_SEARCH_MODE, search),
	FIELD(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace),
	FIELD(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions),
	FIELD(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment[A]),
	FIELD(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment[B]),
	FIELD(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment[C]),
	FIELD(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment[D]),
	FIELD(preference, CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, waves),
	FIELD(preference, CUBLASLT_MATMUL_PREF_IMPL_MASK, implementations),
};

template <size_t count>
const attribute *find(const attribute (&table)[count], int name, const char *who)
{
	for (const attribute &one : table)
		if (one.name == name)
			return &one;
	complain("%s: attribute %d is not known to the double", who, name);
	return nullptr;
}

template <size_t count>
cublasStatus_t set_attribute(const char *who, void *object, const attribute (&table)[count],
	int name, const void *from, size_t bytes)
{
	const attribute *const one = object ? find(table, name, who) : nullptr;
	if (!one || !from || bytes != one->size) {
		complain("%s: attribute %d takes %zu bytes, %zu were given", who, name,
			one ? one->size : 0, bytes);
		return CUBLAS_STATUS_INVALID_VALUE;
	}
	memcpy((char *)object + one->offset, from, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

template <size_t count>
cublasStatus_t get_attribute(const char *who, const void *object, const attribute (&table)[count],
	int name, void *to, size_t bytes, size_t *written)
{
	const attribute *const one = object ? find(table, name, who) : nullptr;
	if (!one || (bytes == 0 ? !written : !to || bytes != one->size))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (bytes)
		memcpy(to, (const char *)object + one->offset, bytes);
	if (written)
		*written = one->size;
	return CUBLAS_STATUS_SUCCESS;
}

void fill(layout *out, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	memset((void *)out, 0, sizeof *out); /* padding, too: it is hashed */
	out->magic = LAYOUT_MAGIC;
	out->type = (uint32_t)type;
	out->rows = rows;
	out->cols = cols;
	out->ld = ld;
	out->order = CUBLASLT_ORDER_COL;
	out->batch = 1;
}

void fill(matmul *out, cublasComputeType_t compute, cudaDataType scale)
{
	memset((void *)out, 0, sizeof *out);
	out->magic = MATMUL_MAGIC;
	out->compute = compute;
	out->scale = scale;
	out->fill = CUBLAS_FILL_MODE_FULL;
	out->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	out->aux_type = out->bias_type = -1;
}

void fill(preference *out)
{
	memset((void *)out, 0, sizeof *out);
	out->magic = PREFERENCE_MAGIC;
	out->search = CUBLASLT_SEARCH_BEST_FIT;
	out->reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
	for (uint32_t &alignment : out->alignment)
		alignment = 256;
	out->implementations = UINT64_MAX;
}

/* Storage of the public size, with our struct in it. */
template <typename Opaque, typename Object, typename... Arguments>
cublasStatus_t create(const char *who, Opaque **out, Object *, Arguments... arguments)
{
	if (!out)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (injected(who))
		return CUBLAS_STATUS_ALLOC_FAILED;
	Opaque *const made = new (std::nothrow) Opaque{};
	if (!made)
		return CUBLAS_STATUS_ALLOC_FAILED;
	fill((Object *)made, arguments...);
	live++;
	*out = made;
	return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque> cublasStatus_t destroy(const char *who, Opaque *object, uint32_t magic)
{
	if (!object)
		return CUBLAS_STATUS_SUCCESS;
	if (*(uint32_t *)object != magic) {
		complain("%s: it is none, or was destroyed before", who);
		return CUBLAS_STATUS_INVALID_VALUE;
	}
	*(uint32_t *)object = 0;
	delete object;
	live--;
	return CUBLAS_STATUS_SUCCESS;
}

} // namespace

const layout *layout_of(cublasLtMatrixLayout_t handle)
{
	const layout *const object = (const layout *)handle;
	return object && object->magic == LAYOUT_MAGIC ? object : nullptr;
}

const matmul *matmul_of(cublasLtMatmulDesc_t handle)
{
	const matmul *const object = (const matmul *)handle;
	return object && object->magic == MATMUL_MAGIC ? object : nullptr;
}

const preference *preference_of(cublasLtMatmulPreference_t handle)
{
	const preference *const object = (const preference *)handle;
	return object && object->magic == PREFERENCE_MAGIC ? object : nullptr;
}

} // namespace twin

using namespace twin;

extern "C" {

cublasStatus_t cublasLtMatrixLayoutCreate(
	cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	return create("cublasLtMatrixLayoutCreate", out, (layout *)nullptr, type, rows, cols, ld);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t out, size_t size,
	cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	if (!out || size < sizeof(layout))
		return CUBLAS_STATUS_ALLOC_FAILED;
	fill((layout *)out, type, rows, cols, ld);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t object)
{
	return destroy("cublasLtMatrixLayoutDestroy", object, LAYOUT_MAGIC);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t object,
	cublasLtMatrixLayoutAttribute_t name, const void *from, size_t bytes)
{
	return set_attribute("cublasLtMatrixLayoutSetAttribute", (void *)layout_of(object),
		layout_attributes, name, from, bytes);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t object,
	cublasLtMatrixLayoutAttribute_t name, void *to, size_t bytes, size_t *written)
{
	return get_attribute("cublasLtMatrixLayoutGetAttribute", layout_of(object),
		layout_attributes, name, to, bytes, written);
}

cublasStatus_t cublasLtMatmulDescCreate(
	cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale)
{
	return create("cublasLtMatmulDescCreate", out, (matmul *)nullptr, compute, scale);
}

cublasStatus_t cublasLtMatmulDescInit_internal(
	cublasLtMatmulDesc_t out, size_t size, cublasComputeType_t compute, cudaDataType_t scale)
{
	if (!out || size < sizeof(matmul))
		return CUBLAS_STATUS_ALLOC_FAILED;
	fill((matmul *)out, compute, scale);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t object)
{
	return destroy("cublasLtMatmulDescDestroy", object, MATMUL_MAGIC);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t object,
	cublasLtMatmulDescAttributes_t name, const void *from, size_t bytes)
{
	return set_attribute("cublasLtMatmulDescSetAttribute", (void *)matmul_of(object),
		matmul_attributes, name, from, bytes);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t object,
	cublasLtMatmulDescAttributes_t name, void *to, size_t bytes, size_t *written)
{
	return get_attribute("cublasLtMatmulDescGetAttribute", matmul_of(object), matmul_attributes,
		name, to, bytes, written);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
	return create("cublasLtMatmulPreferenceCreate", out, (preference *)nullptr);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t out, size_t size)
{
	if (!out || size < sizeof(preference))
		return CUBLAS_STATUS_ALLOC_FAILED;
	fill((preference *)out);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t object)
{
	return destroy("cublasLtMatmulPreferenceDestroy", object, PREFERENCE_MAGIC);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t object,
	cublasLtMatmulPreferenceAttributes_t name, const void *from, size_t bytes)
{
	return set_attribute("cublasLtMatmulPreferenceSetAttribute", (void *)preference_of(object),
		preference_attributes, name, from, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t object,
	cublasLtMatmulPreferenceAttributes_t name, void *to, size_t bytes, size_t *written)
{
	return get_attribute("cublasLtMatmulPreferenceGetAttribute", preference_of(object),
		preference_attributes, name, to, bytes, written);
}

} // extern "C"
